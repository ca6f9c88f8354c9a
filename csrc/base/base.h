/*
 * base.h - what every room builds on: memory, errors, growing buffers, small helpers. Knows nothing of events.
 * Any thread, except that a struct buf belongs to whoever holds it.
 */
#ifndef EVREC_BASE_H
#define EVREC_BASE_H

#include "evrec.h"

#include <stdarg.h>
#include <string.h>

#pragma GCC visibility push(hidden)

void *mem_alloc(size_t size);                /* NULL where there is no memory */
void *mem_zalloc(size_t size);               /* zeroed */
void *mem_realloc(void *block, size_t size); /* the old block stays where it fails */
void mem_free(void *block);

/* Fills `err` (may be NULL) and returns `code`. The message is cut to fit, on a character boundary. */
int error_set(evrec_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static inline bool str_eq(evrec_str a, evrec_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline evrec_str str_from(const char *text)
{
	return (evrec_str){ text, text == NULL ? 0 : strlen(text) };
}

/* now - then in ns, 0 where the clock stepped back, and no overflow at the ends of time. */
static inline int64_t time_since(int64_t now, int64_t then)
{
	int64_t elapsed;

	if (now <= then) {
		return 0;
	}
	return __builtin_sub_overflow(now, then, &elapsed) ? INT64_MAX : elapsed;
}

/* A NUL-terminated copy; NULL where there is no memory. */
char *str_dup(evrec_str s);

/*
 * A buffer that grows. Its first failure sticks: later calls do nothing, and `failed` is looked at once, at the end.
 * All zero is an empty buffer.
 */
struct buf {
	char *data;
	size_t len, cap;
	bool failed;
};

bool buf_grow(struct buf *b, size_t more); /* for buf_reserve alone */
void buf_clear(struct buf *b);             /* keeps the memory, forgets a failure */
void buf_free(struct buf *b);

/* Room for `more` bytes and a NUL. */
static inline bool buf_reserve(struct buf *b, size_t more)
{
	return (more < b->cap - b->len && !b->failed) || buf_grow(b, more);
}

static inline void buf_put(struct buf *b, const void *data, size_t len)
{
	if (len != 0 && buf_reserve(b, len)) {
		memcpy(b->data + b->len, data, len);
		b->len += len;
	}
}

static inline void buf_put_str(struct buf *b, evrec_str s)
{
	buf_put(b, s.data, s.len);
}

void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* NUL-terminates, not counting the NUL; "" where there was no memory. */
const char *buf_cstr(struct buf *b);

static inline evrec_str buf_str(const struct buf *b)
{
	return (evrec_str){ b->data, b->len };
}

#pragma GCC visibility pop

#endif

/*
 * base.h - memory, errors, growing buffers and small helpers, for all other folders. Knows nothing of events. Any
 * thread, but a struct buf is for one thread at a time.
 */
#ifndef EVREC_BASE_H
#define EVREC_BASE_H

#include "evrec.h"

#include <stdarg.h>
#include <string.h>

#pragma GCC visibility push(hidden)

/*
 * HOT: each known event runs this function; the linker places such functions side by side. COLD: hardly any event runs
 * it; the compiler moves branches to it out of line. Between two events of an nginx worker other code evicts evrec's
 * from the processor's caches: with these attributes a known event reads 106 cache lines of code in 4 pages instead of
 * 123 in 22, and takes 8 to 11 % less time.
 */
#define HOT __attribute__((hot))
#define COLD __attribute__((cold))

/*
 * A function with AT_LOAD runs when the program, or the shared object, is loaded; one of an earlier place runs first. They
 * register handlers of fork(): if a thread registered them at its first use of a library, a fork that another thread has
 * begun would miss them, and its child would find locks that nobody releases.
 *
 * Handlers that run before a fork run in the reverse order. So a lock has an earlier place than those whose holders may
 * wait for it.
 */
#define AT_LOAD(place) __attribute__((constructor(101 + (place))))
enum load_place { LOAD_FORK_LOCK, LOAD_INNER_LOCKS, LOAD_OUTER_LOCKS, LOAD_HUBS };

void *mem_alloc(size_t size);                /* NULL: no memory */
void *mem_zalloc(size_t size);               /* zeroed */
void *mem_realloc(void *block, size_t size); /* NULL: no memory, and the old block stays valid */
void mem_free(void *block);
/* Writes to each page of a block, so that its user meets no page faults. The block's content is lost. */
void mem_touch(void *block, size_t size);
/*
 * Prefetches the memory at an address, which need not be valid, into the processor's caches. Without the empty asm gcc
 * 12 considers the function pure, and removes its calls.
 */
static inline void mem_prefetch(const void *address)
{
	__builtin_prefetch(address, 1);
	__asm__ volatile("");
}

/* Fills `err` (may be NULL) and returns `code`. The message is cut to fit, on a character boundary. */
int error_set(evrec_error *err, int code, const char *format, ...) COLD __attribute__((format(printf, 3, 4)));

static inline bool str_eq(evrec_str a, evrec_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline evrec_str str_from(const char *text)
{
	return (evrec_str){ text, text == NULL ? 0 : strlen(text) };
}

/* now - then in ns: 0 if the clock was set back, INT64_MAX if the difference does not fit. */
static inline int64_t time_since(int64_t now, int64_t then)
{
	int64_t elapsed;

	if (now <= then) {
		return 0;
	}
	return __builtin_sub_overflow(now, then, &elapsed) ? INT64_MAX : elapsed;
}

/* INT64_MAX if `now` and `wait`, which is not negative, add up to more. */
static inline int64_t time_after(int64_t now, int64_t wait)
{
	return now > INT64_MAX - wait ? INT64_MAX : now + wait;
}

/* As evrec_rfc3339_parse, but a time that does not fit is INT64_MAX, or INT64_MIN + 1 if it is in the past. */
bool rfc3339_parse_clamped(evrec_str text, int64_t *ns);

/* A NUL-terminated copy, freed with mem_free. NULL: no memory. */
char *str_dup(evrec_str s);
/* Sets *to to such a copy, or to NULL if the string is unset. False: no memory. */
bool str_copy(char **to, evrec_str s);
/*
 * Copies the strings into one block, each NUL-terminated, and points them to the copies. The block is freed with
 * mem_free. NULL: no memory.
 */
char *strings_dup(evrec_str *const *strings, size_t n);
/*
 * A copy of the map in one block, which is freed with mem_free; the copies of keys and values are NUL-terminated. *copy points
 * into it. NULL: no memory.
 */
void *map_dup(const evrec_map *map, evrec_map *copy);

/*
 * A growing buffer with a sticky error: after the first failure, which sets `failed`, appending does nothing. So one
 * check at the end is enough. All zero is an empty buffer.
 */
struct buf {
	char *data;
	size_t len, cap;
	bool failed;
	bool is_fixed; /* `data` is the caller's, and cannot grow */
};

bool buf_grow(struct buf *b, size_t more); /* only buf_reserve calls it */
void buf_clear(struct buf *b);             /* keeps the memory, forgets a failure */
void buf_free(struct buf *b);

/*
 * Makes room for `more` bytes and a NUL. False: no memory. Inlining buf_reserve and buf_put saves 153 of 7,947
 * instructions of a new event.
 */
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
/* Terminates the text by a NUL, which `len` does not count, and returns the text. "": no memory. */
const char *buf_cstr(struct buf *b);

static inline evrec_str buf_str(const struct buf *b)
{
	return (evrec_str){ b->data, b->len };
}

#pragma GCC visibility pop

#endif

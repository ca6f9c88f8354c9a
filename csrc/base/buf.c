#include "base/base.h"

#include <stdio.h>

bool buf_grow(struct buf *b, size_t more)
{
	size_t need, cap;
	char *data;

	if (b->failed) {
		return false;
	}
	if (b->is_fixed || more > SIZE_MAX / 2 - b->len) {
		b->failed = true;
		return false;
	}
	need = b->len + more + 1;
	cap = b->cap < 64 ? 64 : b->cap;
	while (cap < need) {
		cap += cap / 2;
	}
	data = mem_realloc(b->data, cap);
	if (data == NULL) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

void buf_free(struct buf *b)
{
	mem_free(b->data);
	*b = (struct buf){ 0 };
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0 || !buf_reserve(b, (size_t)len)) {
		b->failed = true;
		return;
	}
	va_start(args, format);
	(void)vsnprintf(b->data + b->len, (size_t)len + 1, format, args);
	va_end(args);
	b->len += (size_t)len;
}

const char *buf_cstr(struct buf *b)
{
	if (!buf_reserve(b, 0)) {
		return "";
	}
	b->data[b->len] = '\0';
	return b->data;
}

/*
 * bytes.h - reads and writes the numbers and strings of frames. A length is a varint: seven bits a byte, the lowest
 * first. Pure; any thread.
 */
#ifndef EVREC_BYTES_H
#define EVREC_BYTES_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* The bytes that are left to read. After the first error none are left, and every read gives zeros. */
struct bytes {
	const char *at;
	size_t left;
	bool bad;
};

static inline struct bytes bytes_of(evrec_str s)
{
	return (struct bytes){ s.data, s.len, false };
}

void bytes_get(struct bytes *b, void *to, size_t len);
uint64_t bytes_varint(struct bytes *b);
/* A length followed by so many bytes, borrowed. */
evrec_str bytes_str(struct bytes *b);

void bytes_put_varint(struct buf *out, uint64_t value);
void bytes_put_str(struct buf *out, evrec_str s);

#pragma GCC visibility pop

#endif

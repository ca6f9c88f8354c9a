#include "share/bytes.h"

static void fail(struct bytes *b)
{
	b->bad = true;
	b->left = 0;
}

void bytes_get(struct bytes *b, void *to, size_t len)
{
	if (len > b->left) {
		fail(b);
		memset(to, 0, len);
	} else if (len != 0) {
		memcpy(to, b->at, len);
		b->at += len;
		b->left -= len;
	}
}

uint64_t bytes_varint(struct bytes *b)
{
	uint64_t value = 0;
	unsigned char byte;
	unsigned shift;

	for (shift = 0; shift < 63; shift += 7) {
		bytes_get(b, &byte, 1);
		value |= (uint64_t)(byte & 0x7F) << shift;
		if ((byte & 0x80) == 0) {
			return b->bad ? 0 : value;
		}
	}
	fail(b);
	return 0;
}

evrec_str bytes_str(struct bytes *b)
{
	const uint64_t len = bytes_varint(b);
	evrec_str s = { NULL, 0 };

	if (len > b->left) {
		fail(b);
	} else if (len != 0) {
		s = (evrec_str){ b->at, (size_t)len };
		b->at += s.len;
		b->left -= s.len;
	}
	return s;
}

void bytes_put_varint(struct buf *out, uint64_t value)
{
	unsigned char bytes[10];
	size_t n = 0;

	while (value >= 0x80) {
		bytes[n++] = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	bytes[n++] = (unsigned char)value;
	buf_put(out, bytes, n);
}

void bytes_put_str(struct buf *out, evrec_str s)
{
	bytes_put_varint(out, s.len);
	buf_put_str(out, s);
}

/*
 * fuzz.h - shared by the fuzz targets: an input that is read piece by piece, and checks of properties.
 *
 * A target passes any bytes to a part of evrec, and checks the properties that the part has, not only that it survives:
 *
 *   int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
 *   {
 *           struct input in = { .data = data, .left = size };
 *           evrec_str text = input_text(&in);
 *           ...
 *           CHECK(utf8_valid(cleaned));
 *           input_end(&in);
 *           return 0;
 *   }
 */
#ifndef EVREC_FUZZ_H
#define EVREC_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#define T0 (INT64_C(1700000000) * EVREC_SECOND) /* 2023-11-14T22:13:20Z */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

_Noreturn static inline void fuzz_fail(const char *file, int line, const char *what)
{
	(void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

#define CHECK(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))

#define INPUT_BLOCKS 64
#define INPUT_END_OF_TEXT 0xFF /* no part of a character; other bytes still make invalid UTF-8 */

struct input {
	const uint8_t *data;
	size_t left;
	char *blocks[INPUT_BLOCKS];
	size_t blocks_len;
};

/* The next byte; 0 at the end of the input. */
static inline uint8_t input_byte(struct input *in)
{
	if (in->left == 0) {
		return 0;
	}
	in->left--;
	return *in->data++;
}

static inline uint64_t input_u64(struct input *in)
{
	uint64_t value = 0;
	int i;

	for (i = 0; i < 8; i++) {
		value = value << 8 | input_byte(in);
	}
	return value;
}

/* A block of exactly that size, so that a sanitizer detects a read beyond it. input_end frees it. */
static inline char *input_block(struct input *in, size_t size)
{
	char *block = malloc(size);

	CHECK(block != NULL && in->blocks_len < INPUT_BLOCKS);
	in->blocks[in->blocks_len++] = block;
	return block;
}

/* The next bytes. No bytes are { NULL, 0 }, which is unset. */
static inline evrec_str input_take(struct input *in, size_t len)
{
	char *block = NULL;

	CHECK(len <= in->left);
	if (len != 0) {
		block = input_block(in, len);
		memcpy(block, in->data, len);
		in->data += len;
		in->left -= len;
	}
	return (evrec_str){ block, len };
}

/* The bytes before the next INPUT_END_OF_TEXT, which is skipped, or else the rest of the input. */
static inline evrec_str input_text(struct input *in)
{
	const uint8_t *end = in->left == 0 ? NULL : memchr(in->data, INPUT_END_OF_TEXT, in->left);
	evrec_str text = input_take(in, end == NULL ? in->left : (size_t)(end - in->data));

	(void)input_byte(in);
	return text;
}

static inline evrec_str input_rest(struct input *in)
{
	return input_take(in, in->left);
}

static inline void input_end(struct input *in)
{
	while (in->blocks_len > 0) {
		free(in->blocks[--in->blocks_len]);
	}
}

/*
 * The length of the UTF-8 character that `s` begins with, or 0. Decodes the character and checks the number, unlike
 * csrc/base/utf8.c.
 */
static inline size_t fuzz_character(evrec_str s)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char first = s.len == 0 ? 0 : (unsigned char)s.data[0];
	size_t len = first < 0x80 ? 1 : first >> 5 == 0x06 ? 2 : first >> 4 == 0x0E ? 3 : first >> 3 == 0x1E ? 4 : 0;
	uint32_t code = len < 2 ? first : first & (0xFFu >> (len + 1));
	size_t i;

	if (s.len == 0 || len == 0 || s.len < len) {
		return 0;
	}
	for (i = 1; i < len; i++) {
		unsigned char next = (unsigned char)s.data[i];

		if (next >> 6 != 2) {
			return 0;
		}
		code = code << 6 | (next & 0x3F);
	}
	return code < least[len] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? 0 : len;
}

static inline bool fuzz_is_utf8(evrec_str s)
{
	while (s.len != 0) {
		size_t len = fuzz_character(s);

		if (len == 0) {
			return false;
		}
		s.data += len;
		s.len -= len;
	}
	return true;
}

#endif

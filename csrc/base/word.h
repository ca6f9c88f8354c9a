/*
 * word.h - bytes, eight at a time: for strings so short that a call of the C library would be the greater part of the
 * work. Pure; any thread.
 */
#ifndef EVREC_WORD_H
#define EVREC_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Eight bytes. */
static inline uint64_t word_load(const char *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return word;
}

/* Four. */
static inline uint32_t word_load_half(const char *from)
{
	uint32_t half;

	memcpy(&half, from, sizeof(half));
	return half;
}

/* All bytes, some of them perhaps twice, of 1 to 7; `filler` where there are fewer than four. */
static inline uint64_t word_load_short(const char *from, size_t len, uint64_t filler)
{
	uint32_t head;

	if (len < sizeof(head)) {
		head = (uint32_t)(unsigned char)from[0] | (uint32_t)(unsigned char)from[len / 2] << 8 |
		       (uint32_t)(unsigned char)from[len - 1] << 16;
		return filler << 24 | head;
	}
	return (uint64_t)word_load_half(from + len - sizeof(head)) << 32 | word_load_half(from);
}

/* memcmp(a, b, len) == 0 */
static inline bool word_equal(const char *a, const char *b, size_t len)
{
	size_t last, i;

	if (len >= sizeof(uint64_t)) {
		if (len > 4 * sizeof(uint64_t)) {
			return memcmp(a, b, len) == 0;
		}
		last = len - sizeof(uint64_t);
		for (i = 0; i < last; i += sizeof(uint64_t)) {
			if (word_load(a + i) != word_load(b + i)) {
				return false;
			}
		}
		return word_load(a + last) == word_load(b + last);
	}
	if (len >= sizeof(uint32_t)) {
		last = len - sizeof(uint32_t);
		return word_load_half(a) == word_load_half(b) && word_load_half(a + last) == word_load_half(b + last);
	}
	return len == 0 || (a[0] == b[0] && a[len / 2] == b[len / 2] && a[len - 1] == b[len - 1]);
}

/* memcpy(to, from, len) */
static inline void word_copy(char *to, const char *from, size_t len)
{
	uint64_t word;
	uint32_t half;

	if (len > 2 * sizeof(word)) {
		memcpy(to, from, len);
	} else if (len >= sizeof(word)) {
		/* What the two overlap in is written twice. */
		word = word_load(from + len - sizeof(word));
		memcpy(to, from, sizeof(word));
		memcpy(to + len - sizeof(word), &word, sizeof(word));
	} else if (len >= sizeof(half)) {
		memcpy(&half, from + len - sizeof(half), sizeof(half));
		memcpy(to, from, sizeof(half));
		memcpy(to + len - sizeof(half), &half, sizeof(half));
	} else {
		while (len-- > 0) {
			to[len] = from[len];
		}
	}
}

#endif

/*
 * short_bytes.h - compares, copies and loads short strings, eight bytes at a time. For such strings the call of a C
 * library function costs more than its work; the callers say how much is saved. Pure; any thread.
 */
#ifndef EVREC_SHORT_BYTES_H
#define EVREC_SHORT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The eight bytes at `from`. */
static inline uint64_t bytes_load8(const char *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return word;
}

/* The four bytes at `from`. */
static inline uint32_t bytes_load4(const char *from)
{
	uint32_t half;

	memcpy(&half, from, sizeof(half));
	return half;
}

/*
 * A word of the `len` bytes at `from`, 1 to 7, in no particular order; some are in it twice. If there are fewer than
 * four, the low bytes of `filler` fill the rest.
 */
static inline uint64_t bytes_load_short(const char *from, size_t len, uint64_t filler)
{
	uint32_t head;

	if (len < sizeof(head)) {
		head = (uint32_t)(unsigned char)from[0] | (uint32_t)(unsigned char)from[len / 2] << 8 |
		       (uint32_t)(unsigned char)from[len - 1] << 16;
		return filler << 24 | head;
	}
	return (uint64_t)bytes_load4(from + len - sizeof(head)) << 32 | bytes_load4(from);
}

/* memcmp(a, b, len) == 0. The last load of a string may overlap the one before. */
static inline bool bytes_equal(const char *a, const char *b, size_t len)
{
	size_t last, i;

	if (len >= sizeof(uint64_t)) {
		if (len > 4 * sizeof(uint64_t)) {
			return memcmp(a, b, len) == 0;
		}
		last = len - sizeof(uint64_t);
		for (i = 0; i < last; i += sizeof(uint64_t)) {
			if (bytes_load8(a + i) != bytes_load8(b + i)) {
				return false;
			}
		}
		return bytes_load8(a + last) == bytes_load8(b + last);
	}
	if (len >= sizeof(uint32_t)) {
		last = len - sizeof(uint32_t);
		return bytes_load4(a) == bytes_load4(b) && bytes_load4(a + last) == bytes_load4(b + last);
	}
	return len == 0 || (a[0] == b[0] && a[len / 2] == b[len / 2] && a[len - 1] == b[len - 1]);
}

/* Copies `len` bytes, which are at least `size` and at most twice that. The second store may overlap the first one. */
static inline void bytes_copy_two(char *to, const char *from, size_t len, size_t size)
{
	memcpy(to, from, size);
	memcpy(to + len - size, from + len - size, size);
}

/* memcpy(to, from, len) */
static inline void bytes_copy(char *to, const char *from, size_t len)
{
	if (len > 32) {
		memcpy(to, from, len);
	} else if (len >= 16) {
		bytes_copy_two(to, from, len, 16);
	} else if (len >= 8) {
		bytes_copy_two(to, from, len, 8);
	} else if (len >= 4) {
		bytes_copy_two(to, from, len, 4);
	} else if (len != 0) {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		to[len - 1] = from[len - 1];
	}
}

#endif

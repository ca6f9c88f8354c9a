/*
 * utf8.h - checks and repairs UTF-8. Pure; any thread.
 */
#ifndef EVREC_UTF8_H
#define EVREC_UTF8_H

#include "base/base.h"
#include "base/short_bytes.h"

#pragma GCC visibility push(hidden)

/*
 * True if `s` is ASCII without NUL, as most text is. If false, `s` may still be valid UTF-8. The high bit of a byte
 * that is not ASCII is set, and that of a NUL after 1 is subtracted. Checking eight bytes at a time saves 494 of 8,288
 * instructions of a new event.
 */
static inline bool utf8_plain(evrec_str s)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
	uint64_t word, marked = 0;
	size_t i;

	if (s.len < sizeof(word)) {
		word = s.len == 0 ? ones : bytes_load_short(s.data, s.len, ones);
		return ((word | (word - ones)) & highs) == 0;
	}
	for (i = 0; i + sizeof(word) < s.len; i += sizeof(word)) {
		word = bytes_load8(s.data + i);
		marked |= word | (word - ones);
	}
	word = bytes_load8(s.data + s.len - sizeof(word));
	marked |= word | (word - ones);
	return (marked & highs) == 0;
}

/* Well-formed by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool utf8_valid(evrec_str s);

/* Appends `s` with U+FFFD for every byte of invalid UTF-8, as Go, and so the API server, does. */
void utf8_clean(struct buf *out, evrec_str s);

/* The largest length in bytes, at most `max`, that does not cut a character of the UTF-8 string `s` in two. */
size_t utf8_floor(evrec_str s, size_t max);

/* How many bytes of a path a message shows, for "%.*s", so that it has room for its reason. */
int path_shown(const char *path);

/*
 * Writes any bytes as a line for people to `to`, of `size` bytes: UTF-8 as by utf8_clean, without space at the ends,
 * with a space for each control character, cut on a character boundary, NUL-terminated. Empty if there is no memory.
 */
void utf8_line(char *to, size_t size, evrec_str text);

/* Copies as much of the UTF-8 string `s` to `to`, of `size` bytes, as fits with a NUL after it; cuts no character. */
void utf8_copy(char *to, size_t size, evrec_str s);

#pragma GCC visibility pop

#endif

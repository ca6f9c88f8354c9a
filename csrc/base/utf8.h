/*
 * utf8.h - is it UTF-8, and if not, make it so. Pure; any thread.
 */
#ifndef EVREC_UTF8_H
#define EVREC_UTF8_H

#include "base/base.h"
#include "base/word.h"

#pragma GCC visibility push(hidden)

/*
 * True for most text that there is: ASCII without NUL. False tells nothing. Eight bytes at a time, the last of them
 * perhaps a second time: a byte is neither where it has its high bit set, or gets it when one is taken from it.
 */
static inline bool utf8_plain(evrec_str s)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
	uint64_t word, marked = 0;
	size_t i;

	if (s.len < sizeof(word)) {
		word = s.len == 0 ? ones : word_load_short(s.data, s.len, ones);
		return ((word | (word - ones)) & highs) == 0;
	}
	for (i = 0; i + sizeof(word) < s.len; i += sizeof(word)) {
		word = word_load(s.data + i);
		marked |= word | (word - ones);
	}
	word = word_load(s.data + s.len - sizeof(word));
	marked |= word | (word - ones);
	return (marked & highs) == 0;
}

/* Well-formed by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool utf8_valid(evrec_str s);

/* Appends `s` with every byte that is part of no character replaced by U+FFFD, as Go and so the API server do. */
void utf8_clean(struct buf *out, evrec_str s);

/* The largest length <= `max` that does not cut a character of the UTF-8 string `s` in two. */
size_t utf8_floor(evrec_str s, size_t max);

#pragma GCC visibility pop

#endif

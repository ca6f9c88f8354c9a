/*
 * json_text.h - appends strings and numbers of JSON (RFC 8259) to a buffer, in the form in which jansson writes them
 * without flags. Pure. A buffer is for one thread at a time.
 */
#ifndef EVREC_JSON_TEXT_H
#define EVREC_JSON_TEXT_H

#include "base/base.h"
#include "base/short_bytes.h"

#pragma GCC visibility push(hidden)

/* The most bytes of a number. */
#define JSON_NUMBER_MAX 20

/*
 * Not 0: the word has a byte that a JSON string cannot copy without a look: '"', '\\', a byte below ' ', or a byte that
 * is not ASCII. The high bit of such a byte is set; maybe also that of ASCII bytes after it.
 */
static inline uint64_t json_special_bytes(uint64_t word)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
	const uint64_t quotes = word ^ ones * '"', backslashes = word ^ ones * '\\';

	return ((word - ones * ' ') | (quotes - ones) | (backslashes - ones)) & highs;
}

/* Appends a string of UTF-8 with its quotes, and reserves room for `more` bytes behind it. False: no memory. */
bool json_put_utf8(struct buf *out, evrec_str text, size_t more);
/* Likewise, for any bytes: bytes of invalid UTF-8 become U+FFFD. */
bool json_put_string(struct buf *out, evrec_str text, size_t more);
/* Appends a number, for which the buffer has JSON_NUMBER_MAX bytes of room. */
void json_put_number(struct buf *out, uint64_t number);

#pragma GCC visibility pop

#endif

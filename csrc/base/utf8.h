/*
 * utf8.h - is it UTF-8, and if not, make it so. Pure; any thread.
 */
#ifndef EVREC_UTF8_H
#define EVREC_UTF8_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* Well-formed by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool utf8_valid(evrec_str s);

/* Appends `s` with every byte that is part of no character replaced by U+FFFD, as Go and so the API server do. */
void utf8_clean(struct buf *out, evrec_str s);

/* The largest length <= `max` that does not cut a character of the UTF-8 string `s` in two. */
size_t utf8_floor(evrec_str s, size_t max);

#pragma GCC visibility pop

#endif

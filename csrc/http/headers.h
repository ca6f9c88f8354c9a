/*
 * headers.h - header fields that an embedder adds to each request: which ones may be sent, and their values, which are
 * secret. Pure. Any thread.
 */
#ifndef EVREC_HEADERS_H
#define EVREC_HEADERS_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

#define HEADERS_MAX 64

/*
 * 0, or EVREC_EINVALID and a message that begins with "headers: " and shows no value. A name is a token (RFC 9110, 5.6.2),
 * is there once, and is none of those that the client itself sets, or that belong to the connection. A value has no
 * control character but tabs (RFC 9110, 5.5), and no space at its ends.
 */
int headers_check(const evrec_map *headers, evrec_error *err);

/*
 * Overwrites the values in the NUL-terminated `text`: whole values, and the part after the scheme of a value such as
 * "Bearer TOKEN"; also if the text is a line that utf8_line has made. A value of fewer than four bytes is not hidden
 * (secret_hide).
 */
void headers_hide(const evrec_map *headers, char *text);

#pragma GCC visibility pop

#endif

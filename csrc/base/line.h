/* line.h - a line of text for people, in a buffer of fixed size, and evrec_line_to_stderr. Allocates nothing. */
#ifndef EVREC_LINE_H
#define EVREC_LINE_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* Text that does not fit is left out. All zero is an empty line; `text` is NUL-terminated after each call. */
struct line {
	char text[EVREC_LINE_SIZE];
	size_t len;
};

/* Appends text that has no control characters. */
void line_printf(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Appends `s` with "\n", "\t" or "\x1B" for each control character (C0, DEL, C1), and "\xFF" for each byte of invalid
 * UTF-8: no text can begin a new line, or control a terminal.
 */
void line_put_escaped(struct line *line, evrec_str s);

/*
 * Overwrites with '*' each occurrence of `secret` in the NUL-terminated `text`, and a prefix of `secret` of four bytes
 * or more at the end of `text`, as the text may have been cut inside a secret. A secret of fewer than four bytes is not
 * hidden: hiding each of its letters would garble the text, and reveal the secret.
 */
void secret_hide(char *text, evrec_str secret);

#pragma GCC visibility pop

#endif

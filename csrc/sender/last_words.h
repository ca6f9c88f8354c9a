/*
 * last_words.h - how many losses and errors the broadcasters have noted and not told, which the end of the process tells
 * as a number: a script that ends by os.exit(), or by a signal, runs no finalizers. Any thread; a forked child begins
 * at 0.
 */
#ifndef EVREC_LAST_WORDS_H
#define EVREC_LAST_WORDS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* From now on exit() tells the number. Idempotent. */
void last_words_begin(void);
void last_words_add(uint64_t n);
void last_words_subtract(uint64_t n);
/* Writes the number, unless it is 0, as a line to standard error, without waiting. What was told is not told again. */
void last_words_tell(void);

#pragma GCC visibility pop

#endif

/*
 * last_words.h - the number of losses and errors that broadcasters have not printed yet. The end of the process prints
 * it, as a script that ends by os.exit(), or by a signal, runs no finalizers. Any thread; a forked child begins at 0.
 */
#ifndef EVREC_LAST_WORDS_H
#define EVREC_LAST_WORDS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* From now on exit() prints the number. Idempotent. */
void last_words_begin(void);
void last_words_add(uint64_t n);
void last_words_subtract(uint64_t n);
/* Writes the number, unless it is 0, as a line to standard error, without blocking, and sets it to 0. */
void last_words_tell(void);

#pragma GCC visibility pop

#endif

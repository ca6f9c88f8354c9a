/*
 * causes.h - numbers of dropped occurrences by cause: their sum, and their list in a line for people. Pure. Any thread.
 */
#ifndef EVREC_CAUSES_H
#define EVREC_CAUSES_H

#include "base/line.h"

#pragma GCC visibility push(hidden)

/* Returns the sum, and sets *causes, unless `causes` is NULL, to how many causes have occurrences. */
uint64_t causes_sum(const uint64_t dropped[EVREC_CAUSES], unsigned *causes);
/* Appends "2 forbidden, 1 queue_full" or, without `numbers`, "forbidden, queue_full". */
void causes_put(struct line *line, const uint64_t dropped[EVREC_CAUSES], bool numbers);

#pragma GCC visibility pop

#endif

/*
 * retry.h - how long a write that failed waits before its next try. Pure. Any thread.
 */
#ifndef EVREC_RETRY_H
#define EVREC_RETRY_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* A Retry-After that is longer counts as this long, in ns. */
#define RETRY_AFTER_MAX (300 * EVREC_SECOND)

/*
 * The delay in ns after `tries` tries without success (1: after the first): full jitter over a window that doubles from
 * 0.5 s to 30 s, but at least `retry_after`, up to RETRY_AFTER_MAX. `random` is any 64 random bits.
 */
int64_t retry_delay(unsigned tries, int64_t retry_after, uint64_t random);

/*
 * The next of a sequence of random numbers that is good enough for jitter (splitmix64). The owner of the state locks.
 */
uint64_t retry_random(uint64_t *state);

#pragma GCC visibility pop

#endif

/*
 * clock.h - time for the rooms below the public interface. Any thread.
 */
#ifndef EVREC_CLOCK_H
#define EVREC_CLOCK_H

#include "evrec.h"

#pragma GCC visibility push(hidden)

/*
 * Time for waiting: CLOCK_MONOTONIC with the real clock, which no one can step. A fake clock's goes on when that is
 * moved on, so that a test moves back-off and stamps with one hand, and stands when that is set back.
 */
int64_t clock_monotonic(const evrec_clock *clock);
/* The same, late by some milliseconds, for a fraction of the cost. */
int64_t clock_coarse(const evrec_clock *clock);

#pragma GCC visibility pop

#endif

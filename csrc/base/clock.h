/*
 * clock.h - time for the rooms below the public interface. Any thread.
 */
#ifndef EVREC_CLOCK_H
#define EVREC_CLOCK_H

#include "evrec.h"

#pragma GCC visibility push(hidden)

/*
 * The time in ns for timeouts. With the real clock it is CLOCK_MONOTONIC. With a fake clock it advances as far as the
 * clock is set forward, and stays if the clock is set back. So a test drives back-off and timestamps together.
 */
int64_t clock_monotonic(const evrec_clock *clock);
/* The same, up to some milliseconds late (CLOCK_MONOTONIC_COARSE): saves 24 of the 121 ns of a duplicate. */
int64_t clock_coarse(const evrec_clock *clock);

#pragma GCC visibility pop

#endif

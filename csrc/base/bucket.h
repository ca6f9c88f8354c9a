/*
 * bucket.h - one step of a token bucket; the clock is read outside. Whoever holds the bucket owns it.
 *
 * Decides exactly as golang.org/x/time/rate does under client-go's passive rate limiter, down to the way its floating
 * point is rounded, so that the 26th token comes at the same nanosecond.
 */
#ifndef EVREC_BUCKET_H
#define EVREC_BUCKET_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct bucket {
	double tokens;
	int64_t last; /* when `tokens` was right */
};

/* A full bucket. */
static inline void bucket_fill(struct bucket *b, unsigned burst, int64_t now)
{
	b->tokens = burst;
	b->last = now;
}

/* Takes one token; false where there is none. `qps`: tokens a second. A clock that steps back refills nothing. */
bool bucket_take(struct bucket *b, unsigned burst, double qps, int64_t now);

/* How many tokens are in there, and how long, in ns, until there is a whole one: INT64_MAX where never. */
double bucket_tokens(const struct bucket *b, unsigned burst, double qps, int64_t now);
int64_t bucket_wait(const struct bucket *b, unsigned burst, double qps, int64_t now);

#pragma GCC visibility pop

#endif

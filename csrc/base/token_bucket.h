/*
 * token_bucket.h - a token bucket. Pure: the caller passes the time, and owns the bucket.
 *
 * The arithmetic is that of golang.org/x/time/rate, which client-go's passive rate limiter uses, with the same rounding
 * of floating point. So the token after a burst comes at the same nanosecond.
 */
#ifndef EVREC_TOKEN_BUCKET_H
#define EVREC_TOKEN_BUCKET_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct token_bucket {
	double tokens; /* at the time `last` */
	int64_t last;  /* ns since 1970 */
};

/* In all functions `burst` is the size of the bucket in tokens, `qps` the refill in tokens a second, `now` in ns. */

static inline void token_bucket_fill(struct token_bucket *b, unsigned burst, int64_t now)
{
	b->tokens = burst;
	b->last = now;
}

/* Takes one token. False: there is none. A clock that was set back refills nothing. */
bool token_bucket_take(struct token_bucket *b, unsigned burst, double qps, int64_t now);

/* The number of tokens at `now`. */
double token_bucket_tokens(const struct token_bucket *b, unsigned burst, double qps, int64_t now);
/* The time in ns until there is a whole token: 0 if there is one, INT64_MAX if there will never be one. */
int64_t token_bucket_wait(const struct token_bucket *b, unsigned burst, double qps, int64_t now);

#pragma GCC visibility pop

#endif

#include "base/bucket.h"

#include <math.h>

double bucket_tokens(const struct bucket *b, unsigned burst, double qps, int64_t now)
{
	int64_t elapsed = time_since(now, b->last);
	double tokens;

	/* Whole seconds and the rest apart, as Go's Duration.Seconds does. */
	tokens = b->tokens +
	         ((double)(elapsed / EVREC_SECOND) + (double)(elapsed % EVREC_SECOND) / (double)EVREC_SECOND) * qps;
	return tokens > burst ? burst : tokens;
}

bool bucket_take(struct bucket *b, unsigned burst, double qps, int64_t now)
{
	double tokens = bucket_tokens(b, burst, qps, now) - 1;

	/* A debt that takes less than a nanosecond to pay is none. */
	if (burst < 1 || (tokens < 0 && (qps <= 0 || -tokens / qps * 1e9 >= 1))) {
		return false;
	}
	b->tokens = tokens;
	b->last = now;
	return true;
}

int64_t bucket_wait(const struct bucket *b, unsigned burst, double qps, int64_t now)
{
	double missing = 1 - bucket_tokens(b, burst, qps, now), ns;

	if (missing <= 0) {
		return 0;
	}
	ns = qps > 0 ? ceil(missing / qps * (double)EVREC_SECOND) : INFINITY;
	return ns < (double)INT64_MAX ? (int64_t)ns : INT64_MAX;
}

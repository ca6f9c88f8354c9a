#include "base/token_bucket.h"

#include <math.h>

double token_bucket_tokens(const struct token_bucket *b, unsigned burst, double qps, int64_t now)
{
	int64_t elapsed = time_since(now, b->last);
	double tokens;

	/* Go's Duration.Seconds adds whole seconds and the fraction in the same way, and rounds the same. */
	tokens = b->tokens +
	         ((double)(elapsed / EVREC_SECOND) + (double)(elapsed % EVREC_SECOND) / (double)EVREC_SECOND) * qps;
	return tokens > burst ? burst : tokens;
}

HOT bool token_bucket_take(struct token_bucket *b, unsigned burst, double qps, int64_t now)
{
	double tokens = token_bucket_tokens(b, burst, qps, now) - 1;

	/* A debt that refills in less than a nanosecond counts as none, as in x/time/rate's durationFromTokens. */
	if (burst < 1 || (tokens < 0 && (qps <= 0 || -tokens / qps * 1e9 >= 1))) {
		return false;
	}
	b->tokens = tokens;
	b->last = now;
	return true;
}

int64_t token_bucket_wait(const struct token_bucket *b, unsigned burst, double qps, int64_t now)
{
	double missing = 1 - token_bucket_tokens(b, burst, qps, now), ns;

	if (missing <= 0) {
		return 0;
	}
	ns = qps > 0 ? ceil(missing / qps * (double)EVREC_SECOND) : INFINITY;
	return ns < (double)INT64_MAX ? (int64_t)ns : INT64_MAX;
}

#include "base/bucket.h"

bool bucket_take(struct bucket *b, unsigned burst, double qps, int64_t now)
{
	int64_t elapsed = time_since(now, b->last);
	double tokens;

	/* Whole seconds and the rest apart, as Go's Duration.Seconds does. */
	tokens = b->tokens +
	         ((double)(elapsed / EVREC_SECOND) + (double)(elapsed % EVREC_SECOND) / (double)EVREC_SECOND) * qps;
	if (tokens > burst) {
		tokens = burst;
	}
	tokens -= 1;
	/* A debt that takes less than a nanosecond to pay is none. */
	if (burst < 1 || (tokens < 0 && (qps <= 0 || -tokens / qps * 1e9 >= 1))) {
		return false;
	}
	b->tokens = tokens;
	b->last = now;
	return true;
}

#include "outbox/retry.h"

#define WINDOW_FIRST (EVREC_SECOND / 2)
#define WINDOW_MAX (30 * EVREC_SECOND)

int64_t retry_delay(unsigned tries, int64_t retry_after, uint64_t random)
{
	int64_t window = WINDOW_FIRST;
	int64_t delay;

	while (tries > 1 && window < WINDOW_MAX) {
		window *= 2;
		tries--;
	}
	if (window > WINDOW_MAX) {
		window = WINDOW_MAX;
	}
	delay = (int64_t)(random % (uint64_t)(window + 1));
	if (retry_after > RETRY_AFTER_MAX) {
		retry_after = RETRY_AFTER_MAX;
	}
	return delay < retry_after ? retry_after : delay;
}

uint64_t retry_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

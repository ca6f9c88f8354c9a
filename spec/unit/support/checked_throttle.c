#include "checked_throttle.h"

struct throttle throttle_without_jitter(unsigned max_in_flight)
{
	struct throttle t;

	throttle_init(&t, max_in_flight, false);
	return t;
}

void checked_start(struct throttle *t, unsigned n, int64_t now)
{
	while (n-- > 0) {
		assert_true(throttle_next_start(t, now) <= now);
		throttle_started(t, now);
	}
}

bool checked_end(struct throttle *t, enum request_result result, int64_t retry_after, int64_t now)
{
	enum throttle_state before = t->state;
	bool is_back = throttle_ended(t, result, retry_after, now, 0);

	assert_true(t->state == before || throttle_may_step(before, t->state));
	return is_back;
}

int64_t write_full_window(struct throttle *t, unsigned n, int64_t now)
{
	for (unsigned i = 0; i < n; i++, now += MS) {
		while (throttle_next_start(t, now) <= now) {
			throttle_started(t, now);
		}
		checked_end(t, REQUEST_SUCCEEDED, 0, now);
	}
	while (t->in_flight != 0) {
		checked_end(t, REQUEST_OTHER, 0, now);
	}
	return now;
}

int64_t refuse_single(struct throttle *t, int64_t retry_after, int64_t now)
{
	checked_start(t, 1, now);
	checked_end(t, REQUEST_REFUSED, retry_after, now);
	return throttle_next_start(t, now);
}

/* Heartbeats of series under the real clock, whose coarse form is some milliseconds late. */
#define _GNU_SOURCE /* CLOCK_MONOTONIC_COARSE */

#include "series_world.h"

#include <time.h>

#define COARSE (4 * EVREC_SECOND / 1000) /* a kernel's tick */
#define STEP (EVREC_SECOND / 10000)

/* ---- the clocks of this process ---- */

static int64_t now = T0;

int clock_gettime(clockid_t id, struct timespec *t)
{
	/* The steps of the coarse clock do not fall on whole seconds of the day. */
	const int64_t monotonic = now - T0 + COARSE / 3, coarse = monotonic - monotonic % COARSE;
	const int64_t ns = id == CLOCK_REALTIME ? now : id == CLOCK_MONOTONIC_COARSE ? coarse : monotonic;

	*t = (struct timespec){ .tv_sec = ns / EVREC_SECOND, .tv_nsec = ns % EVREC_SECOND };
	return 0;
}

/* ---- tests ---- */

/* An occurrence each 0.1 ms, and a heartbeat each second: nothing else is written, as each is due at the same time. */
static void test_a_burst_has_one_heartbeat_a_second(void **state)
{
	const evrec_series_options options = { .refresh_interval = EVREC_SECOND,
		                               .finish_time = 360 * EVREC_SECOND,
		                               .max_series = 10 };
	struct series_world w = { .real_clock = true };
	unsigned before;

	(void)state;
	series_world_open(&w, &options);
	for (unsigned i = 0; i < 2; i++) {
		series_world_record(&w, "web-0", "a");
		checked_poll(w.b);
	}
	for (int64_t second = 1; second <= 3; second++) {
		now = T0 + second * EVREC_SECOND - 100 * STEP;
		before = w.patches;
		for (unsigned i = 0; i < 200; i++) {
			series_world_record(&w, "web-0", "a");
			checked_poll(w.b);
			now += STEP;
		}
		assert_int_equal(w.patches, before + 1);
	}
	assert_int_equal(w.creates, 1);
	series_world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_burst_has_one_heartbeat_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

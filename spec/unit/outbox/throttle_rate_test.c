/* The throttle's rate limit: when it is set, how it grows, when it is lifted. */
#include "checked_throttle.h"

/* Ten requests a second succeed, then a single one is refused: the limit is nine a second. */
static int64_t limit_to_9(struct throttle *t)
{
	int64_t now = T0;

	*t = throttle_without_jitter(1);
	for (int i = 0; i < 20; i++, now += S / 10) {
		checked_start(t, 1, now);
		checked_end(t, REQUEST_SUCCEEDED, 0, now);
	}
	now = refuse_single(t, 0, now);
	assert_in_range((int64_t)(t->rate * 1000), 8999, 9000);
	return now;
}

static void test_single_refusal_sets_the_rate(void **state)
{
	struct throttle t;
	int64_t now = limit_to_9(&t);

	(void)state;
	checked_start(&t, 1, now);
	checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	assert_in_range(throttle_next_start(&t, now) - now, 80 * MS, 112 * MS);
	assert_int_equal(throttle_window(&t, now), 1);
	assert_int_equal(t.refused, 1);
	/* A timeout sets no rate limit. */
	t = throttle_without_jitter(1);
	write_full_window(&t, 100, T0);
	checked_start(&t, 1, T0 + S);
	checked_end(&t, REQUEST_TIMED_OUT, 0, T0 + 10 * S);
	assert_true(t.rate == 0);
}

static void test_rate_grows_faster_and_faster(void **state)
{
	static const double rates[] = { 9, 9.18, 9.547, 10.311, 11.961, 15.789 };
	struct throttle t;
	int64_t now = limit_to_9(&t);
	size_t turn = 0;

	(void)state;
	while (turn < sizeof(rates) / sizeof(rates[0])) {
		double rate = t.rate;

		assert_true(rate > rates[turn] - 0.01 && rate < rates[turn] + 0.01);
		while (t.rate == rate) {
			now = throttle_next_start(&t, now) > now ? throttle_next_start(&t, now) : now;
			checked_start(&t, 1, now);
			checked_end(&t, REQUEST_SUCCEEDED, 0, now);
		}
		turn++;
	}
	assert_in_range(now - T0, 7 * S, 11 * S);
}

static void test_unused_rate_is_lifted(void **state)
{
	struct throttle t;
	int64_t now = limit_to_9(&t);

	(void)state;
	for (int i = 0; i < 20; i++, now += S / 5) {
		assert_true((t.rate != 0) == (i < 16));
		checked_start(&t, 1, now);
		checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	}
}

/* A refusal with several in flight, but no more than the rate allowed: the rate is lowered, not the window. */
static void test_refusal_under_a_rate_keeps_the_window(void **state)
{
	struct throttle t = throttle_without_jitter(4);
	int64_t now = T0 + S;

	(void)state;
	checked_start(&t, 4, write_full_window(&t, 40, T0));
	for (int i = 0; i < 3; i++) {
		checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	}
	checked_end(&t, REQUEST_REFUSED, 0, now);
	assert_int_equal(t.window, 4);
	assert_true(t.rate != 0);
	for (int i = 0; i < 3; i++) {
		now = throttle_next_start(&t, now);
		checked_start(&t, 1, now);
	}
	checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	checked_end(&t, REQUEST_REFUSED, 0, now);
	assert_int_equal(t.window, 4);
}

/* After a pause the rate holds from the first start on: the second start is an interval later. */
static void test_rate_holds_after_a_pause(void **state)
{
	struct throttle t = throttle_without_jitter(4);
	int64_t now;

	(void)state;
	checked_start(&t, 4, write_full_window(&t, 40, T0));
	for (int i = 0; i < 3; i++) {
		checked_end(&t, REQUEST_SUCCEEDED, 0, T0 + S);
	}
	checked_end(&t, REQUEST_REFUSED, 10 * S, T0 + S);
	now = throttle_next_start(&t, T0 + S);
	assert_int_equal(now, T0 + 11 * S);
	checked_start(&t, 1, now);
	assert_in_range(throttle_next_start(&t, now) - now, (int64_t)((double)S / t.rate) - 1, S);
}

/* The measured rate forgets old successes exponentially. */
static void test_old_successes_are_forgotten(void **state)
{
	struct throttle t = throttle_without_jitter(1);
	int64_t now = T0;

	(void)state;
	for (int i = 0; i < 10000; i++, now += 10 * MS) {
		checked_start(&t, 1, now);
		checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	}
	for (int i = 0; i < 400; i++, now += 100 * MS) {
		checked_start(&t, 1, now);
		checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	}
	refuse_single(&t, 0, now);
	assert_in_range((int64_t)(t.rate * 1000), 9000, 14000);
}

/* An idle hour does not lower the measured rate. */
static void test_idle_time_is_not_measured(void **state)
{
	struct throttle t = throttle_without_jitter(1);
	int64_t now = T0;

	(void)state;
	checked_start(&t, 1, now);
	checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	now += 3600 * S;
	for (int i = 0; i < 20; i++, now += S / 10) {
		checked_start(&t, 1, now);
		checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	}
	refuse_single(&t, 0, now);
	assert_in_range((int64_t)(t.rate * 1000), 8999, 9000);
}

static void test_late_callers_catch_up_a_little(void **state)
{
	struct throttle t;
	int64_t now = limit_to_9(&t);

	(void)state;
	checked_start(&t, 1, now + S / 2);
	checked_end(&t, REQUEST_SUCCEEDED, 0, now + S / 2);
	assert_true(throttle_next_start(&t, now) > now + S / 2 + 80 * MS);
}

static void test_callers_that_are_always_late_keep_the_rate(void **state)
{
	struct throttle t;
	int64_t now = limit_to_9(&t);
	int64_t begun = now;

	(void)state;
	for (int i = 0; i < 9; i++) {
		now = throttle_next_start(&t, now) + 10 * MS;
		checked_start(&t, 1, now);
		checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	}
	assert_in_range(now - begun, 888 * MS, 900 * MS);
}

/* The rate is never below one request in 2 s; pauses slow down further. */
static void test_rate_is_at_least_one_in_2_s(void **state)
{
	struct throttle t = throttle_without_jitter(1);

	(void)state;
	checked_start(&t, 1, T0);
	checked_end(&t, REQUEST_SUCCEEDED, 0, T0 + 100 * S);
	refuse_single(&t, 0, T0 + 100 * S);
	assert_true(t.rate == 0.5);
}

/* A refusal after a long success with the same window sets a rate and keeps the window. */
static void test_proven_window_is_kept(void **state)
{
	struct throttle t = throttle_without_jitter(4);

	(void)state;
	checked_start(&t, 4, write_full_window(&t, 40, T0));
	checked_end(&t, REQUEST_REFUSED, 0, T0 + S);
	assert_int_equal(throttle_window(&t, T0 + 2 * S), 4);
	assert_true(t.rate > 30);
	t = throttle_without_jitter(4);
	checked_start(&t, 4, write_full_window(&t, 20, T0));
	checked_end(&t, REQUEST_REFUSED, 0, T0 + S);
	assert_int_equal(throttle_window(&t, T0 + 2 * S), 3);
	assert_true(t.rate == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_single_refusal_sets_the_rate),
		cmocka_unit_test(test_rate_grows_faster_and_faster),
		cmocka_unit_test(test_unused_rate_is_lifted),
		cmocka_unit_test(test_refusal_under_a_rate_keeps_the_window),
		cmocka_unit_test(test_rate_holds_after_a_pause),
		cmocka_unit_test(test_old_successes_are_forgotten),
		cmocka_unit_test(test_idle_time_is_not_measured),
		cmocka_unit_test(test_late_callers_catch_up_a_little),
		cmocka_unit_test(test_callers_that_are_always_late_keep_the_rate),
		cmocka_unit_test(test_rate_is_at_least_one_in_2_s),
		cmocka_unit_test(test_proven_window_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The throttle's window, its pauses and its outages. */
#include "checked_throttle.h"

static const char *const names[THROTTLE_STATES] = { "open", "cautious", "probing", "paused", "outage" };

static void test_table_of_legal_steps(void **state)
{
	static const char *const legal[] = { "open paused",     "open outage",   "cautious probing", "cautious paused",
		                             "cautious outage", "probing open",  "probing paused",   "probing outage",
		                             "paused cautious", "paused outage", "outage open",      "outage paused" };
	unsigned found = 0;

	(void)state;
	for (int from = 0; from < THROTTLE_STATES; from++) {
		for (int to = 0; to < THROTTLE_STATES; to++) {
			bool expected = false;
			char pair[32];

			snprintf(pair, sizeof(pair), "%s %s", names[from], names[to]);
			for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++) {
				expected = expected || strcmp(legal[i], pair) == 0;
			}
			found += expected;
			if (throttle_may_step((enum throttle_state)from, (enum throttle_state)to) != expected) {
				fail_msg("%s", pair);
			}
		}
	}
	assert_int_equal(found, sizeof(legal) / sizeof(legal[0]));
}

static void test_window_starts_at_4_and_grows_to_its_maximum(void **state)
{
	struct throttle t = throttle_without_jitter(32);

	(void)state;
	assert_int_equal(throttle_window(&t, T0), 4);
	checked_start(&t, 4, T0);
	assert_int_equal(throttle_next_start(&t, T0), INT64_MAX);
	checked_end(&t, REQUEST_OTHER, 0, T0);
	assert_true(throttle_next_start(&t, T0) <= T0);
	t = throttle_without_jitter(32);
	write_full_window(&t, 7, T0);
	assert_int_equal(throttle_window(&t, T0), 5);
	t = throttle_without_jitter(32);
	write_full_window(&t, 195, T0);
	assert_int_equal(throttle_window(&t, T0), 31);
	t = throttle_without_jitter(32);
	write_full_window(&t, 5000, T0);
	assert_int_equal(throttle_window(&t, T0), 32);
	t = throttle_without_jitter(1);
	write_full_window(&t, 5000, T0);
	assert_int_equal(throttle_window(&t, T0), 1);
}

/* The window grows only while it is full. */
static void test_window_grows_only_if_full(void **state)
{
	struct throttle t = throttle_without_jitter(32);

	(void)state;
	for (int i = 0; i < 1000; i++) {
		checked_start(&t, 3, T0);
		for (int j = 0; j < 3; j++) {
			checked_end(&t, REQUEST_SUCCEEDED, 0, T0);
		}
	}
	assert_int_equal(throttle_window(&t, T0), 4);
}

static void test_refusals_cut_the_window_to_what_was_admitted(void **state)
{
	struct throttle t = throttle_without_jitter(32);

	(void)state;
	write_full_window(&t, 28, T0);
	assert_int_equal(throttle_window(&t, T0), 8);
	checked_start(&t, 8, T0);
	checked_end(&t, REQUEST_REFUSED, S, T0);
	assert_int_equal(throttle_window(&t, T0), 0);
	assert_int_equal(throttle_window(&t, T0 + S), 7);
	checked_end(&t, REQUEST_REFUSED, S, T0);
	checked_end(&t, REQUEST_SUCCEEDED, 0, T0);
	checked_end(&t, REQUEST_REFUSED, S, T0);
	assert_int_equal(throttle_window(&t, T0 + S), 5);
	for (int i = 0; i < 4; i++) {
		checked_end(&t, REQUEST_REFUSED, S, T0);
	}
	assert_int_equal(throttle_window(&t, T0 + S), 1);
	assert_int_equal(t.refused, 7);
	assert_int_equal(t.in_flight, 0);
}

static void test_retry_after_is_the_pause(void **state)
{
	struct throttle t = throttle_without_jitter(32);

	(void)state;
	assert_int_equal(refuse_single(&t, 7 * S, T0), T0 + 7 * S);
	t = throttle_without_jitter(32);
	assert_int_equal(refuse_single(&t, 3600 * S, T0), T0 + 300 * S);
	/* Later answers may lengthen the pause, not shorten it. */
	t = throttle_without_jitter(32);
	checked_start(&t, 3, T0);
	checked_end(&t, REQUEST_REFUSED, 2 * S, T0);
	checked_end(&t, REQUEST_REFUSED, 5 * S, T0);
	checked_end(&t, REQUEST_REFUSED, S, T0);
	assert_int_equal(throttle_next_start(&t, T0), T0 + 5 * S);
}

static void test_retry_after_has_jitter_of_a_tenth(void **state)
{
	uint64_t random = unit_seed();
	int tenths[10] = { 0 };

	(void)state;
	for (int i = 0; i < 10000; i++) {
		struct throttle t;
		int64_t late;

		throttle_init(&t, 32, true);
		throttle_started(&t, T0);
		throttle_ended(&t, REQUEST_REFUSED, 10 * S, T0, unit_random(&random));
		late = throttle_next_start(&t, T0) - T0 - 10 * S;
		assert_in_range(late, 0, S);
		tenths[late * 10 / (S + 1)]++;
	}
	for (int i = 0; i < 10; i++) {
		assert_in_range(tenths[i], 800, 1200);
	}
}

static void test_backoff_doubles(void **state)
{
	static const int64_t lengths[] = { 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000 };
	struct throttle t = throttle_without_jitter(32);
	int64_t now = T0;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		assert_int_equal(refuse_single(&t, 0, now), now + lengths[i] * MS);
		now += lengths[i] * MS;
	}
	/* A success resets the backoff. */
	checked_start(&t, 1, now);
	checked_end(&t, REQUEST_SUCCEEDED, 0, now);
	now = refuse_single(&t, 0, now + 100 * S) - 100 * S - now;
	assert_int_equal(now, 100 * MS);
	/* Refusals of requests that were in flight together double the backoff once. */
	t = throttle_without_jitter(32);
	checked_start(&t, 4, T0);
	for (int i = 0; i < 4; i++) {
		checked_end(&t, REQUEST_REFUSED, 0, T0);
	}
	assert_int_equal(throttle_next_start(&t, T0), T0 + 100 * MS);
}

static void test_backoff_jitter_is_the_upper_half(void **state)
{
	uint64_t random = unit_seed();
	int halves[2] = { 0 };

	(void)state;
	for (int i = 0; i < 4000; i++) {
		struct throttle t;
		int64_t length;

		throttle_init(&t, 32, true);
		throttle_started(&t, T0);
		throttle_ended(&t, REQUEST_REFUSED, 0, T0, unit_random(&random));
		length = throttle_next_start(&t, T0) - T0;
		assert_in_range(length, 50 * MS, 100 * MS);
		halves[length > 75 * MS]++;
	}
	assert_in_range(halves[0], 1800, 2200);
}

/* The server admits one at a time. Probes with a window of two come after 16 s at least, and ever more rarely. */
static void test_probes_become_rarer(void **state)
{
	struct throttle t = throttle_without_jitter(32);
	unsigned needs = 64;
	int64_t now;

	(void)state;
	checked_start(&t, 2, T0);
	checked_end(&t, REQUEST_REFUSED, S, T0);
	checked_end(&t, REQUEST_SUCCEEDED, 0, T0);
	now = write_full_window(&t, 10000, T0 + S);
	assert_int_equal(t.state, THROTTLE_CAUTIOUS);
	write_full_window(&t, 1, T0 + 17 * S - 1);
	assert_int_equal(t.state, THROTTLE_CAUTIOUS);
	for (now = T0 + 17 * S; needs <= 4096; needs *= 2, now += 100 * S) {
		now = write_full_window(&t, 1, now);
		assert_int_equal(t.state, THROTTLE_PROBING);
		assert_int_equal(throttle_window(&t, now), 2);
		checked_start(&t, 2, now);
		checked_end(&t, REQUEST_REFUSED, S, now);
		checked_end(&t, REQUEST_SUCCEEDED, 0, now);
		assert_int_equal(throttle_window(&t, now + S), 1);
		now = write_full_window(&t, (needs < 512 ? 2 * needs : 1024) - 1, now + 50 * S);
		assert_int_equal(t.state, THROTTLE_CAUTIOUS);
	}
}

static void test_successful_probe_reopens_the_window(void **state)
{
	struct throttle t = throttle_without_jitter(32);
	int64_t now;

	(void)state;
	checked_start(&t, 2, T0);
	checked_end(&t, REQUEST_REFUSED, S, T0);
	checked_end(&t, REQUEST_SUCCEEDED, 0, T0);
	now = write_full_window(&t, 64, T0 + 17 * S);
	assert_int_equal(t.state, THROTTLE_PROBING);
	now = write_full_window(&t, 63, now);
	assert_int_equal(t.state, THROTTLE_PROBING);
	now = write_full_window(&t, 1, now);
	assert_int_equal(t.state, THROTTLE_OPEN);
	write_full_window(&t, 1000, now);
	assert_int_equal(throttle_window(&t, now), 32);
}

/* A long backoff does not delay the next probe: after a success the backoff would be short. */
static void test_long_backoff_does_not_delay_probes(void **state)
{
	struct throttle t = throttle_without_jitter(32);
	int64_t now = T0;

	(void)state;
	checked_start(&t, 4, now);
	for (int i = 0; i < 4; i++) {
		checked_end(&t, REQUEST_REFUSED, 0, now);
	}
	for (int i = 0; i < 9; i++) {
		now = refuse_single(&t, 0, throttle_next_start(&t, now));
	}
	write_full_window(&t, 64, write_full_window(&t, 64, now) + 2 * S);
	assert_int_equal(t.state, THROTTLE_PROBING);
}

static void miss(struct throttle *t, int64_t now)
{
	assert_int_equal(throttle_window(t, now), 1);
	checked_start(t, 1, now);
	assert_int_equal(throttle_next_start(t, now), INT64_MAX);
	checked_end(t, REQUEST_UNANSWERED, 0, now);
}

static void test_unanswered_requests_are_an_outage(void **state)
{
	static const int64_t lengths[] = { 1000, 2000, 3000, 3000, 3000 };
	struct throttle t = throttle_without_jitter(32);
	int64_t now = T0;

	(void)state;
	checked_start(&t, 4, now);
	for (int i = 0; i < 3; i++) {
		checked_end(&t, REQUEST_UNANSWERED, 0, now);
	}
	assert_int_equal(throttle_window(&t, now), 4);
	checked_end(&t, REQUEST_UNANSWERED, 0, now);
	assert_int_equal(throttle_window(&t, now), 0);
	assert_int_equal(throttle_next_start(&t, now), now + S / 2);
	now += S / 2;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		miss(&t, now);
		assert_int_equal(throttle_next_start(&t, now), now + lengths[i] * MS);
		now += lengths[i] * MS;
	}
	checked_start(&t, 1, now);
	assert_true(checked_end(&t, REQUEST_OTHER, 0, now));
	assert_int_equal(throttle_window(&t, now), 4);
	assert_int_equal(t.refused, 0);
	checked_start(&t, 1, now);
	assert_false(checked_end(&t, REQUEST_SUCCEEDED, 0, now));
}

static void test_any_answer_prevents_an_outage(void **state)
{
	static const enum request_result answers[] = { REQUEST_SUCCEEDED, REQUEST_OTHER, REQUEST_REFUSED };

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct throttle t = throttle_without_jitter(32);

		for (int j = 0; j < 100; j++) {
			int64_t now = T0 + j * 100 * S;

			checked_start(&t, 1, now);
			checked_end(&t, j % 4 == 3 ? answers[i] : REQUEST_UNANSWERED, 0, now);
			assert_int_not_equal(t.state, THROTTLE_OUTAGE);
		}
	}
}

/* After an outage the window is small: the server may just have started. */
static void test_window_is_small_after_an_outage(void **state)
{
	struct throttle t = throttle_without_jitter(32);

	(void)state;
	write_full_window(&t, 1000, T0);
	assert_int_equal(throttle_window(&t, T0), 32);
	checked_start(&t, 5, T0);
	for (int i = 0; i < 4; i++) {
		checked_end(&t, REQUEST_UNANSWERED, 0, T0);
	}
	assert_int_equal(throttle_window(&t, T0), 0);
	assert_true(checked_end(&t, REQUEST_SUCCEEDED, 0, T0));
	assert_int_equal(throttle_window(&t, T0), 4);
	checked_start(&t, 4, T0);
}

/* Failures of requests from before the outage do not lengthen it; an answer to one of them ends it. */
static void test_requests_from_before_do_not_lengthen_an_outage(void **state)
{
	struct throttle t = throttle_without_jitter(32);

	(void)state;
	write_full_window(&t, 28, T0);
	checked_start(&t, 8, T0);
	for (int i = 0; i < 7; i++) {
		checked_end(&t, REQUEST_UNANSWERED, 0, T0);
	}
	assert_int_equal(throttle_window(&t, T0 + S / 2), 1);
	assert_int_equal(throttle_next_start(&t, T0), INT64_MAX);
	assert_true(checked_end(&t, REQUEST_REFUSED, 5 * S, T0));
	assert_int_equal(t.state, THROTTLE_PAUSED);
	assert_int_equal(throttle_next_start(&t, T0), T0 + 5 * S);
}

/* A timeout counts as a refusal; four in a row are an outage. */
static void test_timeouts_count_as_refusals(void **state)
{
	struct throttle t = throttle_without_jitter(32);

	(void)state;
	checked_start(&t, 4, T0);
	checked_end(&t, REQUEST_TIMED_OUT, 0, T0);
	assert_int_equal(t.state, THROTTLE_PAUSED);
	assert_int_equal(throttle_window(&t, T0 + S), 3);
	assert_int_equal(t.refused, 1);
	for (int i = 0; i < 3; i++) {
		checked_end(&t, REQUEST_TIMED_OUT, 0, T0);
	}
	assert_int_equal(t.state, THROTTLE_OUTAGE);
	checked_start(&t, 1, T0 + S);
	assert_true(checked_end(&t, REQUEST_SUCCEEDED, 0, T0 + S));
	assert_int_equal(throttle_window(&t, T0 + S), 1);
}

/* An outage does not shorten the pause that the server asked for. */
static void test_outage_keeps_a_longer_pause(void **state)
{
	struct throttle t = throttle_without_jitter(8);

	(void)state;
	write_full_window(&t, 28, T0);
	checked_start(&t, 8, T0);
	checked_end(&t, REQUEST_REFUSED, 60 * S, T0);
	for (int i = 0; i < 7; i++) {
		checked_end(&t, REQUEST_UNANSWERED, 0, T0);
	}
	assert_int_equal(t.state, THROTTLE_OUTAGE);
	assert_int_equal(throttle_next_start(&t, T0), T0 + 60 * S);
}

/* As a fake clock may show them. */
static void test_pauses_end_with_time_itself(void **state)
{
	const int64_t late = INT64_MAX - S;
	struct throttle t = throttle_without_jitter(32);

	(void)state;
	assert_true(refuse_single(&t, 5 * S, late) == INT64_MAX && throttle_window(&t, late) == 0);
	t = throttle_without_jitter(32);
	checked_start(&t, 4, late);
	for (unsigned i = 0; i < 4; i++) {
		checked_end(&t, REQUEST_UNANSWERED, 0, INT64_MAX - 1);
	}
	assert_true(t.state == THROTTLE_OUTAGE && throttle_window(&t, INT64_MAX - 1) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_of_legal_steps),
		cmocka_unit_test(test_window_starts_at_4_and_grows_to_its_maximum),
		cmocka_unit_test(test_window_grows_only_if_full),
		cmocka_unit_test(test_refusals_cut_the_window_to_what_was_admitted),
		cmocka_unit_test(test_retry_after_is_the_pause),
		cmocka_unit_test(test_retry_after_has_jitter_of_a_tenth),
		cmocka_unit_test(test_backoff_doubles),
		cmocka_unit_test(test_backoff_jitter_is_the_upper_half),
		cmocka_unit_test(test_probes_become_rarer),
		cmocka_unit_test(test_successful_probe_reopens_the_window),
		cmocka_unit_test(test_long_backoff_does_not_delay_probes),
		cmocka_unit_test(test_unanswered_requests_are_an_outage),
		cmocka_unit_test(test_any_answer_prevents_an_outage),
		cmocka_unit_test(test_window_is_small_after_an_outage),
		cmocka_unit_test(test_requests_from_before_do_not_lengthen_an_outage),
		cmocka_unit_test(test_timeouts_count_as_refusals),
		cmocka_unit_test(test_outage_keeps_a_longer_pause),
		cmocka_unit_test(test_pauses_end_with_time_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

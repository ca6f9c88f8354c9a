/* A sink with a minimum interval: one write of an event in that time, with the count that it has by then. */
#include "recorder_fixture.h"

#include "sink/sink.h"

#define S EVREC_SECOND
#define INTERVAL (60 * S)
#define MS (S / 1000)

/* Starts recording to the fixture's sink, with so many tokens for each object. */
static evrec_watch *start_with(struct recorder_fixture *f, unsigned burst, size_t cache)
{
	evrec_correlator_options options;
	evrec_watch *watch;

	evrec_correlator_options_init(&options);
	options.burst_size = burst;
	options.lru_cache_size = cache;
	f->sink->min_interval = INTERVAL;
	watch = evrec_broadcaster_start_recording_to_sink(f->b, f->sink, &options, NULL);
	assert_non_null(watch);
	return watch;
}

static void start(struct recorder_fixture *f)
{
	evrec_watch_free(start_with(f, 1000000, 4096));
}

static void record(struct recorder_fixture *f, const char *object, unsigned times)
{
	while (times-- > 0) {
		assert_int_equal(recorder_fixture_record(f, object, "R", "m"), 0);
	}
}

/* Polls at T0 + `after` ns. */
static void poll_at(struct recorder_fixture *f, int64_t after)
{
	evrec_clock_set(f->clock, T0 + after);
	checked_poll(f->b);
}

static void check(struct recorder_fixture *f, unsigned creates, unsigned patches, int32_t count, unsigned counted)
{
	const evrec_sink_stats s = stats_check_equations(f->b);

	assert_int_equal(f->creates, creates);
	assert_int_equal(f->patches, patches);
	assert_int_equal(f->last_count, count);
	assert_int_equal(s.counted, counted);
	assert_int_equal(s.pending, 0);
	assert_int_equal(s.pending_writes, 0);
}

static void test_a_thousand_duplicates_are_one_write_more(void **state)
{
	struct recorder_fixture *f = *state;

	start(f);
	record(f, "a", 1);
	checked_poll(f->b);
	check(f, 1, 0, 1, 0);
	for (int i = 1; i <= 1000; i++) {
		evrec_clock_set(f->clock, T0 + i * 59 * MS);
		record(f, "a", 1);
		checked_poll(f->b);
	}
	check(f, 1, 0, 1, 1000);
	poll_at(f, INTERVAL - 1);
	check(f, 1, 0, 1, 1000);
	/* No call records anything from here on. */
	poll_at(f, INTERVAL);
	check(f, 1, 1, 1001, 0);
	assert_string_equal(f->last_patch,
	                    "{\"count\":1001,\"lastTimestamp\":\"2023-11-14T22:14:19Z\",\"message\":\"m\"}");
	assert_int_equal(stats_check_equations(f->b).coalesced, 999);
	poll_at(f, 10 * INTERVAL);
	check(f, 1, 1, 1001, 0);
}

static void test_the_next_interval_begins_with_a_deferred_write(void **state)
{
	struct recorder_fixture *f = *state;

	start(f);
	record(f, "a", 1);
	poll_at(f, 30 * S);
	record(f, "a", 1);
	poll_at(f, 61 * S);
	check(f, 1, 1, 2, 0);
	record(f, "a", 1);
	poll_at(f, 119 * S);
	check(f, 1, 1, 2, 1);
	poll_at(f, 120 * S);
	check(f, 1, 2, 3, 0);
}

static void test_after_a_quiet_hour_a_duplicate_is_written_at_once(void **state)
{
	struct recorder_fixture *f = *state;

	start(f);
	record(f, "a", 1);
	poll_at(f, S);
	record(f, "a", 1);
	poll_at(f, INTERVAL);
	check(f, 1, 1, 2, 0);
	poll_at(f, 3600 * S);
	record(f, "a", 1);
	checked_poll(f->b);
	check(f, 1, 2, 3, 0);
}

static void test_two_events_do_not_delay_each_other(void **state)
{
	struct recorder_fixture *f = *state;

	start(f);
	record(f, "a", 1);
	poll_at(f, 30 * S);
	record(f, "b", 1);
	checked_poll(f->b);
	check(f, 2, 0, 1, 0);
	record(f, "a", 1);
	record(f, "b", 2);
	checked_poll(f->b);
	check(f, 2, 0, 1, 3);
	poll_at(f, 60 * S);
	check(f, 2, 1, 2, 2);
	poll_at(f, 90 * S);
	check(f, 2, 2, 3, 0);
}

static void test_a_flush_writes_what_is_counted(void **state)
{
	struct recorder_fixture *f = *state;

	start(f);
	record(f, "a", 1);
	checked_poll(f->b);
	record(f, "a", 4);
	evrec_clock_set(f->clock, T0 + 20 * S);
	assert_int_equal(checked_flush(f->b, S), 0);
	check(f, 1, 1, 5, 0);
	/* Which begins an interval. */
	poll_at(f, 79 * S);
	record(f, "a", 1);
	checked_poll(f->b);
	check(f, 1, 1, 5, 1);
	poll_at(f, 80 * S);
	check(f, 1, 2, 6, 0);
}

static void test_a_shutdown_writes_what_is_counted(void **state)
{
	struct recorder_fixture *f = *state;

	start(f);
	record(f, "a", 1);
	checked_poll(f->b);
	record(f, "a", 4);
	assert_int_equal(checked_shutdown(f->b, S), 0);
	check(f, 1, 1, 5, 0);
}

static void test_a_stopped_watch_writes_what_is_counted(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_watch *watch = start_with(f, 100, 4096);

	record(f, "a", 1);
	checked_poll(f->b);
	record(f, "a", 4);
	evrec_watch_stop(watch);
	checked_poll(f->b);
	assert_true(f->patches == 1 && f->last_count == 5);
	evrec_watch_free(watch);
}

/* The tenth message begins an aggregate, which each further one counts; the last message is written. */
static void test_an_aggregate_is_written_once_in_the_interval(void **state)
{
	struct recorder_fixture *f = *state;
	char note[16];

	start(f);
	for (int i = 1; i <= 20; i++) {
		(void)snprintf(note, sizeof(note), "m%d", i);
		assert_int_equal(recorder_fixture_record(f, "a", "R", note), 0);
		checked_poll(f->b);
	}
	check(f, 10, 0, 1, 10);
	poll_at(f, INTERVAL);
	check(f, 10, 1, 11, 0);
	assert_string_equal(f->last_note, "(combined from similar events): m20");
}

static bool check_tokens(void *ctx, const evrec_suppressed *suppressed)
{
	assert_int_equal(suppressed->stage, EVREC_STAGE_AGGREGATED);
	assert_int_equal(suppressed->count, 11);
	assert_int_equal(suppressed->spam_kind, EVREC_KEY_DEFAULT);
	assert_true(suppressed->tokens == 10);
	++*(unsigned *)ctx;
	return true;
}

/* The first occurrence of the aggregate took a token, as the nine events before; those that follow took none. */
static void test_explain_has_the_tokens_of_an_aggregate(void **state)
{
	struct recorder_fixture *f = *state;
	unsigned calls = 0;
	char note[16];

	evrec_watch_free(start_with(f, 20, 4096));
	for (int i = 1; i <= 20; i++) {
		(void)snprintf(note, sizeof(note), "m%d", i);
		assert_int_equal(recorder_fixture_record(f, "a", "R", note), 0);
		checked_poll(f->b);
	}
	evrec_broadcaster_explain(f->b, 1, NULL, check_tokens, &calls);
	assert_int_equal(calls, 1);
}

/* Only a write that would be made at once needs a token. Occurrences without one begin no interval, and are told later. */
static void test_a_token_is_for_a_write(void **state)
{
	struct recorder_fixture *f = *state;

	evrec_watch_free(start_with(f, 2, 4096));
	record(f, "a", 1);
	checked_poll(f->b);
	record(f, "a", 9);
	poll_at(f, INTERVAL);
	check(f, 1, 1, 10, 0);
	poll_at(f, 130 * S);
	record(f, "a", 1);
	checked_poll(f->b);
	check(f, 1, 2, 11, 0);
	assert_int_equal(stats_check_equations(f->b).rate_limited, 0);
	for (int64_t second = 200; second < 203; second++) {
		poll_at(f, second * S);
		record(f, "a", 1);
		checked_poll(f->b);
		check(f, 1, 2, 11, 0);
	}
	assert_int_equal(stats_check_equations(f->b).rate_limited, 3);
	/* The next token comes after 300 s. */
	poll_at(f, 300 * S);
	record(f, "a", 1);
	checked_poll(f->b);
	check(f, 1, 3, 15, 0);
}

static void test_a_loop_is_told_to_its_last_occurrence(void **state)
{
	struct recorder_fixture *f = *state;
	unsigned writes = 0;

	evrec_watch_free(start_with(f, 25, 4096));
	for (int32_t second = 0; second < 591; second++) {
		evrec_clock_set(f->clock, T0 + second * S);
		record(f, "a", 1);
		checked_poll(f->b);
		if (f->creates + f->patches != writes) {
			assert_int_equal(second % 60, 0);
			assert_int_equal(f->last_count, second + 1);
			writes++;
		}
	}
	assert_int_equal(writes, 10);
	assert_int_equal(checked_shutdown(f->b, S), 0);
	check(f, 1, 10, 591, 0);
	assert_int_equal(stats_check_equations(f->b).rate_limited, 0);
}

/* Occurrences fold into the write that is tried again, and are pending. It begins an interval with the last of them. */
static void test_an_outage_ends_with_one_write(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_sink_stats s;

	start(f);
	f->status = 503;
	for (int i = 0; i < 50; i++) {
		record(f, "a", 1);
		poll_at(f, i * 2 * S);
	}
	s = stats_check_equations(f->b);
	assert_true(s.pending == 50 && s.pending_writes == 1 && s.counted == 0);
	f->creates = 0;
	f->status = 201;
	poll_at(f, 150 * S);
	check(f, 1, 0, 50, 0);
	record(f, "a", 1);
	checked_poll(f->b);
	check(f, 1, 0, 50, 1);
	/* The last one was recorded at 96 s. */
	poll_at(f, 156 * S);
	check(f, 1, 1, 51, 0);
}

static void test_after_an_event_without_room_the_next_is_not_deferred(void **state)
{
	struct recorder_fixture *f = *state;

	start(f);
	record(f, "a", 1);
	record(f, "b", 1);
	record(f, "c", 1);
	record(f, "d", 1);
	assert_int_equal(f->drops, 1);
	assert_string_equal(f->last_why, "queue_full");
	checked_poll(f->b);
	check(f, 3, 0, 1, 0);
	record(f, "d", 1);
	checked_poll(f->b);
	assert_int_equal(f->patches, 1);
	assert_int_equal(f->last_count, 2);
}

/* Else the events that recur within an interval would be the bound. */
static void test_deferred_writes_have_a_bound(void **state)
{
	struct recorder_fixture *f = *state;
	char object[2] = "a";

	evrec_watch_free(start_with(f, 100, 2));
	for (; object[0] <= 'd'; object[0]++) {
		record(f, object, 1);
		checked_poll(f->b);
		record(f, object, 1);
		checked_poll(f->b);
	}
	check(f, 4, 2, 2, 2);
	/* Of events that are evicted by now. */
	poll_at(f, INTERVAL);
	check(f, 4, 4, 2, 0);
}

static void test_in_the_new_style(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_sink_options common;

	evrec_sink_options_init(&common);
	common.api = EVREC_SINK_EVENTS_V1;
	common.correlate = EVREC_CORRELATE_RECORD;
	evrec_sink_release(f->sink);
	f->sink = evrec_sink_new(&recorder_fixture_sink_ops, f, &common, NULL);
	start(f);
	record(f, "a", 1);
	checked_poll(f->b);
	record(f, "a", 6);
	checked_poll(f->b);
	check(f, 1, 0, 0, 6);
	poll_at(f, INTERVAL);
	check(f, 1, 1, 0, 0);
	unit_check_contains(f->last_patch, "\"series\":{\"count\":7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORDER_TEST(test_a_thousand_duplicates_are_one_write_more),
		RECORDER_TEST(test_the_next_interval_begins_with_a_deferred_write),
		RECORDER_TEST(test_after_a_quiet_hour_a_duplicate_is_written_at_once),
		RECORDER_TEST(test_two_events_do_not_delay_each_other),
		RECORDER_TEST(test_a_flush_writes_what_is_counted),
		RECORDER_TEST(test_a_shutdown_writes_what_is_counted),
		RECORDER_TEST(test_a_stopped_watch_writes_what_is_counted),
		RECORDER_TEST(test_an_aggregate_is_written_once_in_the_interval),
		RECORDER_TEST(test_explain_has_the_tokens_of_an_aggregate),
		RECORDER_TEST(test_a_token_is_for_a_write),
		RECORDER_TEST(test_a_loop_is_told_to_its_last_occurrence),
		RECORDER_TEST(test_an_outage_ends_with_one_write),
		RECORDER_TEST(test_after_an_event_without_room_the_next_is_not_deferred),
		RECORDER_TEST(test_deferred_writes_have_a_bound),
		RECORDER_TEST(test_in_the_new_style),
	};

	return cmocka_run_group_tests_name("min_interval", tests, NULL, NULL);
}

/* Delivery to a sink: creating, counting, folding, retries and drops, as its counters and callbacks show them. */
#include "recorder_fixture.h"

static void test_second_occurrence_is_a_patch(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_sink_stats s;

	evrec_watch_free(recorder_fixture_start(f));
	assert_int_equal(recorder_fixture_record(f, "a", "R", "m"), 0);
	assert_int_equal(f->creates, 0); /* nothing is written inside a recording call */
	checked_poll(f->b);
	assert_int_equal(f->creates, 1);
	evrec_clock_set(f->clock, T0 + 60 * EVREC_SECOND);
	(void)recorder_fixture_record(f, "a", "R", "m");
	assert_int_equal(checked_flush(f->b, 0), 0);
	assert_int_equal(f->patches, 1);
	assert_string_equal(f->last_patch,
	                    "{\"count\":2,\"lastTimestamp\":\"2023-11-14T22:14:20Z\",\"message\":\"m\"}");
	s = stats_check_equations(f->b);
	assert_true(s.created == 1 && s.patched == 1 && s.pending == 0);
}

static void test_occurrences_fold_before_the_first_write(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_sink_stats s;
	int i;

	evrec_watch_free(recorder_fixture_start(f));
	for (i = 0; i < 20; i++) {
		(void)recorder_fixture_record(f, "a", "R", "m");
	}
	s = stats_check_equations(f->b);
	assert_true(s.pending == 20 && s.pending_writes == 1);
	checked_poll(f->b);
	assert_true(f->creates == 1 && f->patches == 0 && f->last_count == 20);
	s = stats_check_equations(f->b);
	assert_true(s.created == 1 && s.coalesced == 19);
}

static void test_retry_waits_for_retry_after(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_sink_stats s;

	evrec_watch_free(recorder_fixture_start(f));
	f->status = 429;
	f->retry_after = 5 * EVREC_SECOND;
	(void)recorder_fixture_record(f, "a", "R", "m");
	checked_poll(f->b);
	checked_poll(f->b);
	assert_int_equal(f->creates, 1);                 /* the retry is not due yet */
	(void)recorder_fixture_record(f, "a", "R", "m"); /* folds into the write that backs off */
	assert_int_equal(checked_flush(f->b, 3600 * EVREC_SECOND), EVREC_ETIMEOUT); /* and flush does not wait */
	f->status = 201;
	evrec_clock_set(f->clock, T0 + 5 * EVREC_SECOND - 1);
	checked_poll(f->b);
	assert_int_equal(f->creates, 1);
	evrec_clock_set(f->clock, T0 + 5 * EVREC_SECOND + EVREC_SECOND);
	assert_int_equal(checked_flush(f->b, 0), 0);
	assert_true(f->creates == 2 && f->last_count == 2);
	s = stats_check_equations(f->b);
	assert_true(s.retries == 1 && s.created == 1 && s.coalesced == 1);
	assert_true(f->errors >= 1);
	assert_string_equal(f->last_error, "throttled");
}

static void test_expired_event_is_created_anew(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_sink_stats s;

	evrec_watch_free(recorder_fixture_start(f));
	(void)recorder_fixture_record(f, "a", "R", "m");
	checked_poll(f->b);
	f->status = 404; /* to the PATCH; the POST that follows is answered 404 too */
	(void)recorder_fixture_record(f, "a", "R", "m");
	checked_poll(f->b);
	assert_true(f->patches == 1 && f->creates == 2 && f->last_count == 2);
	assert_string_equal(f->last_version, ""); /* not that of the expired event */
	s = stats_check_equations(f->b);
	assert_int_equal(s.dropped[EVREC_CAUSE_NOT_FOUND], 1);
	assert_string_equal(f->last_why, "not_found");
}

/* The first name belongs to another client: it is not patched, even though the second name was refused too. */
static void test_event_of_another_client_is_not_patched(void **state)
{
	struct recorder_fixture *f = *state;
	char second[64];

	evrec_watch_free(recorder_fixture_start(f));
	f->status = 409;
	(void)recorder_fixture_record(f, "taken", "R", "m");
	checked_poll(f->b);
	assert_int_equal(f->creates, 2);
	assert_string_equal(f->last_why, "conflict");
	memcpy(second, f->last_name, sizeof(second));
	f->status = 404;
	(void)recorder_fixture_record(f, "taken", "R", "m");
	checked_poll(f->b);
	assert_int_equal(f->patches, 1);
	assert_string_equal(f->last_name, second);
}

static void test_rejected_event_is_dropped(void **state)
{
	struct recorder_fixture *f = *state;

	evrec_watch_free(recorder_fixture_start(f));
	f->status = 422;
	(void)recorder_fixture_record(f, "a", "R", "m");
	(void)recorder_fixture_record(f, "a", "R", "m");
	checked_poll(f->b);
	assert_int_equal(stats_check_equations(f->b).dropped[EVREC_CAUSE_REJECTED], 2);
	assert_true(f->drops == 1 && f->errors == 1);
	assert_string_equal(f->last_error, "rejected");
}

static void test_max_pending_bounds_events_not_counts(void **state)
{
	struct recorder_fixture *f = *state;
	char object[] = "a";
	int i;

	evrec_watch_free(recorder_fixture_start(f));
	for (i = 0; i < 5; i++, object[0]++) {
		assert_int_equal(recorder_fixture_record(f, object, "R", "m"), 0);
	}
	(void)recorder_fixture_record(f, "a", "R", "m"); /* a count always has room */
	assert_int_equal(stats_check_equations(f->b).dropped[EVREC_CAUSE_QUEUE_FULL], 2);
	assert_int_equal(f->drops, 2);
	assert_string_equal(f->last_why, "queue_full");
}

/* The prefix of an aggregate counts for max_message_bytes. */
static void test_message_of_an_aggregate_is_bounded(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_broadcaster_options options;
	evrec_correlator_options correlator;
	evrec_broadcaster *b;
	evrec_recorder *r;

	evrec_broadcaster_options_init(&options);
	evrec_correlator_options_init(&correlator);
	options.max_message_bytes = 40;
	correlator.max_events = 1;
	b = evrec_broadcaster_new(&options, NULL);
	r = evrec_recorder_new(b, &(evrec_recorder_options){ .component = EVREC_STR("test") }, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(b, f->sink, &correlator, NULL));
	evrec_recorder_free(f->r);
	f->r = r;
	assert_int_equal(recorder_fixture_record(f, "a", "R", "0123456789"), 0);
	checked_poll(b);
	assert_string_equal(f->last_note, "(combined from similar events): 01234\xE2\x80\xA6");
	/* A folded write has the last message. */
	assert_int_equal(recorder_fixture_record(f, "b", "R", "first"), 0);
	assert_int_equal(recorder_fixture_record(f, "b", "R", "last"), 0);
	checked_poll(b);
	assert_string_equal(f->last_note, "(combined from similar events): last");
	evrec_broadcaster_free(b);
}

static bool count_suppressed(void *ctx, const evrec_suppressed *suppressed_event)
{
	assert_int_equal(suppressed_event->stage, EVREC_STAGE_RATE_LIMITED);
	assert_str(suppressed_event->regarding.kind, "Pod");
	*(uint64_t *)ctx += suppressed_event->count;
	return true;
}

static void test_rate_limited_events_are_explained(void **state)
{
	struct recorder_fixture *f = *state;
	uint64_t suppressed = 0;
	int i;

	evrec_watch_free(recorder_fixture_start(f));
	for (i = 0; i < 30; i++) {
		(void)recorder_fixture_record(f, "a", "R", "m");
	}
	assert_int_equal(stats_check_equations(f->b).rate_limited, 5);
	assert_int_equal(f->drops, 5);
	assert_string_equal(f->last_why, "rate_limited");
	evrec_broadcaster_explain(f->b, 1, NULL, count_suppressed, &suppressed);
	assert_int_equal(suppressed, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORDER_TEST(test_second_occurrence_is_a_patch),
		RECORDER_TEST(test_occurrences_fold_before_the_first_write),
		RECORDER_TEST(test_retry_waits_for_retry_after),
		RECORDER_TEST(test_expired_event_is_created_anew),
		RECORDER_TEST(test_event_of_another_client_is_not_patched),
		RECORDER_TEST(test_rejected_event_is_dropped),
		RECORDER_TEST(test_max_pending_bounds_events_not_counts),
		RECORDER_TEST(test_message_of_an_aggregate_is_bounded),
		RECORDER_TEST(test_rate_limited_events_are_explained),
	};

	return cmocka_run_group_tests_name("delivery", tests, NULL, NULL);
}

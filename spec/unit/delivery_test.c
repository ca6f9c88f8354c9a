#include "recording.h"

static void test_create_and_patch(void **state)
{
	struct fixture *f = *state;
	evrec_sink_stats s;

	evrec_watch_free(start(f));
	assert_int_equal(record(f, "a", "R", "m"), 0);
	assert_int_equal(f->creates, 0); /* nothing is written inside a recording call */
	poll_once(f->b);
	assert_int_equal(f->creates, 1);
	evrec_clock_set(f->clock, T0 + 60 * EVREC_SECOND);
	(void)record(f, "a", "R", "m");
	assert_int_equal(flush(f->b, 0), 0);
	assert_int_equal(f->patches, 1);
	assert_string_equal(f->last_patch,
	                    "{\"count\":2,\"lastTimestamp\":\"2023-11-14T22:14:20Z\",\"message\":\"m\"}");
	s = check_books(f->b);
	assert_true(s.created == 1 && s.patched == 1 && s.pending == 0);
}

static void test_folding(void **state)
{
	struct fixture *f = *state;
	evrec_sink_stats s;
	int i;

	evrec_watch_free(start(f));
	for (i = 0; i < 20; i++) {
		(void)record(f, "a", "R", "m");
	}
	s = check_books(f->b);
	assert_true(s.pending == 20 && s.pending_writes == 1);
	poll_once(f->b);
	assert_true(f->creates == 1 && f->patches == 0 && f->last_count == 20);
	s = check_books(f->b);
	assert_true(s.created == 1 && s.coalesced == 19);
}

static void test_retry_under_a_fake_clock(void **state)
{
	struct fixture *f = *state;
	evrec_sink_stats s;

	evrec_watch_free(start(f));
	f->status = 429;
	f->retry_after = 5 * EVREC_SECOND;
	(void)record(f, "a", "R", "m");
	poll_once(f->b);
	poll_once(f->b);
	assert_int_equal(f->creates, 1);                                    /* it is not yet time */
	(void)record(f, "a", "R", "m");                                     /* folds into what backs off */
	assert_int_equal(flush(f->b, 3600 * EVREC_SECOND), EVREC_ETIMEOUT); /* and does not wait */
	f->status = 201;
	evrec_clock_set(f->clock, T0 + 5 * EVREC_SECOND - 1);
	poll_once(f->b);
	assert_int_equal(f->creates, 1);
	evrec_clock_set(f->clock, T0 + 5 * EVREC_SECOND + EVREC_SECOND);
	assert_int_equal(flush(f->b, 0), 0);
	assert_true(f->creates == 2 && f->last_count == 2);
	s = check_books(f->b);
	assert_true(s.retries == 1 && s.created == 1 && s.coalesced == 1);
	assert_true(f->errors >= 1);
	assert_string_equal(f->last_error, "throttled");
}

static void test_an_expired_event_is_created_anew(void **state)
{
	struct fixture *f = *state;
	evrec_sink_stats s;

	evrec_watch_free(start(f));
	(void)record(f, "a", "R", "m");
	poll_once(f->b);
	f->status = 404; /* to the patch; the fixture answers the POST that follows likewise */
	(void)record(f, "a", "R", "m");
	poll_once(f->b);
	assert_true(f->patches == 1 && f->creates == 2 && f->last_count == 2);
	assert_string_equal(f->last_version, ""); /* not the one that it once had */
	s = check_books(f->b);
	assert_int_equal(s.dropped[EVREC_CAUSE_NOT_FOUND], 1);
	assert_string_equal(f->last_why, "not_found");
}

/* The name that was taken belongs to another: it is not patched when the second name has come to nothing too. */
static void test_a_taken_name_is_left_alone(void **state)
{
	struct fixture *f = *state;
	char second[64];

	evrec_watch_free(start(f));
	f->status = 409;
	(void)record(f, "taken", "R", "m");
	poll_once(f->b);
	assert_int_equal(f->creates, 2);
	assert_string_equal(f->last_why, "conflict");
	memcpy(second, f->last_name, sizeof(second));
	f->status = 404;
	(void)record(f, "taken", "R", "m");
	poll_once(f->b);
	assert_int_equal(f->patches, 1);
	assert_string_equal(f->last_name, second);
}

static void test_rejected(void **state)
{
	struct fixture *f = *state;

	evrec_watch_free(start(f));
	f->status = 422;
	(void)record(f, "a", "R", "m");
	(void)record(f, "a", "R", "m");
	poll_once(f->b);
	assert_int_equal(check_books(f->b).dropped[EVREC_CAUSE_REJECTED], 2);
	assert_true(f->drops == 1 && f->errors == 1);
	assert_string_equal(f->last_error, "rejected");
}

static void test_bounded(void **state)
{
	struct fixture *f = *state;
	char object[] = "a";
	int i;

	evrec_watch_free(start(f));
	for (i = 0; i < 5; i++, object[0]++) {
		assert_int_equal(record(f, object, "R", "m"), 0);
	}
	(void)record(f, "a", "R", "m"); /* there is always room for a count */
	assert_int_equal(check_books(f->b).dropped[EVREC_CAUSE_QUEUE_FULL], 2);
	assert_int_equal(f->drops, 2);
	assert_string_equal(f->last_why, "queue_full");
}

/* The prefix of an aggregate does not take a message over its bound. */
static void test_an_aggregate_is_bounded(void **state)
{
	struct fixture *f = *state;
	evrec_broadcaster_options options;
	evrec_correlator_options correlator;
	evrec_broadcaster *b;
	evrec_recorder *r;

	evrec_broadcaster_options_init(&options);
	evrec_correlator_options_init(&correlator);
	options.max_message_bytes = 40;
	correlator.max_events = 1;
	b = evrec_broadcaster_new(&options, NULL);
	r = evrec_recorder_new(b, EVREC_STR("test"), EVREC_STR(""), NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(b, f->sink, &correlator, NULL));
	evrec_recorder_free(f->r);
	f->r = r;
	assert_int_equal(record(f, "a", "R", "0123456789"), 0);
	poll_once(b);
	assert_string_equal(f->last_note, "(combined from similar events): 01234\xE2\x80\xA6");
	/* Of those that fold into one write, the last one's. */
	assert_int_equal(record(f, "b", "R", "first"), 0);
	assert_int_equal(record(f, "b", "R", "last"), 0);
	poll_once(b);
	assert_string_equal(f->last_note, "(combined from similar events): last");
	evrec_broadcaster_free(b);
}

static bool count_suppressed(void *ctx, const evrec_suppressed *what)
{
	assert_int_equal(what->stage, EVREC_STAGE_RATE_LIMITED);
	assert_str(what->regarding.kind, "Pod");
	*(uint64_t *)ctx += what->count;
	return true;
}

static void test_rate_limit_is_told(void **state)
{
	struct fixture *f = *state;
	uint64_t suppressed = 0;
	int i;

	evrec_watch_free(start(f));
	for (i = 0; i < 30; i++) {
		(void)record(f, "a", "R", "m");
	}
	assert_int_equal(check_books(f->b).rate_limited, 5);
	assert_int_equal(f->drops, 5);
	assert_string_equal(f->last_why, "rate_limited");
	evrec_broadcaster_explain(f->b, 0, NULL, count_suppressed, &suppressed);
	assert_int_equal(suppressed, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_create_and_patch),
		TEST(test_folding),
		TEST(test_retry_under_a_fake_clock),
		TEST(test_an_expired_event_is_created_anew),
		TEST(test_a_taken_name_is_left_alone),
		TEST(test_rejected),
		TEST(test_bounded),
		TEST(test_an_aggregate_is_bounded),
		TEST(test_rate_limit_is_told),
	};

	return cmocka_run_group_tests_name("delivery", tests, NULL, NULL);
}

#include "books.h"

/* A broadcaster under a fake clock, a recorder, and a sink that answers as it is told and remembers what it got. */
struct fixture {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_sink *sink;
	int status; /* of the sink's next answers */
	int64_t retry_after;
	unsigned creates, patches;
	int32_t last_count;
	char last_note[64], last_why[32], last_error[32], last_patch[128], last_version[16], last_name[64];
	unsigned drops, errors;
};

static void remember(char *out, size_t size, evrec_str s)
{
	(void)snprintf(out, size, "%.*s", (int)s.len, s.data);
}

static void answer_as_told(struct fixture *f, const evrec_event *event, evrec_answer *answer)
{
	const evrec_fields *fields = evrec_event_fields(event);

	f->last_count = fields->count;
	remember(f->last_note, sizeof(f->last_note), fields->note);
	remember(f->last_name, sizeof(f->last_name), fields->name);
	remember(f->last_version, sizeof(f->last_version), fields->resource_version);
	answer->status = f->status;
	answer->retry_after = f->retry_after;
	memcpy(answer->resource_version, "7", sizeof("7"));
}

static void sink_create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct fixture *f = ctx;

	f->creates++;
	answer_as_told(f, event, answer);
}

static void sink_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	struct fixture *f = ctx;

	f->patches++;
	remember(f->last_patch, sizeof(f->last_patch), patch);
	answer_as_told(f, event, answer);
}

static const evrec_sink_ops sink_ops = { .create = sink_create, .patch = sink_patch };

static void on_error(void *ctx, const char *message, const char *name)
{
	struct fixture *f = ctx;

	(void)message;
	f->errors++;
	remember(f->last_error, sizeof(f->last_error), str_from(name));
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct fixture *f = ctx;

	assert_true(evrec_event_fields(event)->reason.len > 0);
	f->drops++;
	remember(f->last_why, sizeof(f->last_why), str_from(why));
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	evrec_broadcaster_options options;
	evrec_limits limits;

	f->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	options.on_error = on_error;
	options.on_drop = on_drop;
	options.ctx = f;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(f->b, EVREC_STR("test"), EVREC_STR("host"), NULL);
	evrec_limits_init(&limits);
	limits.max_pending = 3;
	f->sink = evrec_sink_new(&sink_ops, f, &limits, NULL);
	f->status = 201;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	evrec_broadcaster_free(f->b);
	evrec_recorder_free(f->r);
	evrec_sink_release(f->sink);
	evrec_clock_release(f->clock);
	free(f);
	return 0;
}

static int record(struct fixture *f, const char *object, const char *reason, const char *note)
{
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"),
		                            .name = str_from(object),
		                            .ns = EVREC_STR("shop") };
	const evrec_emit what = { .regarding = &regarding,
		                  .type = EVREC_STR("Normal"),
		                  .reason = str_from(reason),
		                  .note = str_from(note),
		                  .timestamp = EVREC_UNSET };

	return emit(f->r, f->b, &what);
}

static evrec_watch *start(struct fixture *f)
{
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(f->b, f->sink, NULL, NULL);

	assert_non_null(watch);
	return watch;
}

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

struct seen {
	unsigned count;
	char notes[256];
	struct fixture *f;
	unsigned records; /* how often to record from inside */
	int refused;      /* what comes of that */
};

static void see(void *ctx, evrec_event *event)
{
	struct seen *seen = ctx;
	const evrec_fields *fields = evrec_event_fields(event);

	assert_true(fields->name.len > 0);
	seen->count++;
	(void)snprintf(seen->notes + strlen(seen->notes), sizeof(seen->notes) - strlen(seen->notes), "%.*s ",
	               (int)fields->note.len, fields->note.data);
	if (seen->records > 0) {
		seen->records--;
		assert_int_equal(record(seen->f, "inner", "R", "inner"), seen->refused);
		assert_int_equal(flush(seen->f->b, 0), EVREC_EINVALID);
		assert_int_equal(shut_down(seen->f->b, 0), EVREC_EINVALID);
		(void)check_books(seen->f->b);
	}
}

static void test_watchers(void **state)
{
	struct fixture *f = *state;
	struct seen early = { .f = f }, late = { .f = f };
	evrec_watch *first, *queue;
	evrec_event *event;
	uint64_t dropped;
	size_t queued;

	first = evrec_broadcaster_start_event_watcher(f->b, see, &early, NULL);
	queue = evrec_broadcaster_watch(f->b, 2, NULL);
	(void)record(f, "a", "R", "1");
	evrec_watch_free(evrec_broadcaster_start_event_watcher(f->b, see, &late, NULL));
	(void)record(f, "a", "R", "2");
	evrec_watch_stop(first);
	(void)record(f, "a", "R", "3");
	assert_string_equal(early.notes, "1 2 ");
	assert_string_equal(late.notes, "2 3 ");
	evrec_watch_get_queue(queue, &queued, &dropped);
	assert_true(queued == 2 && dropped == 1);
	event = evrec_watch_next(queue);
	assert_str(evrec_event_fields(event)->note, "1");
	evrec_event_release(event);
	event = evrec_watch_next(queue);
	assert_str(evrec_event_fields(event)->note, "2");
	evrec_event_release(event);
	assert_null(evrec_watch_next(queue));
	evrec_watch_free(first);
	evrec_watch_free(queue);
	(void)check_books(f->b);
}

/* Recorded from inside a callback: seen after the event that made it so, and never recursed into. */
static void test_recording_inside_a_callback(void **state)
{
	struct fixture *f = *state;
	struct seen seen = { .f = f, .records = 1 };
	evrec_stats stats;

	evrec_watch_free(start(f));
	evrec_watch_free(evrec_broadcaster_start_event_watcher(f->b, see, &seen, NULL));
	(void)record(f, "a", "R", "outer\xFF"); /* cleaned: both notes are in scratch memory at once */
	assert_string_equal(seen.notes, "outer\xEF\xBF\xBD inner ");
	seen.records = 1000000; /* one that records for every event that it sees */
	(void)record(f, "a", "R", "again");
	assert_int_equal(seen.count, 4);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.queued, 1);
	seen.refused = EVREC_ECLOSED;
	assert_int_equal(shut_down(f->b, 0), 0);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_true(stats.queued == 0 && stats.dropped[EVREC_CAUSE_CLOSED] == 1);
	(void)check_books(f->b);
}

static void test_order(void **state)
{
	struct fixture *f = *state;
	struct seen seen = { .f = f, .records = 2 };

	evrec_watch_free(evrec_broadcaster_start_event_watcher(f->b, see, &seen, NULL));
	(void)record(f, "a", "R", "1"); /* the second that is recorded inside is still queued afterwards */
	(void)record(f, "a", "R", "2");
	assert_string_equal(seen.notes, "1 inner inner 2 ");
	(void)check_books(f->b);
}

static void test_two_sinks_agree_on_the_name(void **state)
{
	struct fixture *f = *state;
	evrec_correlator_options options;
	evrec_watch *a, *b;
	evrec_sink_stats s;
	int i;

	evrec_correlator_options_init(&options);
	options.burst_size = 1;
	a = start(f);
	b = evrec_broadcaster_start_recording_to_sink(f->b, f->sink, &options, NULL);
	for (i = 0; i < 3; i++) {
		(void)record(f, "a", "R", "m");
	}
	poll_once(f->b);
	assert_int_equal(f->creates, 2);
	assert_true(evrec_watch_get_sink_stats(a, &s) && s.rate_limited == 0 && s.coalesced == 2);
	assert_true(evrec_watch_get_sink_stats(b, &s) && s.rate_limited == 2 && s.coalesced == 0);
	evrec_watch_stop(a);
	(void)record(f, "b", "R", "m");
	poll_once(f->b);
	assert_int_equal(f->creates, 3);
	(void)check_books(f->b);
	evrec_watch_free(a);
	evrec_watch_free(b);
}

static void test_shutdown(void **state)
{
	struct fixture *f = *state;
	evrec_stats stats;

	evrec_watch_free(start(f));
	(void)record(f, "a", "R", "m");
	assert_int_equal(shut_down(f->b, EVREC_SECOND), 0);
	assert_int_equal(f->creates, 1);
	assert_int_equal(record(f, "a", "R", "m"), EVREC_ECLOSED);
	assert_int_equal(f->drops, 1);
	assert_string_equal(f->last_why, "closed");
	assert_int_equal(shut_down(f->b, EVREC_SECOND), 0);
	assert_null(evrec_broadcaster_start_event_watcher(f->b, see, NULL, NULL));
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 1);
	(void)check_books(f->b);
}

/* What can't be written by the deadline is dropped and told. */
static void test_shutdown_of_a_dead_sink(void **state)
{
	struct fixture *f = *state;

	evrec_watch_free(start(f));
	f->status = 0;
	(void)record(f, "a", "R", "m");
	(void)record(f, "b", "R", "m");
	assert_int_equal(shut_down(f->b, 0), EVREC_ETIMEOUT);
	assert_int_equal(check_books(f->b).dropped[EVREC_CAUSE_CLOSED], 2);
	assert_int_equal(f->drops, 2);
	assert_string_equal(f->last_why, "closed");
}

/* Handles outlive the broadcaster, and do nothing. */
static void test_handles_outlive_the_broadcaster(void **state)
{
	struct fixture *f = *state;
	evrec_watch *sink = start(f), *queue = evrec_broadcaster_watch(f->b, 2, NULL);
	evrec_sink_stats s;

	(void)record(f, "a", "R", "m");
	evrec_broadcaster_free(f->b);
	assert_int_equal(record(f, "a", "R", "m"), EVREC_ECLOSED);
	assert_false(evrec_watch_get_sink_stats(sink, &s));
	evrec_event_release(evrec_watch_next(queue));
	evrec_watch_stop(sink);
	evrec_watch_free(sink);
	evrec_watch_free(queue);
	f->b = NULL;
}

static void check_invalid(struct fixture *f, evrec_emit what, const char *message)
{
	evrec_error err = { 0 };

	assert_int_equal(evrec_recorder_emit(f->r, &what, &err), EVREC_EINVALID);
	assert_string_equal(err.message, message);
}

static void test_bad_input(void **state)
{
	struct fixture *f = *state;
	const evrec_reference pod = { .kind = EVREC_STR("Pod") }, nothing = { .name = EVREC_STR("x") };
	const evrec_emit good = {
		.regarding = &pod, .type = EVREC_STR("Normal"), .reason = EVREC_STR("R"), .timestamp = EVREC_UNSET
	};
	char *reason = malloc(10 << 20);
	evrec_emit what = good;
	evrec_stats stats;

	memset(reason, 'x', 10 << 20);
	assert_int_equal(evrec_recorder_emit(f->r, &good, NULL), 0);
	what.regarding = NULL;
	check_invalid(f, what, "regarding: missing");
	what.regarding = &nothing;
	check_invalid(f, what, "regarding.kind: must not be empty");
	what = good;
	what.related = &nothing;
	check_invalid(f, what, "related.kind: must not be empty");
	what = good;
	what.type = EVREC_STR("Error");
	check_invalid(f, what, "type: must be Normal or Warning");
	what = good;
	what.reason = (evrec_str){ reason, 10 << 20 };
	check_invalid(f, what, "reason: 10485760 bytes, more than 128");
	what.reason = (evrec_str){ "a\0b", 3 };
	check_invalid(f, what, "reason: has a NUL byte");
	what.reason.len = 0;
	check_invalid(f, what, "reason: must not be empty");
	assert_int_equal(evrec_recorder_refuse(f->r, "message: not a string", NULL), EVREC_EINVALID);
	assert_int_equal(evrec_recorder_drop(f->r, "no room for it", NULL), EVREC_EDROPPED);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_true(stats.recorded == 10 && stats.invalid == 8 && stats.broadcast == 1);
	assert_int_equal(stats.dropped[EVREC_CAUSE_MEMORY], 1);
	(void)check_books(f->b);
	free(reason);
}

static void test_prepared_reference(void **state)
{
	struct fixture *f = *state;
	evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	evrec_watch *queue = evrec_broadcaster_watch(f->b, 2, NULL);
	evrec_ref *ref = evrec_ref_new(&pod, NULL);
	const evrec_emit what = {
		.object = ref, .type = EVREC_STR("Normal"), .reason = EVREC_STR("R"), .timestamp = T0 - EVREC_SECOND
	};
	const evrec_fields *fields;
	evrec_event *event;

	assert_int_equal(evrec_recorder_emit(f->r, &what, NULL), 0);
	evrec_ref_release(ref);
	event = evrec_watch_next(queue);
	fields = evrec_event_fields(event);
	assert_str(fields->regarding.name, "web-0");
	assert_str(fields->ns, "shop");
	assert_str(fields->controller, "test");
	assert_str(fields->instance, "host");
	assert_int_equal(fields->first, T0 - EVREC_SECOND);
	evrec_event_release(event);
	evrec_watch_free(queue);
	pod.kind.len = 0;
	assert_null(evrec_ref_new(&pod, NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
		TEST(test_watchers),
		TEST(test_recording_inside_a_callback),
		TEST(test_order),
		TEST(test_two_sinks_agree_on_the_name),
		TEST(test_shutdown),
		TEST(test_shutdown_of_a_dead_sink),
		TEST(test_handles_outlive_the_broadcaster),
		TEST(test_bad_input),
		TEST(test_prepared_reference),
	};

	return cmocka_run_group_tests_name("broadcaster", tests, NULL, NULL);
}

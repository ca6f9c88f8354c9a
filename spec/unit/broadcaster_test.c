#include "recording.h"

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
	struct fixture *f = *state, other = { .status = 201 };
	evrec_correlator_options options;
	evrec_watch *a, *b;
	evrec_sink_stats s;
	evrec_sink *sink = evrec_sink_new(&sink_ops, &other, NULL, NULL);
	int i;

	evrec_correlator_options_init(&options);
	options.burst_size = 1;
	a = start(f);
	b = evrec_broadcaster_start_recording_to_sink(f->b, sink, &options, NULL);
	evrec_sink_release(sink);
	for (i = 0; i < 3; i++) {
		(void)record(f, "a", "R", "m");
	}
	poll_once(f->b);
	assert_int_equal(f->creates + other.creates, 2);
	assert_string_equal(f->last_name, other.last_name);
	assert_true(evrec_watch_get_sink_stats(a, &s) && s.rate_limited == 0 && s.coalesced == 2);
	assert_true(evrec_watch_get_sink_stats(b, &s) && s.rate_limited == 2 && s.coalesced == 0);
	evrec_watch_stop(a);
	(void)record(f, "b", "R", "m");
	poll_once(f->b);
	assert_int_equal(f->creates, 1);
	assert_int_equal(other.creates, 2);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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

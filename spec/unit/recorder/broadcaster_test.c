/* A broadcaster and its watchers and sinks: order, recording in callbacks, shutdown, and invalid events. */
#include "recorder_fixture.h"

/* A watcher that records events itself. */
struct watcher {
	unsigned count;
	char notes[256];
	struct recorder_fixture *f;
	unsigned records; /* times to record in the callback */
	int expected;     /* code of these calls */
};

static void on_event(void *ctx, evrec_event *event)
{
	struct watcher *watcher = ctx;
	const evrec_fields *fields = evrec_event_fields(event);

	assert_true(fields->name.len > 0);
	watcher->count++;
	(void)snprintf(watcher->notes + strlen(watcher->notes), sizeof(watcher->notes) - strlen(watcher->notes),
	               "%.*s ", (int)fields->note.len, fields->note.data);
	if (watcher->records > 0) {
		watcher->records--;
		assert_int_equal(recorder_fixture_record(watcher->f, "inner", "R", "inner"), watcher->expected);
		assert_int_equal(checked_flush(watcher->f->b, 0), EVREC_EINVALID);
		assert_int_equal(checked_shutdown(watcher->f->b, 0), EVREC_EINVALID);
		(void)stats_check_equations(watcher->f->b);
	}
}

static void test_watchers_see_events_while_they_run(void **state)
{
	struct recorder_fixture *f = *state;
	struct watcher early = { .f = f }, late = { .f = f };
	evrec_watch *first, *queue;
	evrec_event *event;
	uint64_t dropped;
	size_t queued;

	first = evrec_broadcaster_start_event_watcher(f->b, on_event, &early, NULL);
	queue = evrec_broadcaster_watch(f->b, 2, NULL);
	(void)recorder_fixture_record(f, "a", "R", "1");
	evrec_watch_free(evrec_broadcaster_start_event_watcher(f->b, on_event, &late, NULL));
	(void)recorder_fixture_record(f, "a", "R", "2");
	evrec_watch_stop(first);
	(void)recorder_fixture_record(f, "a", "R", "3");
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
	(void)stats_check_equations(f->b);
}

/* An event recorded in a callback is broadcast after the current one, without recursion. */
static void test_recording_in_a_callback_is_queued(void **state)
{
	struct recorder_fixture *f = *state;
	struct watcher watcher = { .f = f, .records = 1 };
	evrec_stats stats;

	evrec_watch_free(recorder_fixture_start(f));
	evrec_watch_free(evrec_broadcaster_start_event_watcher(f->b, on_event, &watcher, NULL));
	(void)recorder_fixture_record(f, "a", "R", "outer\xFF"); /* both notes are cleaned, in scratch memory at once */
	assert_string_equal(watcher.notes, "outer\xEF\xBF\xBD inner ");
	watcher.records = 1000000; /* records an event for each event */
	(void)recorder_fixture_record(f, "a", "R", "again");
	assert_int_equal(watcher.count, 4);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.queued, 1);
	watcher.expected = EVREC_ECLOSED;
	assert_int_equal(checked_shutdown(f->b, 0), EVREC_ELOST);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_true(stats.queued == 0 && stats.dropped[EVREC_CAUSE_CLOSED] == 1);
	(void)stats_check_equations(f->b);
}

static void test_events_keep_their_order(void **state)
{
	struct recorder_fixture *f = *state;
	struct watcher watcher = { .f = f, .records = 2 };

	evrec_watch_free(evrec_broadcaster_start_event_watcher(f->b, on_event, &watcher, NULL));
	(void)recorder_fixture_record(f, "a", "R",
	                              "1"); /* the second that is recorded inside is still queued afterwards */
	(void)recorder_fixture_record(f, "a", "R", "2");
	assert_string_equal(watcher.notes, "1 inner inner 2 ");
	(void)stats_check_equations(f->b);
}

static void test_two_sinks_agree_on_the_name(void **state)
{
	struct recorder_fixture *f = *state, other = { .status = 201 };
	evrec_correlator_options options;
	evrec_watch *a, *b;
	evrec_sink_stats s;
	evrec_sink *sink = evrec_sink_new(&recorder_fixture_sink_ops, &other, NULL, NULL);
	int i;

	evrec_correlator_options_init(&options);
	options.burst_size = 1;
	a = recorder_fixture_start(f);
	b = evrec_broadcaster_start_recording_to_sink(f->b, sink, &options, NULL);
	evrec_sink_release(sink);
	for (i = 0; i < 3; i++) {
		(void)recorder_fixture_record(f, "a", "R", "m");
	}
	checked_poll(f->b);
	assert_int_equal(f->creates + other.creates, 2);
	assert_string_equal(f->last_name, other.last_name);
	assert_true(evrec_watch_get_sink_stats(a, &s) && s.rate_limited == 0 && s.coalesced == 2);
	assert_true(evrec_watch_get_sink_stats(b, &s) && s.rate_limited == 2 && s.coalesced == 0);
	evrec_watch_stop(a);
	(void)recorder_fixture_record(f, "b", "R", "m");
	checked_poll(f->b);
	assert_int_equal(f->creates, 1);
	assert_int_equal(other.creates, 2);
	(void)stats_check_equations(f->b);
	evrec_watch_free(a);
	evrec_watch_free(b);
}

static void test_shutdown_flushes_and_refuses(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_stats stats;

	evrec_watch_free(recorder_fixture_start(f));
	(void)recorder_fixture_record(f, "a", "R", "m");
	assert_int_equal(checked_shutdown(f->b, SOON), 0);
	assert_int_equal(f->creates, 1);
	assert_int_equal(recorder_fixture_record(f, "a", "R", "m"), EVREC_ECLOSED);
	assert_int_equal(f->drops, 1);
	assert_string_equal(f->last_why, "closed");
	assert_int_equal(checked_shutdown(f->b, SOON), 0);
	assert_null(evrec_broadcaster_start_event_watcher(f->b, on_event, NULL, NULL));
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 1);
	(void)stats_check_equations(f->b);
}

/* Events that cannot be written by the deadline are dropped, with a call of on_drop. */
static void test_shutdown_drops_at_its_deadline(void **state)
{
	struct recorder_fixture *f = *state;

	evrec_watch_free(recorder_fixture_start(f));
	f->status = 0;
	(void)recorder_fixture_record(f, "a", "R", "m");
	(void)recorder_fixture_record(f, "b", "R", "m");
	assert_int_equal(checked_shutdown(f->b, 0), EVREC_ELOST);
	assert_int_equal(stats_check_equations(f->b).dropped[EVREC_CAUSE_CLOSED], 2);
	assert_int_equal(f->drops, 2);
	assert_string_equal(f->last_why, "closed");
}

static void test_handles_outlive_the_broadcaster(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_watch *sink = recorder_fixture_start(f), *queue = evrec_broadcaster_watch(f->b, 2, NULL);
	evrec_sink_stats s;

	(void)recorder_fixture_record(f, "a", "R", "m");
	evrec_broadcaster_free(f->b);
	assert_int_equal(recorder_fixture_record(f, "a", "R", "m"), EVREC_ECLOSED);
	assert_false(evrec_watch_get_sink_stats(sink, &s));
	evrec_event_release(evrec_watch_next(queue));
	evrec_watch_stop(sink);
	evrec_watch_free(sink);
	evrec_watch_free(queue);
	f->b = NULL;
}

static void check_invalid(struct recorder_fixture *f, evrec_emit emit, const char *message)
{
	evrec_error err = { 0 };

	assert_int_equal(evrec_recorder_emit(f->r, &emit, &err), EVREC_EINVALID);
	assert_string_equal(err.message, message);
}

static void test_invalid_events_are_counted(void **state)
{
	struct recorder_fixture *f = *state;
	const evrec_reference pod = { .kind = EVREC_STR("Pod") }, nothing = { .name = EVREC_STR("x") };
	const evrec_emit good = {
		.regarding = &pod, .type = EVREC_STR("Normal"), .reason = EVREC_STR("R"), .timestamp = EVREC_UNSET
	};
	char *reason = malloc(10 << 20);
	evrec_emit emit = good;
	evrec_stats stats;

	memset(reason, 'x', 10 << 20);
	assert_int_equal(evrec_recorder_emit(f->r, &good, NULL), 0);
	emit.regarding = NULL;
	check_invalid(f, emit, "regarding: missing");
	emit.regarding = &nothing;
	check_invalid(f, emit, "regarding.kind: must not be empty");
	emit = good;
	emit.related = &nothing;
	check_invalid(f, emit, "related.kind: must not be empty");
	emit = good;
	emit.type = EVREC_STR("Error");
	check_invalid(f, emit, "type: expected \"Normal\" or \"Warning\", got \"Error\"");
	emit = good;
	emit.reason = (evrec_str){ reason, 10 << 20 };
	check_invalid(f, emit, "reason: 10485760 bytes, more than 1024");
	emit.reason = (evrec_str){ "a\0b", 3 };
	check_invalid(f, emit, "reason: has a NUL byte");
	emit.reason.len = 0;
	check_invalid(f, emit, "reason: must not be empty");
	assert_int_equal(evrec_recorder_refuse(f->r, "message: not a string", NULL), EVREC_EINVALID);
	assert_int_equal(evrec_recorder_drop(f->r, "no room for it", NULL), EVREC_EDROPPED);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_true(stats.recorded == 10 && stats.invalid == 8 && stats.broadcast == 1);
	assert_int_equal(stats.dropped[EVREC_CAUSE_MEMORY], 1);
	(void)stats_check_equations(f->b);
	free(reason);
}

static void test_event_keeps_a_released_reference(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	evrec_watch *queue = evrec_broadcaster_watch(f->b, 2, NULL);
	evrec_prepared_ref *ref = evrec_prepared_ref_new(&pod, NULL);
	const evrec_emit emit = {
		.object = ref, .type = EVREC_STR("Normal"), .reason = EVREC_STR("R"), .timestamp = T0 - EVREC_SECOND
	};
	const evrec_fields *fields;
	evrec_event *event;

	assert_int_equal(evrec_recorder_emit(f->r, &emit, NULL), 0);
	evrec_prepared_ref_release(ref);
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
	assert_null(evrec_prepared_ref_new(&pod, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORDER_TEST(test_watchers_see_events_while_they_run),
		RECORDER_TEST(test_recording_in_a_callback_is_queued),
		RECORDER_TEST(test_events_keep_their_order),
		RECORDER_TEST(test_two_sinks_agree_on_the_name),
		RECORDER_TEST(test_shutdown_flushes_and_refuses),
		RECORDER_TEST(test_shutdown_drops_at_its_deadline),
		RECORDER_TEST(test_handles_outlive_the_broadcaster),
		RECORDER_TEST(test_invalid_events_are_counted),
		RECORDER_TEST(test_event_keeps_a_released_reference),
	};

	return cmocka_run_group_tests_name("broadcaster", tests, NULL, NULL);
}

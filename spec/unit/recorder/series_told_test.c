/* A sink that correlates by series: watches are told of states, explain lists merged notes and ended series. */
#include "series_world.h"

/* The events that a watcher, or a queue, was given, a word for each: "a" for a note, "2 Ongoing" for a series. */
struct seen {
	struct series_world *w;
	char text[512];
	bool acts; /* does in the callback all that a callback may do */
};

static void see(struct seen *seen, const evrec_event *event)
{
	const evrec_fields *e = evrec_event_fields(event);
	const size_t len = strlen(seen->text);

	if (e->series_state.len != 0) {
		(void)snprintf(seen->text + len, sizeof(seen->text) - len, "%d %.*s;", e->series_count,
		               (int)e->series_state.len, e->series_state.data);
		assert_true(e->name.len > 0 && e->series_last >= e->event_time);
		/* A callback records its own events about another object, some of them later. */
		assert_true(e->event_time == T0 || !str_eq(e->regarding.name, EVREC_STR("web-0")));
	} else {
		(void)snprintf(seen->text + len, sizeof(seen->text) - len, "%.*s;", (int)e->note.len, e->note.data);
	}
}

static bool any(void *ctx, const evrec_suppressed *suppressed)
{
	(void)ctx;
	return suppressed->count > 0;
}

static void on_event(void *ctx, evrec_event *event)
{
	struct seen *seen = ctx;

	see(seen, event);
	if (seen->acts) {
		seen->acts = false;
		(void)stats_check_equations(seen->w->b);
		evrec_broadcaster_poll(seen->w->b);
		assert_int_equal(evrec_broadcaster_flush(seen->w->b, 0, NULL), EVREC_EINVALID);
		evrec_broadcaster_explain(seen->w->b, 1, NULL, any, NULL);
		series_world_record(seen->w, "web-1", "inner");
		for (unsigned i = 0; i < 50; i++) {
			evrec_watch_free(evrec_broadcaster_watch(seen->w->b, 1, NULL));
		}
		seen->acts = true;
	}
}

static evrec_watch *watch(struct series_world *w, struct seen *seen)
{
	evrec_watch *watch = evrec_broadcaster_start_event_watcher(w->b, on_event, seen, NULL);

	seen->w = w;
	assert_non_null(watch);
	return watch;
}

static void see_queue(struct seen *seen, evrec_watch *queue)
{
	evrec_event *event;

	while ((event = evrec_watch_next(queue)) != NULL) {
		see(seen, event);
		evrec_event_release(event);
	}
}

/* The event first, then the series that it began; the end of a series before the event that ends it. */
static void test_watches_are_told_in_order(void **state)
{
	static const char expected[] = "a;a;2 Ongoing;a;3 Finished;a;";
	struct series_world w = { .late = true };
	struct seen before = { 0 }, after = { 0 }, queued = { 0 };
	evrec_watch *first, *last, *queue;

	(void)state;
	series_world_open(&w, NULL);
	first = watch(&w, &before);
	queue = evrec_broadcaster_watch(w.b, 100, NULL);
	series_world_start(&w, NULL);
	last = watch(&w, &after);
	for (unsigned i = 0; i < 3; i++) {
		series_world_record(&w, "web-0", "a");
	}
	series_world_advance(&w, 720 * EVREC_SECOND);
	series_world_record(&w, "web-0", "a");
	see_queue(&queued, queue);
	assert_string_equal(before.text, expected);
	assert_string_equal(after.text, expected);
	assert_string_equal(queued.text, expected);
	evrec_watch_free(first);
	evrec_watch_free(last);
	evrec_watch_free(queue);
	series_world_close(&w);
}

/* Without a further event a poll tells of the end. */
static void test_a_poll_tells_of_the_end(void **state)
{
	struct series_world w = { 0 };
	struct seen seen = { 0 };

	(void)state;
	series_world_open(&w, NULL);
	evrec_watch_free(watch(&w, &seen));
	series_world_record(&w, "web-0", "a");
	series_world_record(&w, "web-0", "a");
	series_world_advance(&w, 720 * EVREC_SECOND);
	checked_poll(w.b);
	assert_string_equal(seen.text, "a;a;2 Ongoing;2 Finished;");
	series_world_close(&w);
}

static void end_ten_series(bool watched)
{
	static const char four[] = "2 Finished;2 Finished;2 Finished;2 Finished;";
	struct series_world w = { 0 };
	struct seen seen = { 0 };
	char object[] = "web-0", expected[128];

	series_world_open(&w, NULL);
	if (watched) {
		evrec_watch_free(watch(&w, &seen));
	}
	for (; object[4] <= '9'; object[4]++) {
		series_world_record(&w, object, "a");
		series_world_record(&w, object, "a");
	}
	series_world_advance(&w, 720 * EVREC_SECOND);
	seen.text[0] = '\0';
	series_world_record(&w, "other", "b");
	assert_int_equal(stats_check_equations(w.b).series.finished, 4);
	(void)snprintf(expected, sizeof(expected), "%sb;", four);
	assert_string_equal(seen.text, watched ? expected : "");
	seen.text[0] = '\0';
	series_world_record(&w, "web-9", "c"); /* ends its own besides */
	assert_int_equal(stats_check_equations(w.b).series.finished, 9);
	(void)snprintf(expected, sizeof(expected), "%sc;2 Finished;", four);
	assert_string_equal(seen.text, watched ? expected : "");
	checked_poll(w.b);
	assert_int_equal(stats_check_equations(w.b).series.finished, 10);
	series_world_close(&w);
}

/* No recording call pays for all series that are finished by one tick. A poll does. */
static void test_a_recording_call_ends_a_few_series(void **state)
{
	(void)state;
	end_ten_series(false);
	end_ten_series(true);
}

/* Of two sinks the first tells; the second once the first was stopped. */
static void test_one_sink_tells(void **state)
{
	struct series_world w = { 0 };
	struct seen seen = { 0 };
	evrec_watch *first;

	(void)state;
	series_world_open(&w, NULL);
	first = w.watch;
	series_world_start(&w, NULL);
	evrec_watch_free(watch(&w, &seen));
	series_world_record(&w, "web-0", "a");
	series_world_record(&w, "web-0", "a");
	assert_string_equal(seen.text, "a;a;2 Ongoing;");
	evrec_watch_stop(first);
	evrec_watch_free(first);
	series_world_advance(&w, 720 * EVREC_SECOND);
	checked_poll(w.b);
	assert_string_equal(seen.text, "a;a;2 Ongoing;2 Finished;");
	series_world_close(&w);
}

/* A callback that is told of a series may do what every callback may. */
static void test_callbacks_may_act(void **state)
{
	struct series_world w = { 0 };
	struct seen seen = { .acts = true };
	evrec_series_options options = { 1800 * EVREC_SECOND, 360 * EVREC_SECOND, 1, false, false };

	(void)state;
	series_world_open(&w, &options);
	evrec_watch_free(watch(&w, &seen));
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	seen.acts = false;
	series_world_record(&w, "web-0", "a");
	series_world_record(&w, "web-0", "a");
	seen.acts = true;
	series_world_advance(&w, 720 * EVREC_SECOND);
	checked_poll(w.b);
	assert_non_null(strstr(seen.text, "Ongoing"));
	assert_non_null(strstr(seen.text, "Finished"));
	assert_non_null(strstr(seen.text, "inner"));
	seen.acts = false;
	assert_int_equal(checked_shutdown(w.b, 0), 0);
	series_world_close(&w);
}

/* A callback stops the sink that tells it: nothing is counted any more, and all is written. */
static void stop_sink(void *ctx, evrec_event *event)
{
	struct series_world *w = ctx;

	if (evrec_event_fields(event)->series_state.len != 0) {
		evrec_watch_stop(w->watch);
	}
}

static void test_a_callback_may_stop_the_sink(void **state)
{
	struct series_world w = { 0 };
	evrec_stats all;

	(void)state;
	series_world_open(&w, NULL);
	evrec_watch_free(evrec_broadcaster_start_event_watcher(w.b, stop_sink, &w, NULL));
	series_world_record(&w, "web-0", "a");
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	checked_poll(w.b);
	evrec_broadcaster_get_stats(w.b, &all);
	assert_int_equal(all.sinks, 0);
	assert_int_equal(all.ended.received, 2);
	assert_int_equal(all.ended.created + all.ended.coalesced, 2);
	series_world_close(&w);
}

struct explained {
	enum evrec_stage stages[8];
	uint64_t counts[8];
	char messages[8][32], instances[8][64];
	int64_t first, last; /* of the last one */
	size_t len;
};

static bool explain_one(void *ctx, const evrec_suppressed *s)
{
	struct explained *e = ctx;

	e->stages[e->len] = s->stage;
	e->counts[e->len] = s->count;
	(void)snprintf(e->messages[e->len], 32, "%.*s", (int)s->message.len, s->message.data);
	assert_true(str_eq(s->regarding.name, EVREC_STR("web-0")) && str_eq(s->reason, EVREC_STR("BackOff")));
	assert_true(s->tokens > 0 && s->next_token == 0);
	e->first = s->first;
	e->last = s->last;
	e->len++;
	return e->len < 8;
}

static void test_explain_shows_merged_notes_and_ended_series(void **state)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	struct series_world w = { 0 };
	struct explained e = { 0 };

	(void)state;
	series_world_open(&w, NULL);
	series_world_record(&w, "web-0", "a");
	series_world_record(&w, "web-0", "a");
	evrec_broadcaster_explain(w.b, 1, &pod, explain_one, &e);
	assert_int_equal(e.len, 0);
	series_world_record(&w, "web-0", "b");
	series_world_record(&w, "web-0", "c");
	evrec_broadcaster_explain(w.b, 1, &pod, explain_one, &e);
	assert_int_equal(e.len, 1);
	assert_int_equal(e.stages[0], EVREC_STAGE_MERGED);
	assert_int_equal(e.counts[0], 2);
	assert_string_equal(e.messages[0], "c");
	series_world_advance(&w, 720 * EVREC_SECOND);
	checked_poll(w.b);
	e.len = 0;
	evrec_broadcaster_explain(w.b, 1, &pod, explain_one, &e);
	assert_int_equal(e.len, 2);
	assert_int_equal(e.stages[1], EVREC_STAGE_FINISHED);
	assert_int_equal(e.counts[1], 4);
	assert_string_equal(e.messages[1], "c");
	assert_int_equal(e.first, T0);
	assert_int_equal(e.last, T0);
	assert_int_equal(stats_check_equations(w.b).series.notes, 2);
	series_world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watches_are_told_in_order),
		cmocka_unit_test(test_a_poll_tells_of_the_end),
		cmocka_unit_test(test_a_recording_call_ends_a_few_series),
		cmocka_unit_test(test_one_sink_tells),
		cmocka_unit_test(test_callbacks_may_act),
		cmocka_unit_test(test_a_callback_may_stop_the_sink),
		cmocka_unit_test(test_explain_shows_merged_notes_and_ended_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

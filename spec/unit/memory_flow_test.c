/*
 * Every allocation fails once: a broadcaster with recorders, watchers, and a sink of the embedder's. Whatever is lost is
 * counted, call by call.
 */
#include "books.h"

#include "scarce.h"

#define LEAST 150

struct flow {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_ref *ref;
	unsigned answers, seen;
	bool well;          /* every answer is a success */
	unsigned to_record; /* from inside a callback */
};

/* ---- the embedder's side ---- */

/* Success, try again, and no, in turn. */
static void answer(void *ctx, const evrec_event *event, evrec_answer *out)
{
	static const int statuses[] = { 201, 503, 201, 422, 409, 201, 404 };
	struct flow *f = ctx;

	assert_true(evrec_event_fields(event)->name.len > 0);
	out->status = f->well ? 200 : statuses[f->answers++ % 7];
	memcpy(out->name, "called-otherwise", sizeof("called-otherwise"));
	memcpy(out->resource_version, "7", sizeof("7"));
	memcpy(out->message, "no", sizeof("no"));
}

static void answer_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *out)
{
	assert_true(patch.len > 0 && patch.data[0] == '{');
	answer(ctx, event, out);
}

static int record(struct flow *f, evrec_str object, evrec_str note, evrec_error *err)
{
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"), .name = object, .ns = EVREC_STR("shop") };
	const evrec_pair pair = { EVREC_STR("a"), EVREC_STR("b") };
	const evrec_emit what = { .regarding = &regarding,
		                  .related = &regarding,
		                  .type = EVREC_STR("Normal"),
		                  .reason = EVREC_STR("R"),
		                  .action = EVREC_STR("A"),
		                  .note = note,
		                  .annotations = { &pair, 1 },
		                  .labels = { &pair, 1 },
		                  .timestamp = EVREC_UNSET };

	return evrec_recorder_emit(f->r, &what, err);
}

/* A recording call is counted once. What it lost is told, and some allocation had failed. */
static void record_and_check(struct flow *f, const char *object, const char *note)
{
	evrec_stats before, after;
	evrec_error err = { 0 };
	int code;

	evrec_broadcaster_get_stats(f->b, &before);
	f->to_record = 0;
	code = record(f, str_from(object), str_from(note), &err);
	evrec_broadcaster_get_stats(f->b, &after);
	assert_int_equal(after.recorded, before.recorded + 1);
	assert_true(code == 0 || (code == EVREC_EDROPPED && err.code == EVREC_EDROPPED));
	scarce_check(code == 0);
	assert_int_equal(after.dropped[EVREC_CAUSE_MEMORY] - before.dropped[EVREC_CAUSE_MEMORY], code != 0);
	check_books(f->b);
}

static void from_inside(struct flow *f)
{
	evrec_error err;

	if (f->to_record > 0) {
		f->to_record--;
		(void)record(f, EVREC_STR("inner"), EVREC_STR("recorded inside\xFF"), &err);
	}
}

static void on_event(void *ctx, evrec_event *event)
{
	struct flow *f = ctx;

	assert_true(evrec_event_fields(event)->name.len > 0);
	f->seen++;
	from_inside(f);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	assert_true(*message != '\0' && *name != '\0');
	from_inside(ctx);
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	assert_true(evrec_event_fields(event)->reason.len > 0 && *why != '\0');
	from_inside(ctx);
}

static bool any_suppressed(void *ctx, const evrec_suppressed *what)
{
	(void)ctx;
	assert_true(what->count > 0 && what->regarding.name.len > 0 && *evrec_stage_name(what->stage) != '\0');
	return true;
}

/* ---- what is started ---- */

static void start_sink(struct flow *f, unsigned burst)
{
	static const evrec_sink_ops ops = { .name = "test", .create = answer, .patch = answer_patch };
	evrec_correlator_options options;
	evrec_limits limits;
	evrec_error err = { 0 };
	evrec_watch *watch = NULL;
	evrec_sink_stats stats;
	evrec_sink *sink;

	evrec_correlator_options_init(&options);
	options.burst_size = burst;
	options.max_events = 3;
	evrec_limits_init(&limits);
	sink = evrec_sink_new(&ops, f, &limits, &err);
	scarce_check_error(sink != NULL, &err);
	if (sink != NULL) {
		assert_ptr_equal(evrec_sink_retain(sink), sink);
		watch = evrec_broadcaster_start_recording_to_sink(f->b, sink, &options, &err);
		scarce_check_error(watch != NULL, &err);
		evrec_sink_release(sink);
	}
	if (watch != NULL) {
		assert_true(evrec_watch_get_sink_stats(watch, &stats));
	}
	evrec_watch_free(watch);
	evrec_sink_release(sink);
}

static evrec_watch *start_watcher(struct flow *f)
{
	evrec_error err = { 0 };
	evrec_watch *watch = evrec_broadcaster_start_event_watcher(f->b, on_event, f, &err);

	scarce_check_error(watch != NULL, &err);
	return watch;
}

static evrec_watch *start_queue(struct flow *f)
{
	evrec_error err = { 0 };
	evrec_watch *watch = evrec_broadcaster_watch(f->b, 3, &err);

	scarce_check_error(watch != NULL, &err);
	return watch;
}

static void read_queue(evrec_watch *watch)
{
	evrec_event *event;
	uint64_t dropped;
	size_t queued;

	if (watch != NULL) {
		evrec_watch_get_queue(watch, &queued, &dropped);
		assert_true(queued <= 3);
		while ((event = evrec_watch_next(watch)) != NULL) {
			evrec_event_release(event);
			queued--;
		}
		assert_int_equal(queued, 0);
	}
}

static bool open_flow(struct flow *f)
{
	const evrec_reference node = { .kind = EVREC_STR("Node"), .name = EVREC_STR("n") };
	evrec_broadcaster_options options;
	evrec_error err = { 0 };

	f->clock = evrec_clock_fake(T0);
	scarce_check(f->clock != NULL);
	if (f->clock == NULL) {
		return false;
	}
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	options.max_message_bytes = 40;
	options.on_error = on_error;
	options.on_drop = on_drop;
	options.ctx = f;
	f->b = evrec_broadcaster_new(&options, &err);
	scarce_check_error(f->b != NULL, &err);
	if (f->b == NULL) {
		return false;
	}
	f->r = evrec_recorder_new(f->b, EVREC_STR("component"), EVREC_STR("host"), &err);
	scarce_check_error(f->r != NULL, &err);
	f->ref = evrec_ref_new(&node, &err);
	scarce_check_error(f->ref != NULL, &err);
	return f->r != NULL && f->ref != NULL;
}

static void close_flow(struct flow *f)
{
	evrec_recorder_free(f->r);
	evrec_ref_release(f->ref);
	evrec_broadcaster_free(f->b);
	evrec_clock_release(f->clock);
}

/* ---- what is recorded ---- */

static void record_some(struct flow *f)
{
	const evrec_emit again = {
		.object = f->ref, .type = EVREC_STR("Warning"), .reason = EVREC_STR("R"), .timestamp = T0
	};
	char note[64];
	int i;

	for (i = 0; i < 6; i++) {
		(void)snprintf(note, sizeof(note), "a message that has to be cut and cleaned: \xFF %d", i);
		record_and_check(f, i % 2 == 0 ? "a" : "UPPER", i < 4 ? note : "short");
		scarce_check(evrec_recorder_emit(f->r, &again, NULL) == 0);
	}
	f->to_record = 3;
	(void)record(f, EVREC_STR("outer"), EVREC_STR("makes others\xFF"), NULL);
	check_books(f->b);
	assert_int_equal(evrec_recorder_refuse(f->r, "not a string", NULL), EVREC_EINVALID);
	check_books(f->b);
	assert_int_equal(evrec_recorder_drop(f->r, "no room", NULL), EVREC_EDROPPED);
	check_books(f->b);
}

static void poll_some(struct flow *f)
{
	int i;

	for (i = 1; i <= 4; i++) {
		f->to_record = 1;
		evrec_broadcaster_poll(f->b);
		check_books(f->b);
		evrec_clock_set(f->clock, T0 + i * 60 * EVREC_SECOND);
	}
	evrec_broadcaster_callback_error(f->b, "a binding's");
	(void)evrec_broadcaster_flush(f->b, 0);
	check_books(f->b);
	evrec_broadcaster_explain(f->b, 0, NULL, any_suppressed, NULL);
}

/* All that was lost was counted; what is recorded from here on is not lost. */
static void go_on_with_memory(struct flow *f, const char *object)
{
	evrec_sink_stats before = { 0 }, after = { 0 };

	scarce_rest();
	f->well = true;
	evrec_clock_set(f->clock, T0 + 3600 * EVREC_SECOND);
	assert_int_equal(evrec_broadcaster_flush(f->b, 5 * EVREC_SECOND), 0);
	(void)evrec_broadcaster_get_sink_stats(f->b, 0, &before);
	record_and_check(f, object, "with memory");
	assert_int_equal(evrec_broadcaster_flush(f->b, 5 * EVREC_SECOND), 0);
	if (evrec_broadcaster_get_sink_stats(f->b, 0, &after)) {
		assert_int_equal(after.created, before.created + 1);
		assert_int_equal(after.pending, 0);
	}
}

static void flow(void)
{
	struct flow f = { 0 };
	evrec_watch *watcher, *queue;

	scarce_begin();
	if (open_flow(&f)) {
		start_sink(&f, 3);
		watcher = start_watcher(&f);
		queue = start_queue(&f);
		start_sink(&f, 100);
		record_some(&f);
		read_queue(queue);
		poll_some(&f);
		if (watcher != NULL) {
			evrec_watch_stop(watcher);
		}
		record_some(&f);
		go_on_with_memory(&f, "b");
		f.well = false;
		scarce_begin();
		record_some(&f);
		assert_true(evrec_broadcaster_shutdown(f.b, 0) <= 0);
		check_books(f.b);
		assert_int_equal(record(&f, EVREC_STR("late"), EVREC_STR(""), NULL), EVREC_ECLOSED);
		check_books(f.b);
		evrec_watch_free(watcher);
		evrec_watch_free(queue);
	}
	close_flow(&f);
}

/* One sink and no callback: nothing is copied but what is to be written. */
static void sink_alone(void)
{
	struct flow f = { 0 };

	scarce_begin();
	if (open_flow(&f)) {
		start_sink(&f, 5);
		record_some(&f);
		poll_some(&f);
		go_on_with_memory(&f, "b");
		assert_int_equal(evrec_broadcaster_shutdown(f.b, 0), 0);
	}
	close_flow(&f);
}

static void test_flow(void **state)
{
	(void)state;
	scarce_run(flow, LEAST);
}

static void test_sink_alone(void **state)
{
	(void)state;
	scarce_run(sink_alone, LEAST / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flow),
		cmocka_unit_test(test_sink_alone),
	};

	scarce_jansson();
	return cmocka_run_group_tests_name("memory: flow", tests, NULL, NULL);
}

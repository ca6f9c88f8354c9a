/*
 * Every allocation fails once: a broadcaster with a recorder, watchers, and a sink made of the embedder's functions. After
 * each call, every lost event is counted as dropped.
 */
#include "stats_invariants.h"

#include "alloc_failure.h"
#include "no_memory_recorder.h"

#include <fcntl.h>
#include <unistd.h>

#define LEAST 150

struct scenario {
	struct no_memory_recorder base;
	evrec_prepared_ref *ref;
	unsigned answers, seen;
	bool healthy;       /* every answer is a success */
	unsigned to_record; /* from inside a callback */
};

/* ---- the embedder's side ---- */

/* Answers success, retry and rejection in turn. */
static void answer(void *ctx, const evrec_event *event, evrec_answer *out)
{
	static const int statuses[] = { 201, 503, 201, 422, 409, 201, 404 };
	struct scenario *f = ctx;

	assert_true(evrec_event_fields(event)->name.len > 0);
	out->status = f->healthy ? 200 : statuses[f->answers++ % 7];
	memcpy(out->name, "called-otherwise", sizeof("called-otherwise"));
	memcpy(out->resource_version, "7", sizeof("7"));
	memcpy(out->message, "no", sizeof("no"));
}

static void answer_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *out)
{
	assert_true(patch.len > 0 && patch.data[0] == '{');
	answer(ctx, event, out);
}

/* Records an event, which is counted once. If it is lost, the call says so, and an allocation has failed. */
static void record_and_check(struct scenario *f, const char *object, const char *note)
{
	evrec_stats before, after;
	evrec_error err = { 0 };
	int code;

	evrec_broadcaster_get_stats(f->base.b, &before);
	f->to_record = 0;
	code = no_memory_recorder_record(&f->base, str_from(object), str_from(note), &err);
	evrec_broadcaster_get_stats(f->base.b, &after);
	assert_int_equal(after.recorded, before.recorded + 1);
	assert_true(code == 0 || (code == EVREC_EDROPPED && err.code == EVREC_EDROPPED));
	alloc_failure_check(code == 0);
	assert_int_equal(after.dropped[EVREC_CAUSE_MEMORY] - before.dropped[EVREC_CAUSE_MEMORY], code != 0);
	stats_check_equations(f->base.b);
}

static void from_inside(struct scenario *f)
{
	evrec_error err;

	if (f->to_record > 0) {
		f->to_record--;
		(void)no_memory_recorder_record(&f->base, EVREC_STR("inner"), EVREC_STR("recorded inside\xFF"), &err);
	}
}

static void on_event(void *ctx, evrec_event *event)
{
	struct scenario *f = ctx;

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

static bool any_suppressed(void *ctx, const evrec_suppressed *suppressed)
{
	(void)ctx;
	assert_true(suppressed->count > 0 && suppressed->regarding.name.len > 0 &&
	            *evrec_stage_name(suppressed->stage) != '\0');
	return true;
}

/* ---- sinks and watchers ---- */

static void start_sink(struct scenario *f, unsigned burst, bool series)
{
	static const evrec_sink_ops ops = { .name = "test", .create = answer, .patch = answer_patch };
	evrec_correlator_options options;
	evrec_sink_options common;
	evrec_error err = { 0 };
	evrec_watch *watch = NULL;
	evrec_sink_stats stats;
	evrec_sink *sink;

	evrec_correlator_options_init(&options);
	options.burst_size = burst;
	options.max_events = 3;
	evrec_sink_options_init(&common);
	if (series) {
		common.api = EVREC_SINK_EVENTS_V1;
		common.series.max_series = 2;
		common.series.rate_limit = true;
	}
	sink = evrec_sink_new(&ops, f, &common, &err);
	alloc_failure_check_error(sink != NULL, &err);
	if (sink != NULL) {
		assert_ptr_equal(evrec_sink_retain(sink), sink);
		watch = no_memory_recorder_start(&f->base, sink, &options);
		evrec_sink_release(sink);
	}
	if (watch != NULL) {
		assert_true(evrec_watch_get_sink_stats(watch, &stats));
	}
	evrec_watch_free(watch);
	evrec_sink_release(sink);
}

static evrec_watch *start_watcher(struct scenario *f)
{
	evrec_error err = { 0 };
	evrec_watch *watch = evrec_broadcaster_start_event_watcher(f->base.b, on_event, f, &err);

	alloc_failure_check_error(watch != NULL, &err);
	return watch;
}

static evrec_watch *start_queue(struct scenario *f)
{
	evrec_error err = { 0 };
	evrec_watch *watch = evrec_broadcaster_watch(f->base.b, 3, &err);

	alloc_failure_check_error(watch != NULL, &err);
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

static bool open_recorder(struct scenario *f)
{
	const evrec_reference node = { .kind = EVREC_STR("Node"), .name = EVREC_STR("n") };
	evrec_broadcaster_options options;
	evrec_error err = { 0 };
	bool opened;

	evrec_broadcaster_options_init(&options);
	options.max_message_bytes = 40;
	options.on_error = on_error;
	options.on_drop = on_drop;
	options.ctx = f;
	opened = no_memory_recorder_open(&f->base, &options);
	if (f->base.b == NULL) {
		return false;
	}
	f->ref = evrec_prepared_ref_new(&node, &err);
	alloc_failure_check_error(f->ref != NULL, &err);
	return opened && f->ref != NULL;
}

static void close_recorder(struct scenario *f)
{
	evrec_prepared_ref_release(f->ref);
	no_memory_recorder_close(&f->base);
}

/* ---- events ---- */

/* A prepared event that has its memory records each occurrence, unless others need some for it. */
static void record_prepared(struct scenario *f)
{
	const evrec_emit emit = { .object = f->ref,
		                  .type = EVREC_STR("Warning"),
		                  .reason = EVREC_STR("R"),
		                  .note = EVREC_STR("cleaned: \xFF"),
		                  .timestamp = EVREC_UNSET };
	evrec_error err;
	evrec_prepared_event *event = evrec_prepared_event_new(f->base.r, &emit, &err);

	alloc_failure_check_error(event != NULL, &err);
	for (int i = 0; i < 3 && event != NULL; i++) {
		assert_int_equal(evrec_prepared_event_record(event, NULL), 0);
		alloc_failure_check(evrec_prepared_event_record_note(event, EVREC_STR("another: \xFF"), NULL) == 0);
		(void)stats_check_equations(f->base.b);
	}
	evrec_prepared_event_free(event);
}

static void record_some(struct scenario *f)
{
	const evrec_emit again = {
		.object = f->ref, .type = EVREC_STR("Warning"), .reason = EVREC_STR("R"), .timestamp = T0
	};
	char note[64];
	int i;

	for (i = 0; i < 6; i++) {
		(void)snprintf(note, sizeof(note), "a message that has to be cut and cleaned: \xFF %d", i);
		record_and_check(f, i % 2 == 0 ? "a" : "UPPER", i < 4 ? note : "short");
		alloc_failure_check(evrec_recorder_emit(f->base.r, &again, NULL) == 0);
	}
	record_prepared(f);
	f->to_record = 3;
	(void)no_memory_recorder_record(&f->base, EVREC_STR("outer"), EVREC_STR("makes others\xFF"), NULL);
	stats_check_equations(f->base.b);
	assert_int_equal(evrec_recorder_refuse(f->base.r, "not a string", NULL), EVREC_EINVALID);
	stats_check_equations(f->base.b);
	assert_int_equal(evrec_recorder_drop(f->base.r, "no room", NULL), EVREC_EDROPPED);
	stats_check_equations(f->base.b);
}

/* A recording call is counted as one, also if there was no memory for its event. */
static void check_recorder(struct scenario *f)
{
	evrec_recorder_stats stats;

	assert_ptr_equal(evrec_broadcaster_next_recorder(f->base.b, NULL), f->base.r);
	assert_null(evrec_broadcaster_next_recorder(f->base.b, f->base.r));
	evrec_recorder_get_stats(f->base.r, &stats);
	assert_int_equal(stats.reasons, 1);
	assert_int_equal(stats.actions, 1);
}

static void poll_some(struct scenario *f)
{
	const evrec_explanation *explanation;
	evrec_error err = { 0 };
	int i;

	for (i = 1; i <= 4; i++) {
		f->to_record = 1;
		evrec_broadcaster_poll(f->base.b);
		(void)evrec_broadcaster_poll_delay(f->base.b);
		stats_check_equations(f->base.b);
		evrec_clock_set(f->base.clock, T0 + i * 60 * EVREC_SECOND);
	}
	check_recorder(f);
	evrec_broadcaster_callback_error(f->base.b, "a binding's");
	(void)evrec_broadcaster_flush(f->base.b, 0, NULL);
	stats_check_equations(f->base.b);
	for (size_t number = 1; evrec_broadcaster_next_sink(f->base.b, &number); number++) {
		evrec_broadcaster_explain(f->base.b, number, NULL, any_suppressed, NULL);
	}
	explanation = evrec_explanation_new(f->base.b, NULL, 0, &err);
	alloc_failure_check_error(explanation != NULL, &err);
	evrec_explanation_free(explanation);
}

/* From here on no allocation fails, and no event is lost. */
static void go_on_with_memory(struct scenario *f, const char *object)
{
	evrec_sink_stats before = { 0 }, after = { 0 };

	alloc_failure_disarm();
	f->healthy = true;
	evrec_clock_set(f->base.clock, T0 + 3600 * EVREC_SECOND);
	/* May tell of what was lost without memory. */
	assert_int_not_equal(evrec_broadcaster_flush(f->base.b, SOON, NULL), EVREC_ETIMEOUT);
	(void)evrec_broadcaster_get_sink_stats(f->base.b, 1, &before);
	record_and_check(f, object, "with memory");
	assert_int_equal(evrec_broadcaster_flush(f->base.b, SOON, NULL), 0);
	if (evrec_broadcaster_get_sink_stats(f->base.b, 1, &after)) {
		assert_int_equal(after.created, before.created + 1);
		assert_int_equal(after.pending, 0);
	}
}

static void sinks_and_watchers(void)
{
	struct scenario f = { 0 };
	evrec_watch *watcher, *queue;

	alloc_failure_arm();
	if (open_recorder(&f)) {
		start_sink(&f, 3, false);
		watcher = start_watcher(&f);
		queue = start_queue(&f);
		start_sink(&f, 100, false);
		record_some(&f);
		read_queue(queue);
		poll_some(&f);
		if (watcher != NULL) {
			evrec_watch_stop(watcher);
		}
		record_some(&f);
		go_on_with_memory(&f, "b");
		f.healthy = false;
		alloc_failure_arm();
		record_some(&f);
		assert_true(evrec_broadcaster_shutdown(f.base.b, 0, NULL) <= 0);
		stats_check_equations(f.base.b);
		assert_int_equal(no_memory_recorder_record(&f.base, EVREC_STR("late"), EVREC_STR(""), NULL),
		                 EVREC_ECLOSED);
		stats_check_equations(f.base.b);
		evrec_watch_free(watcher);
		evrec_watch_free(queue);
	}
	close_recorder(&f);
}

/* One sink and no watcher: only events to write are copied. */
static void sink_alone(void)
{
	struct scenario f = { 0 };

	alloc_failure_arm();
	if (open_recorder(&f)) {
		start_sink(&f, 5, false);
		record_some(&f);
		poll_some(&f);
		go_on_with_memory(&f, "b");
		assert_int_equal(evrec_broadcaster_shutdown(f.base.b, 0, NULL), 0);
	}
	close_recorder(&f);
}

/* Series that begin, are evicted and finish, with a watcher and a queue that are told. */
static void series(void)
{
	struct scenario f = { 0 };
	evrec_watch *watcher, *queue;

	alloc_failure_arm();
	if (open_recorder(&f)) {
		start_sink(&f, 100, true);
		watcher = start_watcher(&f);
		queue = start_queue(&f);
		record_some(&f);
		read_queue(queue);
		poll_some(&f);
		evrec_clock_set(f.base.clock, T0 + 1800 * EVREC_SECOND);
		record_some(&f);
		evrec_clock_set(f.base.clock, T0 + 3600 * EVREC_SECOND);
		poll_some(&f);
		go_on_with_memory(&f, "b");
		assert_int_equal(evrec_broadcaster_shutdown(f.base.b, 0, NULL), 0);
		stats_check_equations(f.base.b);
		evrec_watch_free(watcher);
		evrec_watch_free(queue);
	}
	close_recorder(&f);
}

/* A loud broadcaster has made all memory for its lines when it is there. */
static void lines(void)
{
	evrec_broadcaster_options options;
	struct no_memory_recorder f = { 0 };
	char line[EVREC_LINE_SIZE];

	evrec_broadcaster_options_init(&options);
	options.loud = true;
	alloc_failure_arm();
	if (no_memory_recorder_open(&f, &options)) {
		(void)evrec_recorder_refuse(f.r, "object: missing", NULL);
		assert_true(evrec_broadcaster_wants_place(f.b));
		evrec_broadcaster_set_place(f.b, "hook.lua:12");
		assert_true(evrec_broadcaster_next_line(f.b, false, line));
		evrec_broadcaster_not_told(f.b);
		assert_true(evrec_broadcaster_next_line(f.b, true, line));
		assert_true(evrec_line_to_stderr(line));
		evrec_log_stderr(NULL, "no memory", "memory");
	}
	no_memory_recorder_close(&f);
}

static void test_lines_need_no_memory(void **state)
{
	const int silence = open("/dev/null", O_WRONLY | O_CLOEXEC), before = dup(STDERR_FILENO);

	(void)state;
	assert_true(dup2(silence, STDERR_FILENO) >= 0);
	alloc_failure_run(lines, 4);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	close(silence);
	close(before);
}

static void test_sinks_and_watchers_lose_nothing_uncounted(void **state)
{
	(void)state;
	alloc_failure_run(sinks_and_watchers, LEAST);
}

static void test_sink_alone_loses_nothing_uncounted(void **state)
{
	(void)state;
	alloc_failure_run(sink_alone, LEAST / 2);
}

static void test_series_lose_nothing_uncounted(void **state)
{
	(void)state;
	alloc_failure_run(series, LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sinks_and_watchers_lose_nothing_uncounted),
		cmocka_unit_test(test_sink_alone_loses_nothing_uncounted),
		cmocka_unit_test(test_series_lose_nothing_uncounted),
		cmocka_unit_test(test_lines_need_no_memory),
	};

	alloc_failure_hook_jansson();
	return cmocka_run_group_tests_name("memory: sinks_and_watchers", tests, NULL, NULL);
}

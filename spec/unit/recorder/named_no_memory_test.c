/*
 * Every allocation fails once, in two handles of a broadcaster with a name: each event is recorded or counted as dropped,
 * and nothing leaks.
 */
#include "alloc_failure.h"
#include "no_memory_recorder.h"
#include "stats_invariants.h"

#define LEAST 50

static unsigned seen, created, drops, errors;

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	(void)ctx;
	assert_true(evrec_event_fields(event)->name.len > 0);
	created++;
	answer->status = created % 3 == 0 ? 422 : 201;
}

static void on_event(void *ctx, evrec_event *event)
{
	(void)ctx;
	assert_true(evrec_event_fields(event)->name.len > 0);
	seen++;
}

static void on_drop(void *ctx, const evrec_event *event, const char *cause)
{
	(void)ctx;
	assert_true(event != NULL && cause != NULL);
	drops++;
}

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)ctx;
	assert_true(message != NULL && name != NULL);
	errors++;
}

static bool choose_keys(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	(void)ctx;
	*aggregate_key = event->reason;
	*local_key = event->note;
	return true;
}

static bool choose_message(void *ctx, const evrec_fields *event, evrec_str *message)
{
	(void)ctx;
	*message = event->regarding.name;
	return true;
}

static void start(struct no_memory_recorder *f)
{
	static const evrec_sink_ops ops = { .create = create };
	evrec_correlator_options correlator;
	evrec_error err = { 0 };
	evrec_sink *sink = evrec_sink_new(&ops, NULL, NULL, &err);
	evrec_watch *watch;

	alloc_failure_check_error(sink != NULL, &err);
	if (sink == NULL) {
		return;
	}
	evrec_correlator_options_init(&correlator);
	correlator.key_func = choose_keys;
	correlator.message_func = choose_message;
	correlator.max_events = 2;
	watch = evrec_broadcaster_start_recording_to_sink(f->b, sink, &correlator, &err);
	alloc_failure_check_error(watch != NULL, &err);
	evrec_watch_free(watch);
	evrec_sink_release(sink);
	watch = evrec_broadcaster_start_event_watcher(f->b, on_event, NULL, &err);
	alloc_failure_check_error(watch != NULL, &err);
	evrec_watch_free(watch);
	watch = evrec_broadcaster_watch(f->b, 2, &err);
	alloc_failure_check_error(watch != NULL, &err);
	if (watch != NULL) {
		evrec_watch_stop(watch);
	}
	evrec_watch_free(watch);
}

static void record(struct no_memory_recorder *f, unsigned n)
{
	evrec_stats before, after;
	evrec_error err = { 0 };
	char note[32];
	int code;

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(note, sizeof(note), "note %u", i);
		evrec_broadcaster_get_stats(f->b, &before);
		code = no_memory_recorder_record(f, EVREC_STR("web-0"), evrec_string(note), &err);
		evrec_broadcaster_get_stats(f->b, &after);
		alloc_failure_check(code == 0);
		assert_int_equal(after.recorded - before.recorded, 1);
		assert_int_equal(after.broadcast - before.broadcast + after.dropped[EVREC_CAUSE_MEMORY] -
		                         before.dropped[EVREC_CAUSE_MEMORY],
		                 1);
		evrec_broadcaster_poll(f->b);
		alloc_failure_ignore();
		stats_check_equations(f->b);
	}
}

static bool open_handle(struct no_memory_recorder *f)
{
	evrec_broadcaster_options options;

	evrec_broadcaster_options_init(&options);
	options.name = EVREC_STR("no memory");
	options.on_drop = on_drop;
	options.on_error = on_error;
	return no_memory_recorder_open(f, &options);
}

/* The handles must have one clock, so the second one takes that of the first. */
static evrec_broadcaster *open_second(struct no_memory_recorder *first)
{
	evrec_broadcaster_options options;
	evrec_broadcaster *b;
	evrec_error err = { 0 };

	evrec_broadcaster_options_init(&options);
	options.name = EVREC_STR("no memory");
	options.clock = first->clock;
	options.on_drop = on_drop;
	options.on_error = on_error;
	b = evrec_broadcaster_new(&options, &err);
	alloc_failure_check_error(b != NULL, &err);
	return b;
}

static void scenario(void)
{
	struct no_memory_recorder first = { 0 }, second = { 0 };

	alloc_failure_arm();
	if (open_handle(&first)) {
		start(&first);
		record(&first, 4);
		second.b = open_second(&first);
		if (second.b != NULL) {
			start(&second);
			(void)evrec_broadcaster_flush(second.b, 0, NULL);
			evrec_broadcaster_free(second.b);
			alloc_failure_ignore();
		}
		record(&first, 2);
		(void)evrec_broadcaster_shutdown(first.b, 0, NULL);
		alloc_failure_ignore();
	}
	alloc_failure_disarm();
	no_memory_recorder_close(&first);
}

static void test_every_allocation_fails_once(void **state)
{
	(void)state;
	alloc_failure_run(scenario, LEAST);
	assert_true(seen > 0 && created > 0 && drops > 0 && errors > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_allocation_fails_once) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Every allocation fails once, in the life of a sink with a state file: each event is recorded or counted as dropped, and
 * what is in the file can be read.
 */
#include "alloc_failure.h"
#include "no_memory_recorder.h"
#include "tmpdir.h"

#include <unistd.h>

#define LEAST 150

static const char *path;
static enum evrec_correlate correlate;
static unsigned events; /* that the last process recorded; the next one records as many more */
static unsigned failed_writes;

static void answer(void *ctx, const evrec_event *event, evrec_answer *out)
{
	(void)ctx;
	assert_true(evrec_event_fields(event)->name.len > 0);
	out->status = 200;
	memcpy(out->name, "called-otherwise", sizeof("called-otherwise"));
}

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)ctx;
	/* Nothing but memory fails. */
	if (strcmp(name, "state") == 0) {
		unit_check_contains(message, "emory");
		failed_writes +=
			strstr(message, "counts are not kept") != NULL && strstr(message, "annot allocate") != NULL;
	}
}

static void start_sink(struct no_memory_recorder *f)
{
	static const evrec_sink_ops ops = { .create = answer };
	evrec_sink_options common;
	evrec_error err = { 0 };
	evrec_sink *sink;

	evrec_sink_options_init(&common);
	common.state_file = str_from(path);
	common.correlate = correlate;
	sink = evrec_sink_new(&ops, NULL, &common, &err);
	alloc_failure_check_error(sink != NULL, &err);
	if (sink != NULL) {
		evrec_watch_free(no_memory_recorder_start(f, sink, NULL));
		alloc_failure_ignore();
		evrec_sink_release(sink);
	}
}

static void record(struct no_memory_recorder *f, unsigned n)
{
	evrec_error err = { 0 };
	evrec_stats before, after;
	char object[32];
	int code;

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(object, sizeof(object), "object-%u", i);
		evrec_broadcaster_get_stats(f->b, &before);
		code = no_memory_recorder_record(f, str_from(object), EVREC_STR("note"), &err);
		evrec_broadcaster_get_stats(f->b, &after);
		alloc_failure_check(code == 0);
		assert_int_equal(after.broadcast - before.broadcast + after.dropped[EVREC_CAUSE_MEMORY] -
		                         before.dropped[EVREC_CAUSE_MEMORY],
		                 1);
		evrec_clock_set(f->clock, evrec_clock_now(f->clock) + 2 * EVREC_SECOND);
		evrec_broadcaster_poll(f->b);
	}
	alloc_failure_ignore();
}

static void live(unsigned n)
{
	struct no_memory_recorder f = { 0 };
	evrec_broadcaster_options options;

	evrec_broadcaster_options_init(&options);
	options.on_error = on_error;
	if (no_memory_recorder_open(&f, &options)) {
		start_sink(&f);
		record(&f, n);
	}
	no_memory_recorder_close(&f);
	alloc_failure_ignore();
}

static void scenario(void)
{
	live(events);
	alloc_failure_arm();
	live(2 * events);
	alloc_failure_disarm();
	/* The file is whole: on_error would tell. */
	live(1);
	assert_int_equal(unlink(path), 0);
}

static void test_every_allocation_fails_once(void **state)
{
	path = tmpdir_path(*state, "state");
	correlate = EVREC_CORRELATE_RECORD;
	events = 20;
	failed_writes = 0;
	alloc_failure_run(scenario, LEAST);
	/* A state that could not be taken over is told of. */
	assert_true(failed_writes > 0);
}

static void test_every_allocation_of_series_fails_once(void **state)
{
	path = tmpdir_path(*state, "state");
	correlate = EVREC_CORRELATE_SERIES;
	events = 4;
	failed_writes = 0;
	alloc_failure_run(scenario, LEAST / 2);
	assert_true(failed_writes > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_every_allocation_fails_once),
		TMPDIR_TEST(test_every_allocation_of_series_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A broadcaster that is loud: its lines, what flush and shutdown say, and a fork between. */
#define _GNU_SOURCE

#include "recorder_fixture.h"

#include "sender/last_words.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static char line[EVREC_LINE_SIZE];
static bool no_threads; /* global: read by the function below */

/* Replaces the C library's function, and fails if the test wants it to. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (no_threads) {
		return EAGAIN;
	}
	if (real == NULL) {
		void *symbol = dlsym(RTLD_NEXT, "pthread_create");

		memcpy(&real, &symbol, sizeof(real));
	}
	return real(thread, attr, run, arg);
}

/* Makes the fixture's broadcaster a loud one, which starts recording to the fixture's sink. */
static void make_loud_with(struct recorder_fixture *f,
                           void (*on_drop)(void *ctx, const evrec_event *event, const char *cause))
{
	const evrec_recorder_options source = { .component = EVREC_STR("operator"), .host = EVREC_STR("node-1") };
	evrec_broadcaster_options options;

	evrec_recorder_free(f->r);
	evrec_broadcaster_free(f->b);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	options.loud = true;
	options.on_drop = on_drop;
	options.ctx = f;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(f->b, &source, NULL);
	evrec_watch_free(recorder_fixture_start(f));
}

static void make_loud(struct recorder_fixture *f)
{
	make_loud_with(f, NULL);
}

static const char *next_line(struct recorder_fixture *f, bool all)
{
	return evrec_broadcaster_next_line(f->b, all, line) ? line : "";
}

/* A write that carries five occurrences is dropped as a whole. */
static void test_every_occurrence_is_told(void **state)
{
	struct recorder_fixture *f = *state;

	make_loud(f);
	f->status = 422;
	for (int i = 0; i < 5; i++) {
		(void)recorder_fixture_record(f, "a", "R", "m");
	}
	assert_string_equal(next_line(f, false), "");
	checked_poll(f->b);
	assert_string_equal(next_line(f, false),
	                    "evrec: 5 events were not written: rejected: POST: 422; e.g. Normal R about Pod shop/a: m");
	assert_string_equal(next_line(f, true), "");
}

static void test_a_quiet_broadcaster_has_no_lines(void **state)
{
	struct recorder_fixture *f = *state;

	evrec_watch_free(recorder_fixture_start(f));
	f->status = 422;
	(void)recorder_fixture_record(f, "a", "R", "m");
	checked_poll(f->b);
	assert_int_equal(evrec_recorder_refuse(f->r, "wrong", NULL), EVREC_EINVALID);
	assert_false(evrec_broadcaster_wants_place(f->b));
	evrec_broadcaster_set_place(f->b, "x.lua:1");
	evrec_broadcaster_not_told(f->b);
	assert_string_equal(next_line(f, true), "");
	assert_int_equal(checked_flush(f->b, 0), EVREC_ELOST);
}

static void test_lines_that_were_not_told_are_counted(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_stats stats;

	make_loud(f);
	(void)evrec_recorder_refuse(f->r, "wrong", NULL);
	(void)evrec_recorder_refuse(f->r, "wrong", NULL);
	assert_string_equal(next_line(f, false), "evrec: 2 recording calls were refused: invalid; e.g. wrong");
	evrec_broadcaster_not_told(f->b);
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.untold, 2);
	evrec_clock_set(f->clock, T0 + 10 * EVREC_SECOND);
	assert_string_equal(next_line(f, false),
	                    "evrec: refused calls, lost events and errors that could not be printed earlier: 2");
	evrec_broadcaster_get_stats(f->b, &stats);
	assert_int_equal(stats.untold, 2);
}

/* *err is the caller's to ignore; the message is the same whether the broadcaster is loud or not. */
static void test_flush_says_what_was_lost_since_the_last_one(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_error err = { 0 };

	assert_string_equal(evrec_code_name(EVREC_ELOST), "lost");
	evrec_watch_free(recorder_fixture_start(f));
	f->status = 422;
	(void)recorder_fixture_record(f, "a", "R", "m");
	(void)recorder_fixture_record(f, "a", "R", "m");
	assert_int_equal(evrec_broadcaster_flush(f->b, 0, &err), EVREC_ELOST);
	assert_int_equal(err.code, EVREC_ELOST);
	assert_string_equal(err.message, "2 events were not written: rejected; the last error was rejected: POST: 422");
	assert_int_equal(evrec_broadcaster_flush(f->b, 0, &err), 0);
	assert_true(err.code == 0 && err.message[0] == '\0');
	(void)recorder_fixture_record(f, "a", "R", "m");
	assert_int_equal(evrec_broadcaster_flush(f->b, 0, NULL), EVREC_ELOST);
	/* A timeout comes before a loss. */
	f->status = 0;
	(void)recorder_fixture_record(f, "b", "R", "m");
	(void)evrec_recorder_refuse(f->r, "wrong", NULL);
	assert_int_equal(evrec_broadcaster_flush(f->b, 0, &err), EVREC_ETIMEOUT);
	assert_non_null(strstr(err.message,
	                       "1 recording call was refused: invalid; 1 event still waits; the last error "
	                       "was transport: "));
	assert_int_equal(evrec_broadcaster_shutdown(f->b, 0, &err), EVREC_ELOST);
	assert_non_null(strstr(err.message, "1 event was not written: closed; the last error was transport: "));
	f->status = 201;
	assert_int_equal(recorder_fixture_record(f, "b", "R", "m"), EVREC_ECLOSED);
	assert_int_equal(evrec_broadcaster_shutdown(f->b, 0, &err), EVREC_ELOST);
	assert_non_null(strstr(err.message, "1 event was not written: closed; the last error was transport: "));
}

/* 0: all is well. */
static int tell_in_child(struct recorder_fixture *f)
{
	if (*next_line(f, true) != '\0') {
		return 4;
	}
	(void)evrec_recorder_refuse(f->r, "the child's", NULL);
	if (strcmp(next_line(f, true), "evrec: 1 recording call was refused: invalid: the child's") != 0) {
		return 1;
	}
	/* The parent's loss is not the child's, so only the refused call is told. */
	if (evrec_broadcaster_flush(f->b, 0, NULL) != EVREC_ELOST) {
		return 2;
	}
	return evrec_broadcaster_flush(f->b, 0, NULL) == 0 ? 0 : 3;
}

static void test_a_child_does_not_tell_what_its_parent_lost(void **state)
{
	struct recorder_fixture *f = *state;
	pid_t child;

	make_loud(f);
	f->status = 422;
	(void)recorder_fixture_record(f, "a", "R", "m");
	(void)evrec_recorder_refuse(f->r, "the parent's", NULL);
	checked_poll(f->b);
	child = fork();
	if (child == 0) {
		f->status = 201;
		_exit(tell_in_child(f));
	}
	assert_int_equal(unit_wait(child), 0);
	assert_string_not_equal(next_line(f, false), "");
	assert_string_not_equal(next_line(f, false), "");
}

static void record_another(void *ctx, const evrec_event *event, const char *cause)
{
	struct recorder_fixture *f = ctx;

	(void)event;
	(void)cause;
	(void)recorder_fixture_record(f, "b", "Dropped", "m");
}

/* 0: all is well. */
static int write_nothing_in_child(struct recorder_fixture *f, bool polls)
{
	evrec_stats stats;

	f->status = 201;
	f->creates = 0;
	if (polls) {
		evrec_broadcaster_poll(f->b);
		(void)evrec_broadcaster_flush(f->b, 0, NULL);
	}
	evrec_broadcaster_get_stats(f->b, &stats);
	if (f->creates != 0 || stats.recorded != 0 || stats.queued != 0) {
		return 1;
	}
	evrec_recorder_free(f->r);
	evrec_broadcaster_free(f->b);
	last_words_tell(); /* as exit() does, which under AddressSanitizer would also look for the parent's memory */
	return 0;
}

/* The parent writes what its callback has recorded; a child neither writes it too, nor tells at exit() that it is lost. */
static void test_a_child_leaves_what_its_parents_callbacks_recorded(void **state)
{
	struct recorder_fixture *f = *state;

	make_loud_with(f, record_another);
	f->status = 422;
	(void)recorder_fixture_record(f, "a", "R", "m");
	evrec_broadcaster_poll(f->b);
	for (int polls = 0; polls < 2; polls++) {
		int ends[2];
		char text[EVREC_LINE_SIZE];
		pid_t child;

		assert_int_equal(pipe(ends), 0);
		child = fork();
		if (child == 0) {
			(void)dup2(ends[1], STDERR_FILENO);
			_exit(write_nothing_in_child(f, polls != 0));
		}
		close(ends[1]);
		assert_int_equal(unit_wait(child), 0);
		assert_int_equal(read(ends[0], text, sizeof(text)), 0);
		close(ends[0]);
	}
	f->status = 201;
	f->creates = 0;
	evrec_broadcaster_poll(f->b);
	(void)evrec_broadcaster_flush(f->b, 0, NULL);
	assert_int_equal(f->creates, 1);
}

/* Records two events to a sink that has room for one, and can have no thread; then flushes. */
static void record_without_thread(struct recorder_fixture *f, evrec_error *err)
{
	evrec_sink_options options;
	evrec_sink *sink;

	evrec_sink_options_init(&options);
	options.limits.max_pending = 1;
	sink = evrec_sink_file(EVREC_STR("/dev/null"), &options, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(f->b, sink, NULL, NULL));
	no_threads = true;
	(void)recorder_fixture_record(f, "a", "R", "m");
	(void)recorder_fixture_record(f, "b", "R", "m");
	no_threads = false;
	assert_int_equal(evrec_broadcaster_flush(f->b, SOON, err), EVREC_ELOST);
	evrec_sink_release(sink);
}

/* poll writes what the thread would have written, as in HAProxy: no line tells it, and it is no reason of a loss. */
static void test_a_missing_thread_is_told_to_on_error_alone(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_error err;

	record_without_thread(f, &err);
	assert_int_equal(f->errors, 1);
	assert_string_equal(f->last_error, "thread");
	make_loud(f);
	record_without_thread(f, &err);
	assert_string_equal(err.message, "1 event was not written: queue_full; e.g. Normal R about Pod shop/b: m");
	assert_string_equal(next_line(f, true),
	                    "evrec: 1 event was not written: queue_full; e.g. Normal R about Pod shop/b: m");
	assert_string_equal(next_line(f, true), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORDER_TEST(test_every_occurrence_is_told),
		RECORDER_TEST(test_a_quiet_broadcaster_has_no_lines),
		RECORDER_TEST(test_lines_that_were_not_told_are_counted),
		RECORDER_TEST(test_flush_says_what_was_lost_since_the_last_one),
		RECORDER_TEST(test_a_child_does_not_tell_what_its_parent_lost),
		RECORDER_TEST(test_a_child_leaves_what_its_parents_callbacks_recorded),
		RECORDER_TEST(test_a_missing_thread_is_told_to_on_error_alone),
	};

	return cmocka_run_group_tests_name("loud", tests, NULL, NULL);
}

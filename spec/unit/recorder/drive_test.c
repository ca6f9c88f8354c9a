/* Who does a broadcaster's I/O, and when an event loop is to poll it. */
#define _GNU_SOURCE

#include "recorder_fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* Global: of the function below. */
static bool no_threads;
static unsigned created;

/* Replaces the C library's function: counts calls, and fails if the test wants it to. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (no_threads) {
		return EAGAIN;
	}
	created++;
	if (real == NULL) {
		void *symbol = dlsym(RTLD_NEXT, "pthread_create");

		memcpy(&real, &symbol, sizeof(real));
	}
	return real(thread, attr, run, arg);
}

struct driven {
	evrec_broadcaster *b;
	evrec_recorder *r;
	char error[64]; /* the name of the last error */
};

static void on_error(void *ctx, const char *message, const char *name)
{
	struct driven *d = ctx;

	(void)message;
	(void)snprintf(d->error, sizeof(d->error), "%s", name);
}

/* With a sink of a server that nobody runs. `loud`: without on_error. */
static void open_driven(struct driven *d, enum evrec_drive drive, bool loud)
{
	evrec_kubernetes_options of_sink;
	evrec_broadcaster_options options;
	evrec_sink *sink;

	*d = (struct driven){ .b = NULL };
	evrec_broadcaster_options_init(&options);
	assert_int_equal(options.drive, EVREC_DRIVE_AUTO);
	options.drive = drive;
	options.loud = loud;
	options.on_error = loud ? NULL : on_error;
	options.ctx = d;
	d->b = evrec_broadcaster_new(&options, NULL);
	d->r = evrec_recorder_new(d->b, NULL, NULL);
	evrec_kubernetes_options_init(&of_sink);
	of_sink.server = EVREC_STR("http://127.0.0.1:1");
	sink = evrec_sink_kubernetes(&of_sink, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(d->b, sink, NULL, NULL));
	evrec_sink_release(sink);
}

static void record_one(struct driven *d)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	const evrec_emit emit = {
		.regarding = &pod, .type = EVREC_STR("Normal"), .reason = EVREC_STR("R"), .timestamp = EVREC_UNSET
	};

	assert_int_equal(evrec_recorder_emit(d->r, &emit, NULL), 0);
}

static void close_driven(struct driven *d)
{
	char line[EVREC_LINE_SIZE];

	(void)evrec_broadcaster_shutdown(d->b, 0, NULL);
	while (evrec_broadcaster_next_line(d->b, true, line)) {
	}
	assert_true(evrec_broadcaster_poll_delay(d->b) < 0);
	evrec_broadcaster_free(d->b);
	evrec_recorder_free(d->r);
}

static void test_unknown_drive_is_refused(void **state)
{
	evrec_broadcaster_options options;
	evrec_error err;

	(void)state;
	evrec_broadcaster_options_init(&options);
	options.drive = (enum evrec_drive)3;
	assert_null(evrec_broadcaster_new(&options, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	assert_memory_equal(err.message, "drive: ", 7);
}

static void test_poll_starts_no_thread(void **state)
{
	const unsigned before = created;
	struct driven d;

	(void)state;
	open_driven(&d, EVREC_DRIVE_POLL, false);
	record_one(&d);
	for (int i = 0; d.error[0] == '\0' && i < 1000; i++) {
		evrec_broadcaster_poll(d.b);
		usleep(1000);
	}
	assert_string_equal(d.error, "transport");
	assert_int_equal(created, before);
	close_driven(&d);
}

static void test_others_start_one_and_are_polled_every_second_while_it_has_writes(void **state)
{
	(void)state;
	for (int drive = EVREC_DRIVE_AUTO; drive <= EVREC_DRIVE_THREAD; drive++) {
		const unsigned before = created;
		struct driven d;

		open_driven(&d, (enum evrec_drive)drive, false);
		evrec_broadcaster_poll(d.b);
		assert_int_equal(created, before);
		assert_true(evrec_broadcaster_poll_delay(d.b) == INT64_MAX);
		record_one(&d);
		assert_int_equal(created, before + 1);
		assert_true(evrec_broadcaster_poll_delay(d.b) == EVREC_SECOND);
		close_driven(&d);
	}
}

static void test_auto_without_threads_is_polled_until_nothing_waits(void **state)
{
	struct driven d;

	(void)state;
	no_threads = true;
	open_driven(&d, EVREC_DRIVE_AUTO, false);
	record_one(&d);
	assert_true(evrec_broadcaster_poll_delay(d.b) == EVREC_SECOND / 100);
	evrec_broadcaster_poll(d.b);
	assert_string_equal(d.error, "thread");
	/* The write backs off, at first for less than a second, or its request is still under way. */
	for (int i = 0; strcmp(d.error, "transport") != 0 && i < 1000; i++) {
		assert_in_range(evrec_broadcaster_poll_delay(d.b), EVREC_SECOND / 100, EVREC_SECOND / 10);
		usleep(1000);
		evrec_broadcaster_poll(d.b);
	}
	assert_in_range(evrec_broadcaster_poll_delay(d.b), EVREC_SECOND / 100, EVREC_SECOND / 10);
	no_threads = false;
	close_driven(&d);
}

static void test_a_thread_that_is_missing_is_not_replaced_and_is_told(void **state)
{
	static char line[EVREC_LINE_SIZE];
	struct driven d;

	(void)state;
	no_threads = true;
	open_driven(&d, EVREC_DRIVE_THREAD, true);
	assert_true(evrec_broadcaster_poll_delay(d.b) == INT64_MAX);
	record_one(&d);
	assert_true(evrec_broadcaster_poll_delay(d.b) < 0);
	evrec_broadcaster_poll(d.b);
	assert_true(evrec_broadcaster_next_line(d.b, false, line));
	assert_non_null(strstr(line, "the sink kubernetes: thread: no thread could be started"));
	no_threads = false;
	close_driven(&d);
}

/* Functions of the embedder, which no thread may call. */
static void test_a_sink_of_functions_is_polled_at_once_and_then_no_more(void **state)
{
	struct recorder_fixture *f = *state;

	evrec_watch_free(recorder_fixture_start(f));
	assert_true(evrec_broadcaster_poll_delay(f->b) == INT64_MAX);
	(void)recorder_fixture_record(f, "a", "R", "m");
	assert_true(evrec_broadcaster_poll_delay(f->b) == EVREC_SECOND / 100);
	evrec_broadcaster_poll(f->b);
	assert_int_equal(f->creates, 1);
	assert_true(evrec_broadcaster_poll_delay(f->b) == INT64_MAX);
}

/* So a sink that was stopped is forgotten. */
static void test_a_stopped_sink_is_polled_until_it_is_over(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_watch *watch = recorder_fixture_start(f);

	f->status = 503;
	(void)recorder_fixture_record(f, "a", "R", "m");
	evrec_broadcaster_poll(f->b);
	evrec_watch_stop(watch);
	assert_in_range(evrec_broadcaster_poll_delay(f->b), 1, EVREC_SECOND);
	f->status = 201;
	evrec_clock_set(f->clock, T0 + 60 * EVREC_SECOND);
	evrec_broadcaster_poll(f->b);
	assert_int_equal(f->creates, 2);
	evrec_broadcaster_poll(f->b);
	assert_true(evrec_broadcaster_poll_delay(f->b) == INT64_MAX);
	evrec_watch_free(watch);
}

/* The second refused call is told 10 s after the first one, although nobody records any more. */
static void test_a_broadcaster_with_an_untold_line_is_polled(void **state)
{
	static char line[EVREC_LINE_SIZE];
	evrec_broadcaster_options options;
	struct driven d = { .b = NULL };
	evrec_clock *clock = evrec_clock_fake(T0);

	(void)state;
	evrec_broadcaster_options_init(&options);
	options.clock = clock;
	options.loud = true;
	d.b = evrec_broadcaster_new(&options, NULL);
	d.r = evrec_recorder_new(d.b, NULL, NULL);
	(void)evrec_recorder_refuse(d.r, "type: wrong", NULL);
	assert_true(evrec_broadcaster_poll_delay(d.b) == EVREC_SECOND);
	assert_true(evrec_broadcaster_next_line(d.b, false, line));
	assert_true(evrec_broadcaster_poll_delay(d.b) == INT64_MAX);
	(void)evrec_recorder_refuse(d.r, "type: wrong", NULL);
	assert_false(evrec_broadcaster_next_line(d.b, false, line));
	assert_true(evrec_broadcaster_poll_delay(d.b) == EVREC_SECOND);
	evrec_clock_set(clock, T0 + 10 * EVREC_SECOND);
	assert_true(evrec_broadcaster_next_line(d.b, false, line));
	assert_true(evrec_broadcaster_poll_delay(d.b) == INT64_MAX);
	close_driven(&d);
	evrec_clock_release(clock);
}

/* The end of a series is told to watchers by polls. */
static void test_a_series_that_goes_on_is_polled(void **state)
{
	struct recorder_fixture *f = *state;
	evrec_sink_options options;
	evrec_sink *sink;

	evrec_sink_options_init(&options);
	options.correlate = EVREC_CORRELATE_SERIES;
	sink = evrec_sink_new(&recorder_fixture_sink_ops, f, &options, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(f->b, sink, NULL, NULL));
	(void)recorder_fixture_record(f, "a", "R", "m");
	evrec_broadcaster_poll(f->b);
	assert_true(evrec_broadcaster_poll_delay(f->b) == INT64_MAX);
	(void)recorder_fixture_record(f, "a", "R", "m");
	evrec_broadcaster_poll(f->b);
	assert_true(evrec_broadcaster_poll_delay(f->b) <= EVREC_SECOND);
	evrec_clock_set(f->clock, T0 + 1000 * EVREC_SECOND);
	evrec_broadcaster_poll(f->b);
	evrec_broadcaster_poll(f->b);
	assert_true(evrec_broadcaster_poll_delay(f->b) == INT64_MAX);
	evrec_sink_release(sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_drive_is_refused),
		cmocka_unit_test(test_poll_starts_no_thread),
		cmocka_unit_test(test_others_start_one_and_are_polled_every_second_while_it_has_writes),
		cmocka_unit_test(test_auto_without_threads_is_polled_until_nothing_waits),
		cmocka_unit_test(test_a_thread_that_is_missing_is_not_replaced_and_is_told),
		RECORDER_TEST(test_a_sink_of_functions_is_polled_at_once_and_then_no_more),
		RECORDER_TEST(test_a_stopped_sink_is_polled_until_it_is_over),
		cmocka_unit_test(test_a_broadcaster_with_an_untold_line_is_polled),
		RECORDER_TEST(test_a_series_that_goes_on_is_polled),
	};

	return cmocka_run_group_tests_name("drive", tests, NULL, NULL);
}

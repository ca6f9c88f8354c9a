/* A broadcaster with a name: its handles, the sinks that they join, forks, and the end. named_threads_test.c has threads. */
#include "stats_invariants.h"

#include "tmpdir.h"

#include <pthread.h>
#include <stdatomic.h>

static evrec_broadcaster_options named(const char *name)
{
	evrec_broadcaster_options options;

	evrec_broadcaster_options_init(&options);
	options.name = evrec_string(name);
	return options;
}

static evrec_broadcaster *open_handle(const char *name)
{
	const evrec_broadcaster_options options = named(name);
	evrec_broadcaster *b = evrec_broadcaster_new(&options, NULL);

	assert_non_null(b);
	return b;
}

static evrec_sink *file_sink(void *state, const char *file)
{
	evrec_sink *sink = evrec_sink_file(evrec_string(tmpdir_path(state, file)), NULL, NULL);

	assert_non_null(sink);
	return sink;
}

static int emit(evrec_broadcaster *b, const char *reason)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
	evrec_recorder *r = evrec_recorder_new(b, NULL, NULL);
	evrec_emit call;
	int code;

	evrec_emit_init(&call);
	call.regarding = &pod;
	call.type = EVREC_STR("Normal");
	call.reason = evrec_string(reason);
	call.note = EVREC_STR("note");
	code = evrec_recorder_emit(r, &call, NULL);
	evrec_recorder_free(r);
	return code;
}

static evrec_stats stats_of(const evrec_broadcaster *b)
{
	evrec_stats stats;

	evrec_broadcaster_get_stats(b, &stats);
	return stats;
}

static uint64_t received(const evrec_watch *watch)
{
	evrec_sink_stats stats;

	assert_true(evrec_watch_get_sink_stats(watch, &stats));
	return stats.received;
}

static void test_options_of_handles_must_be_equal(void **state)
{
	evrec_broadcaster *b = open_handle("options"), *other;
	evrec_broadcaster_options options = named("options");
	evrec_clock *clock = evrec_clock_fake(T0);
	evrec_error err;

	(void)state;
	options.max_message_bytes = 99;
	assert_null(evrec_broadcaster_new(&options, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, "max_message_bytes: another handle of the broadcaster 'options'");
	options = named("options");
	options.clock = clock;
	assert_null(evrec_broadcaster_new(&options, &err));
	unit_check_contains(err.message, "clock: ");
	options = named("options");
	options.on_error = evrec_log_stderr;
	assert_null(evrec_broadcaster_new(&options, &err));
	unit_check_contains(err.message, "on_error: ");
	options = named("other options");
	options.clock = clock;
	other = evrec_broadcaster_new(&options, &err);
	assert_non_null(other);
	evrec_broadcaster_free(other);
	evrec_broadcaster_free(b);
	evrec_clock_release(clock);
}

static void test_strings_of_the_options_are_copied(void **state)
{
	char name[] = "copied", share[] = "@evrec-copied";
	evrec_broadcaster_options options = named(name);
	evrec_broadcaster *a, *b;

	(void)state;
	options.share = evrec_string(share);
	options.drive = EVREC_DRIVE_POLL; /* nobody binds it */
	a = evrec_broadcaster_new(&options, NULL);
	memset(name, 'x', strlen(name));
	memset(share, 'x', strlen(share));
	options = named("copied");
	options.share = EVREC_STR("@evrec-copied");
	options.drive = EVREC_DRIVE_POLL;
	b = evrec_broadcaster_new(&options, NULL);
	assert_non_null(b);
	assert_int_equal(emit(a, "a"), 0);
	assert_int_equal(stats_of(b).recorded, 1);
	evrec_broadcaster_free(b);
	evrec_broadcaster_free(a);
}

/* The second sink of one name that a handle runs is the second of the others too; a stopped one gives its place back. */
static void test_sinks_of_one_name_are_joined_in_order(void **state)
{
	evrec_broadcaster *a = open_handle("order"), *b = open_handle("order");
	evrec_sink *one = file_sink(*state, "one"), *two = file_sink(*state, "two");
	evrec_watch *a1 = evrec_broadcaster_start_recording_to_sink(a, one, NULL, NULL);
	evrec_watch *a2 = evrec_broadcaster_start_recording_to_sink(a, two, NULL, NULL);
	evrec_watch *b1 = evrec_broadcaster_start_recording_to_sink(b, one, NULL, NULL), *b2;
	evrec_error err;

	assert_null(evrec_broadcaster_start_recording_to_sink(b, one, NULL, &err));
	unit_check_contains(err.message, "path: differs from that of the sink 'file'");
	b2 = evrec_broadcaster_start_recording_to_sink(b, two, NULL, NULL);
	assert_true(a1 != NULL && a2 != NULL && b1 != NULL && b2 != NULL);
	assert_int_equal(stats_of(a).sinks, 2);
	assert_int_equal(emit(a, "R"), 0);
	assert_true(received(a1) == 1 && received(b2) == 1);
	evrec_watch_stop(b1);
	evrec_watch_stop(b1);
	assert_int_equal(emit(b, "R"), 0);
	assert_int_equal(received(a1), 2);
	evrec_watch_free(b1);
	b1 = evrec_broadcaster_start_recording_to_sink(b, one, NULL, NULL);
	evrec_watch_stop(a1);
	assert_int_equal(emit(b, "R"), 0);
	assert_int_equal(received(b1), 3);
	evrec_watch_stop(b1);
	assert_int_equal(emit(b, "R"), 0);
	assert_true(received(b1) == 3 && received(b2) == 4);
	assert_int_equal(evrec_broadcaster_flush(a, SOON, NULL), 0);
	stats_check_equations(a);
	evrec_watch_free(a1);
	evrec_watch_free(a2);
	evrec_watch_free(b1);
	evrec_watch_free(b2);
	evrec_broadcaster_free(a);
	evrec_broadcaster_free(b);
	evrec_sink_release(one);
	evrec_sink_release(two);
}

static void test_a_handle_that_is_freed_leaves_its_sinks(void **state)
{
	evrec_broadcaster *a = open_handle("leaves"), *b = open_handle("leaves");
	evrec_sink *sink = file_sink(*state, "events");
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(a, sink, NULL, NULL);
	evrec_recorder *late = evrec_recorder_new(a, NULL, NULL);

	assert_int_equal(emit(b, "R"), 0);
	evrec_broadcaster_free(a);
	assert_int_equal(evrec_recorder_refuse(late, "no", NULL), EVREC_EINVALID);
	assert_int_equal(emit(b, "R"), 0);
	assert_int_equal(received(watch), 1);
	assert_int_equal(evrec_broadcaster_shutdown(b, SOON, NULL), EVREC_ELOST);
	assert_int_equal(stats_of(b).ended.created, 1);
	assert_int_equal(emit(b, "R"), EVREC_ECLOSED);
	evrec_broadcaster_free(b);
	evrec_recorder_free(late);
	assert_int_equal(received(watch), 1);
	evrec_watch_free(watch);
	evrec_sink_release(sink);
}

static void test_only_the_last_shutdown_ends_the_sinks(void **state)
{
	evrec_broadcaster *a = open_handle("shutdown"), *b = open_handle("shutdown"), *c;
	evrec_sink *sink = file_sink(*state, "events");
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(a, sink, NULL, NULL);

	assert_int_equal(evrec_broadcaster_shutdown(a, SOON, NULL), 0);
	assert_int_equal(emit(a, "R"), EVREC_ECLOSED);
	assert_null(evrec_broadcaster_watch(a, 5, NULL));
	assert_int_equal(emit(b, "R"), 0);
	assert_int_equal(received(watch), 1);
	assert_int_equal(evrec_broadcaster_shutdown(b, SOON, NULL), EVREC_ELOST);
	c = open_handle("shutdown");
	assert_true(stats_of(c).recorded == 0 && stats_of(c).sinks == 0);
	assert_int_equal(stats_of(a).sinks, 1);
	evrec_broadcaster_free(a);
	evrec_broadcaster_free(b);
	evrec_broadcaster_free(c);
	evrec_watch_free(watch);
	evrec_sink_release(sink);
}

static void count_call(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	(void)event;
	++*(unsigned *)ctx;
	answer->status = 201;
}

static void test_functions_of_a_sink_are_called_by_the_handle_that_started_it(void **state)
{
	static const evrec_sink_ops ops = { .create = count_call };
	evrec_broadcaster *a = open_handle("functions"), *b = open_handle("functions"), *c = open_handle("functions");
	unsigned a_calls = 0, b_calls = 0;
	evrec_sink *of_a = evrec_sink_new(&ops, &a_calls, NULL, NULL),
		   *of_b = evrec_sink_new(&ops, &b_calls, NULL, NULL);

	(void)state;
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(a, of_a, NULL, NULL));
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(b, of_b, NULL, NULL));
	assert_int_equal(emit(b, "One"), 0);
	assert_int_equal(evrec_broadcaster_flush(b, SOON, NULL), 0);
	assert_int_equal(a_calls, 0);
	evrec_broadcaster_poll(a);
	assert_true(a_calls == 1 && b_calls == 0);
	assert_int_equal(emit(b, "Two"), 0);
	evrec_broadcaster_free(a);
	assert_true(a_calls == 1 && stats_of(b).sinks == 0);
	assert_int_equal(stats_of(b).ended.dropped[EVREC_CAUSE_CLOSED], 1);
	stats_check_equations(b);
	/* Started again, it is the first of its name, which others join. */
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(b, of_b, NULL, NULL));
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(c, of_b, NULL, NULL));
	assert_int_equal(stats_of(b).sinks, 1);
	assert_int_equal(emit(c, "Three"), 0);
	evrec_broadcaster_poll(b);
	assert_int_equal(b_calls, 1);
	evrec_broadcaster_free(c);
	evrec_broadcaster_free(b);
	evrec_sink_release(of_a);
	evrec_sink_release(of_b);
}

static void emit_again(void *ctx, evrec_event *event)
{
	(void)event;
	assert_int_equal(emit(ctx, "Again"), 0);
}

static void test_what_a_callback_recorded_is_dropped_with_its_handle(void **state)
{
	evrec_broadcaster *a = open_handle("deferred"), *b = open_handle("deferred");

	(void)state;
	evrec_watch_free(evrec_broadcaster_start_event_watcher(a, emit_again, a, NULL));
	assert_int_equal(emit(a, "R"), 0);
	assert_true(stats_of(b).queued != 0);
	stats_check_equations(b);
	evrec_broadcaster_free(a);
	assert_int_equal(stats_of(b).queued, 0);
	stats_check_equations(b);
	evrec_broadcaster_free(b);
}

/* ---- forks ---- */

static void live_in_child(evrec_broadcaster *b, const evrec_watch *watch)
{
	const bool empty = stats_of(b).recorded == 0;
	evrec_broadcaster *another;
	int code;

	code = emit(b, "Child");
	another = open_handle("fork");
	code = code != 0 ? code : emit(another, "Child");
	evrec_broadcaster_free(another);
	if (!empty || code != 0 || stats_of(b).recorded != 2 || received(watch) != 2 ||
	    evrec_broadcaster_shutdown(b, SOON, NULL) != 0) {
		_exit(1);
	}
	evrec_broadcaster_free(b);
	_exit(0);
}

/* Opens a handle of a process that only forks others; `max` is an option that may differ. NULL: another one is bound. */
static evrec_broadcaster *open_master(const char *name, size_t max)
{
	evrec_broadcaster_options options = named(name);

	options.share_client_only = true;
	options.max_message_bytes = max;
	return evrec_broadcaster_new(&options, NULL);
}

static void live_in_worker(void)
{
	evrec_broadcaster *same = open_master("master", 100);
	const bool refused = open_master("master", 200) == NULL;

	_exit(refused && same != NULL && emit(same, "Worker") == 0 ? 0 : 1);
}

static void test_a_master_that_has_forked_opens_another(void **state)
{
	evrec_broadcaster *first, *next, *second;
	pid_t child;

	(void)state;
	if (UNDER_TSAN) {
		skip(); /* it takes the ended threads of the parent for threads that the child has not joined */
	}
	first = open_master("master", 100);
	assert_null(open_master("master", 200));
	child = fork();
	if (child == 0) {
		live_in_worker();
	}
	assert_int_equal(unit_wait(child), 0);
	next = open_master("master", 200);
	assert_non_null(next);
	assert_int_equal(emit(next, "Next"), 0);
	assert_int_equal(stats_of(first).recorded, 0);
	second = open_master("master", 200);
	assert_null(open_master("master", 100));
	assert_int_equal(stats_of(second).recorded, 1);
	/* Of a configuration that is refused after all: the first one is the only one again. */
	evrec_broadcaster_free(next);
	evrec_broadcaster_free(second);
	child = fork();
	if (child == 0) {
		live_in_worker();
	}
	assert_int_equal(unit_wait(child), 0);
	/* A process that polls is no such master. */
	evrec_broadcaster_may_own(first);
	assert_null(open_master("master", 200));
	evrec_broadcaster_free(first);
}

/* The other handles' threads use the hub all the time. */
struct user {
	atomic_bool stop;
};

static void *use(void *ctx)
{
	struct user *user = ctx;
	evrec_broadcaster *b = open_handle("fork");

	while (!user->stop) {
		(void)emit(b, "Other");
		evrec_broadcaster_poll(b);
	}
	evrec_broadcaster_free(b);
	return NULL;
}

static void test_a_child_goes_on_while_other_threads_use_the_broadcaster(void **state)
{
	struct user user = { .stop = false };
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_sink *sink;
	pthread_t threads[3];

	/*
	 * gcc 12's TSan takes a child's first thread for one that the parent has. Its ASan leaves the lock of its allocator
	 * as it is over a fork, so the child waits for ever if another thread has the lock.
	 */
	if (UNDER_TSAN || UNDER_ASAN) {
		skip();
	}
	b = open_handle("fork");
	sink = file_sink(*state, "events");
	watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, NULL);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, use, &user), 0);
	}
	for (int i = 0; i < 20; i++) {
		pid_t child;

		assert_int_equal(emit(b, "Parent"), 0);
		child = fork();
		if (child == 0) {
			live_in_child(b, watch);
		}
		assert_int_equal(unit_wait(child), 0);
	}
	user.stop = true;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	assert_int_equal(evrec_broadcaster_shutdown(b, SOON, NULL), 0);
	stats_check_equations(b);
	evrec_broadcaster_free(b);
	evrec_watch_free(watch);
	evrec_sink_release(sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_options_of_handles_must_be_equal),
		TMPDIR_TEST(test_strings_of_the_options_are_copied),
		TMPDIR_TEST(test_sinks_of_one_name_are_joined_in_order),
		TMPDIR_TEST(test_a_handle_that_is_freed_leaves_its_sinks),
		TMPDIR_TEST(test_only_the_last_shutdown_ends_the_sinks),
		TMPDIR_TEST(test_functions_of_a_sink_are_called_by_the_handle_that_started_it),
		TMPDIR_TEST(test_what_a_callback_recorded_is_dropped_with_its_handle),
		TMPDIR_TEST(test_a_master_that_has_forked_opens_another),
		TMPDIR_TEST(test_a_child_goes_on_while_other_threads_use_the_broadcaster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

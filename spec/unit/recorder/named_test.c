/*
 * A broadcaster with a name: its handles, the sinks that they join, and the end. named_threads_test.c has threads,
 * named_fork_test.c has forks.
 */
#include "named.h"

static void test_options_of_handles_must_be_equal(void **state)
{
	evrec_broadcaster *b = named_open("options"), *other;
	evrec_broadcaster_options options = named_options("options");
	evrec_clock *clock = evrec_clock_fake(T0);
	evrec_error err;

	(void)state;
	options.max_message_bytes = 99;
	assert_null(evrec_broadcaster_new(&options, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, "max_message_bytes: another handle of the broadcaster 'options'");
	options = named_options("options");
	options.clock = clock;
	assert_null(evrec_broadcaster_new(&options, &err));
	unit_check_contains(err.message, "clock: ");
	options = named_options("options");
	options.on_error = evrec_log_stderr;
	assert_null(evrec_broadcaster_new(&options, &err));
	unit_check_contains(err.message, "on_error: ");
	options = named_options("other options");
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
	evrec_broadcaster_options options = named_options(name);
	evrec_broadcaster *a, *b;

	(void)state;
	options.share = evrec_string(share);
	options.drive = EVREC_DRIVE_POLL; /* nobody binds it */
	a = evrec_broadcaster_new(&options, NULL);
	memset(name, 'x', strlen(name));
	memset(share, 'x', strlen(share));
	options = named_options("copied");
	options.share = EVREC_STR("@evrec-copied");
	options.drive = EVREC_DRIVE_POLL;
	b = evrec_broadcaster_new(&options, NULL);
	assert_non_null(b);
	assert_int_equal(named_emit(a, "a"), 0);
	assert_int_equal(named_stats(b).recorded, 1);
	evrec_broadcaster_free(b);
	evrec_broadcaster_free(a);
}

/* The second sink of one name that a handle runs is the second of the others too; a stopped one gives its place back. */
static void test_sinks_of_one_name_are_joined_in_order(void **state)
{
	evrec_broadcaster *a = named_open("order"), *b = named_open("order");
	evrec_sink *one = named_file_sink(*state, "one"), *two = named_file_sink(*state, "two");
	evrec_watch *a1 = evrec_broadcaster_start_recording_to_sink(a, one, NULL, NULL);
	evrec_watch *a2 = evrec_broadcaster_start_recording_to_sink(a, two, NULL, NULL);
	evrec_watch *b1 = evrec_broadcaster_start_recording_to_sink(b, one, NULL, NULL), *b2;
	evrec_error err;

	assert_null(evrec_broadcaster_start_recording_to_sink(b, one, NULL, &err));
	unit_check_contains(err.message, "path: differs from that of the sink 'file'");
	b2 = evrec_broadcaster_start_recording_to_sink(b, two, NULL, NULL);
	assert_true(a1 != NULL && a2 != NULL && b1 != NULL && b2 != NULL);
	assert_int_equal(named_stats(a).sinks, 2);
	assert_int_equal(named_emit(a, "R"), 0);
	assert_true(named_received(a1) == 1 && named_received(b2) == 1);
	evrec_watch_stop(b1);
	evrec_watch_stop(b1);
	assert_int_equal(named_emit(b, "R"), 0);
	assert_int_equal(named_received(a1), 2);
	evrec_watch_free(b1);
	b1 = evrec_broadcaster_start_recording_to_sink(b, one, NULL, NULL);
	evrec_watch_stop(a1);
	assert_int_equal(named_emit(b, "R"), 0);
	assert_int_equal(named_received(b1), 3);
	evrec_watch_stop(b1);
	assert_int_equal(named_emit(b, "R"), 0);
	assert_true(named_received(b1) == 3 && named_received(b2) == 4);
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
	evrec_broadcaster *a = named_open("leaves"), *b = named_open("leaves");
	evrec_sink *sink = named_file_sink(*state, "events");
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(a, sink, NULL, NULL);
	evrec_recorder *late = evrec_recorder_new(a, NULL, NULL);

	assert_int_equal(named_emit(b, "R"), 0);
	evrec_broadcaster_free(a);
	assert_int_equal(evrec_recorder_refuse(late, "no", NULL), EVREC_EINVALID);
	assert_int_equal(named_emit(b, "R"), 0);
	assert_int_equal(named_received(watch), 1);
	assert_int_equal(evrec_broadcaster_shutdown(b, SOON, NULL), EVREC_ELOST);
	assert_int_equal(named_stats(b).ended.created, 1);
	assert_int_equal(named_emit(b, "R"), EVREC_ECLOSED);
	evrec_broadcaster_free(b);
	evrec_recorder_free(late);
	assert_int_equal(named_received(watch), 1);
	evrec_watch_free(watch);
	evrec_sink_release(sink);
}

static void test_only_the_last_shutdown_ends_the_sinks(void **state)
{
	evrec_broadcaster *a = named_open("shutdown"), *b = named_open("shutdown"), *c;
	evrec_sink *sink = named_file_sink(*state, "events");
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(a, sink, NULL, NULL);

	assert_int_equal(evrec_broadcaster_shutdown(a, SOON, NULL), 0);
	assert_int_equal(named_emit(a, "R"), EVREC_ECLOSED);
	assert_null(evrec_broadcaster_watch(a, 5, NULL));
	assert_int_equal(named_emit(b, "R"), 0);
	assert_int_equal(named_received(watch), 1);
	assert_int_equal(evrec_broadcaster_shutdown(b, SOON, NULL), EVREC_ELOST);
	c = named_open("shutdown");
	assert_true(named_stats(c).recorded == 0 && named_stats(c).sinks == 0);
	assert_int_equal(named_stats(a).sinks, 1);
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
	evrec_broadcaster *a = named_open("functions"), *b = named_open("functions"), *c = named_open("functions");
	unsigned a_calls = 0, b_calls = 0;
	evrec_sink *of_a = evrec_sink_new(&ops, &a_calls, NULL, NULL),
		   *of_b = evrec_sink_new(&ops, &b_calls, NULL, NULL);

	(void)state;
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(a, of_a, NULL, NULL));
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(b, of_b, NULL, NULL));
	assert_int_equal(named_emit(b, "One"), 0);
	assert_int_equal(evrec_broadcaster_flush(b, SOON, NULL), 0);
	assert_int_equal(a_calls, 0);
	evrec_broadcaster_poll(a);
	assert_true(a_calls == 1 && b_calls == 0);
	assert_int_equal(named_emit(b, "Two"), 0);
	evrec_broadcaster_free(a);
	assert_true(a_calls == 1 && named_stats(b).sinks == 0);
	assert_int_equal(named_stats(b).ended.dropped[EVREC_CAUSE_CLOSED], 1);
	stats_check_equations(b);
	/* Started again, it is the first of its name, which others join. */
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(b, of_b, NULL, NULL));
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(c, of_b, NULL, NULL));
	assert_int_equal(named_stats(b).sinks, 1);
	assert_int_equal(named_emit(c, "Three"), 0);
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
	assert_int_equal(named_emit(ctx, "Again"), 0);
}

static void test_what_a_callback_recorded_is_dropped_with_its_handle(void **state)
{
	evrec_broadcaster *a = named_open("deferred"), *b = named_open("deferred");

	(void)state;
	evrec_watch_free(evrec_broadcaster_start_event_watcher(a, emit_again, a, NULL));
	assert_int_equal(named_emit(a, "R"), 0);
	assert_true(named_stats(b).queued != 0);
	stats_check_equations(b);
	evrec_broadcaster_free(a);
	assert_int_equal(named_stats(b).queued, 0);
	stats_check_equations(b);
	evrec_broadcaster_free(b);
}

struct failing {
	evrec_broadcaster *b;
	unsigned calls;
};

static void fail_on_error(void *ctx, const char *message, const char *name)
{
	struct failing *failing = ctx;

	assert_string_equal(message, "a callback's");
	assert_string_equal(name, "callback");
	assert_true(++failing->calls < 100);
	evrec_broadcaster_callback_error(failing->b, "its own");
}

static void test_on_error_is_not_called_with_its_own_error(void **state)
{
	evrec_broadcaster_options options = named_options("failing");
	struct failing failing = { .calls = 0 };

	(void)state;
	options.on_error = fail_on_error;
	options.ctx = &failing;
	failing.b = evrec_broadcaster_new(&options, NULL);
	evrec_broadcaster_callback_error(failing.b, "a callback's");
	assert_int_equal(named_emit(failing.b, "R"), 0);
	assert_int_equal(failing.calls, 1);
	assert_int_equal(named_stats(failing.b).callback_errors, 2);
	evrec_broadcaster_free(failing.b);
}

/* A handle with a function that records by the next handle. */
struct in_turn {
	evrec_broadcaster *b;
	const struct in_turn *next;
	unsigned *calls;
};

static void emit_by_next(void *ctx, evrec_event *event)
{
	const struct in_turn *self = ctx;

	(void)event;
	assert_true(++*self->calls < 100);
	assert_int_equal(named_emit(self->next->b, "R"), 0);
}

/* Two broadcasters, each with two handles: a handle's function records by a handle of the other broadcaster. */
static void test_functions_that_record_by_another_broadcaster_end(void **state)
{
	const char *const names[] = { "one", "two", "one", "two" };
	struct in_turn handles[4];
	unsigned calls = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		handles[i] = (struct in_turn){ named_open(names[i]), &handles[(i + 1) % 4], &calls };
		evrec_watch_free(evrec_broadcaster_start_event_watcher(handles[i].b, emit_by_next, &handles[i], NULL));
	}
	assert_int_equal(named_emit(handles[0].b, "R"), 0);
	assert_int_equal(calls, 2);
	for (size_t i = 0; i < 4; i++) {
		evrec_broadcaster_free(handles[i].b);
	}
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
		TMPDIR_TEST(test_on_error_is_not_called_with_its_own_error),
		TMPDIR_TEST(test_functions_that_record_by_another_broadcaster_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

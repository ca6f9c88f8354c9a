/* How a trace ends: with events that wait, on a full disk, in a file that cannot be opened, and beside a forked child. */
#define _GNU_SOURCE

#include "traced.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void record_many(struct traced *t, unsigned n)
{
	for (uint64_t i = 0; i < n; i++) {
		traced_record(t, i % 7, "Started", "m");
	}
}

static void check_trace(const char *path, uint64_t occurrences, uint64_t lost)
{
	evrec_replayed_variant result;
	evrec_replayed_trace trace;

	traced_replay(path, NULL, &trace, &result);
	assert_int_equal(trace.occurrences, occurrences);
	assert_int_equal(trace.lost, lost);
	assert_int_equal(trace.malformed, 0);
}

/* A thread writes, and has no time for all. */
static void test_events_that_wait_at_the_end_are_a_gap(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	evrec_sink_stats stats;
	struct traced t;

	traced_begin_driven(&t, path, MANY, NULL, EVREC_DRIVE_THREAD);
	record_many(&t, 9000);
	(void)evrec_broadcaster_shutdown(t.b, 0, NULL);
	assert_true(evrec_watch_get_sink_stats(t.watch, &stats));
	assert_int_equal(stats.created + stats.dropped[EVREC_CAUSE_CLOSED], 9000);
	traced_end(&t);
	check_trace(path, stats.created, stats.dropped[EVREC_CAUSE_CLOSED]);
}

/* Nothing follows the last line of a full trace. */
static void test_full_trace_has_no_gap_at_its_end(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	evrec_replayed_variant result;
	evrec_replayed_trace trace;
	struct traced t;

	traced_begin(&t, path, 8192, NULL);
	record_many(&t, 250);
	evrec_broadcaster_poll(t.b);
	record_many(&t, 40);
	traced_end(&t);
	traced_replay(path, NULL, &trace, &result);
	assert_true(trace.full);
	assert_int_equal(trace.lost, 0);
	assert_int_equal(trace.malformed, 0);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A trace of three events, in a file that has no room for three more, which are recorded. */
static void fill_file(struct traced *t, const char *path)
{
	struct stat st;

	traced_begin(t, path, MANY, NULL);
	record_many(t, 3);
	evrec_broadcaster_poll(t->b);
	assert_int_equal(stat(path, &st), 0);
	limit_file_size((rlim_t)st.st_size + 10);
	record_many(t, 3);
}

/* The gap's line is too much for the file, which SIGXFSZ would tell the process, and end it. */
static void test_file_that_may_not_grow_harms_nobody(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	struct traced t;

	fill_file(&t, path);
	evrec_broadcaster_poll(t.b);
	traced_end(&t);
	limit_file_size(RLIM_INFINITY);
	unit_check_contains(t.error, "File too large");
	check_trace(path, 3, 0);
}

#define NOT_TOLD "File too large (the last events and their gap are missing in the trace)"

static void test_gap_that_cannot_be_written_at_the_end_is_told(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	struct traced t;

	fill_file(&t, path);
	traced_end(&t);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(t.errors, 2);
	unit_check_contains(t.error, NOT_TOLD);
	check_trace(path, 3, 0);
}

static void make_room(const char *message)
{
	if (strstr(message, NOT_TOLD) != NULL) {
		limit_file_size(RLIM_INFINITY);
	}
}

/* Whoever hears of the full disk makes room, and the last try finds it. */
static void test_gap_at_the_end_is_tried_again(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	struct traced t;
	struct stat st;

	traced_begin(&t, path, MANY, NULL);
	t.told = make_room;
	record_many(&t, 3);
	evrec_broadcaster_poll(t.b);
	assert_int_equal(stat(path, &st), 0);
	limit_file_size((rlim_t)st.st_size + 10);
	record_many(&t, 3);
	traced_end(&t);
	limit_file_size(RLIM_INFINITY);
	check_trace(path, 3, 3);
}

static void check_freed_without_gap(const char *path, enum evrec_drive drive)
{
	struct traced t, next;
	struct timespec times[2];
	struct stat st;

	traced_begin_driven(&t, path, MANY, NULL, drive);
	record_many(&t, 3);
	assert_int_equal(evrec_broadcaster_flush(t.b, EVREC_SECOND, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	limit_file_size((rlim_t)st.st_size + 10);
	record_many(&t, 3);
	(void)evrec_broadcaster_shutdown(t.b, EVREC_SECOND, NULL);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(stat(path, &st), 0);
	times[0] = times[1] = st.st_mtim;
	traced_begin(&next, path, MANY, NULL);
	record_many(&next, 2);
	evrec_broadcaster_poll(next.b);
	(void)evrec_broadcaster_shutdown(t.b, EVREC_SECOND, NULL);
	traced_end(&next);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	traced_end(&t);
	unit_check_contains(t.error, NOT_TOLD);
	assert_int_equal(next.errors, 0);
	check_trace(path, 2, 0);
}

/*
 * The last try of a gap leaves the trace alone that has the path by then, even if a tick of the kernel, which sets the times of
 * files, is longer than that trace.
 */
static void test_path_is_free_without_the_gap_at_the_end(void **state)
{
	check_freed_without_gap(tmpdir_path(*state, "trace"), EVREC_DRIVE_POLL);
	check_freed_without_gap(tmpdir_path(*state, "trace"), EVREC_DRIVE_THREAD);
}

/* Somebody removes the file: that is told with the next events, or at the end. */
static void test_removed_file_is_told(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	evrec_sink_stats stats;
	struct traced t;

	for (unsigned more = 0; more <= 3; more += 3) {
		traced_begin(&t, path, MANY, NULL);
		record_many(&t, 3);
		evrec_broadcaster_poll(t.b);
		assert_int_equal(unlink(path), 0);
		record_many(&t, more);
		evrec_broadcaster_poll(t.b);
		assert_true(evrec_watch_get_sink_stats(t.watch, &stats));
		assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], more);
		(void)evrec_broadcaster_shutdown(t.b, 0, NULL);
		assert_int_equal(t.errors, 1);
		unit_check_contains(t.error, "was removed");
		traced_end(&t);
	}
}

/* Two requests fail: a request has 256 events at most. */
static void test_every_error_of_a_trace_has_its_reason(void **state)
{
	struct traced t;

	traced_begin(&t, tmpdir_path(*state, "missing/trace"), MANY, NULL);
	record_many(&t, 300);
	evrec_broadcaster_poll(t.b);
	assert_int_equal(t.errors, 1);
	unit_check_contains(t.error, "No such file or directory");
	assert_int_equal(t.drops, 300);
	traced_end(&t);
}

static void check_freed(const char *path, enum evrec_drive drive)
{
	struct traced t, next;

	traced_begin_driven(&t, path, MANY, NULL, drive);
	record_many(&t, 1);
	assert_int_equal(evrec_broadcaster_shutdown(t.b, EVREC_SECOND, NULL), 0);
	traced_begin(&next, path, MANY, NULL);
	record_many(&next, 2);
	traced_end(&next);
	assert_int_equal(next.errors, 0);
	traced_end(&t);
	check_trace(path, 2, 0);
}

/* A broadcaster in Lua is freed when the collector finds it. */
static void test_path_is_free_after_shutdown(void **state)
{
	check_freed(tmpdir_path(*state, "trace"), EVREC_DRIVE_POLL);
	check_freed(tmpdir_path(*state, "trace"), EVREC_DRIVE_THREAD);
}

/* A helper that the host forks has the file of a trace, too, and outlives the trace. */
static void test_forked_child_does_not_keep_the_file(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	struct traced t;
	int pipe_of[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(pipe_of), 0);
	traced_begin(&t, path, MANY, NULL);
	record_many(&t, 1);
	evrec_broadcaster_poll(t.b);
	child = fork();
	if (child == 0) {
		(void)close(pipe_of[1]);
		_exit(read(pipe_of[0], &byte, 1) == 0 ? 0 : 1);
	}
	(void)close(pipe_of[0]);
	traced_end(&t);
	traced_begin(&t, path, MANY, NULL);
	record_many(&t, 2);
	evrec_broadcaster_poll(t.b);
	traced_end(&t);
	(void)close(pipe_of[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(t.errors, 0);
	check_trace(path, 2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_events_that_wait_at_the_end_are_a_gap),
		TMPDIR_TEST(test_full_trace_has_no_gap_at_its_end),
		TMPDIR_TEST(test_removed_file_is_told),
		TMPDIR_TEST(test_every_error_of_a_trace_has_its_reason),
		TMPDIR_TEST(test_path_is_free_after_shutdown),
		TMPDIR_TEST(test_forked_child_does_not_keep_the_file),
		TMPDIR_TEST(test_file_that_may_not_grow_harms_nobody),
		TMPDIR_TEST(test_gap_that_cannot_be_written_at_the_end_is_told),
		TMPDIR_TEST(test_gap_at_the_end_is_tried_again),
		TMPDIR_TEST(test_path_is_free_without_the_gap_at_the_end),
	};

	return cmocka_run_group_tests_name("recorder: the end of a trace", tests, NULL, NULL);
}

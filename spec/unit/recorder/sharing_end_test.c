/*
 * Processes that share one recorder, and fork or end without a shutdown. No test here may leave a sink that still has
 * something to write: a forked child forgets it, and LeakSanitizer takes it for a leak when the child ends.
 */
#include "sharing_fixture.h"

#include <poll.h>

/* The child of an owner is a worker, and hands over what it records. */
static void test_child_of_an_owner_is_a_worker(void **state)
{
	struct sharing_fixture f;
	pid_t child;
	int status = -1;

	sharing_fixture_open(&f, tmpdir_path(*state, "events"), 25);
	assert_int_equal(side_record(&f.sides[0], "a"), 0);
	sharing_fixture_poll(&f, 2);
	child = fork();
	if (child == 0) {
		const bool ok =
			side_record(&f.sides[0], "a") == 0 && evrec_broadcaster_flush(f.sides[0].b, SOON, NULL) == 0;
		const evrec_sink_stats s = side_stats(&f.sides[0]);

		_exit(!ok ? 2 : s.forwarded == 1 && s.received == 1 && s.created == 0 ? 0 : 1);
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		evrec_broadcaster_poll(f.sides[0].b);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(status, 0);
	assert_int_equal(side_stats(&f.sides[0]).created + side_stats(&f.sides[0]).patched +
	                         side_stats(&f.sides[0]).coalesced,
	                 2);
	sharing_fixture_close(&f);
}

/* The same while the thread of the parent is anywhere. */
static void test_children_of_an_owner_with_a_thread_are_workers(void **state)
{
	evrec_broadcaster_options options;
	struct side *side;
	struct sharing_fixture f;

	if (UNDER_TSAN) {
		skip(); /* it supports no threads in the child of a process that has some */
	}
	sharing_fixture_init(&f);
	side = &f.sides[0];
	options = sharing_fixture_options(&f, 0, side);
	assert_true(side_open_driven(side, &options, tmpdir_path(*state, "events"), 1000, EVREC_DRIVE_AUTO));
	/* From here on it is the owner. */
	assert_int_equal(side_record(side, "a"), 0);
	assert_int_equal(evrec_broadcaster_flush(side->b, SOON, NULL), 0);
	for (unsigned i = 0; i < 20; i++) {
		pid_t child;

		assert_int_equal(side_record(side, "a"), 0);
		child = fork();
		if (child == 0) {
			_exit(side_record(side, "a") == 0 && evrec_broadcaster_flush(side->b, SOON, NULL) == 0 &&
			                      side_stats(side).forwarded == 1
			              ? 0
			              : 1);
		}
		assert_int_equal(unit_wait(child), 0);
	}
	assert_int_equal(evrec_broadcaster_flush(side->b, SOON, NULL), 0);
	assert_int_equal(side_stats(side).created + side_stats(side).patched + side_stats(side).coalesced, 41);
	assert_int_equal(evrec_broadcaster_shutdown(side->b, SOON, NULL), 0);
	side_close(side);
}

/* ---- ends without a shutdown ---- */

/* How a process ends that has just recorded three events. */
enum ending { BY_EXIT, BY_SIGNAL, BY_FREE };

static int live(const struct sharing_fixture *f, const char *path, const char *errors, bool threads, enum ending ending,
                bool client_only)
{
	static const int signals[] = { SIGTERM };
	static struct side side; /* static, as exit() comes before all is freed, and what is left must not be a leak */
	evrec_broadcaster_options options = sharing_fixture_options(f, 1, &side);

	if (freopen(errors, "w", stderr) == NULL) {
		return 2;
	}
	options.share_client_only = client_only;
	options.on_drop = NULL;
	options.on_error = NULL;
	options.loud = true;
	if (!side_open_driven(&side, &options, path, 25, threads ? EVREC_DRIVE_AUTO : EVREC_DRIVE_POLL) ||
	    evrec_on_signal(signals, 1, f->sides[0].b != NULL ? SOON : EVREC_SECOND / 2, NULL) != 0) {
		return 3;
	}
	(void)side_record(&side, "a");
	(void)side_record(&side, "a");
	(void)side_record(&side, "b");
	if (ending == BY_SIGNAL) {
		(void)raise(SIGTERM);
		(void)pause();
	}
	if (ending == BY_FREE) {
		side_close(&side);
	}
	return 0;
}

static pid_t start_process(const struct sharing_fixture *f, void **state, const char *path, bool threads,
                           enum ending ending, bool client_only)
{
	const pid_t child = fork();

	if (child == 0) {
		exit(live(f, path, tmpdir_path(*state, "errors"), threads, ending, client_only));
	}
	return child;
}

static int end_process(const struct sharing_fixture *f, void **state, const char *path, bool threads,
                       enum ending ending, bool client_only)
{
	const pid_t child = start_process(f, state, path, threads, ending, client_only);
	int status = -1;

	while (waitpid(child, &status, WNOHANG) == 0) {
		if (f->sides[0].b != NULL) {
			evrec_broadcaster_poll(f->sides[0].b);
		}
		(void)poll(NULL, 0, 1);
	}
	return status;
}

static int end_worker(const struct sharing_fixture *f, void **state, bool threads, enum ending ending)
{
	return end_process(f, state, tmpdir_path(*state, "events"), threads, ending, true);
}

/* The count that the event with this message has in the last line of the file that shows it. */
static int count_of(const char *path, const char *message)
{
	FILE *file = fopen(path, "r");
	char line[4096], wanted[64];
	int count = 0;

	assert_non_null(file);
	(void)snprintf(wanted, sizeof(wanted), "\"message\":\"%s\"", message);
	while (fgets(line, sizeof(line), file) != NULL) {
		const char *at = strstr(line, "\"count\":");

		if (at != NULL && strstr(line, wanted) != NULL) {
			count = atoi(at + strlen("\"count\":"));
		}
	}
	(void)fclose(file);
	return count;
}

/* The lines of evrec on standard error. The sanitizers tell there of threads that live at the end. */
static void check_line(void **state, const char *line)
{
	FILE *file = fopen(tmpdir_path(*state, "errors"), "r");
	char next[512], own[512] = "";

	assert_non_null(file);
	while (fgets(next, sizeof(next), file) != NULL) {
		if (strncmp(next, "evrec: ", 7) == 0) {
			(void)snprintf(own, sizeof(own), "%s", next);
		}
	}
	(void)fclose(file);
	assert_string_equal(own, line);
}

/* A process alone becomes the owner, also if it ends at once, and writes by itself. */
static void test_lone_process_that_ends_writes(void **state)
{
	struct sharing_fixture f;

	if (UNDER_TSAN) {
		skip();
	}
	sharing_fixture_init(&f);
	for (unsigned i = 0; i < 4; i++) {
		char path[256];

		(void)snprintf(path, sizeof(path), "%s-%u", tmpdir_path(*state, "alone"), i);
		assert_int_equal(end_process(&f, state, path, i % 2 == 1, i < 2 ? BY_EXIT : BY_FREE, false), 0);
		check_line(state, "");
		assert_int_equal(count_of(path, "a"), 2);
		assert_int_equal(count_of(path, "b"), 1);
	}
}

/* Nobody is there who would write. */
static void test_worker_that_ends_tells_what_is_not_acknowledged(void **state)
{
	char line[256];
	struct sharing_fixture f;

	if (UNDER_TSAN) {
		skip();
	}
	sharing_fixture_init(&f);
	(void)snprintf(line, sizeof(line),
	               "evrec: the share %s: 3 events were not acknowledged by the process that writes for all\n",
	               f.share);
	assert_int_equal(end_worker(&f, state, true, BY_EXIT), 0);
	check_line(state, line);
	assert_int_equal(end_worker(&f, state, true, BY_SIGNAL), SIGTERM);
	check_line(state, line);
	assert_int_equal(end_worker(&f, state, true, BY_FREE), 0);
	check_line(state, line);
}

static void test_worker_that_exits_hands_over_first(void **state)
{
	evrec_broadcaster_options options;
	evrec_sink_stats s;
	struct sharing_fixture f;

	if (UNDER_TSAN) {
		skip();
	}
	sharing_fixture_init(&f);
	options = sharing_fixture_options(&f, 0, &f.sides[0]);
	assert_true(side_open(&f.sides[0], &options, tmpdir_path(*state, "events"), 25));
	evrec_broadcaster_poll(f.sides[0].b);
	for (int threads = 0; threads <= 1; threads++) {
		assert_int_equal(end_worker(&f, state, threads == 1, BY_EXIT), 0);
		check_line(state, "");
	}
	assert_int_equal(end_worker(&f, state, true, BY_SIGNAL), SIGTERM);
	check_line(state, "");
	s = side_stats(&f.sides[0]);
	assert_int_equal(s.created + s.patched + s.coalesced, 9);
	side_close(&f.sides[0]);
}

#define MANY 1000 /* different events: more than a socket takes at once */

/* A worker without a thread is freed. Its process goes on, and ends later. */
static int live_long(const struct sharing_fixture *f, const char *path, const char *errors, bool client_only)
{
	static struct side side; /* as in live() */
	evrec_broadcaster_options options = sharing_fixture_options(f, 1, &side);
	evrec_sink_options common;
	evrec_stats stats;
	char note[16];

	evrec_sink_options_init(&common);
	options.share_client_only = client_only;
	options.on_drop = NULL;
	options.on_error = NULL;
	options.loud = true;
	if (freopen(errors, "w", stderr) == NULL || !side_open_limited(&side, &options, path, &common)) {
		return 2;
	}
	do {
		evrec_broadcaster_poll(side.b);
		evrec_broadcaster_get_stats(side.b, &stats);
	} while (stats.share_role != EVREC_SHARE_WORKER && poll(NULL, 0, 1) == 0);
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(note, sizeof(note), "%u", i);
		(void)side_record(&side, note);
	}
	side_close(&side);
	return 0;
}

static void test_worker_that_is_freed_hands_over_before_its_process_ends(void **state)
{
	evrec_broadcaster_options options;
	struct sharing_fixture f;
	int status = -1;

	if (UNDER_TSAN) {
		skip();
	}
	sharing_fixture_init(&f);
	options = sharing_fixture_options(&f, 0, &f.sides[0]);
	assert_true(side_open(&f.sides[0], &options, tmpdir_path(*state, "events"), 25));
	evrec_broadcaster_poll(f.sides[0].b);
	for (unsigned workers = 1; workers <= 2; workers++) {
		const pid_t child = fork();

		if (child == 0) {
			exit(live_long(&f, tmpdir_path(*state, "events"), tmpdir_path(*state, "errors"), workers == 1));
		}
		while (waitpid(child, &status, WNOHANG) == 0) {
			evrec_broadcaster_poll(f.sides[0].b);
			(void)poll(NULL, 0, 1);
		}
		assert_int_equal(status, 0);
		check_line(state, "");
		assert_int_equal(side_stats(&f.sides[0]).received, workers * MANY);
	}
	side_close(&f.sides[0]);
}

/* The owner has other options. */
static void test_refused_process_that_ends_writes(void **state)
{
	static const struct {
		enum ending ending;
		bool threads;
	} ends[] = {
		{ BY_EXIT, true },    { BY_EXIT, false }, { BY_SIGNAL, true },
		{ BY_SIGNAL, false }, { BY_FREE, true },  { BY_FREE, false },
	};
	evrec_broadcaster_options options;
	struct sharing_fixture f;

	if (UNDER_TSAN) {
		skip();
	}
	sharing_fixture_init(&f);
	options = sharing_fixture_options(&f, 0, &f.sides[0]);
	assert_true(side_open(&f.sides[0], &options, tmpdir_path(*state, "events"), 24));
	evrec_broadcaster_poll(f.sides[0].b);
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char path[256];

		(void)snprintf(path, sizeof(path), "%s-%u", tmpdir_path(*state, "refused"), i);
		assert_int_equal(end_process(&f, state, path, ends[i].threads, ends[i].ending, false),
		                 ends[i].ending == BY_SIGNAL ? SIGTERM : 0);
		assert_int_equal(count_of(path, "a"), 2);
		assert_int_equal(count_of(path, "b"), 1);
	}
	side_close(&f.sides[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_child_of_an_owner_is_a_worker),
		TMPDIR_TEST(test_lone_process_that_ends_writes),
		TMPDIR_TEST(test_worker_that_ends_tells_what_is_not_acknowledged),
		TMPDIR_TEST(test_worker_that_exits_hands_over_first),
		TMPDIR_TEST(test_worker_that_is_freed_hands_over_before_its_process_ends),
		TMPDIR_TEST(test_refused_process_that_ends_writes),
		TMPDIR_TEST(test_children_of_an_owner_with_a_thread_are_workers),
	};

	return cmocka_run_group_tests_name("sharing_end", tests, NULL, NULL);
}

/*
 * A disk that takes longer than any deadline, as the spool meets it. For this the test has an fsync and an fdatasync of
 * its own, which wait until they are let through.
 */
#define _GNU_SOURCE

#include "folder.h"
#include "script.h"

#include <stdatomic.h>

static atomic_bool slow;
static atomic_uint entered; /* calls that had to wait, or wait still */

static int wait_until_let_through(void)
{
	if (atomic_load(&slow)) {
		atomic_fetch_add(&entered, 1);
	}
	while (atomic_load(&slow)) {
		usleep(1000);
	}
	return 0;
}

int fsync(int fd)
{
	(void)fd;
	return wait_until_let_through();
}

int fdatasync(int fd)
{
	(void)fd;
	return wait_until_let_through();
}

static void wait_entered(void)
{
	while (atomic_load(&entered) == 0) {
		usleep(1000);
	}
}

static void open_slow(struct fixture *f, bool threadless, const char *path)
{
	atomic_store(&entered, 0);
	open_with(f, threadless, evrec_clock_real(), spooler_new(str_from(path), &item_codec));
	f->script->silent = true;
}

/* After all the time that a thread is given to let go. */
static void *let_through(void *ctx)
{
	(void)ctx;
	usleep(500000);
	atomic_store(&slow, false);
	return NULL;
}

/* The thread has just begun to open the file when its time is up. */
static void test_what_is_left_is_spooled_all_the_same(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct outbox_stats stats;
	struct fixture f;
	pthread_t other;

	atomic_store(&slow, true);
	open_slow(&f, false, path);
	for (unsigned i = 1; i <= 20; i++) {
		item_submit(f.ob, i, 1);
	}
	wait_entered();
	assert_int_equal(pthread_create(&other, NULL, let_through, NULL), 0);
	assert_false(sender_join(f.sender, 0));
	assert_int_equal(pthread_join(other, NULL), 0);
	stats = stats_of(&f);
	assert_int_equal(stats.spooled, 20);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 0);
	sender_release(f.sender);
}

static void *step(void *ctx)
{
	sender_step(ctx);
	return NULL;
}

/* Not even its first event, for which a thread is started, waits for the disk of another sender. */
static void test_a_recording_call_does_not_wait(void **state)
{
	struct fixture orphan, stepped, recorder;
	pthread_t other;

	atomic_store(&slow, false);
	open_slow(&orphan, true, in_folder(*state, "spool"));
	open_with(&stepped, true, evrec_clock_real(), NULL);
	open_with(&recorder, false, evrec_clock_real(), NULL);
	item_submit(orphan.ob, 1, 1);
	sender_release(orphan.sender);
	atomic_store(&slow, true);
	assert_int_equal(pthread_create(&other, NULL, step, stepped.sender), 0);
	wait_entered();
	item_submit(recorder.ob, 1, 1);
	wait_empty(&recorder);
	atomic_store(&slow, false);
	assert_int_equal(pthread_join(other, NULL), 0);
	orphan.script->silent = false;
	sender_step(stepped.sender);
	wait_freed(&orphan);
	close_fixture(&recorder);
	close_fixture(&stepped);
}

/* Writes one event, in a child that was forked just now; true where it did, and said that it has no spool. */
static bool goes_on_without(const char *path)
{
	struct outbox_report report;
	struct fixture f;

	atomic_store(&slow, false);
	open_with(&f, true, evrec_clock_real(), spooler_new(str_from(path), &item_codec));
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	return f.script->sent == 1 && outbox_next_report(f.ob, &report) && strstr(report.message, "forked") != NULL &&
	       sender_join(f.sender, mono() + SOON);
}

/* SQLite's locks may be held for ever in a child. */
static void test_a_fork_meanwhile(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct fixture f;
	pid_t child;
	int status;

	atomic_store(&slow, true);
	open_slow(&f, false, path);
	item_submit(f.ob, 1, 1);
	wait_entered();
	child = fork();
	if (child == 0) {
		exit(goes_on_without(in_folder(*state, "another")) ? 0 : 1);
	}
	status = unit_wait(child);
	atomic_store(&slow, false);
	assert_int_equal(status, 0);
	assert_false(sender_join(f.sender, 0));
	assert_int_equal(stats_of(&f).spooled, 1);
	sender_release(f.sender);
	child = fork();
	if (child == 0) {
		exit(goes_on_without(path) ? 1 : 0);
	}
	assert_int_equal(unit_wait(child), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_what_is_left_is_spooled_all_the_same),
		FOLDER_TEST(test_a_recording_call_does_not_wait),
		FOLDER_TEST(test_a_fork_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

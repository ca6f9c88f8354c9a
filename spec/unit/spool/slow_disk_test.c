/*
 * Senders whose spool is on a disk slower than any deadline. The test replaces fsync, fdatasync and mkdir by functions that
 * block while `slow` is set; their state is global for this reason.
 */
#define _GNU_SOURCE

#include "sender_fixture.h"
#include "spool_file.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

static atomic_bool slow;
static atomic_uint entered; /* calls that had to block */

static int block_while_slow(void)
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
	return block_while_slow();
}

int fdatasync(int fd)
{
	(void)fd;
	return block_while_slow();
}

static atomic_bool slow_folder;

int mkdir(const char *path, mode_t mode)
{
	if (atomic_load(&slow_folder)) {
		(void)block_while_slow();
	}
	return mkdirat(AT_FDCWD, path, mode);
}

static void wait_entered(void)
{
	while (atomic_load(&entered) == 0) {
		usleep(1000);
	}
}

static void open_slow(struct sender_fixture *f, bool threadless, const char *path)
{
	atomic_store(&entered, 0);
	sender_fixture_open_spooled(f, threadless, evrec_clock_real(),
	                            spooler_new(str_from(path), SPOOL_AFTER, &fake_write_codec));
	f->protocol->silent = true;
}

/* Ends the block after 0.5 s: longer than a sender waits for its thread to give up the file. */
static void *unblock_later(void *ctx)
{
	(void)ctx;
	usleep(500000);
	atomic_store(&slow, false);
	return NULL;
}

/* The deadline comes while the thread opens the file. */
static void test_events_are_spooled_after_the_deadline(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct outbox_stats stats;
	struct sender_fixture f;
	pthread_t other;

	atomic_store(&slow, true);
	open_slow(&f, false, path);
	for (unsigned i = 1; i <= 20; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	wait_entered();
	assert_int_equal(pthread_create(&other, NULL, unblock_later, NULL), 0);
	assert_false(sender_join(f.sender, 0));
	assert_int_equal(pthread_join(other, NULL), 0);
	stats = sender_fixture_stats(&f);
	assert_int_equal(stats.spooled, 20);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 0);
	sender_release(f.sender);
}

static void *step(void *ctx)
{
	sender_step(ctx);
	return NULL;
}

/* Not even the first event, which starts a thread, waits for another sender's disk. */
static void test_recording_does_not_wait_for_the_disk(void **state)
{
	struct sender_fixture orphan, stepped, recorder;
	pthread_t other;

	atomic_store(&slow, false);
	open_slow(&orphan, true, tmpdir_path(*state, "spool"));
	sender_fixture_open_spooled(&stepped, true, evrec_clock_real(), NULL);
	sender_fixture_open_spooled(&recorder, false, evrec_clock_real(), NULL);
	fake_write_submit(orphan.ob, 1, 1);
	sender_release(orphan.sender);
	atomic_store(&slow_folder, true);
	atomic_store(&slow, true);
	assert_int_equal(pthread_create(&other, NULL, step, stepped.sender), 0);
	wait_entered();
	fake_write_submit(recorder.ob, 1, 1);
	sender_fixture_wait_empty(&recorder);
	atomic_store(&slow, false);
	atomic_store(&slow_folder, false);
	assert_int_equal(pthread_join(other, NULL), 0);
	orphan.protocol->silent = false;
	sender_step(stepped.sender);
	sender_fixture_wait_freed(&orphan);
	sender_fixture_close(&recorder);
	sender_fixture_close(&stepped);
}

/* A sender without a thread writes rows in its steps, which never wait for the disk. */
static void test_steps_never_wait_for_the_disk(void **state)
{
	struct sender_fixture f;

	atomic_store(&slow, false);
	open_slow(&f, true, tmpdir_path(*state, "spool"));
	atomic_store(&slow, true);
	for (unsigned n = 1; n <= 20; n++) {
		for (unsigned i = 1; i <= 200; i++) {
			fake_write_submit(f.ob, i, n);
		}
		for (unsigned i = 1; i <= 10; i++) {
			sender_step(f.sender);
		}
		usleep(30000);
	}
	assert_int_equal(spool_file_count(tmpdir_path(*state, "spool")), 1);
	assert_int_equal(atomic_load(&entered), 0);
	atomic_store(&slow, false);
	assert_false(sender_join(f.sender, 0));
	assert_int_equal(sender_fixture_stats(&f).spooled, 20 * 200);
	sender_release(f.sender);
}

/* Writes one event in a forked child. True if it was written, with a message that the spool is not used. */
static bool writes_without_spool(const char *path)
{
	struct outbox_message message;
	struct sender_fixture f;

	atomic_store(&slow, false);
	sender_fixture_open_spooled(&f, true, evrec_clock_real(),
	                            spooler_new(str_from(path), SPOOL_AFTER, &fake_write_codec));
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	return f.protocol->sent == 1 && outbox_next_message(f.ob, &message) &&
	       strstr(message.message, "forked") != NULL && sender_join(f.sender, unit_mono() + SOON);
}

/* Another thread held SQLite's locks at the fork: in the child they are held forever. */
static void test_child_of_a_blocked_spool_writes_without_one(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;
	pid_t child;
	int status;

	atomic_store(&slow, true);
	open_slow(&f, false, path);
	fake_write_submit(f.ob, 1, 1);
	wait_entered();
	child = fork();
	if (child == 0) {
		exit(writes_without_spool(tmpdir_path(*state, "another")) ? 0 : 1);
	}
	status = unit_wait(child);
	atomic_store(&slow, false);
	assert_int_equal(status, 0);
	assert_false(sender_join(f.sender, 0));
	assert_int_equal(sender_fixture_stats(&f).spooled, 1);
	sender_release(f.sender);
	child = fork();
	if (child == 0) {
		exit(writes_without_spool(path) ? 1 : 0);
	}
	assert_int_equal(unit_wait(child), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_events_are_spooled_after_the_deadline),
		TMPDIR_TEST(test_recording_does_not_wait_for_the_disk),
		TMPDIR_TEST(test_steps_never_wait_for_the_disk),
		TMPDIR_TEST(test_child_of_a_blocked_spool_writes_without_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

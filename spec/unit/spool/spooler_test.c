/* Senders with a spool: events pending at the end become rows, and the next process restores them. */
#define _GNU_SOURCE

#include "spool_file.h"
#include "spool_fixture.h"

#include "spool/spool.h"
#include "spool/spooler.h"

#include <dirent.h>

/* The next process restores and writes them; the one after it finds none. */
static void test_pending_events_are_restored(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct outbox_stats stats;
	struct sender_fixture f;

	for (int threadless = 0; threadless <= 1; threadless++) {
		spool_fixture_open(&f, threadless != 0, path);
		f.protocol->silent = true;
		for (unsigned i = 1; i <= 20; i++) {
			fake_write_submit(f.ob, i, 1);
			fake_write_submit(f.ob, i, 2);
		}
		if (!threadless) {
			sender_fixture_wait_sent(&f, 4);
		}
		fake_write_submit(f.ob, 1, 3); /* a follow-up, or folds into the waiting write */
		spool_fixture_end(&f, 41, 0);
		spool_fixture_open(&f, threadless != 0, path);
		assert_false(outbox_empty(f.ob));
		spool_fixture_drain(&f);
		stats = sender_fixture_stats(&f);
		assert_int_equal(stats.restored, 41);
		assert_int_equal(stats.submitted, 41);
		assert_int_equal(stats.created + stats.patched, 20);
		assert_int_equal(stats.coalesced, 21);
		spool_fixture_check_silent(&f);
		spool_fixture_end(&f, 0, 0);
		spool_fixture_open(&f, threadless != 0, path);
		spool_fixture_drain(&f);
		assert_int_equal(sender_fixture_stats(&f).restored, 0);
		spool_fixture_end(&f, 0, 0);
	}
}

/* A write that fails its last try is kept, not dropped. */
static void test_last_failed_try_is_kept(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	spool_fixture_open(&f, false, path);
	sender_fixture_set_status(&f, 503);
	fake_write_submit(f.ob, 1, 1);
	fake_write_submit(f.ob, 2, 1);
	sender_fixture_wait_sent(&f, 2);
	sender_end(f.sender);
	spool_fixture_end(&f, 2, 0);
	spool_fixture_open(&f, true, path);
	spool_fixture_drain(&f);
	assert_int_equal(sender_fixture_stats(&f).created, 2);
	spool_fixture_end(&f, 0, 0);
}

/* Three processes leave one event each: none is lost, whether it was sent or not. */
static void test_unsent_rows_are_kept_again(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	for (int round = 0; round < 3; round++) {
		spool_fixture_open(&f, false, path);
		f.protocol->silent = true;
		fake_write_submit(f.ob, (unsigned)round + 1, 1);
		sender_fixture_wait_sent(&f, (unsigned)round + 1);
		spool_fixture_end(&f, (unsigned)round + 1, 0);
	}
	spool_fixture_open(&f, false, path);
	spool_fixture_drain(&f);
	assert_int_equal(sender_fixture_stats(&f).restored, 3);
	assert_int_equal(sender_fixture_stats(&f).created, 3);
	spool_fixture_end(&f, 0, 0);
}

/* More rows than room: they take half of max_pending, new events have the other half, and all are written. */
static void test_rows_take_half_of_max_pending(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct outbox_stats stats;
	struct sender_fixture f;

	spool_fixture_open(&f, true, path);
	for (unsigned i = 1; i <= 1000; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	f.protocol->silent = true;
	spool_fixture_end(&f, 1000, 0);
	spool_fixture_open(&f, true, path);
	f.protocol->silent = true;
	for (int i = 0; i < 40; i++) {
		sender_step(f.sender);
	}
	stats = sender_fixture_stats(&f);
	assert_true(stats.restored > 500 - 32 && stats.restored <= 500);
	assert_false(outbox_empty(f.ob));
	f.protocol->silent = false;
	spool_fixture_drain(&f);
	stats = sender_fixture_stats(&f);
	assert_int_equal(stats.restored, 1000);
	assert_int_equal(stats.created, 1000);
	spool_fixture_end(&f, 0, 0);
}

/* A protocol that answers in send, as a file does, leaves its thread nothing to wake for: it must not wait between rows. */
static void test_thread_takes_up_all_rows(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	spool_fixture_open(&f, true, path);
	for (unsigned i = 1; i <= 1000; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	f.protocol->silent = true;
	spool_fixture_end(&f, 1000, 0);
	spool_fixture_open(&f, false, path);
	f.protocol->answers_in_send = true;
	sender_begin(f.sender);
	sender_fixture_wait_empty(&f);
	assert_int_equal(sender_fixture_stats(&f).created, 1000);
	spool_fixture_end(&f, 0, 0);
}

/* The process is killed with some rows answered: the next sends the others, some of them again, and loses none. */
static void test_kill_loses_no_row(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct outbox_stats stats;
	struct sender_fixture f;
	pid_t child;

	spool_fixture_open(&f, true, path);
	f.protocol->silent = true;
	for (unsigned i = 1; i <= 200; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	spool_fixture_end(&f, 200, 0);
	child = fork();
	if (child == 0) {
		spool_fixture_open(&f, true, path);
		for (int i = 0; i < 12; i++) {
			sender_step(f.sender);
		}
		(void)kill(getpid(), SIGKILL);
	}
	assert_int_equal(WTERMSIG(unit_wait(child)), SIGKILL);
	spool_fixture_open(&f, true, path);
	f.protocol->status = 409; /* to each POST: all rows are marked as maybe received, so a conflict is success */
	spool_fixture_drain(&f);
	stats = sender_fixture_stats(&f);
	assert_true(stats.restored >= 200 - 12 * 8 && stats.restored < 200);
	assert_int_equal(stats.created, stats.restored);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CONFLICT], 0);
	spool_fixture_check_silent(&f);
	spool_fixture_end(&f, 0, 0);
}

/* Two senders at once have a file each; the third one takes up both. */
static void test_each_sender_has_its_own_file(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture first, second;

	spool_fixture_open(&first, true, path);
	spool_fixture_open(&second, false, path);
	first.protocol->silent = second.protocol->silent = true;
	fake_write_submit(first.ob, 1, 1);
	fake_write_submit(second.ob, 2, 1);
	sender_step(first.sender);
	sender_fixture_wait_sent(&second, 1);
	spool_fixture_end(&second, 1, 0);
	spool_fixture_check_silent(&first);
	spool_fixture_end(&first, 1, 0);
	assert_int_equal(spool_file_count(path), 2);
	assert_int_equal(spool_fixture_count_rows(path), 2);
	assert_int_equal(rmdir(path), 0);
}

static pid_t exit_in_child(const char *path, bool threadless, bool release)
{
	pid_t child = fork();
	struct sender_fixture f;

	if (child != 0) {
		return child;
	}
	spool_fixture_open(&f, threadless, path);
	f.protocol->silent = true;
	f.protocol->freed = NULL;
	for (unsigned i = 1; i <= 30; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	if (threadless) {
		sender_step(f.sender);
	}
	if (release) {
		sender_release(f.sender);
	}
	exit(0);
}

static void test_exit_spools_pending_events(void **state)
{
	const char *path = tmpdir_path(*state, "spool");

	for (int variant = 0; variant < 4; variant++) {
		int64_t start = unit_mono();
		pid_t child = exit_in_child(path, (variant & 1) != 0, (variant & 2) != 0);

		assert_int_equal(unit_wait(child), 0);
		assert_true(unit_mono() - start < SOON);
		assert_int_equal(spool_fixture_count_rows(path), 30);
	}
}

/* A forked child does not use the spool of its parent. */
static void test_child_does_not_use_the_spool(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;
	pid_t child;

	spool_fixture_open(&f, true, path);
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	child = fork();
	if (child == 0) {
		sender_step(f.sender);
		(void)sender_join(f.sender, 0);
		sender_release(f.sender);
		exit(0);
	}
	assert_int_equal(unit_wait(child), 0);
	spool_fixture_end(&f, 1, 0);
	assert_int_equal(spool_fixture_count_rows(path), 1);
}

/* No event is recorded and no poll follows: exit writes the restored events. */
static void test_exit_writes_restored_events(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;
	pid_t child;

	spool_fixture_open(&f, true, path);
	f.protocol->silent = true;
	for (unsigned i = 1; i <= 20; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	spool_fixture_end(&f, 20, 0);
	child = fork();
	if (child == 0) {
		spool_fixture_open(&f, true, path);
		sender_begin(f.sender);
		sender_step(f.sender);
		exit(0);
	}
	assert_int_equal(unit_wait(child), 0);
	assert_int_equal(spool_fixture_count_rows(path), 0);
}

/* Rows that are due at once are written in the first step; then the sender waits, though its server does not answer. */
static void test_rows_at_once_leave_time_to_wait(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	sender_fixture_open_spooled(&f, true, evrec_clock_fake(T0), spooler_new(str_from(path), 0, &fake_write_codec));
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_int_equal(spool_file_count(path), 1);
	assert_true(outbox_rows_due(f.ob, T0) > T0);
	(void)sender_join(f.sender, 0);
	spool_fixture_release(&f, 1, 0);
	evrec_clock_release(f.clock);
}

static unsigned count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *file;
	unsigned n = 0;

	assert_non_null(dir);
	while ((file = readdir(dir)) != NULL) {
		n += file->d_name[0] != '.';
	}
	(void)closedir(dir);
	return n;
}

/* It has written all, and the sender has no thread that would end it. */
static void test_released_sender_leaves_no_file(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct spooler *spooler = spooler_new(str_from(path), 0, &fake_write_codec);
	struct sender_fixture f;
	struct entry *entry;

	spooler_use_journal(spooler, 1 << 20);
	sender_fixture_open_spooled(&f, true, evrec_clock_real(), spooler);
	fake_write_submit(f.ob, 1, 1);
	for (int i = 0; i < 3; i++) {
		sender_step(f.sender);
	}
	assert_true(outbox_empty(f.ob));
	assert_int_not_equal(count_files(path), 0);
	while ((entry = outbox_collect(f.ob, 1)) != NULL) {
		outbox_recycle(f.ob, entry);
	}
	sender_release(f.sender);
	assert_int_equal(count_files(path), 0);
}

/* At the end of the time of a clock, which a fake one may reach, the next look is at the end, and not in the past. */
static void test_looks_saturate_at_the_end_of_time(void **state)
{
	const int64_t end = INT64_MAX - EVREC_SECOND / 8;
	evrec_clock *clock = evrec_clock_fake(end);
	struct spooler *sp = spooler_new(str_from(tmpdir_path(*state, "spool")), 0, &fake_write_codec);
	struct outbox *ob = fake_write_outbox(10);
	const struct outcome written = { .verdict = VERDICT_WRITTEN };

	spooler_use_journal(sp, 1 << 20);
	outbox_expect(ob, true);
	outbox_write_rows_after(ob, 0);
	spooler_step(sp, ob, clock, false);
	for (unsigned id = 1; id <= 2; id++) {
		assert_true(fake_write_submit(ob, id, 1));
		spooler_step(sp, ob, clock, false);
		assert_true(spooler_next_due(sp, ob, end) > end); /* a look at the journal */
	}
	outbox_answer(ob, outbox_take(ob, end), &written, end);
	outbox_recycle(ob, outbox_collect(ob, 1));
	assert_true(spooler_next_due(sp, ob, end) > end); /* a row is to be deleted */
	spooler_free(sp);
	outbox_free(ob);
	evrec_clock_release(clock);
}

/* A fake clock is set back from one end of time to the other, while its time for timeouts stays. */
static void test_journal_takes_any_distance_of_the_clocks(void **state)
{
	evrec_clock *clock = evrec_clock_fake(INT64_MAX / 2);
	struct spooler *sp = spooler_new(str_from(tmpdir_path(*state, "spool")), 0, &fake_write_codec);
	struct outbox *ob = fake_write_outbox(10);

	spooler_use_journal(sp, 1 << 20);
	outbox_expect(ob, true);
	outbox_write_rows_after(ob, 0);
	for (unsigned id = 1; id <= 2; id++) {
		assert_true(fake_write_submit(ob, id, 1));
		spooler_step(sp, ob, clock, false);
		evrec_clock_set(clock, INT64_MIN);
		spooler_step(sp, ob, clock, false); /* UndefinedBehaviorSanitizer looks on */
	}
	spooler_free(sp);
	outbox_free(ob);
	evrec_clock_release(clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_pending_events_are_restored),
		SPOOL_TEST(test_last_failed_try_is_kept),
		SPOOL_TEST(test_unsent_rows_are_kept_again),
		SPOOL_TEST(test_rows_take_half_of_max_pending),
		SPOOL_TEST(test_thread_takes_up_all_rows),
		SPOOL_TEST(test_kill_loses_no_row),
		SPOOL_TEST(test_each_sender_has_its_own_file),
		SPOOL_TEST(test_exit_spools_pending_events),
		SPOOL_TEST(test_exit_writes_restored_events),
		SPOOL_TEST(test_child_does_not_use_the_spool),
		SPOOL_TEST(test_rows_at_once_leave_time_to_wait),
		SPOOL_TEST(test_released_sender_leaves_no_file),
		SPOOL_TEST(test_looks_saturate_at_the_end_of_time),
		SPOOL_TEST(test_journal_takes_any_distance_of_the_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

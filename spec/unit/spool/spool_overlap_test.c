/* Two senders overlap, as in a rolling restart: the younger one takes up the file of the older one once that has ended. */
#define _GNU_SOURCE

#include "spool_fixture.h"

#include <sys/stat.h>

#define S EVREC_SECOND
#define EVENTS 3

/* The older sender has events that become rows at its end. */
static void begin_older(struct sender_fixture *f, const char *path)
{
	spool_fixture_open(f, true, path);
	f->protocol->silent = true;
	for (unsigned i = 1; i <= EVENTS; i++) {
		fake_write_submit(f->ob, i, 1);
	}
	sender_step(f->sender);
	spool_fixture_check_silent(f);
}

static void begin_younger(struct sender_fixture *f, const char *path, bool threadless)
{
	sender_fixture_open_spooled(f, threadless, evrec_clock_fake(T0),
	                            spooler_new(str_from(path), SPOOL_AT_END, &fake_write_codec));
	sender_begin(f->sender);
}

static void end_younger(struct sender_fixture *f, uint64_t spooled)
{
	evrec_clock *clock = f->clock;

	spool_fixture_end(f, spooled, 0);
	evrec_clock_release(clock);
}

static void step_at(struct sender_fixture *f, int64_t now)
{
	evrec_clock_set(f->clock, now);
	sender_step(f->sender);
}

/* No flush waits for a file in use, and nothing is reported. */
static void test_file_in_use_is_taken_up_later(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture older, younger;

	begin_older(&older, path);
	begin_younger(&younger, path, true);
	for (unsigned i = 1; i <= 40; i++) {
		fake_write_submit(younger.ob, 100 + i, 1);
		step_at(&younger, T0 + i * S / 2);
		assert_true(outbox_empty(younger.ob));
	}
	spool_fixture_end(&older, EVENTS, 0);
	step_at(&younger, T0 + 22 * S);
	step_at(&younger, T0 + 23 * S);
	assert_int_equal(sender_fixture_stats(&younger).restored, EVENTS);
	assert_int_equal(sender_fixture_stats(&younger).created, 40 + EVENTS);
	spool_fixture_check_silent(&younger);
	end_younger(&younger, 0);
	assert_int_equal(spool_fixture_count_rows(path), 0);
}

static void test_retries_are_3_s_apart(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture older, younger;

	begin_older(&older, path);
	begin_younger(&younger, path, true);
	step_at(&younger, T0);
	spool_fixture_end(&older, EVENTS, 0);
	step_at(&younger, T0 + S);
	assert_int_equal(sender_fixture_stats(&younger).restored, 0);
	step_at(&younger, T0 + 3 * S);
	assert_int_equal(sender_fixture_stats(&younger).restored, EVENTS);
	end_younger(&younger, 0);
}

/* Any reason why a folder cannot be used is reported, and it is asked for again. */
static void test_each_reason_is_reported_and_retried(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture older, younger;

	assert_int_equal(symlink("elsewhere", path), 0);
	begin_younger(&younger, path, true);
	step_at(&younger, T0);
	spool_fixture_check_message(&younger, "is a symbolic link");
	step_at(&younger, T0 + 3 * S);
	spool_fixture_check_silent(&younger);
	assert_int_equal(unlink(path) + mkdir(path, 0777) + chmod(path, 0777), 0);
	step_at(&younger, T0 + 6 * S);
	spool_fixture_check_message(&younger, "is a folder that others may write to: name a folder inside it");
	assert_int_equal(rmdir(path), 0);
	begin_older(&older, path);
	spool_fixture_end(&older, EVENTS, 0);
	step_at(&younger, T0 + 9 * S);
	assert_int_equal(sender_fixture_stats(&younger).restored, EVENTS);
	spool_fixture_check_silent(&younger);
	end_younger(&younger, 0);
}

/* No event is recorded that would wake the thread. */
static void test_idle_thread_wakes_to_retry(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture older, younger;
	int64_t deadline = unit_mono() + SOON;

	begin_older(&older, path);
	begin_younger(&younger, path, false);
	fake_write_submit(younger.ob, 100, 1);
	sender_fixture_wait_empty(&younger);
	sender_fixture_wait_idle(&younger);
	spool_fixture_end(&older, EVENTS, 0);
	evrec_clock_set(younger.clock, T0 + 3 * S);
	while (sender_fixture_stats(&younger).created < 1 + EVENTS) {
		assert_true(unit_mono() < deadline);
		usleep(1000);
	}
	assert_int_equal(sender_fixture_stats(&younger).restored, EVENTS);
	end_younger(&younger, 0);
}

/* The younger sender ends before it looks again: the folder has a file of each. */
static void test_younger_may_end_first(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture older, younger;

	begin_older(&older, path);
	begin_younger(&younger, path, true);
	fake_write_submit(younger.ob, 100, 1);
	younger.protocol->silent = true;
	step_at(&younger, T0);
	spool_fixture_end(&older, EVENTS, 0);
	end_younger(&younger, 1);
	assert_int_equal(spool_fixture_count_rows(path), EVENTS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_file_in_use_is_taken_up_later),
		SPOOL_TEST(test_retries_are_3_s_apart),
		SPOOL_TEST(test_each_reason_is_reported_and_retried),
		SPOOL_TEST(test_idle_thread_wakes_to_retry),
		SPOOL_TEST(test_younger_may_end_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

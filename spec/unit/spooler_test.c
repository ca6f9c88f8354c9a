/* What is left at the end goes into a file, and comes out of it: senders with a spool, and the outbox by hand. */
#define _GNU_SOURCE

#include "spool_life.h"

#include "deliver/spool.h"

/* What could not be written is left; the next takes it up; the one after that finds nothing. */
static void test_from_one_to_the_next(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct outbox_stats stats;
	struct fixture f;

	for (int threadless = 0; threadless <= 1; threadless++) {
		open_spooled(&f, threadless != 0, path);
		f.script->silent = true;
		for (unsigned i = 1; i <= 20; i++) {
			item_submit(f.ob, i, 1);
			item_submit(f.ob, i, 2);
		}
		if (!threadless) {
			wait_sent(&f, 8);
		}
		item_submit(f.ob, 1, 3); /* follows what is under way, or folds into what waits */
		end_with(&f, 41, 0);
		open_spooled(&f, threadless != 0, path);
		assert_false(outbox_empty(f.ob));
		drive(&f);
		stats = stats_of(&f);
		assert_int_equal(stats.restored, 41);
		assert_int_equal(stats.submitted, 41);
		assert_int_equal(stats.created + stats.patched, 20);
		assert_int_equal(stats.coalesced, 21);
		no_report(&f);
		end_with(&f, 0, 0);
		open_spooled(&f, threadless != 0, path);
		drive(&f);
		assert_int_equal(stats_of(&f).restored, 0);
		end_with(&f, 0, 0);
	}
}

/* Tried once more at the end, without an answer: kept, not dropped. */
static void test_tried_at_the_end(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct fixture f;

	open_spooled(&f, false, path);
	set_status(&f, 503);
	item_submit(f.ob, 1, 1);
	item_submit(f.ob, 2, 1);
	wait_sent(&f, 2);
	sender_end(f.sender);
	end_with(&f, 2, 0);
	open_spooled(&f, true, path);
	drive(&f);
	assert_int_equal(stats_of(&f).created, 2);
	end_with(&f, 0, 0);
}

/* Of those left three times over, each with what it was; and those that were never sent stay in their rows. */
static void test_again_and_again(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct fixture f;

	for (int round = 0; round < 3; round++) {
		open_spooled(&f, false, path);
		f.script->silent = true;
		item_submit(f.ob, 1, 1);
		wait_sent(&f, (unsigned)round + 1);
		end_with(&f, (unsigned)round + 1, 0);
	}
	open_spooled(&f, false, path);
	drive(&f);
	assert_int_equal(stats_of(&f).restored, 3);
	assert_int_equal(stats_of(&f).created, 3);
	end_with(&f, 0, 0);
}

/* More than there is room for: half of max_pending is left for what is new, and all of it is written in the end. */
static void test_as_far_as_there_is_room(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct outbox_stats stats;
	struct fixture f;

	open_spooled(&f, true, path);
	for (unsigned i = 1; i <= 1000; i++) {
		item_submit(f.ob, i, 1);
	}
	f.script->silent = true;
	end_with(&f, 1000, 0);
	open_spooled(&f, true, path);
	f.script->silent = true;
	for (int i = 0; i < 10; i++) {
		sender_step(f.sender);
	}
	assert_int_equal(stats_of(&f).restored, 500);
	assert_false(outbox_empty(f.ob));
	f.script->silent = false;
	drive(&f);
	stats = stats_of(&f);
	assert_int_equal(stats.restored, 1000);
	assert_int_equal(stats.created, 1000);
	end_with(&f, 0, 0);
}

/* The process dies with half of it answered: the next sends the rest, and perhaps some again, but loses none. */
static void test_killed_while_it_writes(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct outbox_stats stats;
	struct fixture f;
	pid_t child;

	open_spooled(&f, true, path);
	f.script->silent = true;
	for (unsigned i = 1; i <= 200; i++) {
		item_submit(f.ob, i, 1);
	}
	end_with(&f, 200, 0);
	child = fork();
	if (child == 0) {
		open_spooled(&f, true, path);
		for (int i = 0; i < 12; i++) {
			sender_step(f.sender);
		}
		(void)kill(getpid(), SIGKILL);
	}
	assert_int_equal(WTERMSIG(unit_wait(child)), SIGKILL);
	open_spooled(&f, true, path);
	f.script->status = 409; /* to each POST: they were all marked as possibly there */
	drive(&f);
	stats = stats_of(&f);
	assert_true(stats.restored >= 200 - 12 * 8 && stats.restored < 200);
	assert_int_equal(stats.created, stats.restored);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CONFLICT], 0);
	no_report(&f);
	end_with(&f, 0, 0);
}

static void test_in_use(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct fixture first, second;

	open_spooled(&first, true, path);
	item_submit(first.ob, 1, 1);
	drive(&first);
	open_spooled(&second, false, path);
	item_submit(second.ob, 1, 1);
	drive(&second);
	assert_int_equal(stats_of(&second).created, 1);
	report_has(&second, "is in use by another process or sink");
	second.script->silent = true;
	item_submit(second.ob, 2, 1);
	wait_sent(&second, 2);
	/* Its end: still in use. */
	(void)sender_join(second.sender, 0);
	report_has(&second, "what is left is not spooled: ");
	assert_int_equal(stats_of(&second).dropped[EVREC_CAUSE_CLOSED], 1);
	sender_release(second.sender);
	sender_join(first.sender, 0);
	sender_release(first.sender);
	/* What was in use at the start may be free at the end. */
	open_spooled(&first, true, path);
	open_spooled(&second, true, path);
	item_submit(first.ob, 1, 1);
	drive(&first);
	item_submit(second.ob, 1, 1);
	second.script->silent = true;
	sender_step(second.sender);
	end_with(&first, 0, 0);
	end_with(&second, 1, 0);
}

static pid_t exit_in_child(const char *path, bool threadless, bool release)
{
	pid_t child = fork();
	struct fixture f;

	if (child != 0) {
		return child;
	}
	open_spooled(&f, threadless, path);
	f.script->silent = true;
	f.script->freed = NULL;
	for (unsigned i = 1; i <= 30; i++) {
		item_submit(f.ob, i, 1);
	}
	if (threadless) {
		sender_step(f.sender);
	}
	if (release) {
		sender_release(f.sender);
	}
	exit(0);
}

static void test_exit(void **state)
{
	const char *path = in_folder(*state, "spool");

	for (int way = 0; way < 4; way++) {
		int64_t start = mono();
		pid_t child = exit_in_child(path, (way & 1) != 0, (way & 2) != 0);

		assert_int_equal(unit_wait(child), 0);
		assert_true(mono() - start < SOON);
		assert_int_equal(rows_left(path), 30);
	}
}

/* A child that was forked uses the file no more than any other process may. */
static void test_fork(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct fixture f;
	pid_t child;

	open_spooled(&f, true, path);
	f.script->silent = true;
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	child = fork();
	if (child == 0) {
		sender_step(f.sender);
		(void)sender_join(f.sender, 0);
		sender_release(f.sender);
		exit(0);
	}
	assert_int_equal(unit_wait(child), 0);
	end_with(&f, 1, 0);
	assert_int_equal(rows_left(path), 1);
}

/* Nothing new is recorded, and nobody polls until all is written: exit does the rest. */
static void test_exit_with_what_was_restored(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct fixture f;
	pid_t child;

	open_spooled(&f, true, path);
	f.script->silent = true;
	for (unsigned i = 1; i <= 20; i++) {
		item_submit(f.ob, i, 1);
	}
	end_with(&f, 20, 0);
	child = fork();
	if (child == 0) {
		open_spooled(&f, true, path);
		sender_begin(f.sender);
		sender_step(f.sender);
		exit(0);
	}
	assert_int_equal(unit_wait(child), 0);
	assert_int_equal(rows_left(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_from_one_to_the_next),
		TEST(test_tried_at_the_end),
		TEST(test_again_and_again),
		TEST(test_as_far_as_there_is_room),
		TEST(test_killed_while_it_writes),
		TEST(test_in_use),
		TEST(test_exit),
		TEST(test_exit_with_what_was_restored),
		TEST(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

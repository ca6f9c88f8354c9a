/* A spool in trouble: a file that is damaged or lies, a disk that is full, no memory, a thread that hangs. */
#define _GNU_SOURCE

#include "spool_life.h"

#include "deliver/spool.h"

#include <sys/resource.h>

static void test_damaged(void **state)
{
	const char *path = in_folder(*state, "spool");
	FILE *file = fopen(path, "w");
	struct fixture f;

	for (int i = 0; i < 1000; i++) {
		(void)fputs("no database", file);
	}
	(void)fclose(file);
	for (int threadless = 0; threadless <= 1; threadless++) {
		open_spooled(&f, threadless != 0, path);
		item_submit(f.ob, 1, 1);
		drive(&f);
		report_has(&f, "going on without the spool: ");
		f.script->silent = true;
		item_submit(f.ob, 2, 1);
		end_with(&f, 0, 1);
	}
}

/* What cannot be read is no place to leave more. */
static void test_damaged_inside(void **state)
{
	const char *path = in_folder(*state, "spool");
	const char zeros[64] = { 0 };
	struct fixture f;
	FILE *file;

	open_spooled(&f, true, path);
	for (unsigned i = 1; i <= 1000; i++) {
		item_submit(f.ob, i, 1);
	}
	f.script->silent = true;
	end_with(&f, 1000, 0);
	file = fopen(path, "r+");
	assert_int_equal(fseek(file, 8192, SEEK_SET), 0);
	assert_int_equal(fwrite(zeros, sizeof(zeros), 1, file), 1);
	assert_int_equal(fclose(file), 0);
	open_spooled(&f, true, path);
	f.script->silent = true;
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	report_has(&f, "nothing is taken up from the spool: ");
	assert_false(sender_join(f.sender, 0));
	report_has(&f, "what is left is not spooled: ");
	release_with(&f, 0, 1);
}

/* A row that makes no sense is told of, and stays where it is. */
static void test_a_row_that_cannot_be_read(void **state)
{
	const struct spool_codec broken = { item_freeze, item_thaw };
	struct spooler *spooler = spooler_new(str_from(in_folder(*state, "spool")), &broken);
	struct fixture f;

	open_with(&f, true, evrec_clock_real(), spooler);
	f.script->silent = true;
	item_submit(f.ob, 1, 1);
	end_with(&f, 1, 0);
	open_spooled(&f, true, in_folder(*state, "spool"));
	items_fail = true;
	sender_step(f.sender);
	items_fail = false;
	report_has(&f, "could not be read, and stays there");
	assert_true(outbox_empty(f.ob));
	end_with(&f, 0, 0);
	open_spooled(&f, true, in_folder(*state, "spool"));
	drive(&f);
	assert_int_equal(stats_of(&f).created, 1);
	end_with(&f, 0, 0);
}

/* One that says more had arrived than there is: not to be counted by. */
static void test_a_row_that_lies(void **state)
{
	const struct spool_row row = { .verb = VERB_CREATE, .count = 2, .arrived = 5, .item = EVREC_STR("n1 2") };
	struct spool *spool = spool_new(str_from(in_folder(*state, "spool")));
	struct fixture f;

	assert_true(spool_open(spool, NULL) && spool_begin(spool, NULL));
	assert_true(spool_put(spool, &row, NULL) && spool_commit(spool, NULL));
	spool_free(spool);
	open_spooled(&f, true, in_folder(*state, "spool"));
	f.script->status = 409;
	drive(&f);
	report_has(&f, "could not be read, and stays there");
	assert_int_equal(stats_of(&f).submitted, 0);
	end_with(&f, 0, 0);
}

/* No byte may be added to the file: what is left is dropped and told, on whichever thread; nobody is killed. */
static void test_full_disk(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct rlimit before, none;
	struct fixture f;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	for (int threadless = 0; threadless <= 1; threadless++) {
		open_spooled(&f, threadless != 0, path);
		item_submit(f.ob, 1, 1);
		drive(&f);
		f.script->silent = true;
		item_submit(f.ob, 2, 1);
		if (!threadless) {
			wait_sent(&f, 2);
		}
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
		assert_false(sender_join(f.sender, 0));
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		report_has(&f, "what is left is not spooled: ");
		release_with(&f, 0, 1);
	}
}

/* Two rows of one event would be under way together in the next process. */
static void test_no_memory_to_merge(void **state)
{
	struct fixture f;

	open_spooled(&f, true, in_folder(*state, "spool"));
	f.script->silent = true;
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	item_submit(f.ob, 1, 2);
	items_fail = true;
	outbox_leave_all(f.ob);
	items_fail = false;
	assert_int_equal(stats_of(&f).dropped[EVREC_CAUSE_MEMORY], 1);
	assert_false(sender_join(f.sender, 0));
	release_with(&f, 1, 0);
}

static void test_no_memory_to_freeze(void **state)
{
	struct fixture f;

	open_spooled(&f, true, in_folder(*state, "spool"));
	f.script->silent = true;
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	items_fail = true;
	assert_false(sender_join(f.sender, 0));
	items_fail = false;
	report_has(&f, "no memory");
	release_with(&f, 0, 1);
}

/* What was given up on, as its thread hung, stays as it was in the file; what was not in there was counted as lost. */
static void test_a_thread_that_hangs(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct fixture f;

	open_spooled(&f, true, path);
	f.script->silent = true;
	item_submit(f.ob, 1, 1);
	end_with(&f, 1, 0);
	open_spooled(&f, false, path);
	f.script->silent = true;
	sender_begin(f.sender);
	wait_sent(&f, 1);
	set(&f, &f.script->hang, true);
	item_submit(f.ob, 2, 1);
	wait_sent(&f, 2);
	assert_false(sender_join(f.sender, 0));
	assert_int_equal(stats_of(&f).dropped[EVREC_CAUSE_CLOSED], 2);
	sender_release(f.sender);
	set(&f, &f.script->hang, false);
	wait_freed(&f);
	while (access(in_folder(*state, "spool-journal"), F_OK) == 0) {
		usleep(1000);
	}
	assert_int_equal(rows_left(path), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_damaged),
		TEST(test_damaged_inside),
		TEST(test_a_row_that_cannot_be_read),
		TEST(test_a_row_that_lies),
		TEST(test_full_disk),
		TEST(test_no_memory_to_merge),
		TEST(test_no_memory_to_freeze),
		TEST(test_a_thread_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

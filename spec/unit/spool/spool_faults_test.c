/* Faults of a spool: a damaged file, inconsistent rows, a full disk, no memory, a hanging thread. */
#define _GNU_SOURCE

#include "spool_file.h"
#include "spool_fixture.h"

#include "spool/spool.h"

#include <sys/resource.h>

#define MIDDLE (5 * 4096L) /* a page behind some hundreds of rows */

static void test_damaged_file_is_not_used(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	FILE *file = fopen(path, "w");
	struct sender_fixture f;

	for (int i = 0; i < 1000; i++) {
		(void)fputs("no database", file);
	}
	(void)fclose(file);
	for (int threadless = 0; threadless <= 1; threadless++) {
		spool_fixture_open(&f, threadless != 0, path);
		fake_write_submit(f.ob, 1, 1);
		spool_fixture_drain(&f);
		spool_fixture_check_message(&f, "the sink goes on without its spool: ");
		f.protocol->silent = true;
		fake_write_submit(f.ob, 2, 1);
		spool_fixture_end(&f, 0, 1);
	}
}

/* Makes a spool of one file with 1000 rows, of which those of the page at the offset `page` cannot be read. */
static void make_damaged(const char *path, long page)
{
	const char zeros[64] = { 0 };
	struct sender_fixture f;
	FILE *file;

	spool_fixture_open(&f, true, path);
	for (unsigned i = 1; i <= 1000; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	f.protocol->silent = true;
	spool_fixture_end(&f, 1000, 0);
	file = fopen(spool_file_in(path), "r+");
	assert_int_equal(fseek(file, page, SEEK_SET), 0);
	assert_int_equal(fwrite(zeros, sizeof(zeros), 1, file), 1);
	assert_int_equal(fclose(file), 0);
}

/* A file that cannot be read gets no more rows: there is another for them. */
static void test_damaged_page_stops_all_use(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	make_damaged(path, 8192);
	spool_fixture_open(&f, true, path);
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	spool_fixture_check_message(&f, "no event is taken up from the spool: ");
	assert_false(sender_join(f.sender, 0));
	spool_fixture_release(&f, 1, 0);
	assert_int_equal(spool_file_count(path), 2);
}

/* Rows that were taken up before the damage was met are written and let go, and new rows find another file. */
static void test_damaged_page_stops_one_file(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	make_damaged(path, MIDDLE);
	spool_fixture_open(&f, true, path);
	for (int i = 0; i < 100; i++) {
		sender_step(f.sender);
	}
	spool_fixture_check_message(&f, "no event is taken up from the spool: ");
	assert_in_range(sender_fixture_stats(&f).restored, 1, 999);
	assert_int_equal(sender_fixture_stats(&f).pending, 0);
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	spool_fixture_end(&f, 1, 0);
	assert_int_equal(spool_file_count(path), 2);
}

/* A row that cannot be parsed is reported, and stays in the file. */
static void test_unreadable_row_stays_in_the_file(void **state)
{
	struct spooler *spooler = spooler_new(str_from(tmpdir_path(*state, "spool")), SPOOL_AT_END, &fake_write_codec);
	struct sender_fixture f;

	sender_fixture_open_spooled(&f, true, evrec_clock_real(), spooler);
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	spool_fixture_end(&f, 1, 0);
	spool_fixture_open(&f, true, tmpdir_path(*state, "spool"));
	fake_writes.no_memory = true;
	sender_step(f.sender);
	fake_writes.no_memory = false;
	spool_fixture_check_message(&f, "could not be read, and stays there");
	assert_true(outbox_empty(f.ob));
	spool_fixture_end(&f, 0, 0);
	spool_fixture_open(&f, true, tmpdir_path(*state, "spool"));
	spool_fixture_drain(&f);
	assert_int_equal(sender_fixture_stats(&f).created, 1);
	spool_fixture_end(&f, 0, 0);
}

/* A row with more received occurrences than occurrences is not restored. */
static void test_inconsistent_row_is_not_restored(void **state)
{
	const struct spool_row row = {
		.verb = VERB_CREATE, .count = 2, .maybe_received = 5, .item = EVREC_STR("n1 2")
	};
	struct spool *spool = spool_new(str_from(spool_file_make_folder(tmpdir_path(*state, "spool"))));
	struct sender_fixture f;

	assert_true(spool_open(spool, SPOOL_MODE_LAST, NULL) && spool_begin(spool, NULL));
	assert_true(spool_put(spool, &row, NULL) && spool_commit(spool, NULL));
	spool_free(spool);
	spool_fixture_open(&f, true, tmpdir_path(*state, "spool"));
	f.protocol->status = 409;
	spool_fixture_drain(&f);
	spool_fixture_check_message(&f, "could not be read, and stays there");
	assert_int_equal(sender_fixture_stats(&f).submitted, 0);
	spool_fixture_end(&f, 0, 0);
}

/* The file cannot grow: pending events are dropped with a message, with a thread and without; SIGXFSZ kills nobody. */
static void test_full_disk_drops_with_a_message(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct rlimit before, none;
	struct sender_fixture f;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	for (int threadless = 0; threadless <= 1; threadless++) {
		spool_fixture_open(&f, threadless != 0, path);
		fake_write_submit(f.ob, 1, 1);
		spool_fixture_drain(&f);
		f.protocol->silent = true;
		fake_write_submit(f.ob, 2, 1);
		if (!threadless) {
			sender_fixture_wait_sent(&f, 2);
		}
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
		assert_false(sender_join(f.sender, 0));
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		spool_fixture_check_message(&f, "the spool could not keep all events: ");
		spool_fixture_release(&f, 0, 1);
	}
}

/* One event never gets two rows: the next process would send both at once. */
static void test_follow_up_is_dropped_if_it_cannot_be_merged(void **state)
{
	struct sender_fixture f;

	spool_fixture_open(&f, true, tmpdir_path(*state, "spool"));
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	fake_write_submit(f.ob, 1, 2);
	fake_writes.no_memory = true;
	outbox_keep_all_for_spool(f.ob);
	fake_writes.no_memory = false;
	assert_int_equal(sender_fixture_stats(&f).dropped[EVREC_CAUSE_MEMORY], 1);
	assert_false(sender_join(f.sender, 0));
	spool_fixture_release(&f, 1, 0);
}

static void test_events_without_memory_are_dropped(void **state)
{
	struct sender_fixture f;

	spool_fixture_open(&f, true, tmpdir_path(*state, "spool"));
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	fake_writes.no_memory = true;
	assert_false(sender_join(f.sender, 0));
	fake_writes.no_memory = false;
	spool_fixture_check_message(&f, "no memory");
	spool_fixture_release(&f, 0, 1);
}

static void open_live(struct sender_fixture *f, const char *path)
{
	sender_fixture_open_spooled(f, true, evrec_clock_fake(T0),
	                            spooler_new(str_from(path), SPOOL_AFTER, &fake_write_codec));
	f->protocol->silent = true;
	fake_write_submit(f->ob, 1, 1);
}

static void end_live(struct sender_fixture *f, const char *path)
{
	const int64_t now = T0 + 3 * EVREC_SECOND;

	evrec_clock_set(f->clock, now);
	assert_true(outbox_rows_due(f->ob, now) <= now);
	sender_step(f->sender);
	assert_true(outbox_rows_due(f->ob, now) > now);
	spool_fixture_check_silent(f);
	assert_int_equal(spool_file_count(path), 1);
	(void)sender_join(f->sender, 0);
	spool_fixture_release(f, 1, 0);
	evrec_clock_release(f->clock);
	assert_int_equal(spool_fixture_count_rows(path), 1);
}

/* A row that is due and cannot be written, for want of memory or of room on the disk, is reported and written later. */
static void test_rows_are_written_later(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct rlimit before, none;
	struct sender_fixture f;

	open_live(&f, path);
	fake_writes.no_memory = true;
	sender_step(f.sender);
	fake_writes.no_memory = false;
	spool_fixture_check_message(&f, "events are in memory alone: no memory");
	end_live(&f, path);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	open_live(&f, path);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	sender_step(f.sender);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	spool_fixture_check_message(&f, "events are in memory alone: ");
	end_live(&f, path);
}

/* A row of an event and its follow-up finds no memory, then the event is answered: the follow-up gets a row of its own. */
static void test_follow_up_keeps_its_turn_without_memory(void **state)
{
	const struct fake_write draft = { .name = "n1", .count = 2, .important = true };
	const struct occurrence warning = {
		.id = 1, .verb = VERB_PATCH, .important = true, .now = T0, .draft = &draft
	};
	struct outbox_rows rows;
	enum evrec_cause cause;
	struct sender_fixture f;

	open_live(&f, tmpdir_path(*state, "spool"));
	for (int turn = 0; turn < 2; turn++) {
		fake_writes.no_memory = true;
		sender_step(f.sender);
		fake_writes.no_memory = false;
		assert_true(turn == 1 || outbox_submit(f.ob, &warning, &cause));
		evrec_clock_set(f.clock, T0 + 4 * EVREC_SECOND);
	}
	spool_fixture_check_message(&f, "events are in memory alone: no memory");
	f.protocol->silent = false;
	sender_step(f.sender);
	f.protocol->silent = true;
	evrec_clock_set(f.clock, T0 + 8 * EVREC_SECOND);
	sender_step(f.sender);
	outbox_get_rows(f.ob, &rows);
	assert_int_equal(rows.own, 1);
	(void)sender_join(f.sender, 0);
	spool_fixture_release(&f, 1, 0);
	evrec_clock_release(f.clock);
}

/* The rows of written events that a full disk keeps are deleted later, and no flush waits for that. */
static void test_rows_are_deleted_later(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct rlimit before, none;
	struct sender_fixture f;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	open_live(&f, path);
	sender_step(f.sender);
	evrec_clock_set(f.clock, T0 + 2 * EVREC_SECOND);
	sender_step(f.sender);
	assert_int_equal(spool_file_count(path), 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	f.protocol->silent = false;
	sender_step(f.sender);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	spool_fixture_check_message(&f, "written events stay in the spool, to be written again: ");
	assert_true(outbox_empty(f.ob));
	sender_step(f.sender);
	evrec_clock_set(f.clock, T0 + 6 * EVREC_SECOND);
	sender_step(f.sender);
	spool_fixture_check_silent(&f);
	assert_true(sender_join(f.sender, 0));
	spool_fixture_release(&f, 0, 0);
	evrec_clock_release(f.clock);
	assert_int_equal(spool_fixture_count_rows(path), 0);
}

/* The file that was found is the own one too, and has a row of a live event, when it proves to be damaged. */
static void test_rows_of_a_damaged_own_file_are_written_anew(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	char damaged[1024];
	struct sender_fixture f;

	make_damaged(path, MIDDLE);
	(void)snprintf(damaged, sizeof(damaged), "%s", spool_file_in(path));
	open_live(&f, path);
	sender_step(f.sender);
	evrec_clock_set(f.clock, T0 + 2 * EVREC_SECOND);
	sender_step(f.sender);
	spool_fixture_check_silent(&f);
	assert_int_equal(spool_file_count(path), 1);
	for (int i = 0; i < 20; i++) {
		sender_step(f.sender);
	}
	spool_fixture_check_message(&f, "no event is taken up from the spool: ");
	assert_int_equal(spool_file_count(path), 2);
	(void)sender_join(f.sender, 0);
	spool_fixture_release(&f, sender_fixture_stats(&f).spooled, 0);
	evrec_clock_release(f.clock);
	assert_int_equal(unlink(damaged), 0);
	assert_int_equal(spool_fixture_count_rows(path), 1);
}

/* Events dropped because of a hanging thread keep their rows; an event without a row gets none. */
static void test_hanging_thread_changes_no_rows(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	spool_fixture_open(&f, true, path);
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	spool_fixture_end(&f, 1, 0);
	spool_fixture_open(&f, false, path);
	f.protocol->silent = true;
	sender_begin(f.sender);
	sender_fixture_wait_sent(&f, 1);
	sender_fixture_set(&f, &f.protocol->hangs, true);
	fake_write_submit(f.ob, 2, 1);
	sender_fixture_wait_sent(&f, 2);
	assert_false(sender_join(f.sender, 0));
	assert_int_equal(sender_fixture_stats(&f).dropped[EVREC_CAUSE_CLOSED], 2);
	sender_release(f.sender);
	sender_fixture_set(&f, &f.protocol->hangs, false);
	sender_fixture_wait_freed(&f);
	assert_int_equal(spool_fixture_count_rows(path), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_damaged_file_is_not_used),
		SPOOL_TEST(test_damaged_page_stops_all_use),
		SPOOL_TEST(test_damaged_page_stops_one_file),
		SPOOL_TEST(test_rows_of_a_damaged_own_file_are_written_anew),
		SPOOL_TEST(test_unreadable_row_stays_in_the_file),
		SPOOL_TEST(test_inconsistent_row_is_not_restored),
		SPOOL_TEST(test_full_disk_drops_with_a_message),
		SPOOL_TEST(test_follow_up_is_dropped_if_it_cannot_be_merged),
		SPOOL_TEST(test_events_without_memory_are_dropped),
		SPOOL_TEST(test_rows_are_written_later),
		SPOOL_TEST(test_follow_up_keeps_its_turn_without_memory),
		SPOOL_TEST(test_rows_are_deleted_later),
		SPOOL_TEST(test_hanging_thread_changes_no_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

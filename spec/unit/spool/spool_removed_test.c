/* Somebody removes the folder of a spool that a process uses. */
#include "spool_file.h"
#include "spool_fixture.h"

#include <glob.h>

static void remove_folder(const char *path)
{
	char command[1024];

	(void)snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
}

/* The process writes another event, or ends at once. */
static void test_rows_of_a_removed_file_are_written_anew(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	char file[1024];
	struct sender_fixture f;

	for (unsigned more = 0; more <= 1; more++) {
		sender_fixture_open_spooled(&f, true, evrec_clock_real(),
		                            spooler_new(str_from(path), 0, &fake_write_codec));
		f.protocol->silent = true;
		fake_write_submit(f.ob, 1, 1);
		sender_step(f.sender);
		(void)snprintf(file, sizeof(file), "%s", spool_file_in(path));
		assert_int_equal(spool_file_rows(file), 1);
		remove_folder(path);
		for (unsigned i = 0; i < 3 * more; i++) {
			fake_write_submit(f.ob, 2, i + 1);
			sender_step(f.sender);
		}
		assert_true(more == 0 || spool_file_rows(spool_file_in(path)) == 2);
		(void)sender_join(f.sender, 0);
		spool_fixture_check_message(&f, "was removed");
		spool_fixture_release(&f, sender_fixture_stats(&f).spooled, 0);
		assert_int_equal(spool_fixture_count_rows(path), 1 + 3 * more);
	}
}

/* The file of an earlier process is removed, after its rows were read and before they are sent. */
static void test_restored_rows_of_a_removed_file_are_written_anew(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	for (unsigned own = 0; own <= 1; own++) {
		spool_fixture_open(&f, true, path);
		f.protocol->silent = true;
		fake_write_submit(f.ob, 1, 1);
		spool_fixture_end(&f, 1, 0);
		sender_fixture_open_spooled(&f, true, evrec_clock_real(),
		                            spooler_new(str_from(path), 0, &fake_write_codec));
		f.protocol->silent = true;
		sender_step(f.sender);
		assert_int_equal(sender_fixture_stats(&f).restored, 1);
		if (own) {
			fake_write_submit(f.ob, 2, 1);
			sender_step(f.sender);
		}
		remove_folder(path);
		(void)sender_join(f.sender, 0);
		spool_fixture_check_message(&f, "was removed");
		spool_fixture_release(&f, 1 + own, 0);
		assert_int_equal(spool_fixture_count_rows(path), 1 + own);
	}
}

/* The folder is removed while the process has only a journal in it. */
static void test_removed_journal_is_made_anew(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct spooler *spooler = spooler_new(str_from(path), SPOOL_AFTER, &fake_write_codec);
	struct sender_fixture f;
	char pending[1100];

	spooler_use_journal(spooler, 1 << 20);
	sender_fixture_open_spooled(&f, true, evrec_clock_fake(0), spooler);
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	spool_fixture_check_silent(&f);
	remove_folder(path);
	evrec_clock_set(f.clock, 2 * EVREC_SECOND);
	for (unsigned i = 0; i < 3; i++) {
		sender_step(f.sender);
	}
	assert_int_equal(spool_file_rows(spool_file_in(path)), 1);
	(void)snprintf(pending, sizeof(pending), "%s-pending", spool_file_in(path));
	assert_int_equal(access(pending, F_OK), 0);
	spool_fixture_check_message(&f, "was removed");
	(void)sender_join(f.sender, 0);
	spool_fixture_release(&f, 1, 0);
	evrec_clock_release(f.clock);
	assert_int_equal(spool_fixture_count_rows(path), 1);
}

static size_t count_journals(const char *folder)
{
	char pattern[1100];
	glob_t found;
	size_t n;

	(void)snprintf(pattern, sizeof(pattern), "%s/*-pending", folder);
	n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
	globfree(&found);
	return n;
}

/* The folder is removed, and no row is ever due, as the server answers at once. */
static void test_removed_journal_without_rows_is_made_anew(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct spooler *spooler = spooler_new(str_from(path), SPOOL_AFTER, &fake_write_codec);
	struct sender_fixture f;

	spooler_use_journal(spooler, 1 << 20);
	sender_fixture_open_spooled(&f, true, evrec_clock_fake(0), spooler);
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_true(outbox_empty(f.ob));
	remove_folder(path);
	evrec_clock_set(f.clock, EVREC_SECOND / 2);
	f.protocol->silent = true;
	fake_write_submit(f.ob, 2, 1);
	sender_step(f.sender);
	assert_int_equal(count_journals(path), 1);
	spool_fixture_check_message(&f, "was removed");
	(void)sender_join(f.sender, 0);
	spool_fixture_release(&f, 1, 0);
	evrec_clock_release(f.clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_rows_of_a_removed_file_are_written_anew),
		SPOOL_TEST(test_restored_rows_of_a_removed_file_are_written_anew),
		SPOOL_TEST(test_removed_journal_is_made_anew),
		SPOOL_TEST(test_removed_journal_without_rows_is_made_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

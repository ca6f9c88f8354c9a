/*
 * The folder of a spool: its modes, what is left of dead processes in it, the single file of earlier versions that it takes the
 * place of, and forks. The test replaces rename and mkdir: one of their calls may be the last one of a process.
 */
#define _GNU_SOURCE

#include "spool_file.h"
#include "spool_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define ROWS 3

static unsigned calls_left; /* 0: no bound */

static void count_call(void)
{
	if (calls_left != 0 && --calls_left == 0) {
		(void)kill(getpid(), SIGKILL);
	}
}

int rename(const char *from, const char *to)
{
	count_call();
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int mkdir(const char *path, mode_t mode)
{
	count_call();
	return mkdirat(AT_FDCWD, path, mode);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

/* A file of an earlier version, with rows of events that were never sent. */
static void make_old_file(const char *path)
{
	struct spool *spool = spool_file_open(path);

	spool_file_put_unsent(spool, ROWS);
	spool_free(spool);
}

/* A sender that finds all that it can, and writes nothing. */
static void look(const char *path)
{
	struct sender_fixture f;

	spool_fixture_open(&f, true, path);
	f.protocol->silent = true;
	sender_step(f.sender);
	spool_fixture_check_silent(&f);
	(void)sender_join(f.sender, 0);
	sender_release(f.sender);
}

static void test_old_file_is_taken_up_once(void **state)
{
	const char *path = tmpdir_path(*state, "spool");

	make_old_file(path);
	assert_int_equal(spool_fixture_count_rows(path), ROWS);
	assert_int_equal(mode_of(path), 0700);
	assert_int_equal(spool_fixture_count_rows(path), 0);
	assert_int_equal(rmdir(path), 0);
	assert_true(tmpdir_is_empty(*state));
}

/* A process is killed before any of the steps by which a file becomes a folder, and the next one may be killed too. */
static void test_kills_lose_no_old_file(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	unsigned kills = 0;

	for (unsigned first = 1; first <= 5; first++) {
		for (unsigned second = 1; second <= 5; second++) {
			make_old_file(path);
			for (unsigned n = 0; n < 2; n++) {
				pid_t child = fork();

				if (child == 0) {
					calls_left = n == 0 ? first : second;
					look(path);
					_exit(0);
				}
				kills += WIFSIGNALED(unit_wait(child)) ? 1 : 0;
			}
			assert_int_equal(spool_fixture_count_rows(path), ROWS);
			assert_int_equal(rmdir(path), 0);
			assert_true(tmpdir_is_empty(*state));
		}
	}
	assert_true(kills > 20);
}

/* An older version that still runs has the file. */
static void test_old_file_in_use_is_left_alone(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;
	struct spool *spool;

	make_old_file(path);
	spool = spool_file_open(path);
	spool_fixture_open(&f, true, path);
	sender_step(f.sender);
	spool_fixture_check_message(&f, "is in use by another process or sink");
	spool_fixture_end(&f, 0, 0);
	spool_free(spool);
	assert_int_equal(spool_fixture_count_rows(path), ROWS);
}

static void make_empty_file(const char *folder, const char *name)
{
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	tmpdir_write_file(path, "");
}

/* Of processes that were killed while they made a file, or removed one. */
static void test_leftovers_are_removed(void **state)
{
	const char *path = tmpdir_path(*state, "spool");

	assert_int_equal(mkdir(path, 0700), 0);
	make_empty_file(path, "1.spool.lock");
	make_empty_file(path, "2.spool.lock");
	make_empty_file(path, "2.spool");
	make_empty_file(path, "3.spool");
	make_empty_file(path, "4.spool.lock");
	make_empty_file(path, "4.spool-wal");
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(spool_fixture_count_rows(path), 0);
	}
	assert_int_equal(rmdir(path), 0);
}

/* Files that are not evrec's are neither read nor removed. */
static void test_other_files_are_left_alone(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;

	assert_int_equal(mkdir(path, 0700), 0);
	make_empty_file(path, "notes.txt");
	tmpdir_write_file(spool_file_make_folder(path), "a file of another program");
	spool_fixture_open(&f, true, path);
	sender_step(f.sender);
	spool_fixture_check_message(&f, "a file stays in the spool: ");
	/* It needs a file of its own all the same. */
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	spool_fixture_end(&f, 1, 0);
	assert_int_equal(unlink(spool_file_make_folder(path)), 0);
	assert_int_equal(mode_of(spool_file_in(path)), 0600);
	assert_int_equal(spool_fixture_count_rows(path), 1);
	assert_int_equal(rmdir(path), -1);
}

static void open_live(struct sender_fixture *f, const char *path)
{
	sender_fixture_open_spooled(f, true, evrec_clock_real(),
	                            spooler_new(str_from(path), SPOOL_AFTER, &fake_write_codec));
	f->protocol->silent = true;
	f->protocol->freed = NULL;
}

/* A process has a file open, and forks children that are killed with files of their own. */
static void test_forked_children_have_their_own_files(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture parent, f;

	open_live(&parent, path);
	fake_write_submit(parent.ob, 1, 1);
	sender_step(parent.sender);
	assert_int_equal(spool_file_count(path), 1);
	for (unsigned i = 2; i <= 4; i++) {
		pid_t child = fork();

		if (child == 0) {
			open_live(&f, path);
			for (unsigned n = 1; n <= i; n++) {
				fake_write_submit(f.ob, i, n);
			}
			sender_step(f.sender);
			(void)kill(getpid(), SIGKILL);
		}
		assert_int_equal(WTERMSIG(unit_wait(child)), SIGKILL);
	}
	fake_write_submit(parent.ob, 5, 1);
	sender_step(parent.sender);
	assert_false(sender_join(parent.sender, 0));
	assert_int_equal(sender_fixture_stats(&parent).spooled, 2);
	sender_release(parent.sender);
	spool_fixture_open(&f, false, path);
	spool_fixture_drain(&f);
	assert_int_equal(sender_fixture_stats(&f).restored, 1 + 2 + 3 + 4 + 1);
	assert_int_equal(sender_fixture_stats(&f).created, 5);
	spool_fixture_end(&f, 0, 0);
	assert_int_equal(rmdir(path), 0);
}

/* Writes that are answered in time make no file. */
static void test_answered_writes_make_no_file(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct sender_fixture f;
	evrec_clock *clock = evrec_clock_fake(0);

	sender_fixture_open_spooled(&f, true, clock, spooler_new(str_from(path), SPOOL_AFTER, &fake_write_codec));
	for (unsigned i = 1; i <= 100; i++) {
		fake_write_submit(f.ob, i, 1);
		sender_step(f.sender);
		sender_step(f.sender);
		assert_int_equal(spool_file_count(path), 0);
	}
	spool_fixture_drain(&f);
	spool_fixture_end(&f, 0, 0);
	assert_int_equal(rmdir(path), 0);
	evrec_clock_release(clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_old_file_is_taken_up_once),     SPOOL_TEST(test_kills_lose_no_old_file),
		SPOOL_TEST(test_old_file_in_use_is_left_alone), SPOOL_TEST(test_leftovers_are_removed),
		SPOOL_TEST(test_other_files_are_left_alone),    SPOOL_TEST(test_forked_children_have_their_own_files),
		SPOOL_TEST(test_answered_writes_make_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

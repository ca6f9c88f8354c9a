/* A spool is a private regular file of its user. Any other file is refused and not changed. */
#define _GNU_SOURCE

#include "spool_file.h"

#include "spool/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>

static void make_spool(const char *path)
{
	spool_free(spool_file_open(path));
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void test_mode_becomes_private(void **state)
{
	const char *path = tmpdir_path(*state, "spool"), *lock = tmpdir_path(*state, "spool.lock");

	make_spool(path);
	assert_int_equal(chmod(path, 0644) + chmod(lock, 0666), 0);
	make_spool(path);
	assert_int_equal(mode_of(path), 0600);
	assert_int_equal(mode_of(lock), 0600);
	/* An empty file becomes a spool, and its mode private. */
	assert_int_equal(truncate(path, 0) + chmod(path, 0644), 0);
	make_spool(path);
	assert_int_equal(mode_of(path), 0600);
}

static void test_mode_is_private_under_any_umask(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	mode_t old = umask(0277);

	make_spool(path);
	(void)umask(old);
	assert_int_equal(mode_of(path), 0600);
}

/* A path given by mistake does no harm to another program. */
static void test_file_of_another_program_is_not_changed(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	FILE *file = fopen(path, "w");

	(void)fputs("a file of another program", file);
	(void)fclose(file);
	assert_int_equal(chmod(path, 0644), 0);
	spool_file_check_refused(path, "/spool: file is not a database");
	assert_int_equal(mode_of(path), 0644);
}

static void test_links_and_special_files_are_refused(void **state)
{
	const char *fifo = tmpdir_path(*state, "fifo"), *link = tmpdir_path(*state, "link");

	spool_file_check_refused("/dev/null", "/dev/null is not a regular file");
	assert_int_equal(access("/dev/null.lock", F_OK), -1);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	spool_file_check_refused(fifo, "/fifo is not a regular file");
	spool_file_check_refused(tmpdir_path(*state, ""), " is not a regular file");
	assert_int_equal(symlink("spool", link), 0);
	spool_file_check_refused(link, "/link is a symbolic link");
	make_spool(tmpdir_path(*state, "spool"));
	spool_file_check_refused(link, "/link is a symbolic link");
	/* Nobody who may write in the directory can make evrec create a file elsewhere, by a link in place of the lock. */
	assert_int_equal(unlink(tmpdir_path(*state, "spool.lock")), 0);
	assert_int_equal(symlink("elsewhere", tmpdir_path(*state, "spool.lock")), 0);
	spool_file_check_refused(tmpdir_path(*state, "spool"), "/spool.lock is a symbolic link");
	assert_int_equal(access(tmpdir_path(*state, "elsewhere"), F_OK), -1);
}

/* SQLite would play the journal back into the spool. */
static void test_journal_of_another_is_refused(void **state)
{
	const char *path = tmpdir_path(*state, "spool"), *journal = tmpdir_path(*state, "spool-journal");

	make_spool(path);
	assert_int_equal(symlink("elsewhere", journal), 0);
	spool_file_check_refused(path, "/spool-journal is a symbolic link");
	assert_int_equal(unlink(journal), 0);
	if (geteuid() == 0) {
		assert_int_equal(close(open(journal, O_CREAT | O_WRONLY, 0666)) + chown(journal, 65534, (gid_t)-1), 0);
		spool_file_check_refused(path, "/spool-journal belongs to another user");
		assert_int_equal(unlink(journal), 0);
	}
	make_spool(path);
}

static void test_files_of_another_user_are_refused(void **state)
{
	const char *path = tmpdir_path(*state, "spool"), *lock = tmpdir_path(*state, "spool.lock");
	const uid_t other = 65534;

	if (geteuid() != 0) {
		skip();
	}
	make_spool(path);
	assert_int_equal(chown(path, other, (gid_t)-1), 0);
	spool_file_check_refused(path, "/spool belongs to another user");
	assert_int_equal(chown(path, 0, (gid_t)-1) + chown(lock, other, (gid_t)-1), 0);
	spool_file_check_refused(path, "/spool.lock belongs to another user");
	assert_int_equal(chown(lock, 0, (gid_t)-1), 0);
	make_spool(path);
}

/* In a chroot without /proc. Returns 0 if the mode is private, or *err says why not. */
static int protect_in_chroot(const char *folder)
{
	evrec_error err = { 0 };
	bool ok;

	if (chroot(folder) != 0 || chdir("/") != 0) {
		return 1;
	}
	ok = private_file_protect_path("/file", &err);
	if (ok) {
		return mode_of("/file") == 0600 ? 0 : 2;
	}
	return strcmp(err.message, "/file: its mode is not 0600, and cannot be changed without /proc") == 0 ? 0 : 3;
}

static void test_mode_is_private_or_refused_without_proc(void **state)
{
	const char *path = tmpdir_path(*state, "file");
	evrec_error err = { 0 };
	int status;
	pid_t child;

	if (geteuid() != 0) {
		skip();
	}
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)) + chmod(path, 0644), 0);
	child = fork();
	if (child == 0) {
		_exit(protect_in_chroot(tmpdir_path(*state, "")));
	}
	status = unit_wait(child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(private_file_protect_path(path, &err));
	assert_int_equal(mode_of(path), 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_mode_becomes_private),
		TMPDIR_TEST(test_mode_is_private_under_any_umask),
		TMPDIR_TEST(test_file_of_another_program_is_not_changed),
		TMPDIR_TEST(test_links_and_special_files_are_refused),
		TMPDIR_TEST(test_journal_of_another_is_refused),
		TMPDIR_TEST(test_files_of_another_user_are_refused),
		TMPDIR_TEST(test_mode_is_private_or_refused_without_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

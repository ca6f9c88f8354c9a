/* One process at a time has a spool, whatever its host does with the file, and only as long as it lives. */
#define _GNU_SOURCE

#include "spool_file.h"

#include <fcntl.h>

static bool is_in_use(const char *path)
{
	struct spool *spool = spool_new(str_from(path));
	evrec_error err = { 0 };
	bool in_use = !spool_open(spool, SPOOL_MODE_LAST, &err) &&
	              strstr(err.message, "/spool is in use by another process or sink");

	spool_free(spool);
	return in_use;
}

/* Waits until the other side of a pipe closes it or writes a byte. */
static void wait_for(int fd)
{
	char byte;

	(void)!read(fd, &byte, 1);
}

static void open_and_close(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

/* A process that closes any descriptor of a file loses all its POSIX locks on it. */
static void test_lock_survives_a_close_by_the_host(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct spool *spool;
	int ready[2];
	pid_t other;

	assert_int_equal(pipe(ready), 0);
	other = fork();
	if (other == 0) {
		(void)close(ready[1]);
		wait_for(ready[0]);
		_exit(is_in_use(path) ? 0 : 1);
	}
	spool = spool_file_open(path);
	open_and_close(path);
	open_and_close(tmpdir_path(*state, "spool.lock"));
	assert_true(is_in_use(path));
	(void)close(ready[0]);
	(void)close(ready[1]);
	assert_int_equal(unit_wait(other), 0);
	spool_free(spool);
	spool_free(spool_file_open(path));
}

/* Opens the spool, forks a child that lives until `end` is closed, signals `ready`, and waits to be killed. */
static void own_and_fork(const char *path, const int ready[2], const int end[2])
{
	(void)spool_file_open(path);
	(void)close(end[1]);
	if (fork() == 0) {
		(void)close(ready[1]);
		wait_for(end[0]);
		_exit(0);
	}
	(void)!write(ready[1], "x", 1);
	(void)close(ready[1]);
	wait_for(end[0]);
	_exit(0);
}

/* The child inherits the owner's descriptors, but not the lock. */
static void test_lock_ends_with_a_killed_owner(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	int ready[2], end[2];
	pid_t owner;

	assert_int_equal(pipe(ready) + pipe(end), 0);
	owner = fork();
	if (owner == 0) {
		own_and_fork(path, ready, end);
	}
	(void)close(ready[1]);
	wait_for(ready[0]);
	assert_true(is_in_use(path));
	/* The child has closed its end of the pipe, so its fork handlers have run. */
	wait_for(ready[0]);
	assert_int_equal(kill(owner, SIGKILL), 0);
	assert_int_equal(WTERMSIG(unit_wait(owner)), SIGKILL);
	spool_free(spool_file_open(path));
	(void)close(ready[0]);
	(void)close(end[0]);
	(void)close(end[1]);
}

/*
 * A child does not keep the spool: the owner can close it and open it again. As in a sender, the child leaves its copy
 * alone: SQLite's sqlite3_close would lock the file for a moment in the child.
 */
static void test_child_of_the_owner_keeps_no_lock(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct spool *spool = spool_file_open(path);
	pid_t child;
	int end[2];

	assert_int_equal(pipe(end), 0);
	child = fork();
	if (child == 0) {
		(void)close(end[1]);
		wait_for(end[0]);
		_exit(0);
	}
	assert_true(is_in_use(path));
	spool_close(spool);
	assert_true(spool_open(spool, SPOOL_MODE_LAST, NULL));
	spool_free(spool);
	(void)close(end[0]);
	(void)close(end[1]);
	assert_int_equal(unit_wait(child), 0);
}

/* Only a lock says that a spool is in use, not a lock file. */
static void test_lock_file_alone_locks_nothing(void **state)
{
	const char *path = tmpdir_path(*state, "spool");

	spool_free(spool_file_open(path));
	assert_int_equal(access(tmpdir_path(*state, "spool.lock"), F_OK), 0);
	spool_free(spool_file_open(path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_lock_survives_a_close_by_the_host),
		TMPDIR_TEST(test_lock_ends_with_a_killed_owner),
		TMPDIR_TEST(test_child_of_the_owner_keeps_no_lock),
		TMPDIR_TEST(test_lock_file_alone_locks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

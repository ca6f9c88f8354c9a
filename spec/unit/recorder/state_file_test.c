/* The option state_file: the next process counts on. One owner, one file, and nothing is lost in silence. */
#define _GNU_SOURCE

#include "state_life.h"
#include "tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define HOUR (3600 * EVREC_SECOND)

/* ---- the disk ---- */

static unsigned writes;
static int disk_error; /* of all writes; 0: none */

ssize_t write(int fd, const void *data, size_t len)
{
	writes++;
	if (disk_error != 0) {
		errno = disk_error;
		return -1;
	}
	return syscall(SYS_write, fd, data, len);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void flip_byte(const char *path, off_t at)
{
	int fd = open(path, O_RDWR);
	char byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	(void)close(fd);
}

/* ---- tests ---- */

static void test_the_next_process_counts_on(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life, next;

	state_life_begin(&life, path, T0);
	state_life_record(&life, "a");
	state_life_record(&life, "a");
	state_life_shutdown(&life);
	assert_int_equal(mode_of(path), 0600);
	assert_int_equal(mode_of(tmpdir_path(*state, "state.lock")), 0600);
	assert_int_equal(state_life_size(tmpdir_path(*state, "state.new")), -1);
	/* The shutdown has given up the file. */
	state_life_begin(&next, path, T0 + HOUR);
	state_life_record(&next, "a");
	assert_int_equal(next.creates, 0);
	assert_int_equal(next.patches, 1);
	assert_int_equal(next.count, 3);
	assert_string_equal(next.name, life.name);
	assert_int_equal(next.errors, 0);
	state_life_end(&next);
	state_life_free(&life);
}

static void test_mode_under_any_umask(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	const mode_t masks[] = { 0, 0777 };

	for (size_t i = 0; i < 2; i++) {
		mode_t old = umask(masks[i]);

		state_life_live_once(path, T0);
		(void)umask(old);
		assert_int_equal(mode_of(path), 0600);
		assert_int_equal(unlink(path), 0);
	}
}

static void test_the_file_has_one_owner(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	state_life_begin(&life, path, T0);
	state_life_add_sink(&life, path);
	state_life_check_told(&life, "is in use by another process or sink");
	for (int i = 0; i < 10; i++) {
		state_life_record(&life, "a");
		state_life_advance(&life, 2 * EVREC_SECOND);
	}
	assert_int_equal(life.errors, 1);
	assert_int_equal(life.count, 10);
	state_life_end(&life);
	state_life_check_next(path, T0 + 30 * EVREC_SECOND, 11);
}

static void test_another_file_is_left_alone(void **state)
{
	const char *path = tmpdir_path(*state, "precious");
	struct state_life life;

	tmpdir_write_file(path, "precious");
	state_life_begin(&life, path, T0);
	state_life_check_told(&life, "is not a state file of evrec");
	state_life_record(&life, "a");
	assert_int_equal(life.creates, 1);
	state_life_end(&life);
	assert_int_equal(life.errors, 1);
	assert_int_equal(state_life_size(path), 8);
}

static void test_a_path_that_cannot_be_used(void **state)
{
	struct state_life life;

	state_life_begin(&life, tmpdir_path(*state, "no/such/folder"), T0);
	state_life_check_told(&life, "No such file or directory");
	state_life_record(&life, "a");
	assert_int_equal(life.creates, 1);
	state_life_end(&life);
	assert_int_equal(symlink("elsewhere", tmpdir_path(*state, "link")), 0);
	state_life_begin(&life, tmpdir_path(*state, "link"), T0);
	state_life_check_told(&life, "is a symbolic link");
	state_life_end(&life);
}

/* In the head: the magic, the version; in the first record, and in the last one. */
static void test_damage_is_told(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;
	off_t size;

	state_life_live_once(path, T0);
	size = state_life_size(path);
	flip_byte(path, size - 1);
	state_life_begin(&life, path, T0);
	state_life_check_told(&life, "is damaged, or its last write was cut off");
	state_life_end(&life);
	flip_byte(path, size - 1);
	flip_byte(path, 12);
	state_life_begin(&life, path, T0);
	state_life_check_told(&life, "a state of another version of evrec");
	/* The next write replaces it. */
	state_life_record(&life, "a");
	assert_int_equal(life.count, 1);
	state_life_end(&life);
	state_life_check_next(path, T0, 2);
	assert_int_equal(truncate(path, 5), 0);
	state_life_begin(&life, path, T0);
	state_life_check_told(&life, "its head is cut off");
	state_life_end(&life);
}

static void test_what_is_old_is_left(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	state_life_live_once(path, T0);
	state_life_check_next(path, T0 + 12 * HOUR, 3);
	state_life_begin(&life, path, T0 + 24 * HOUR + 1);
	state_life_check_told(&life, "is too old");
	state_life_record(&life, "a");
	assert_int_equal(life.count, 1);
	state_life_end(&life);
}

static void test_written_once_a_second(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;
	unsigned before;

	state_life_begin(&life, path, T0);
	assert_int_equal(state_life_size(path), 0);
	state_life_record(&life, "a");
	assert_true(state_life_size(path) > 0);
	before = writes;
	for (int i = 0; i < 9; i++) {
		state_life_record(&life, "a");
		state_life_advance(&life, EVREC_SECOND / 10);
	}
	assert_int_equal(writes, before);
	state_life_advance(&life, EVREC_SECOND / 10);
	assert_int_equal(writes, before + 1);
	/* Nothing changes, nothing is written. */
	state_life_advance(&life, HOUR);
	state_life_advance(&life, HOUR);
	assert_int_equal(writes, before + 1);
	state_life_end(&life);
}

/* Freed without a shutdown, as a finalizer does. */
static void test_written_when_freed(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	state_life_begin(&life, path, T0);
	state_life_record(&life, "a");
	state_life_record(&life, "a");
	state_life_free(&life);
	state_life_check_next(path, T0, 3);
}

/* A process that calls exit() with what was recorded since the last write. */
static void test_written_at_exit(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	pid_t child = fork();

	if (child == 0) {
		struct state_life life;

		state_life_begin(&life, path, T0);
		state_life_record(&life, "a");
		state_life_record(&life, "a");
		exit(0);
	}
	assert_int_equal(unit_wait(child), 0);
	state_life_check_next(path, T0, 3);
}

static void test_a_forked_child_goes_on_without(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;
	pid_t child;

	state_life_live_once(path, T0);
	state_life_begin(&life, path, T0);
	state_life_record(&life, "a");
	child = fork();
	if (child == 0) {
		state_life_record(&life, "a");
		state_life_record(&life, "a");
		state_life_shutdown(&life);
		_exit(life.errors == 0 && life.creates == 1 && life.count == 2 ? 0 : 1);
	}
	assert_int_equal(unit_wait(child), 0);
	state_life_record(&life, "a");
	assert_int_equal(life.count, 4);
	state_life_end(&life);
	state_life_check_next(path, T0, 5);
}

/* A full disk is told once; 3 s later all is in a new file. */
static void test_a_full_disk(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	state_life_begin(&life, path, T0);
	state_life_record(&life, "a");
	disk_error = ENOSPC;
	for (int i = 0; i < 10; i++) {
		state_life_record(&life, "a");
		state_life_advance(&life, EVREC_SECOND);
	}
	state_life_check_told(&life, "No space left on device");
	assert_int_equal(state_life_size(tmpdir_path(*state, "state.new")), -1);
	disk_error = 0;
	state_life_advance(&life, 3 * EVREC_SECOND);
	state_life_free(&life);
	state_life_check_next(path, T0, 12);
}

/* The file does not grow with the number of occurrences. */
static void test_the_file_is_bounded(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	off_t largest = 0;
	struct state_life life;
	char object[32];

	state_life_begin(&life, path, T0);
	for (int i = 0; i < 12000; i++) {
		(void)snprintf(object, sizeof(object), "object-%d", i % 100);
		state_life_record(&life, object);
		state_life_advance(&life, EVREC_SECOND);
		largest = state_life_size(path) > largest ? state_life_size(path) : largest;
	}
	assert_in_range(largest, 1 << 20, (1 << 20) + 300 * 1000);
	state_life_end(&life);
	assert_int_equal(life.errors, 0);
}

#define MANY 100

static void emit_many(struct state_life *life)
{
	char object[32];

	for (int i = MANY - 1; i >= 0; i--) {
		(void)snprintf(object, sizeof(object), "object-%d", i);
		state_life_emit(life, object);
	}
}

/* An entry changes while a new file is made in many polls, after it was put there: the new file has the change. */
static void test_a_change_while_a_new_file_is_made(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;
	pid_t child;

	for (unsigned polls = 0; polls < 9; polls++) {
		state_life_begin(&life, path, T0);
		for (int i = 0; i < MANY; i++) {
			char object[32];

			(void)snprintf(object, sizeof(object), "object-%d", i);
			state_life_emit(&life, object);
		}
		state_life_end(&life);
		child = fork();
		if (child == 0) {
			state_life_begin(&life, path, T0);
			emit_many(&life);
			for (unsigned i = 0; i < 20; i++) {
				if (i == polls) {
					emit_many(&life);
				}
				evrec_broadcaster_poll(life.b);
			}
			for (unsigned i = 0; i < 20; i++) {
				state_life_advance(&life, EVREC_SECOND);
			}
			_exit(0);
		}
		assert_int_equal(unit_wait(child), 0);
		state_life_begin(&life, path, T0 + 60 * EVREC_SECOND);
		emit_many(&life);
		evrec_broadcaster_poll(life.b);
		assert_int_equal(life.count, 4);
		assert_int_equal(life.creates, 0);
		state_life_end(&life);
		assert_int_equal(unlink(path), 0);
	}
}

static void test_a_path_without_nul(void **state)
{
	evrec_sink_options options;
	evrec_error err = { 0 };

	(void)state;
	evrec_sink_options_init(&options);
	options.state_file = (evrec_str){ "a\0b", 3 };
	assert_null(evrec_sink_file(EVREC_STR("-"), &options, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, "state_file: must be the name of a file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_the_next_process_counts_on),
		TMPDIR_TEST(test_mode_under_any_umask),
		TMPDIR_TEST(test_the_file_has_one_owner),
		TMPDIR_TEST(test_another_file_is_left_alone),
		TMPDIR_TEST(test_a_path_that_cannot_be_used),
		TMPDIR_TEST(test_damage_is_told),
		TMPDIR_TEST(test_what_is_old_is_left),
		TMPDIR_TEST(test_written_once_a_second),
		TMPDIR_TEST(test_written_when_freed),
		TMPDIR_TEST(test_written_at_exit),
		TMPDIR_TEST(test_a_forked_child_goes_on_without),
		TMPDIR_TEST(test_a_full_disk),
		TMPDIR_TEST(test_the_file_is_bounded),
		TMPDIR_TEST(test_a_change_while_a_new_file_is_made),
		TMPDIR_TEST(test_a_path_without_nul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

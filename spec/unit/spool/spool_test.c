/* The file of a spool: rows, files that are refused, a process that is killed, a full disk. */
#include "spool_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

static bool put(struct spool *spool, int64_t seq, enum verb verb, uint32_t count, const char *item)
{
	const struct spool_row row = { .seq = seq, .verb = verb, .count = count, .item = str_from(item) };

	return spool_put(spool, &row, NULL);
}

/* Appends a row as text: "1 POST 3/0 item; ". */
static bool describe_row(void *ctx, const struct spool_row *row)
{
	buf_printf(ctx, "%lld %s %u/%u %.*s; ", (long long)row->seq, row->verb == VERB_CREATE ? "POST" : "PATCH",
	           row->count, row->maybe_received, (int)row->item.len, row->item.data);
	return true;
}

static void assert_rows(struct spool *spool, int64_t seq, size_t max, const char *rows)
{
	struct buf text = { 0 };

	assert_true(spool_begin(spool, NULL));
	assert_true(spool_read(spool, seq, INT64_MAX, max, describe_row, &text, NULL));
	assert_true(spool_commit(spool, NULL));
	assert_string_equal(buf_cstr(&text), rows);
	buf_free(&text);
}

static void test_rows_are_kept_in_order(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct spool *spool = spool_file_open(path);
	struct stat st;

	assert_true(spool_begin(spool, NULL));
	assert_true(put(spool, 0, VERB_CREATE, 3, "a"));
	assert_true(put(spool, 0, VERB_PATCH, 1, "b"));
	assert_true(put(spool, 0, VERB_CREATE, 1, "c"));
	assert_true(spool_commit(spool, NULL));
	spool_free(spool);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	spool = spool_file_open(path);
	assert_rows(spool, 0, 2, "1 POST 3/0 a; 2 PATCH 1/0 b; ");
	/* A row that was read counts as maybe received for the next reader. */
	assert_rows(spool, 0, 10, "1 POST 3/3 a; 2 PATCH 1/1 b; 3 POST 1/0 c; ");
	assert_rows(spool, 2, 10, "3 POST 1/1 c; ");
	assert_true(spool_begin(spool, NULL));
	assert_true(put(spool, 2, VERB_CREATE, 7, "new b"));
	assert_true(spool_forget(spool, 1, NULL));
	assert_true(spool_forget(spool, 99, NULL));
	assert_true(spool_commit(spool, NULL));
	/* A transaction without a commit changes nothing. */
	assert_true(spool_begin(spool, NULL));
	assert_true(spool_forget(spool, 2, NULL));
	spool_rollback(spool);
	spool_close(spool);
	assert_true(spool_open(spool, SPOOL_MODE_LAST, NULL));
	assert_rows(spool, 0, 10, "2 POST 7/0 new b; 3 POST 1/1 c; ");
	spool_free(spool);
}

static void test_other_files_are_refused(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	char text[8192];
	struct spool *spool;

	spool_file_check_refused(tmpdir_path(*state, "none/spool"), "No such file or directory");
	spool_file_check_refused(tmpdir_path(*state, ""), "is not a regular file");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	/* The message has the reason, however long the name is. */
	spool_file_check_refused(tmpdir_path(*state, text + sizeof(text) - 300), "File name too long");
	tmpdir_write_file(path, text);
	spool_file_check_refused(path, "file is not a database");
	assert_int_equal(unlink(path), 0);
	spool_file_exec(path, "CREATE TABLE writes (a)");
	spool_file_check_refused(path, "is not a spool of evrec");
	assert_int_equal(unlink(path), 0);
	spool_free(spool_file_open(path));
	spool_file_exec(path, "PRAGMA user_version = 3");
	spool_file_check_refused(path, "a spool of version 3, this evrec writes version 2");
	spool_file_exec(path, "PRAGMA user_version = 2; DROP TABLE writes");
	spool_file_check_refused(path, "no such table: writes");
	assert_int_equal(unlink(path), 0);
	/* An empty file becomes a spool. */
	tmpdir_write_file(path, "");
	spool = spool_file_open(path);
	assert_rows(spool, 0, 1, "");
	spool_free(spool);
}

static bool describe_time(void *ctx, const struct spool_row *row)
{
	if (row->time == EVREC_UNSET) {
		buf_put_str(ctx, EVREC_STR("unset "));
	} else {
		buf_printf(ctx, "%lld ", (long long)row->time);
	}
	return true;
}

static void test_a_file_of_version_1_is_read_and_written(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	const struct spool_row row = {
		.verb = VERB_CREATE, .count = 1, .item = EVREC_STR("b"), .time = 1700000000123456789
	};
	struct buf times = { 0 };
	struct spool *spool;

	spool_file_exec(path,
	                "PRAGMA application_id = 0x65767263; PRAGMA user_version = 1;"
	                "CREATE TABLE writes (seq INTEGER PRIMARY KEY, verb TEXT NOT NULL, count INTEGER NOT NULL,"
	                "  arrived INTEGER NOT NULL, last INTEGER NOT NULL, event TEXT NOT NULL);"
	                "INSERT INTO writes VALUES (1, 'PATCH', 3, 0, 1700000000000000000, 'a')");
	for (int opens = 0; opens < 2; opens++) {
		spool = spool_file_open(path);
		if (opens == 0) {
			assert_true(spool_begin(spool, NULL));
			assert_true(spool_put(spool, &row, NULL) && spool_commit(spool, NULL));
		}
		assert_true(spool_read(spool, 0, INT64_MAX, 10, describe_time, &times, NULL));
		assert_rows(spool, 0, 10, "1 PATCH 3/3 a; 2 POST 1/1 b; ");
		spool_free(spool);
	}
	assert_string_equal(buf_cstr(&times), "unset 1700000000123456789 unset 1700000000123456789 ");
	buf_free(&times);
}

static int open_in_child(const char *path)
{
	struct spool *spool = spool_new(str_from(path));
	evrec_error err = { 0 };

	if (spool_open(spool, SPOOL_MODE_LAST, &err)) {
		return 1;
	}
	return strstr(err.message, "is in use by another process or sink") != NULL ? 0 : 2;
}

static void test_one_process_at_a_time_has_the_spool(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct spool *spool = spool_file_open(path);
	pid_t child;

	spool_file_check_refused(path, "is in use by another process or sink");
	child = fork();
	if (child == 0) {
		_exit(open_in_child(path));
	}
	assert_int_equal(unit_wait(child), 0);
	/* A failed open does not end the lock. */
	child = fork();
	if (child == 0) {
		_exit(open_in_child(path));
	}
	assert_int_equal(unit_wait(child), 0);
	spool_close(spool);
	spool_free(spool_file_open(path));
	spool_free(spool);
}

/* A process is killed in a transaction. */
static void test_transaction_of_a_killed_process_is_rolled_back(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	char big[4096];
	struct spool *spool;
	pid_t child;

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	spool = spool_file_open(path);
	assert_true(spool_begin(spool, NULL) && put(spool, 0, VERB_CREATE, 1, "first") && spool_commit(spool, NULL));
	spool_free(spool);
	child = fork();
	if (child == 0) {
		spool = spool_new(str_from(path));
		/* More than SQLite keeps in memory: pages of the file are overwritten before the end. */
		if (spool_open(spool, SPOOL_MODE_LAST, NULL) && spool_begin(spool, NULL) &&
		    spool_forget(spool, 1, NULL)) {
			for (int i = 0; i < 2000; i++) {
				(void)put(spool, 0, VERB_CREATE, 1, big);
			}
		}
		(void)kill(getpid(), SIGKILL);
	}
	assert_true(WIFSIGNALED(unit_wait(child)));
	assert_int_equal(access(tmpdir_path(*state, "spool-journal"), F_OK), 0); /* it was writing */
	spool = spool_file_open(path);
	assert_rows(spool, 0, 10, "1 POST 1/0 first; ");
	spool_free(spool);
}

static void test_full_disk_fails_the_transaction(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	struct spool *spool = spool_file_open(path);
	struct rlimit before, limit;
	evrec_error err = { 0 };
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
	char big[4096];
	bool ok = true;

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	assert_true(spool_begin(spool, NULL) && put(spool, 0, VERB_CREATE, 1, "first") && spool_commit(spool, NULL));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 64 * 1024;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_true(spool_begin(spool, NULL));
	for (int i = 0; ok && i < 1000; i++) {
		const struct spool_row row = { .verb = VERB_CREATE, .count = 1, .item = str_from(big) };

		ok = spool_put(spool, &row, &err);
	}
	ok = ok && spool_commit(spool, &err);
	assert_false(ok);
	spool_rollback(spool);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	(void)signal(SIGXFSZ, old);
	assert_non_null(strstr(err.message, "spool: "));
	/* The spool is usable, without the rows of the failed transaction. */
	assert_rows(spool, 0, 10, "1 POST 1/0 first; ");
	spool_free(spool);
}

static void test_special_names_of_sqlite_are_files(void **state)
{
	struct spool *spool;
	char cwd[512];

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(tmpdir_path(*state, "")), 0);
	spool = spool_file_open(":memory:");
	assert_true(spool_begin(spool, NULL) && put(spool, 0, VERB_CREATE, 1, "a") && spool_commit(spool, NULL));
	spool_free(spool);
	spool = spool_file_open(":memory:");
	assert_rows(spool, 0, 1, "1 POST 1/0 a; ");
	spool_free(spool);
	assert_int_equal(chdir(cwd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_rows_are_kept_in_order),
		TMPDIR_TEST(test_other_files_are_refused),
		TMPDIR_TEST(test_a_file_of_version_1_is_read_and_written),
		TMPDIR_TEST(test_one_process_at_a_time_has_the_spool),
		TMPDIR_TEST(test_transaction_of_a_killed_process_is_rolled_back),
		TMPDIR_TEST(test_full_disk_fails_the_transaction),
		TMPDIR_TEST(test_special_names_of_sqlite_are_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

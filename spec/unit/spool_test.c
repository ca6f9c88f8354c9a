/* The file alone: what is kept, what is refused, what is left of it when a process dies or the disk is full. */
#include "spool_file.h"

#include "deliver/spool.h"

#include <sys/resource.h>
#include <sys/stat.h>

static struct spool *opened(const char *path)
{
	struct spool *spool = spool_new(str_from(path));
	evrec_error err = { 0 };

	assert_non_null(spool);
	if (!spool_open(spool, &err)) {
		fail_msg("%s", err.message);
	}
	assert_true(spool_is_open(spool));
	return spool;
}

static void refused(const char *path, const char *why)
{
	struct spool *spool = spool_new(str_from(path));
	evrec_error err = { 0 };

	assert_false(spool_open(spool, &err));
	if (strstr(err.message, why) == NULL) {
		fail_msg("'%s' is not in '%s'", why, err.message);
	}
	assert_false(spool_is_open(spool));
	spool_free(spool);
}

static bool put(struct spool *spool, int64_t seq, enum verb verb, uint32_t count, const char *item)
{
	const struct spool_row row = { .seq = seq, .verb = verb, .count = count, .item = str_from(item) };

	return spool_put(spool, &row, NULL);
}

/* Rows as text: "1 POST 3/0 item; ". */
static bool tell(void *ctx, const struct spool_row *row)
{
	buf_printf(ctx, "%lld %s %u/%u %.*s; ", (long long)row->seq, row->verb == VERB_CREATE ? "POST" : "PATCH",
	           row->count, row->arrived, (int)row->item.len, row->item.data);
	return true;
}

static void assert_rows(struct spool *spool, int64_t seq, size_t max, const char *rows)
{
	struct buf told = { 0 };

	assert_true(spool_begin(spool, NULL));
	assert_true(spool_read(spool, seq, max, tell, &told, NULL));
	assert_true(spool_commit(spool, NULL));
	assert_string_equal(buf_cstr(&told), rows);
	buf_free(&told);
}

static void test_rows(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct spool *spool = opened(path);
	struct stat st;

	assert_true(spool_begin(spool, NULL));
	assert_true(put(spool, 0, VERB_CREATE, 3, "a"));
	assert_true(put(spool, 0, VERB_PATCH, 1, "b"));
	assert_true(put(spool, 0, VERB_CREATE, 1, "c"));
	assert_true(spool_commit(spool, NULL));
	spool_free(spool);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	spool = opened(path);
	assert_rows(spool, 0, 2, "1 POST 3/0 a; 2 PATCH 1/0 b; ");
	/* What was read may have arrived, for whoever reads it next; what was not read may not. */
	assert_rows(spool, 0, 10, "1 POST 3/3 a; 2 PATCH 1/1 b; 3 POST 1/0 c; ");
	assert_rows(spool, 2, 10, "3 POST 1/1 c; ");
	assert_true(spool_begin(spool, NULL));
	assert_true(put(spool, 2, VERB_CREATE, 7, "new b"));
	assert_true(spool_forget(spool, 1, NULL));
	assert_true(spool_forget(spool, 99, NULL));
	assert_true(spool_commit(spool, NULL));
	/* What is not committed has not been. */
	assert_true(spool_begin(spool, NULL));
	assert_true(spool_forget(spool, 2, NULL));
	spool_rollback(spool);
	spool_close(spool);
	assert_true(spool_open(spool, NULL));
	assert_rows(spool, 0, 10, "2 POST 7/0 new b; 3 POST 1/1 c; ");
	spool_free(spool);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void test_refused(void **state)
{
	const char *path = in_folder(*state, "spool");
	char text[8192];
	struct spool *spool;

	refused(in_folder(*state, "none/spool"), "No such file or directory");
	refused(in_folder(*state, ""), "Is a directory");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	/* However long the name is, the reason is told. */
	refused(in_folder(*state, text + sizeof(text) - 300), "File name too long");
	write_file(path, text);
	refused(path, "file is not a database");
	assert_int_equal(unlink(path), 0);
	change(path, "CREATE TABLE writes (a)");
	refused(path, "is not a spool of evrec");
	assert_int_equal(unlink(path), 0);
	spool_free(opened(path));
	change(path, "PRAGMA user_version = 2");
	refused(path, "a spool of version 2, this evrec writes version 1");
	change(path, "PRAGMA user_version = 1; DROP TABLE writes");
	refused(path, "no such table: writes");
	assert_int_equal(unlink(path), 0);
	/* A file without anything in it is as good as none. */
	write_file(path, "");
	spool = opened(path);
	assert_rows(spool, 0, 1, "");
	spool_free(spool);
}

static int open_in_child(const char *path)
{
	struct spool *spool = spool_new(str_from(path));
	evrec_error err = { 0 };

	if (spool_open(spool, &err)) {
		return 1;
	}
	return strstr(err.message, "is in use by another process or sink") != NULL ? 0 : 2;
}

static void test_one_at_a_time(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct spool *spool = opened(path);
	pid_t child;

	refused(path, "is in use by another process or sink");
	child = fork();
	if (child == 0) {
		_exit(open_in_child(path));
	}
	assert_int_equal(unit_wait(child), 0);
	/* The lock is still there: neither of them has taken it with it. */
	child = fork();
	if (child == 0) {
		_exit(open_in_child(path));
	}
	assert_int_equal(unit_wait(child), 0);
	spool_close(spool);
	spool_free(opened(path));
	spool_free(spool);
}

/* A process dies in a transaction; in the end, or while it writes. */
static void test_killed(void **state)
{
	const char *path = in_folder(*state, "spool");
	char big[4096];
	struct spool *spool;
	pid_t child;

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	spool = opened(path);
	assert_true(spool_begin(spool, NULL) && put(spool, 0, VERB_CREATE, 1, "first") && spool_commit(spool, NULL));
	spool_free(spool);
	child = fork();
	if (child == 0) {
		spool = spool_new(str_from(path));
		/* More than SQLite keeps in memory: pages of the file are overwritten before the end. */
		if (spool_open(spool, NULL) && spool_begin(spool, NULL) && spool_forget(spool, 1, NULL)) {
			for (int i = 0; i < 2000; i++) {
				(void)put(spool, 0, VERB_CREATE, 1, big);
			}
		}
		(void)kill(getpid(), SIGKILL);
	}
	assert_true(WIFSIGNALED(unit_wait(child)));
	assert_int_equal(access(in_folder(*state, "spool-journal"), F_OK), 0); /* it was on its way */
	spool = opened(path);
	assert_rows(spool, 0, 10, "1 POST 1/0 first; ");
	spool_free(spool);
}

static void test_full_disk(void **state)
{
	const char *path = in_folder(*state, "spool");
	struct spool *spool = opened(path);
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
	/* It goes on as if nothing had been. */
	assert_rows(spool, 0, 10, "1 POST 1/0 first; ");
	spool_free(spool);
}

static void test_names(void **state)
{
	struct spool *spool;
	char cwd[512];

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(in_folder(*state, "")), 0);
	spool = opened(":memory:");
	assert_true(spool_begin(spool, NULL) && put(spool, 0, VERB_CREATE, 1, "a") && spool_commit(spool, NULL));
	spool_free(spool);
	spool = opened(":memory:");
	assert_rows(spool, 0, 1, "1 POST 1/0 a; ");
	spool_free(spool);
	assert_int_equal(chdir(cwd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_rows),   FOLDER_TEST(test_refused),   FOLDER_TEST(test_one_at_a_time),
		FOLDER_TEST(test_killed), FOLDER_TEST(test_full_disk), FOLDER_TEST(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

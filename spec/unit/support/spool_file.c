#include "spool_file.h"

#include <dirent.h>
#include <sqlite3.h>
#include <sys/stat.h>

void spool_file_exec(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static int get_number(void *number, int columns, char **values, char **names)
{
	(void)columns;
	(void)names;
	*(unsigned *)number = (unsigned)strtoul(values[0], NULL, 10);
	return 0;
}

/* If the file is there. */
static void copy(const char *from, const char *to)
{
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	char block[4096];
	size_t n;

	assert_non_null(out);
	while (in != NULL && (n = fread(block, 1, sizeof(block), in)) != 0) {
		assert_int_equal(fwrite(block, 1, n, out), n);
	}
	assert_int_equal(fclose(out), 0);
	if (in != NULL) {
		(void)fclose(in);
	}
}

unsigned spool_file_rows(const char *path)
{
	char wal[1100], copied[1100], copied_wal[1100];
	unsigned rows = 0;
	sqlite3 *db;

	/* Its owner has it locked. */
	(void)snprintf(wal, sizeof(wal), "%s-wal", path);
	(void)snprintf(copied, sizeof(copied), "%s.copy", path);
	(void)snprintf(copied_wal, sizeof(copied_wal), "%s.copy-wal", path);
	copy(path, copied);
	copy(wal, copied_wal);
	assert_int_equal(sqlite3_open(copied, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM writes", get_number, &rows, NULL), SQLITE_OK);
	sqlite3_close(db);
	(void)unlink(copied);
	(void)unlink(copied_wal);
	return rows;
}

static char found[1024];

unsigned spool_file_count(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *file;
	unsigned n = 0;

	assert_non_null(dir);
	while ((file = readdir(dir)) != NULL) {
		const char *suffix = strstr(file->d_name, ".spool");

		if (suffix != NULL && strcmp(suffix, ".spool") == 0) {
			(void)snprintf(found, sizeof(found), "%s/%s", folder, file->d_name);
			n++;
		}
	}
	(void)closedir(dir);
	return n;
}

const char *spool_file_in(const char *folder)
{
	assert_int_equal(spool_file_count(folder), 1);
	return found;
}

const char *spool_file_make_folder(const char *folder)
{
	(void)mkdir(folder, 0700);
	(void)snprintf(found, sizeof(found), "%s/made-by-a-test.spool", folder);
	return found;
}

struct spool *spool_file_open(const char *path)
{
	struct spool *spool = spool_new(str_from(path));
	evrec_error err = { 0 };

	assert_non_null(spool);
	if (!spool_open(spool, SPOOL_MODE_LAST, &err)) {
		fail_msg("%s", err.message);
	}
	assert_true(spool_is_open(spool));
	return spool;
}

void spool_file_check_refused(const char *path, const char *why)
{
	struct spool *spool = spool_new(str_from(path));
	evrec_error err = { 0 };

	assert_false(spool_open(spool, SPOOL_MODE_LAST, &err));
	unit_check_contains(err.message, why);
	assert_false(spool_is_open(spool));
	spool_free(spool);
}

void spool_file_put_unsent(struct spool *spool, unsigned rows)
{
	assert_true(spool_begin(spool, NULL));
	for (unsigned i = 1; i <= rows; i++) {
		char item[16];
		const struct spool_row row = { .verb = VERB_CREATE,
			                       .count = 1,
			                       .item = { item, sizeof("n1 1 0 0") - 1 } };

		(void)snprintf(item, sizeof(item), "n%u 1 0 0", i);
		assert_true(spool_put(spool, &row, NULL));
	}
	assert_true(spool_commit(spool, NULL));
}

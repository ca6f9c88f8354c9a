#define _GNU_SOURCE /* strerror_r */

#include "deliver/spool.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#define APPLICATION 0x65767263 /* "evrc", at offset 68 of the file */
#define VERSION 1
#define PATH_SHOWN 160

enum statement { PUT, FORGET, READ, MARK, STATEMENTS };

static const char *const sources[STATEMENTS] = {
	[PUT] = "INSERT OR REPLACE INTO writes VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[FORGET] = "DELETE FROM writes WHERE seq = ?1",
	[READ] = "SELECT * FROM writes WHERE seq > ?1 ORDER BY seq LIMIT ?2",
	[MARK] = "UPDATE writes SET arrived = count WHERE arrived = 0 AND seq > ?1 AND seq <= ?2",
};

static const char schema[] = "PRAGMA application_id = 0x65767263;"
			     "PRAGMA user_version = 1;"
			     "CREATE TABLE writes ("
			     "  seq INTEGER PRIMARY KEY,"
			     "  verb TEXT NOT NULL,"
			     "  count INTEGER NOT NULL,"
			     "  arrived INTEGER NOT NULL,"
			     "  last INTEGER NOT NULL,"
			     "  event TEXT NOT NULL"
			     ")";

struct spool {
	char *path;
	int shown;    /* bytes of it in a message */
	sqlite3 *db;  /* NULL: not open */
	bool damaged; /* what is written there may never be read */
	sqlite3_stmt *statements[STATEMENTS];
};

struct spool *spool_new(evrec_str path)
{
	struct spool *spool = mem_zalloc(sizeof(*spool));
	struct buf name = { 0 };

	if (spool == NULL) {
		return NULL;
	}
	/* SQLite has names of its own for what is no file, such as ":memory:". */
	if (path.data[0] != '/') {
		buf_put_str(&name, EVREC_STR("./"));
	}
	buf_put_str(&name, path);
	(void)buf_cstr(&name);
	spool->path = name.data;
	if (name.failed) {
		spool_free(spool);
		return NULL;
	}
	spool->shown = (int)utf8_floor(buf_str(&name), PATH_SHOWN);
	return spool;
}

void spool_free(struct spool *spool)
{
	if (spool != NULL) {
		spool_close(spool);
		mem_free(spool->path);
		mem_free(spool);
	}
}

bool spool_is_open(const struct spool *spool)
{
	return spool->db != NULL;
}

void spool_close(struct spool *spool)
{
	for (size_t i = 0; i < STATEMENTS; i++) {
		(void)sqlite3_finalize(spool->statements[i]);
		spool->statements[i] = NULL;
	}
	(void)sqlite3_close(spool->db);
	spool->db = NULL;
}

static bool failed(struct spool *spool, evrec_error *err)
{
	int code = spool->db == NULL ? SQLITE_NOMEM : sqlite3_errcode(spool->db);

	spool->damaged = spool->damaged || code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
	if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s is in use by another process or sink", spool->shown,
		                spool->path);
	} else {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s: %s", spool->shown, spool->path,
		                spool->db == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(spool->db));
	}
	return false;
}

static bool run(struct spool *spool, const char *sql, evrec_error *err)
{
	return sqlite3_exec(spool->db, sql, NULL, NULL, NULL) == SQLITE_OK || failed(spool, err);
}

/* The one number that a query answers. */
static bool ask(struct spool *spool, const char *sql, int *number, evrec_error *err)
{
	sqlite3_stmt *statement = NULL;
	bool ok = sqlite3_prepare_v2(spool->db, sql, -1, &statement, NULL) == SQLITE_OK &&
	          sqlite3_step(statement) == SQLITE_ROW;

	if (ok) {
		*number = sqlite3_column_int(statement, 0);
	} else {
		(void)failed(spool, err);
	}
	(void)sqlite3_finalize(statement);
	return ok;
}

/* Makes the tables of a new file; refuses what is something else. */
static bool check_contents(struct spool *spool, evrec_error *err)
{
	int application, version, tables;

	if (!ask(spool, "PRAGMA application_id", &application, err) ||
	    !ask(spool, "PRAGMA user_version", &version, err) ||
	    !ask(spool, "SELECT count(*) FROM sqlite_schema", &tables, err)) {
		return false;
	}
	if (application == 0 && version == 0 && tables == 0) {
		return run(spool, schema, err);
	}
	if (application != APPLICATION) {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s is not a spool of evrec", spool->shown, spool->path);
		return false;
	}
	if (version != VERSION) {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s: a spool of version %d, this evrec writes version %d",
		                spool->shown, spool->path, version, VERSION);
		return false;
	}
	return true;
}

/*
 * Only ever made, never opened: to close a file gives back the locks that SQLite may have on it by another descriptor
 * of this process.
 */
static bool make_file(const struct spool *spool, evrec_error *err)
{
	int fd = open(spool->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	char text[64];

	if (fd < 0 && errno != EEXIST) {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s: %s", spool->shown, spool->path,
		                strerror_r(errno, text, sizeof(text)));
		return false;
	}
	if (fd >= 0) {
		(void)close(fd);
	}
	return true;
}

static bool prepare(struct spool *spool, evrec_error *err)
{
	for (size_t i = 0; i < STATEMENTS; i++) {
		if (sqlite3_prepare_v3(spool->db, sources[i], -1, SQLITE_PREPARE_PERSISTENT, &spool->statements[i],
		                       NULL) != SQLITE_OK) {
			return failed(spool, err);
		}
	}
	return true;
}

bool spool_open(struct spool *spool, evrec_error *err)
{
	if (spool->db != NULL) {
		return true;
	}
	if (!make_file(spool, err)) {
		return false;
	}
	/* In this mode the lock that BEGIN EXCLUSIVE takes is kept after COMMIT. */
	if ((sqlite3_open_v2(spool->path, &spool->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK ||
	     failed(spool, err)) &&
	    run(spool, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -512; BEGIN EXCLUSIVE", err) &&
	    check_contents(spool, err) && spool_commit(spool, err) && prepare(spool, err)) {
		return true;
	}
	spool_close(spool);
	return false;
}

bool spool_begin(struct spool *spool, evrec_error *err)
{
	if (spool->damaged) {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s is damaged", spool->shown, spool->path);
		return false;
	}
	return run(spool, "BEGIN", err);
}

bool spool_commit(struct spool *spool, evrec_error *err)
{
	return run(spool, "COMMIT", err);
}

void spool_rollback(struct spool *spool)
{
	/* Some failures have done it already. */
	(void)run(spool, "ROLLBACK", NULL);
}

/* Runs a statement that answers nothing. */
static bool finish(struct spool *spool, sqlite3_stmt *statement, evrec_error *err)
{
	bool ok = sqlite3_step(statement) == SQLITE_DONE || failed(spool, err);

	(void)sqlite3_reset(statement);
	(void)sqlite3_clear_bindings(statement);
	return ok;
}

bool spool_put(struct spool *spool, const struct spool_row *row, evrec_error *err)
{
	sqlite3_stmt *put = spool->statements[PUT];

	if (row->seq != 0) {
		(void)sqlite3_bind_int64(put, 1, row->seq);
	}
	(void)sqlite3_bind_text(put, 2, row->verb == VERB_CREATE ? "POST" : "PATCH", -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(put, 3, row->count);
	(void)sqlite3_bind_int64(put, 4, row->arrived);
	(void)sqlite3_bind_int64(put, 5, row->last);
	(void)sqlite3_bind_text64(put, 6, row->item.data, row->item.len, SQLITE_STATIC, SQLITE_UTF8);
	return finish(spool, put, err);
}

bool spool_forget(struct spool *spool, int64_t seq, evrec_error *err)
{
	(void)sqlite3_bind_int64(spool->statements[FORGET], 1, seq);
	return finish(spool, spool->statements[FORGET], err);
}

static struct spool_row row_of(sqlite3_stmt *statement)
{
	const char *verb = (const char *)sqlite3_column_text(statement, 1);

	return (struct spool_row){
		.seq = sqlite3_column_int64(statement, 0),
		.verb = verb != NULL && strcmp(verb, "PATCH") == 0 ? VERB_PATCH : VERB_CREATE,
		.count = (uint32_t)sqlite3_column_int64(statement, 2),
		.arrived = (uint32_t)sqlite3_column_int64(statement, 3),
		.last = sqlite3_column_int64(statement, 4),
		.item = { (const char *)sqlite3_column_text(statement, 5), (size_t)sqlite3_column_bytes(statement, 5) },
	};
}

bool spool_read(struct spool *spool, int64_t seq, size_t max, bool (*func)(void *ctx, const struct spool_row *row),
                void *ctx, evrec_error *err)
{
	sqlite3_stmt *read = spool->statements[READ], *mark = spool->statements[MARK];
	int64_t last = seq;
	int code;

	(void)sqlite3_bind_int64(read, 1, seq);
	(void)sqlite3_bind_int64(read, 2, (sqlite3_int64)max);
	while ((code = sqlite3_step(read)) == SQLITE_ROW) {
		struct spool_row row = row_of(read);

		if (!func(ctx, &row)) {
			break;
		}
		last = row.seq;
	}
	if (code != SQLITE_ROW && code != SQLITE_DONE) {
		(void)failed(spool, err);
		(void)sqlite3_reset(read);
		return false;
	}
	(void)sqlite3_reset(read);
	(void)sqlite3_bind_int64(mark, 1, seq);
	(void)sqlite3_bind_int64(mark, 2, last);
	return finish(spool, mark, err);
}

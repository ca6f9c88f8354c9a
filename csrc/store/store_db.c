#include "store/store_inner.h"

#include "base/utf8.h"

bool store_db_init(struct store_db *d, evrec_str path)
{
	*d = (struct store_db){ .path = str_dup(path) };
	d->shown = d->path == NULL ? 0 : path_shown(d->path);
	return d->path != NULL;
}

void store_db_close(struct store_db *d)
{
	if (d->db != NULL) {
		(void)sqlite3_close(d->db);
		d->db = NULL;
	}
}

void store_db_fini(struct store_db *d)
{
	store_db_close(d);
	mem_free(d->path);
	mem_free(d->full);
	d->path = d->full = NULL;
}

bool store_db_refuse(const struct store_db *d, const char *reason, evrec_error *err)
{
	(void)error_set(err, EVREC_ESYSTEM, "%.*s%s", d->shown, d->path, reason);
	return false;
}

bool store_db_failed(struct store_db *d, evrec_error *err)
{
	const int code = d->db == NULL ? SQLITE_NOMEM : sqlite3_errcode(d->db);

	d->busy = code == SQLITE_BUSY || code == SQLITE_LOCKED;
	if (d->busy) {
		return store_db_refuse(d, " is in use: another process is writing", err);
	}
	if (code == SQLITE_NOTADB) {
		return store_db_refuse(d, STORE_FOREIGN, err);
	}
	(void)error_set(err, EVREC_ESYSTEM, "%.*s: %s", d->shown, d->path,
	                d->db == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(d->db));
	return false;
}

bool store_db_run(struct store_db *d, const char *sql, evrec_error *err)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK || store_db_failed(d, err);
}

sqlite3_stmt *store_db_prepare(struct store_db *d, const char *sql, evrec_error *err)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK) {
		(void)store_db_failed(d, err);
	}
	return statement;
}

bool store_db_prepare_all(struct store_db *d, const char *const *sources, sqlite3_stmt **statements, size_t n,
                          evrec_error *err)
{
	for (size_t i = 0; i < n; i++) {
		statements[i] = store_db_prepare(d, sources[i], err);
		if (statements[i] == NULL) {
			return false;
		}
	}
	return true;
}

void store_db_finalize_all(sqlite3_stmt **statements, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		(void)sqlite3_finalize(statements[i]);
		statements[i] = NULL;
	}
}

void store_bind_str(sqlite3_stmt *statement, int at, evrec_str s)
{
	(void)sqlite3_bind_text64(statement, at, s.data == NULL ? "" : s.data, s.len, SQLITE_STATIC, SQLITE_UTF8);
}

bool store_db_finish(struct store_db *d, sqlite3_stmt *statement, evrec_error *err)
{
	const bool ok = sqlite3_step(statement) == SQLITE_DONE || store_db_failed(d, err);

	(void)sqlite3_reset(statement);
	return ok;
}

int store_db_step(struct store_db *d, sqlite3_stmt *statement, evrec_error *err)
{
	const int code = sqlite3_step(statement);

	if (code == SQLITE_ROW || code == SQLITE_DONE) {
		return code == SQLITE_ROW;
	}
	(void)store_db_failed(d, err);
	return -1;
}

bool store_db_ask(struct store_db *d, const char *sql, int64_t *number, evrec_error *err)
{
	sqlite3_stmt *statement = store_db_prepare(d, sql, err);
	int row;

	if (statement == NULL) {
		return false;
	}
	row = store_db_step(d, statement, err);
	if (row == 1) {
		*number = sqlite3_column_int64(statement, 0);
	}
	(void)sqlite3_finalize(statement);
	return row == 1;
}

/* SQL of a file of a spool: its statements, and transactions. */
#include "spool/spool_inner.h"

static const char *const sources[SPOOL_STATEMENTS] = {
	[SPOOL_PUT] = "INSERT OR REPLACE INTO writes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[SPOOL_FORGET] = "DELETE FROM writes WHERE seq = ?1",
	[SPOOL_READ] = "SELECT * FROM writes WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3",
	[SPOOL_MARK] = "UPDATE writes SET arrived = count WHERE arrived = 0 AND seq > ?1 AND seq <= ?2",
	[SPOOL_UNMARK] = "UPDATE writes SET arrived = 0 WHERE seq = ?1",
};

bool spool_fail_in_use(const struct spool *spool, evrec_error *err)
{
	(void)error_set(err, EVREC_ESYSTEM, "%.*s is in use by another process or sink", spool->shown, spool->path);
	return false;
}

bool spool_failed(struct spool *spool, evrec_error *err)
{
	int code = spool->db == NULL ? SQLITE_NOMEM : sqlite3_errcode(spool->db);

	spool->damaged = spool->damaged || code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
	if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
		return spool_fail_in_use(spool, err);
	}
	(void)error_set(err, EVREC_ESYSTEM, "%.*s: %s", spool->shown, spool->path,
	                spool->db == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(spool->db));
	return false;
}

bool spool_run(struct spool *spool, const char *sql, evrec_error *err)
{
	int code;

	sqlite_guard_enter();
	code = sqlite3_exec(spool->db, sql, NULL, NULL, NULL);
	sqlite_guard_leave();
	return code == SQLITE_OK || spool_failed(spool, err);
}

bool spool_ask(struct spool *spool, const char *sql, int64_t *number, evrec_error *err)
{
	sqlite3_stmt *statement = NULL;
	bool ok;

	sqlite_guard_enter();
	ok = sqlite3_prepare_v2(spool->db, sql, -1, &statement, NULL) == SQLITE_OK &&
	     sqlite3_step(statement) == SQLITE_ROW;
	if (ok) {
		*number = sqlite3_column_int64(statement, 0);
	} else {
		(void)spool_failed(spool, err);
	}
	(void)sqlite3_finalize(statement);
	sqlite_guard_leave();
	return ok;
}

bool spool_prepare(struct spool *spool, evrec_error *err)
{
	int code = SQLITE_OK;

	sqlite_guard_enter();
	for (size_t i = 0; code == SQLITE_OK && i < SPOOL_STATEMENTS; i++) {
		code = sqlite3_prepare_v3(spool->db, sources[i], -1, SQLITE_PREPARE_PERSISTENT, &spool->statements[i],
		                          NULL);
	}
	sqlite_guard_leave();
	return code == SQLITE_OK || spool_failed(spool, err);
}

bool spool_begin(struct spool *spool, evrec_error *err)
{
	if (spool->damaged) {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s is damaged", spool->shown, spool->path);
		return false;
	}
	return spool_run(spool, "BEGIN", err);
}

bool spool_commit(struct spool *spool, evrec_error *err)
{
	return spool_run(spool, "COMMIT", err);
}

void spool_rollback(struct spool *spool)
{
	/* After some failures SQLite has rolled back already. */
	(void)spool_run(spool, "ROLLBACK", NULL);
}

/*
 * spool_inner.h - the inside of one file of a spool: spool_file.c opens and removes it, spool.c has its rows, and both run
 * SQL by spool_sql.c.
 */
#ifndef EVREC_SPOOL_INNER_H
#define EVREC_SPOOL_INNER_H

#include "spool/spool.h"
#include "spool/spool_lock.h"
#include "spool/sqlite.h"
#include "spool/sqlite_guard.h"

#pragma GCC visibility push(hidden)

enum spool_statement { SPOOL_PUT, SPOOL_FORGET, SPOOL_READ, SPOOL_MARK, SPOOL_UNMARK, SPOOL_STATEMENTS };

struct spool {
	char *path, *lock_path, *journal_path, *wal_path, *pending_path;
	int shown; /* bytes of the path in a message */
	struct spool_lock lock;
	enum spool_mode mode;
	sqlite3 *db;  /* NULL: not open */
	bool damaged; /* as spool_is_damaged */
	sqlite3_stmt *statements[SPOOL_STATEMENTS];
};

/* ---- spool_sql.c ---- */

/* Sets *err to what SQLite says; false. */
bool spool_failed(struct spool *spool, evrec_error *err);
/* Sets *err: another process or sink has the file; false. */
bool spool_fail_in_use(const struct spool *spool, evrec_error *err);
/* Runs SQL, and ignores its rows. */
bool spool_run(struct spool *spool, const char *sql, evrec_error *err);
/* Runs a query whose answer is one number. */
bool spool_ask(struct spool *spool, const char *sql, int64_t *number, evrec_error *err);
bool spool_prepare(struct spool *spool, evrec_error *err);

#pragma GCC visibility pop

#endif

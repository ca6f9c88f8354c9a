#include "spool/spool_inner.h"

static int step(sqlite3_stmt *statement)
{
	int code;

	sqlite_guard_enter();
	code = sqlite3_step(statement);
	sqlite_guard_leave();
	return code;
}

/* Runs a statement that has no rows as its answer. */
static bool finish(struct spool *spool, sqlite3_stmt *statement, evrec_error *err)
{
	bool ok = step(statement) == SQLITE_DONE || spool_failed(spool, err);

	(void)sqlite3_reset(statement);
	(void)sqlite3_clear_bindings(statement);
	return ok;
}

bool spool_put(struct spool *spool, const struct spool_row *row, evrec_error *err)
{
	sqlite3_stmt *put = spool->statements[SPOOL_PUT];

	if (row->seq != 0) {
		(void)sqlite3_bind_int64(put, 1, row->seq);
	}
	(void)sqlite3_bind_text(put, 2, row->verb == VERB_CREATE ? "POST" : "PATCH", -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(put, 3, row->count);
	(void)sqlite3_bind_int64(put, 4, row->maybe_received);
	(void)sqlite3_bind_int64(put, 5, row->last);
	(void)sqlite3_bind_text64(put, 6, row->item.data, row->item.len, SQLITE_STATIC, SQLITE_UTF8);
	(void)sqlite3_bind_int64(put, 7, row->time);
	return finish(spool, put, err);
}

static bool run_for_row(struct spool *spool, enum spool_statement statement, int64_t seq, evrec_error *err)
{
	(void)sqlite3_bind_int64(spool->statements[statement], 1, seq);
	return finish(spool, spool->statements[statement], err);
}

bool spool_forget(struct spool *spool, int64_t seq, evrec_error *err)
{
	return run_for_row(spool, SPOOL_FORGET, seq, err);
}

bool spool_unmark(struct spool *spool, int64_t seq, evrec_error *err)
{
	return run_for_row(spool, SPOOL_UNMARK, seq, err);
}

static struct spool_row row_of(sqlite3_stmt *statement)
{
	const char *verb = (const char *)sqlite3_column_text(statement, 1);

	return (struct spool_row){
		.seq = sqlite3_column_int64(statement, 0),
		.verb = verb != NULL && strcmp(verb, "PATCH") == 0 ? VERB_PATCH : VERB_CREATE,
		.count = (uint32_t)sqlite3_column_int64(statement, 2),
		.maybe_received = (uint32_t)sqlite3_column_int64(statement, 3),
		.last = sqlite3_column_int64(statement, 4),
		.item = { (const char *)sqlite3_column_text(statement, 5), (size_t)sqlite3_column_bytes(statement, 5) },
		.time = sqlite3_column_int64(statement, 6),
	};
}

bool spool_read(struct spool *spool, int64_t seq, int64_t until, size_t max,
                bool (*func)(void *ctx, const struct spool_row *row), void *ctx, evrec_error *err)
{
	sqlite3_stmt *read = spool->statements[SPOOL_READ], *mark = spool->statements[SPOOL_MARK];
	int64_t last = seq;
	int code;

	(void)sqlite3_bind_int64(read, 1, seq);
	(void)sqlite3_bind_int64(read, 2, until);
	(void)sqlite3_bind_int64(read, 3, (sqlite3_int64)max);
	while ((code = step(read)) == SQLITE_ROW) {
		struct spool_row row = row_of(read);

		if (!func(ctx, &row)) {
			break;
		}
		last = row.seq;
	}
	if (code != SQLITE_ROW && code != SQLITE_DONE) {
		(void)spool_failed(spool, err);
		(void)sqlite3_reset(read);
		return false;
	}
	(void)sqlite3_reset(read);
	(void)sqlite3_bind_int64(mark, 1, seq);
	(void)sqlite3_bind_int64(mark, 2, last);
	return finish(spool, mark, err);
}

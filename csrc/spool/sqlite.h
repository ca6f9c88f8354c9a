/*
 * sqlite.h - SQLite, in place of <sqlite3.h>. The library is loaded when the first sink or source that needs it is
 * made.
 */
#ifndef EVREC_SQLITE_H
#define EVREC_SQLITE_H

#include "base/base.h"

#include <sqlite3.h>

#pragma GCC visibility push(hidden)

/* clang-format off */
#define SQLITE_FUNCTIONS(f) \
	f(sqlite3_bind_int64) f(sqlite3_bind_null) f(sqlite3_bind_text) f(sqlite3_bind_text64) \
	f(sqlite3_busy_timeout) f(sqlite3_changes) f(sqlite3_clear_bindings) f(sqlite3_close) \
	f(sqlite3_column_bytes) f(sqlite3_column_int64) f(sqlite3_column_text) f(sqlite3_db_config) \
	f(sqlite3_errcode) f(sqlite3_errmsg) f(sqlite3_errstr) f(sqlite3_exec) \
	f(sqlite3_extended_result_codes) f(sqlite3_finalize) f(sqlite3_last_insert_rowid) \
	f(sqlite3_open_v2) f(sqlite3_prepare_v2) f(sqlite3_prepare_v3) f(sqlite3_reset) f(sqlite3_step)
/* clang-format on */

#define SQLITE_POINTER(name) __typeof__(name) *(name);
struct sqlite_functions {
	SQLITE_FUNCTIONS(SQLITE_POINTER)
};
extern struct sqlite_functions sqlite_functions;

#ifndef SQLITE_WITHOUT_NAMES
#define sqlite3_bind_int64 sqlite_functions.sqlite3_bind_int64
#define sqlite3_bind_null sqlite_functions.sqlite3_bind_null
#define sqlite3_bind_text sqlite_functions.sqlite3_bind_text
#define sqlite3_bind_text64 sqlite_functions.sqlite3_bind_text64
#define sqlite3_busy_timeout sqlite_functions.sqlite3_busy_timeout
#define sqlite3_changes sqlite_functions.sqlite3_changes
#define sqlite3_clear_bindings sqlite_functions.sqlite3_clear_bindings
#define sqlite3_close sqlite_functions.sqlite3_close
#define sqlite3_column_bytes sqlite_functions.sqlite3_column_bytes
#define sqlite3_column_int64 sqlite_functions.sqlite3_column_int64
#define sqlite3_column_text sqlite_functions.sqlite3_column_text
#define sqlite3_db_config sqlite_functions.sqlite3_db_config
#define sqlite3_errcode sqlite_functions.sqlite3_errcode
#define sqlite3_errmsg sqlite_functions.sqlite3_errmsg
#define sqlite3_errstr sqlite_functions.sqlite3_errstr
#define sqlite3_exec sqlite_functions.sqlite3_exec
#define sqlite3_extended_result_codes sqlite_functions.sqlite3_extended_result_codes
#define sqlite3_finalize sqlite_functions.sqlite3_finalize
#define sqlite3_last_insert_rowid sqlite_functions.sqlite3_last_insert_rowid
#define sqlite3_open_v2 sqlite_functions.sqlite3_open_v2
#define sqlite3_prepare_v2 sqlite_functions.sqlite3_prepare_v2
#define sqlite3_prepare_v3 sqlite_functions.sqlite3_prepare_v3
#define sqlite3_reset sqlite_functions.sqlite3_reset
#define sqlite3_step sqlite_functions.sqlite3_step
#endif

/* Before the first call of another function. Idempotent; any thread. False: EVREC_ESYSTEM. */
bool sqlite_load(evrec_error *err);

#pragma GCC visibility pop

#endif

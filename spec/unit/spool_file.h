/*
 * spool_file.h - a spool's file, changed by another hand than evrec's.
 */
#ifndef EVREC_SPOOL_FILE_H
#define EVREC_SPOOL_FILE_H

#include "folder.h"

#include <sqlite3.h>

static inline void change(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

#endif

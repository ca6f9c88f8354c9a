/*
 * query.h - reads a store: the events that match a query, or the events that are written from now on.
 *
 * A cursor has a connection of its own. A query is one read transaction, from its opening until its last event was read
 * or the cursor is freed: it finds each event once, as the event was when the query was opened. No writer waits for it,
 * but the file's log (PATH-wal) keeps all writes meanwhile. A watch holds no transaction between two calls. Events are
 * read STORE_PAGE at a time. In a forked child the parent's cursors only fail. Calls wait for the disk. One thread at a
 * time.
 */
#ifndef EVREC_STORE_QUERY_H
#define EVREC_STORE_QUERY_H

#include "evrec_read.h"

#include "base/base.h"

#pragma GCC visibility push(hidden)

#define STORE_PAGE 128 /* events that are read at once */

struct store_cursor;
struct store_notes;

struct store_row {
	int64_t rv;   /* grows with each change of an event, and from event to event */
	int64_t last; /* the last occurrence, in ns since 1970 */
	evrec_str json;
};

/* Loads SQLite. Idempotent; any thread, before the first call of another function here. False: EVREC_ESYSTEM. */
bool store_load_library(evrec_error *err);

/*
 * Opens the file. `query` is borrowed, with its strings, as long as the cursor lives; its field_selector is the caller's
 * to check, and its limit too if there is one. Events come ordered by their last occurrence. NULL: see *err.
 */
struct store_cursor *store_query(evrec_str path, const evrec_query *query, evrec_error *err);
/* Likewise, but returns each change of an event from now on, in the order of writing; not the expiry of events. */
struct store_cursor *store_watch(evrec_str path, const evrec_query *query, evrec_error *err);
/*
 * The next event, valid until the next call. EVREC_READ_EVENT; EVREC_READ_END (of a query); EVREC_READ_WAIT (of a
 * watch: nothing was written; calling again is cheap); or a negative enum evrec_code and *err. Never sleeps.
 */
int store_cursor_next(struct store_cursor *cursor, struct store_row *row, evrec_error *err);
void store_cursor_free(struct store_cursor *cursor); /* NULL is fine */

/*
 * Reads a store's notes beside events (event/notes.h), each as a JSON object, as evrec_read.h describes them. `query` is
 * borrowed as long as the result lives. Occurrences are those of the event with the namespace and name of
 * query->regarding. NULL: see *err.
 */
struct store_notes *store_read_occurrences(evrec_str path, const evrec_query *query, evrec_error *err);
struct store_notes *store_read_suppressions(evrec_str path, const evrec_query *query, evrec_error *err);
/* The next one, valid until the next call. EVREC_READ_EVENT, EVREC_READ_END, or a negative enum evrec_code and *err. */
int store_notes_next(struct store_notes *notes, evrec_str *json, evrec_error *err);
void store_notes_free(struct store_notes *notes); /* NULL is fine */

#pragma GCC visibility pop

#endif

/*
 * store.h - the embedded event store: one SQLite file that several processes write and read at once. This is its writer;
 * query.h reads it.
 *
 *   store_begin(store, &err) && store_put(store, &fields, json, &err) && store_commit(store, &err)
 *
 * An event is one row, found by its namespace and name. Each change of it takes a new number, its resource version, so
 * that a watch is the rows above a number. Texts that many events share lie in tables of their own (schema.c).
 *
 * fork() waits for a transaction, for a second at most, and closes the file; the next transaction opens it again.
 *
 * Calls wait for the disk: never from a recording call. One thread at a time. A call that fails says why, in *err.
 */
#ifndef EVREC_STORE_H
#define EVREC_STORE_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct note;
struct store;

struct store *store_new(evrec_str path); /* no I/O; NULL: no memory */
void store_free(struct store *store);    /* closes it; NULL is fine */

/*
 * Begins a transaction. First opens the file, or creates it with mode 0600; also if the path now names another file.
 * False, with *err: another process writes for longer than 0.1 s; the file is no store, of a newer version, damaged, a
 * link or another user's; or the disk fails.
 */
bool store_begin(struct store *store, evrec_error *err);
/* Writes the present state of an event, in place of an earlier one. Readers get `json`. Both are borrowed. */
bool store_put(struct store *store, const evrec_fields *event, evrec_str json, evrec_error *err);
/* Writes a note (event/notes.h), to be read by store_read_occurrences or store_read_suppressions. */
bool store_put_note(struct store *store, const struct note *note, evrec_error *err);
/* True: the transaction survives the death of the process; a crash of the machine may lose the last transactions. */
bool store_commit(struct store *store, evrec_error *err);
/* After a failure between begin and commit: undoes the transaction. */
void store_rollback(struct store *store);
bool store_is_open(struct store *store);
void store_close(struct store *store);

/*
 * Deletes up to STORE_EXPIRY_ROWS events, and as many notes of each kind: those whose last occurrence was before `before`, and the oldest ones while the
 * file is too full for `keep_bytes` (0: no bound); and returns some free pages to the file system. Sets *more if there
 * is more to do. Opens nothing.
 */
#define STORE_EXPIRY_ROWS 500
bool store_expire(struct store *store, int64_t before, uint64_t keep_bytes, bool *more, evrec_error *err);

#pragma GCC visibility pop

#endif

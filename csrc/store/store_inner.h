/*
 * store_inner.h - the structs and internal functions of the store. Its files call each other in this order:
 *
 *   write.c, expire.c      the writer: puts events; deletes old ones
 *   write_notes.c          the same for notes
 *   fork.c                 closes the writers before a fork, and the readers in the child
 *   transaction.c          the writer's connection and transactions
 *   statements.c           the writer's SQL
 *   ids.c                  the numbers of words, facets and objects, found or made
 *   query.c                a reader: pages of a query, or of a watch
 *   read_notes.c           a reader of notes
 *   plan.c                 chooses the streams that a query merges
 *   streams.c              some ordered streams of events, merged into one
 *   filter.c               the filters of a query as numbers, and whether an event passes them
 *   store_open.c           opens the file, or makes it
 *   schema.c               the tables, and their versions
 *   store_db.c             a connection to the file, and its statements
 *
 * The functions of store.h and query.h enter SQLite's guard (spool/sqlite_guard.h); the functions below are called
 * inside it.
 */
#ifndef EVREC_STORE_INNER_H
#define EVREC_STORE_INNER_H

#include "base/base.h"
#include "base/lru.h"
#include "spool/sqlite.h"

#include <pthread.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden)

/* ---- store_db.c ---- */

#define STORE_FOREIGN " is not an event store of evrec" /* for store_db_refuse: another program's file */

struct store_db {
	char *path;  /* as it was given */
	char *full;  /* absolute, without links in its folder; NULL: it was not opened yet */
	int shown;   /* bytes of it in a message */
	sqlite3 *db; /* NULL: not open */
	dev_t device;
	ino_t inode;     /* of the open file */
	int64_t version; /* of its schema, when a reader opened it */
	bool busy;       /* the last failure: another process has the file to itself */
};

bool store_db_init(struct store_db *d, evrec_str path); /* false: no memory */
void store_db_fini(struct store_db *d);
/* All statements must be finalized. */
void store_db_close(struct store_db *d);
/* Sets *err to SQLite's message; false. */
bool store_db_failed(struct store_db *d, evrec_error *err);
/* Sets *err to the path and `reason`; false. */
bool store_db_refuse(const struct store_db *d, const char *reason, evrec_error *err);
/* Runs SQL, and ignores its rows. */
bool store_db_run(struct store_db *d, const char *sql, evrec_error *err);
/* NULL: see *err. */
sqlite3_stmt *store_db_prepare(struct store_db *d, const char *sql, evrec_error *err);
/* Runs a query whose answer is one number. */
bool store_db_ask(struct store_db *d, const char *sql, int64_t *number, evrec_error *err);
/* Prepares all of `sources`, in a transaction or not; finalizes them. */
bool store_db_prepare_all(struct store_db *d, const char *const *sources, sqlite3_stmt **statements, size_t n,
                          evrec_error *err);
void store_db_finalize_all(sqlite3_stmt **statements, size_t n);
void store_bind_str(sqlite3_stmt *statement, int at, evrec_str s); /* borrowed until it is reset */
/* Runs a statement that has no rows as its answer, and resets it. */
bool store_db_finish(struct store_db *d, sqlite3_stmt *statement, evrec_error *err);
/* Steps a statement: 1: there is a row; 0: there is none; or -1 and *err. The caller resets it. */
int store_db_step(struct store_db *d, sqlite3_stmt *statement, evrec_error *err);

/* ---- store_open.c ---- */

enum store_access { STORE_READ, STORE_WRITE };
/* A writer makes the file if there is none. False: see *err, and it is closed. */
bool store_db_open(struct store_db *d, enum store_access access, evrec_error *err);
/* Whether the path still names the open file. */
bool store_db_is_current(const struct store_db *d);

/* ---- schema.c ---- */

/* In a transaction of a writer: makes the tables of a new file, or converts an older version to this one. */
bool schema_make(struct store_db *d, evrec_error *err);
#define SCHEMA_REPORTERS 3 /* the version from which on suppressions have a component and a host */

/*
 * For a reader: checks that the file is a store of this version, or of an older one that can be read. Sets d->version.
 */
bool schema_check(struct store_db *d, evrec_error *err);

/* The words that make a facet: columns of the table `facets`, in this order. */
enum store_facet {
	FACET_NS,
	FACET_TYPE,
	FACET_REASON,
	FACET_ACTION,
	FACET_CONTROLLER,
	FACET_INSTANCE,
	FACET_KIND,         /* of `regarding` */
	FACET_RELATED_KIND, /* 0: none */
	FACETS
};
extern const char *const facet_columns[FACETS];

/* ---- ids.c ---- */

enum ids_statement {
	IDS_FIND_WORD,
	IDS_ADD_WORD,
	IDS_USE_WORD,
	IDS_FORGET_WORD,
	IDS_FIND_FACET,
	IDS_ADD_FACET,
	IDS_UNUSED_FACET,
	IDS_FORGET_FACET,
	IDS_FIND_OBJECT,
	IDS_ADD_OBJECT,
	IDS_UNUSED_OBJECT,
	IDS_FORGET_OBJECT,
	IDS_REMOVALS,
	IDS_REMOVE,
	IDS_STATEMENTS
};

struct ids {
	struct lru *words, *facets, *objects; /* from keys to numbers; NULL: none, or a number was removed */
	int64_t removals;                     /* the store's count of removed numbers when the caches were filled */
	bool removed;                         /* this transaction has removed a number */
	struct buf key;
	sqlite3_stmt *statements[IDS_STATEMENTS];
};

/* The numbers by which an event is found, beside its name. */
struct store_keys {
	int64_t ns, facet, regarding, related; /* related 0: none */
};

bool ids_open(struct ids *ids, struct store_db *d, evrec_error *err);
void ids_close(struct ids *ids);
/* At the begin of a transaction: clears the caches if another process has removed a number since. */
bool ids_begin(struct ids *ids, struct store_db *d, evrec_error *err);
/* Before the commit: counts a removal, so that other processes clear their caches. */
bool ids_commit(struct ids *ids, struct store_db *d, evrec_error *err);
void ids_clear(struct ids *ids); /* after a rollback */
bool ids_of_event(struct ids *ids, struct store_db *d, const evrec_fields *event, struct store_keys *keys,
                  evrec_error *err);
/* These remove a facet or an object unless an event has it. */
bool ids_release_facet(struct ids *ids, struct store_db *d, int64_t facet, evrec_error *err);
bool ids_release_object(struct ids *ids, struct store_db *d, int64_t object, evrec_error *err);

/* ---- statements.c ---- */

enum note_statement {
	NOTE_PUT_OCCURRENCE,
	NOTE_PUT_SUPPRESSION,
	NOTE_OLD_OCCURRENCE,
	NOTE_OLD_SUPPRESSION,
	NOTE_EXPIRE_OCCURRENCES,
	NOTE_EXPIRE_SUPPRESSIONS,
	NOTE_STATEMENTS
};
extern const char *const note_sources[NOTE_STATEMENTS];

enum store_statement {
	STORE_FIND,
	STORE_INSERT,
	STORE_DELETE,
	STORE_OLDEST,
	STORE_BEGIN,
	STORE_COMMIT,
	STORE_STATEMENTS
};
extern const char *const store_sources[STORE_STATEMENTS];

/* ---- write.c ---- */

struct store {
	struct store_db db; /* its first member */
	struct ids ids;
	sqlite3_stmt *statements[STORE_STATEMENTS];
	sqlite3_stmt *note_statements[NOTE_STATEMENTS];
	struct buf key; /* of an event's name */
	struct store *next;
	pthread_mutex_t lock; /* held in a transaction, and whenever the store is used outside of one */
	bool locked;          /* by the thread that uses the store, in a transaction */
	bool forking;         /* held by a fork */
};

/* Deletes a row. Its facet and objects may then be unused: store_release removes them. */
bool store_delete(struct store *store, int64_t rv, evrec_error *err);
bool store_release(struct store *store, const struct store_keys *keys, evrec_error *err);

/* ---- fork.c ---- */

/* From now on no fork finds the store open. Makes and destroys its lock. */
void store_list_add(struct store *store);
void store_list_remove(struct store *store);

/* ---- transaction.c ---- */

void store_enter(struct store *store); /* takes the lock, unless a transaction has it, and enters the guard */
void store_leave(struct store *store); /* leaves the guard, and the lock, unless a transaction keeps it */
/* As those of store.h, inside the guard, with the lock. */
void store_close_inside(struct store *store);
bool store_begin_inside(struct store *store, evrec_error *err);
bool store_commit_inside(struct store *store, evrec_error *err);
void store_rollback_inside(struct store *store);

/* ---- write_notes.c ---- */

/* True if there are notes to delete, or if that cannot be determined. */
bool store_has_old_notes(struct store *store, int64_t before);
/*
 * Inside a transaction: deletes up to `most` notes of each kind older than `before`. Returns the larger number of one
 * kind, or -1 and *err.
 */
int store_expire_notes(struct store *store, int64_t before, int most, evrec_error *err);

#pragma GCC visibility pop

#endif

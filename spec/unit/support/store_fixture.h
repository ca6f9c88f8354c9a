/*
 * store_fixture.h - an event store in a file of a test's directory: events to put into it, what queries find, and what
 * SQLite makes of its statements.
 */
#ifndef EVREC_UNIT_STORE_FIXTURE_H
#define EVREC_UNIT_STORE_FIXTURE_H

#include "tmpdir.h"

#include "store/query.h"
#include "store/store.h"

/* An event about the pod shop/`object`, named `name`, in the namespace "shop", that last happened at `last`. */
evrec_fields store_event(const char *name, const char *object, int64_t last);
/* Every event, the newest first. */
evrec_query store_query_all(void);

/* A new store; fails the test if there is no memory. The caller frees it. */
struct store *store_fixture_open(const char *path);
/* Makes an empty store. */
void store_fixture_make(const char *path);
/* Puts one event, whose JSON is {"name":"..."}, in a transaction of its own. Fails the test if that fails. */
void store_fixture_put(struct store *store, const evrec_fields *event);
/* Fails the test unless the store cannot be written, with a message that contains `why`. */
void store_fixture_check_refused(const char *path, const char *why);

/* The names of what a query finds, each followed by a space. The caller frees it by free. Fails the test on errors. */
char *store_fixture_find(const char *path, const evrec_query *query);
/* Fails the test unless the query finds these. */
void store_fixture_check(const char *path, const evrec_query *query, const char *names);

/* The number that a query of SQL gives, behind evrec's back. */
int64_t store_fixture_ask(const char *path, const char *sql);
/* Runs SQL, likewise. */
void store_fixture_exec(const char *path, const char *sql);

/* From now on notes each statement that a connection of this process runs. */
void store_fixture_trace(void);
/* Whether a statement that contains `part` was noted. */
bool store_fixture_has_run(const char *part);
/* Fails the test if SQLite's plan of a statement that was noted has a SCAN, or fewer than `least` were noted. */
void store_fixture_check_plans(const char *path, size_t least);

#endif

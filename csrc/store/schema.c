#include "store/store_inner.h"

#include <stdio.h>

/*
 * Version 1. An event is a row of `events`. Texts that it shares with many others are numbers there:
 *
 *   words     texts that occur again and again; 0 is no text. `uses`: facets and objects that have it
 *   facets    all by which events are selected, but for objects and times, as numbers of words
 *   objects   the objects that events regard, or are related to
 *
 * So an index of events takes some 20 bytes an event, and a query by any pair of filters finds the facets first, of which
 * there are few, and then merges the events of each facet, which (facet, last) has in order. `removals` counts the
 * transactions that removed a word, a facet or an object: a writer that remembers numbers then forgets them.
 *
 * `key` is the event's name, "web-0.17a2b3c4d5e6f708", turned at its last dot: "17a2b3c4d5e6f708.web-0". New names end with
 * the time, so new keys come at the end of their index, and a transaction changes few of its pages.
 */
static const char version_1[] =
	"CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), removals INTEGER NOT NULL);"
	"INSERT INTO state VALUES (1, 0);"
	"CREATE TABLE words ("
	"  id INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  word TEXT NOT NULL UNIQUE,"
	"  uses INTEGER NOT NULL);"
	"CREATE INDEX words_nocase ON words (word COLLATE NOCASE);"
	"CREATE TABLE facets ("
	"  id INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  ns INTEGER NOT NULL,"
	"  type INTEGER NOT NULL,"
	"  reason INTEGER NOT NULL,"
	"  action INTEGER NOT NULL,"
	"  controller INTEGER NOT NULL,"
	"  instance INTEGER NOT NULL,"
	"  kind INTEGER NOT NULL,"
	"  related_kind INTEGER NOT NULL,"
	"  UNIQUE (reason, ns, controller, instance, kind, related_kind, type, action));"
	"CREATE INDEX facets_ns ON facets (ns);"
	"CREATE INDEX facets_type ON facets (type);"
	"CREATE INDEX facets_action ON facets (action);"
	"CREATE INDEX facets_controller ON facets (controller);"
	"CREATE INDEX facets_instance ON facets (instance);"
	"CREATE INDEX facets_kind ON facets (kind);"
	"CREATE INDEX facets_related_kind ON facets (related_kind);"
	"CREATE TABLE objects ("
	"  id INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  kind INTEGER NOT NULL,"
	"  api_version INTEGER NOT NULL,"
	"  ns INTEGER NOT NULL,"
	"  name TEXT NOT NULL,"
	"  uid TEXT);"
	"CREATE INDEX objects_name ON objects (name, ns);"
	"CREATE INDEX objects_uid ON objects (uid) WHERE uid IS NOT NULL;"
	"CREATE TABLE events ("
	"  rv INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  ns INTEGER NOT NULL,"
	"  key TEXT NOT NULL,"
	"  facet INTEGER NOT NULL,"
	"  regarding INTEGER NOT NULL,"
	"  related INTEGER,"
	"  first INTEGER NOT NULL,"
	"  last INTEGER NOT NULL,"
	"  body TEXT NOT NULL,"
	"  UNIQUE (key, ns));"
	"CREATE INDEX events_last ON events (last, facet);"
	"CREATE INDEX events_facet ON events (facet, last);"
	"CREATE INDEX events_regarding ON events (regarding, last, facet);"
	"CREATE INDEX events_related ON events (related, last, facet) WHERE related IS NOT NULL;"
	"PRAGMA application_id = 0x65767374;"
	"PRAGMA user_version = 1";

/*
 * Version 2 adds the notes beside events (event/notes.h). `span` is the minute of a suppression: suppressions of one minute
 * that differ in time or message alone are one row. New rows come at the end of the index that keeps them unique.
 */
static const char version_2[] = "CREATE TABLE occurrences ("
				"  id INTEGER PRIMARY KEY,"
				"  ns TEXT NOT NULL,"
				"  name TEXT NOT NULL,"
				"  time INTEGER NOT NULL,"
				"  count INTEGER NOT NULL,"
				"  UNIQUE (name, ns, time));"
				"CREATE INDEX occurrences_time ON occurrences (time);"
				"CREATE TABLE suppressions ("
				"  id INTEGER PRIMARY KEY,"
				"  span INTEGER NOT NULL,"
				"  ns TEXT NOT NULL,"
				"  name TEXT NOT NULL,"
				"  kind TEXT NOT NULL,"
				"  api_version TEXT NOT NULL,"
				"  uid TEXT NOT NULL,"
				"  type TEXT NOT NULL,"
				"  reason TEXT NOT NULL,"
				"  stage TEXT NOT NULL,"
				"  cause TEXT NOT NULL,"
				"  key TEXT NOT NULL,"
				"  message TEXT NOT NULL,"
				"  first INTEGER NOT NULL,"
				"  last INTEGER NOT NULL,"
				"  count INTEGER NOT NULL,"
				"  UNIQUE (span, name, ns, kind, api_version, uid, type, reason, stage, cause, key));"
				"CREATE INDEX suppressions_name ON suppressions (name);"
				"CREATE INDEX suppressions_last ON suppressions (last);"
				"PRAGMA user_version = 2";

/* Version 3 adds the reporter of suppressed occurrences. SQLite cannot change UNIQUE, so the table is made anew. */
static const char version_3[] =
	"ALTER TABLE suppressions RENAME TO suppressions_2;"
	"CREATE TABLE suppressions ("
	"  id INTEGER PRIMARY KEY,"
	"  span INTEGER NOT NULL,"
	"  ns TEXT NOT NULL,"
	"  name TEXT NOT NULL,"
	"  kind TEXT NOT NULL,"
	"  api_version TEXT NOT NULL,"
	"  uid TEXT NOT NULL,"
	"  type TEXT NOT NULL,"
	"  reason TEXT NOT NULL,"
	"  stage TEXT NOT NULL,"
	"  cause TEXT NOT NULL,"
	"  key TEXT NOT NULL,"
	"  message TEXT NOT NULL,"
	"  first INTEGER NOT NULL,"
	"  last INTEGER NOT NULL,"
	"  count INTEGER NOT NULL,"
	"  component TEXT NOT NULL,"
	"  host TEXT NOT NULL,"
	"  UNIQUE (span, name, ns, kind, api_version, uid, type, reason, stage, cause, key, component, host));"
	"INSERT INTO suppressions SELECT *, '', '' FROM suppressions_2;"
	"DROP TABLE suppressions_2;"
	"CREATE INDEX suppressions_name ON suppressions (name);"
	"CREATE INDEX suppressions_last ON suppressions (last);"
	"PRAGMA user_version = 3";

/* Each step takes a file of version i to version i + 1. */
static const char *const steps[] = { version_1, version_2, version_3 };
#define VERSION ((int64_t)(sizeof(steps) / sizeof(steps[0])))

#define READABLE 2 /* the oldest version that is read as it is: a store may lie where nobody writes to it again */

#define APPLICATION 0x65767374 /* "evst" */

const char *const facet_columns[FACETS] = { "ns",         "type",     "reason", "action",
	                                    "controller", "instance", "kind",   "related_kind" };

/* A new file has version 0. False: it is no store, or one of a newer version. */
static bool get_version(struct store_db *d, int64_t *version, evrec_error *err)
{
	int64_t application, changes;

	if (!store_db_ask(d, "PRAGMA application_id", &application, err) ||
	    !store_db_ask(d, "PRAGMA user_version", version, err) ||
	    !store_db_ask(d, "PRAGMA schema_version", &changes, err)) {
		return false;
	}
	if (application != APPLICATION && (application != 0 || *version != 0 || changes != 0)) {
		return store_db_refuse(d, STORE_FOREIGN, err);
	}
	if (*version > VERSION) {
		(void)error_set(err, EVREC_ESYSTEM, "%.*s: a store of version %d, this evrec knows version %d only",
		                d->shown, d->path, (int)*version, (int)VERSION);
		return false;
	}
	return true;
}

bool schema_make(struct store_db *d, evrec_error *err)
{
	int64_t version;

	if (!get_version(d, &version, err)) {
		return false;
	}
	for (; version < VERSION; version++) {
		if (!store_db_run(d, steps[version], err)) {
			return false;
		}
	}
	return true;
}

bool schema_check(struct store_db *d, evrec_error *err)
{
	int64_t version;

	if (!get_version(d, &version, err)) {
		return false;
	}
	d->version = version;
	if (version < READABLE) {
		return store_db_refuse(d,
		                       version == 0
		                               ? " is empty, no event store yet"
		                               : ": a store of an older version; a sink that writes to it converts it",
		                       err);
	}
	return true;
}

/*
 * query_inner.h - the structs and internal functions of a cursor, for its files: query.c fills pages, plan.c chooses
 * the streams, streams.c merges them, filter.c filters events. Readers of notes (read_notes.c) are listed in fork.c,
 * too.
 */
#ifndef EVREC_STORE_QUERY_INNER_H
#define EVREC_STORE_QUERY_INNER_H

#include "store/query.h"
#include "store/store_inner.h"

#pragma GCC visibility push(hidden)

/* ---- filter.c ---- */

#define CONDITION_IDS 64 /* words that one condition allows: types, or spellings of a kind */

/* One of these words must be in a column of the table of facets. */
struct condition {
	enum store_facet column;
	bool or_related; /* of FACET_KIND: or it is in FACET_RELATED_KIND */
	int64_t ids[CONDITION_IDS];
	size_t len;
	int64_t facets_max; /* an upper bound of the number of facets with one of these words */
};

/* A test of the object that an event regards; with ROLE_MENTIONS the related object may match instead. */
struct object_test {
	const evrec_object_filter *filter; /* NULL: any object matches, or the conditions suffice */
	const struct condition *kinds;     /* or NULL: any */
	int64_t api_version, ns;           /* words; 0: any */
};

enum object_role { ROLE_REGARDING, ROLE_MENTIONS, ROLES };

#define VERDICTS 4096

/* A cache of results by number. All zero is empty. */
struct verdicts {
	struct {
		int64_t id;
		bool passes;
	} known[VERDICTS];
};

enum filter_statement { FILTER_WORD, FILTER_KIND, FILTER_FACET, FILTER_EVENT, FILTER_OBJECT, FILTER_STATEMENTS };

struct filter {
	const evrec_query *query;
	bool nothing; /* no event can match: the store lacks one of the query's words */
	struct condition conditions[FACETS + 1];
	size_t len;
	struct object_test tests[ROLES];
	struct verdicts facets, objects[ROLES];
	sqlite3_stmt *statements[FILTER_STATEMENTS];
};

bool filter_open(struct filter *f, struct store_db *d, const evrec_query *query, evrec_error *err);
void filter_close(struct filter *f);
/* Finds the present numbers of the query's words. False: see *err. */
bool filter_resolve(struct filter *f, struct store_db *d, evrec_error *err);
/* Whether the event with this number and facet passes the filters, without those of times: 1, 0, or -1 and *err. */
int filter_passes(struct filter *f, struct store_db *d, int64_t facet, int64_t rv, evrec_error *err);

/* ---- streams.c ---- */

/* The place of an event in the order of all: by its last occurrence, facet and number. */
struct place {
	int64_t last, facet, rv;
};

/* The index from which a stream is read. It determines the column of the stream's key. */
enum stream_index { STREAM_LAST, STREAM_FACET, STREAM_REGARDING, STREAM_RELATED, STREAM_INDEXES };

struct stream {
	int64_t key;
	enum stream_index index;
	uint32_t at, len; /* of the places that were read ahead */
};

struct streams {
	enum evrec_order order;
	int64_t bound;         /* the last `last` within the query, in this order */
	struct place position; /* of the event that was returned last */
	struct stream *all;
	size_t len, room; /* places that are read ahead for each */
	struct place *places;
	size_t *heap, heap_len; /* the streams that have more, the next event first */
	sqlite3_stmt *statements[STREAM_INDEXES];
};

void streams_init(struct streams *s, const evrec_query *query);
void streams_fini(struct streams *s);
/* From now on reads these streams, from its position on. Owns `all`, a block of mem_alloc, also after a failure. */
bool streams_use(struct streams *s, struct store_db *d, struct stream *all, size_t len, evrec_error *err);
/* The next event in order, each once: 1, 0 (the end), or -1 and *err. */
int streams_next(struct streams *s, struct store_db *d, struct place *place, evrec_error *err);

/* ---- plan.c ---- */

/* The streams that a plan changes to if the present ones have too many events that do not pass. */
enum fallback { FALLBACK_NONE, FALLBACK_FEW_FACETS, FALLBACK_FACETS, FALLBACK_OBJECTS };

struct plan {
	struct filter filter;
	struct streams streams;
	enum fallback fallback;
	bool begun;
};

/* Chooses the streams of a query. False: see *err. */
bool plan_begin(struct plan *p, struct store_db *d, evrec_error *err);
/* Continues with other streams, if there are any, from the present place. */
bool plan_change(struct plan *p, struct store_db *d, evrec_error *err);

/* ---- fork.c ---- */

/* The first member of a cursor, and of a reader of notes: each has a connection of its own. */
struct reader_link {
	struct reader_link *next;
	struct store_db *db;
	void (*close)(struct reader_link *reader); /* the connection, if it is open; inside the guard */
	bool abandoned;                            /* closed, as this process was forked after it was opened */
};

/* Before a reader is made. False, with *err: this process may not use SQLite, as store_readers_check. */
bool store_readers_allowed(evrec_error *err);
/* Lists the reader before it is opened. Outside the guard. */
void store_readers_add(struct reader_link *reader, struct store_db *db, void (*close)(struct reader_link *reader));
/*
 * Calls `open` inside the guard; after a failure closes the reader. Tries again for 2 s while another process has the file
 * to itself: a writer that ends writes its log into the file, and the first user after a crash repairs it. Call it outside
 * the guard: a fork waits for threads inside it.
 */
bool store_readers_open(struct reader_link *reader, bool (*open)(struct reader_link *reader, evrec_error *err),
                        evrec_error *err);
/* False, with *err: this process was forked after the reader was opened, or while its parent used SQLite. */
bool store_readers_check(const struct reader_link *reader, evrec_error *err);
/*
 * Closes the reader and unlists it. False in a child whose fork timed out waiting for SQLite: it may not use SQLite,
 * and leaks the connection and the reader's memory. Outside the guard.
 */
bool store_readers_end(struct reader_link *reader);

#pragma GCC visibility pop

#endif

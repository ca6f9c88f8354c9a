/*
 * evrec_read.h - looking at events: one reader, three sources of events.
 *
 *   evrec_source *source = evrec_source_store(EVREC_STR("/var/lib/evrec/events.db"), &err);
 *   evrec_query query;
 *   evrec_query_init(&query);
 *   query.mentions = (evrec_object_filter){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0") };
 *   evrec_reader *reader = evrec_source_query(source, &query, &err);
 *   evrec_found found;
 *   while (evrec_reader_next(reader, EVREC_FOREVER, &found, &err) == EVREC_READ_EVENT)
 *           puts(found.json.data);
 *   evrec_reader_free(reader);
 *   evrec_source_release(source);
 *
 * A source is a store (SQLite, which evrec_sink_store writes), a cluster (the Kubernetes API), or lines (a file that
 * evrec_sink_file wrote). All three answer the same query with the same events: if a source cannot select by a filter,
 * evrec reads more events, and filters them itself.
 *
 * Threads. A source may be shared by threads. A reader belongs to one thread at a time. The functions that read wait for
 * I/O: they are not for the event loop of a server.
 *
 * Ownership and errors are those of evrec.h.
 */
#ifndef EVREC_READ_H
#define EVREC_READ_H

#include "evrec.h"

#pragma GCC visibility push(hidden)
#ifdef __cplusplus
extern "C" {
#endif

/* ---- query ------------------------------------------------------------------------------------------------------- */

/* An object that an event names. An empty field matches all; a filter of empty fields is none. */
typedef struct evrec_object_filter {
	evrec_str kind;        /* compared without case */
	evrec_str api_version; /* "v1", "apps/v1" */
	evrec_str ns;
	evrec_str name;
	evrec_str uid;
} evrec_object_filter;

/* The order by an event's last occurrence: its series' last time, else lastTimestamp, else eventTime. */
enum evrec_order { EVREC_NEWEST, EVREC_OLDEST };

/* A query finds the events to which every filter applies. An empty filter applies to all events. */
typedef struct evrec_query {
	evrec_str ns;                  /* namespace of the event */
	evrec_object_filter regarding; /* involvedObject, as `kubectl events --for` compares it */
	evrec_object_filter mentions;  /* either involvedObject or related */
	evrec_str controller;          /* reportingComponent, else source.component */
	evrec_str instance;            /* reportingInstance, else source.host */
	const evrec_str *types;        /* any of these types: "Normal", "Warning" */
	size_t types_len;
	evrec_str reason;
	evrec_str action;
	int64_t since;            /* ns since 1970: last occurrence at or after it. INT64_MIN: no bound */
	int64_t before;           /* ns since 1970: last occurrence before it. INT64_MAX: no bound */
	evrec_str field_selector; /* as of the Kubernetes API: "type!=Normal,reason=Killing" */
	enum evrec_order order;   /* EVREC_NEWEST */
	size_t limit;             /* the maximum number of events; 0: no limit */
} evrec_query;
void evrec_query_init(evrec_query *query); /* matches every event, the newest first. Any thread */

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* A place that events are read from. Counted. Any thread. The first reader opens it. */
typedef struct evrec_source evrec_source;
evrec_source *evrec_source_retain(evrec_source *source);
void evrec_source_release(evrec_source *source); /* NULL is fine */

/*
 * The events in the file `path`, which evrec_sink_store writes, also while others write. A reader opens a connection of
 * its own, and waits for up to 2 s for a process that has the file to itself. A query is one read transaction: it returns
 * each event once, as the event was when the query began. The transaction ends with the last event, or when the reader is
 * freed. No writer waits for it, but the file's log (PATH-wal) grows by the writes meanwhile, so a slow reader costs room
 * on the disk. A watch holds no transaction. It returns each change from now on, but not that an event expired. A reader
 * needs the right to read the file and, unless a process has it open for writing, to write to its folder. In a forked
 * child it only fails (EVREC_ESYSTEM). NULL: EVREC_EINVALID (path), EVREC_ENOMEM, or EVREC_ESYSTEM: SQLite cannot be
 * loaded.
 */
evrec_source *evrec_source_store(evrec_str path, evrec_error *err);
/*
 * The events in a file that evrec_sink_file wrote, each as its last line has it: a file has a line for every write.
 * "-", or the name of a pipe, is read once, from now on to its end. A query keeps in memory, for each event that it
 * finds, namespace, name, time and file offset; a pipe is copied to a temporary file. A watch returns each line that is
 * written from now on, in this file or in a later file of this name. The last line of a pipe, or of a file that a query
 * reads, needs no newline. Empty lines, and lines that a full disk cut short, are skipped. Any other line that is no
 * event ends the reader with EVREC_EINVALID and the line's number, counted from the place at which the reader began. An
 * SQLite database, such as an event store, is refused with EVREC_EINVALID when a query or a watch begins. NULL:
 * EVREC_EINVALID (path) or EVREC_ENOMEM.
 */
evrec_source *evrec_source_lines(evrec_str path, evrec_error *err);

/*
 * The events of the API server that `sink` writes to, by core/v1, with the sink's credentials. The sink, which is one of
 * evrec_sink_kubernetes or evrec_sink_in_cluster, is retained, and need not be started. The account needs the verb list
 * on events, for a watch also the verb watch, in the query's namespace, or in all if that is unset.
 *
 * The server selects by namespace, field_selector, and the other filters as far as field selectors can express them;
 * evrec does the rest. A query lists in pages, and keeps the events that match, at most `limit` of them, in memory
 * until it has them all. A watch is resumed after each disconnection. If the server no longer has the changes since
 * then (410), events are listed again, and those with a higher resource version than the last one seen are returned: of
 * several changes of an event in that time only the last one, and no deletions. evrec_reader_begin and
 * evrec_reader_next return EVREC_ESYSTEM if the server refuses, or if, before a watch has begun, it does not answer
 * four tries.
 *
 * NULL: EVREC_EINVALID (a sink of another kind) or EVREC_ENOMEM.
 */
evrec_source *evrec_source_cluster(evrec_sink *sink, evrec_error *err);
/*
 * Returns the answer of a cluster's API server to GET of this path ("/apis"), such as its discovery; waits up to `timeout` ns.
 * NUL-terminated, the caller's, freed with evrec_free. NULL: EVREC_EINVALID (`source` is no cluster), EVREC_ESYSTEM (no
 * answer, or not one of 200 to 299), EVREC_ETIMEOUT, or EVREC_ENOMEM.
 */
char *evrec_cluster_get(evrec_source *source, evrec_str path, int64_t timeout, evrec_error *err);

/* ---- readers ----------------------------------------------------------------------------------------------------- */

/* An event, valid until the reader's next call. */
typedef struct evrec_found {
	evrec_event *event; /* the reader's; retain it to keep it. NULL: `json` is not an event */
	evrec_str json;     /* the event as the source has it, NUL-terminated: with fields that evrec_fields lacks */
	bool deleted;       /* only from a watch: the event expired, or was deleted */
} evrec_found;

/* The results of evrec_reader_next beside a negative enum evrec_code. */
enum evrec_read {
	EVREC_READ_END,   /* of a query: there are no more. The reader stays at its end */
	EVREC_READ_EVENT, /* *found is set */
	EVREC_READ_WAIT,  /* nothing came within `timeout` */
};

#define EVREC_FOREVER INT64_MAX

/* Reads events one by one. Its memory grows with their number only if the source cannot sort. */
typedef struct evrec_reader evrec_reader;
/*
 * Begins a query. The query is copied, the source retained. NULL, with *err set: EVREC_EINVALID (the message names the
 * field), EVREC_ENOMEM, or EVREC_ESYSTEM (the source cannot be opened).
 */
evrec_reader *evrec_source_query(evrec_source *source, const evrec_query *query, evrec_error *err);
/*
 * Begins a watch: reads all writes from now on, each change of an event as one event, in the order of writing.
 * `order` and `limit` do not apply. Errors as evrec_source_query.
 */
evrec_reader *evrec_source_watch(evrec_source *source, const evrec_query *query, evrec_error *err);
/*
 * Read a store's notes; its sink makes them with the options `occurrences` and `suppressions`. evrec_found has no event, but
 * JSON, with times in ns since 1970:
 *
 *   {"namespace","name","time","count"}   the event of that name occurred then. In the order of time
 *   {"object":{"kind","apiVersion","namespace","name","uid"},"type","reason","stage","cause","key","message","count",
 *    "first","last","component","host"}
 *                      so many occurrences were suppressed within a minute, for the reason that evrec_suppressed has, or
 *                      "lost": so many notes are missing, perhaps of this object. Then the cause is their kind,
 *                      "occurrence" or "suppression"; an earlier evrec left it out. The last two are the reporter; empty
 *                      if an earlier evrec wrote the note. Texts may be empty. Notes that began last come first
 *
 * Of the query `regarding`, `since`, `before` and `limit` apply. Errors as evrec_source_query; EVREC_EINVALID, too, if the
 * source is no store.
 */
evrec_reader *evrec_source_occurrences(evrec_source *source, evrec_str ns, evrec_str name, evrec_error *err);
evrec_reader *evrec_source_suppressions(evrec_source *source, const evrec_query *query, evrec_error *err);
/*
 * Waits, for at most `timeout` ns, until the reader has begun: the server has answered, or there is an error. A watch
 * returns all events that are written after it has begun. 0; EVREC_ETIMEOUT: it has not begun yet, and this may be
 * called again; or another error: it cannot begin. evrec_reader_next does the same if this was not called.
 */
int evrec_reader_begin(evrec_reader *reader, int64_t timeout, evrec_error *err);
/*
 * Reads the next event, and waits for it for at most `timeout` ns (EVREC_FOREVER: no limit; 0: never). Returns an enum
 * evrec_read, or a negative enum evrec_code and *err; after an error the reader may only be freed.
 */
int evrec_reader_next(evrec_reader *reader, int64_t timeout, evrec_found *found, evrec_error *err);
/*
 * Gives the JSON of the event that evrec_reader_next found last to the caller, who frees it with evrec_free: it stays
 * valid after the reader's next call, and after the reader is freed. NULL: it was taken before.
 */
char *evrec_reader_take_json(evrec_reader *reader);
void evrec_reader_free(evrec_reader *reader); /* NULL is fine */

/* ---- replay: recorded events under other options ----------------------------------------------------------------- */

#define EVREC_REPLAY_VARIANTS 8 /* at most, of one replay */

/* The options of a sink, under which a trace is replayed. */
typedef struct evrec_replay_variant {
	/* Its functions are not called: the keys in the trace, if any, are used in their place. */
	evrec_correlator_options correlator;
	/*
	 * Instead of the trace's key, events have tokens of their own by these fields of core/v1: names separated by
	 * commas, such as "source.component,involvedObject.name,reason" or "metadata.labels.app". Unset: the trace's key,
	 * else the default. Copied.
	 */
	evrec_str spam_key;
	bool by_series; /* EVREC_CORRELATE_SERIES; else EVREC_CORRELATE_RECORD */
	evrec_series_options series;
} evrec_replay_variant;
/* client-go's defaults. Any thread. */
void evrec_replay_variant_init(evrec_replay_variant *variant);

/*
 * Runs events through the correlators of several variants, by the clock of the events. Nothing is written. The memory
 * grows with the different events, not with their number. One thread at a time.
 *
 * NULL, with *err set: EVREC_ENOMEM, or EVREC_EINVALID: there are no variants or more than EVREC_REPLAY_VARIANTS, or an option
 * is out of range or names no field.
 */
typedef struct evrec_replay evrec_replay;
evrec_replay *evrec_replay_new(const evrec_replay_variant *variants, size_t n, evrec_error *err);
void evrec_replay_free(evrec_replay *replay); /* NULL is fine */

/*
 * Takes the next bytes of a file of evrec_broadcaster_start_trace, cut anywhere. 0, EVREC_ENOMEM, or EVREC_EINVALID:
 * the file is not a trace, or has a later version of the format.
 */
int evrec_replay_feed(evrec_replay *replay, evrec_str bytes, evrec_error *err);
/* Takes an event that was recorded at `t`, instead of a file. 0, or EVREC_ENOMEM. */
int evrec_replay_add(evrec_replay *replay, const evrec_fields *event, int64_t t, evrec_error *err);
/* The trace ends: counts the deferred writes of series. Call it before the results are read. 0, or EVREC_ENOMEM. */
int evrec_replay_end(evrec_replay *replay, evrec_error *err);

/* The trace that was replayed. If `lost` or `malformed` is above 0, it is not exact. */
typedef struct evrec_replayed_trace {
	uint64_t occurrences;
	uint64_t lost, gaps; /* events that are missing in the trace, and the number of gaps */
	uint64_t malformed;  /* lines that were left out */
	int64_t first, last; /* the earliest and the latest occurrence; EVREC_UNSET if there was none */
	bool full;           /* the trace ended at max_bytes */
} evrec_replayed_trace;
void evrec_replay_get_trace(const evrec_replay *replay, evrec_replayed_trace *trace);

/* How occurrences ended under one variant. created + patched + rate_limited + counted is the number of occurrences. */
typedef struct evrec_replayed_tally {
	uint64_t created, patched; /* written at once, if the server accepts each request */
	uint64_t aggregated;       /* how many of these are a part of "(combined from similar events)" */
	uint64_t rate_limited;     /* no token */
	uint64_t counted;          /* of a series, to be written with the next heartbeat or the end */
	uint64_t unseen;           /* rate limited since the last write */
	int64_t last_write;        /* EVREC_UNSET: none */
} evrec_replayed_tally;

/* The sums of a variant. */
typedef struct evrec_replayed_variant {
	evrec_replayed_tally tally;  /* `unseen` is a sum too; `last_write` is the latest */
	uint64_t heartbeats;         /* patches with the counts of series */
	uint64_t peak;               /* requests in the busiest minute */
	int64_t peak_minute;         /* when that minute begins, in ns since 1970 */
	size_t buckets, buckets_max; /* token buckets in the cache, and its capacity */
} evrec_replayed_variant;
/* `variant` counts from 0. */
void evrec_replay_get_variant(const evrec_replay *replay, size_t variant, evrec_replayed_variant *result);

/* The events of one source, object, type and reason. Borrowed. */
typedef struct evrec_replayed_group {
	const evrec_fields *event; /* the first event */
	uint64_t occurrences;
	int64_t first, last;
	const evrec_replayed_tally *tallies; /* one of each variant */
} evrec_replayed_group;
/* After evrec_replay_end: calls `func` for each group, the most recent one first, until it returns false. */
void evrec_replay_each(const evrec_replay *replay, bool (*func)(void *ctx, const evrec_replayed_group *group),
                       void *ctx);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif

/*
 * evrec.h - a Kubernetes event recorder: the whole public C interface.
 *
 *   evrec_error err;
 *   evrec_sink *sink = evrec_sink_in_cluster(EVREC_STR(""), NULL, &err); // in a pod; evrec_sink_file to see lines of JSON
 *   evrec_broadcaster *b = evrec_broadcaster_new(NULL, &err);
 *   evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, &err);
 *   evrec_recorder_options source = { .component = EVREC_STR("my-operator"), .host = EVREC_STR("node-1") };
 *   evrec_recorder *r = evrec_recorder_new(b, &source, &err);
 *
 *   evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
 *   evrec_emit started;
 *   evrec_emit_init(&started);
 *   started.regarding = &pod;
 *   started.type = EVREC_STR("Normal");
 *   started.reason = EVREC_STR("Started");
 *   started.note = EVREC_STR("Started container");
 *   evrec_recorder_emit(r, &started, &err);
 *
 *   if (evrec_broadcaster_shutdown(b, 2 * EVREC_SECOND, &err) != 0)
 *           fprintf(stderr, "%s\n", err.message);
 *   evrec_watch_free(watch); evrec_recorder_free(r); evrec_sink_release(sink); evrec_broadcaster_free(b);
 *
 * In a pod the account needs the verbs create and patch on events, of the API group "" (core/v1), or of events.k8s.io if
 * the option `api` says so. If a constructor returns NULL, `err` says why. evrec_on_signal writes waiting events on SIGTERM.
 *
 * The way of an event: recorder (checks, stamps) -> broadcaster -> every watch, and every sink's pipeline: correlator
 * (aggregate, count, limit), or series (count) -> outbox (fold into a waiting write, or a new one) -> sender (thread, or
 * poll) -> the server's answer -> outbox -> pipeline -> correlator.
 *
 * Threads. An evrec_broadcaster, with its recorders and watches, belongs to one thread at a time, and so does an
 * evrec_correlator. An embedder with several threads makes one evrec_broadcaster in each of them: with one `name` these
 * are handles of one broadcaster, which several threads may use at once, each by its own handle. Sinks, references,
 * events and clocks may be shared by threads. The callbacks of a handle run in calls of that handle alone. The threads
 * that evrec starts run no function of the embedder but its allocator.
 *
 * Forks. A forked child may go on with what the thread that forked it was using, and writes what it records itself. A
 * broadcaster, or a handle of one with a name, that another thread was using at that moment is of no use in the child.
 * fork() waits while other threads of evrec's, or in evrec_broadcaster_poll, are inside libcurl or have the lock of a
 * broadcaster with a name: some milliseconds, a second at most. A callback must not fork a process that uses evrec.
 *
 * Ownership. A `const` pointer and an evrec_str are borrowed for the call. The result of a `_new` function belongs to
 * the caller, who ends it with `_free`. Objects that can be shared are counted: `_retain`, `_release`. Functions that
 * return int return 0 or a negative enum evrec_code; `err` may be NULL. Nothing aborts. Only a broadcaster prints: see `loud`.
 */
#ifndef EVREC_H
#define EVREC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EVREC_VERSION "0.1.0"

/* The library is static: a shared object that links it does not export these names again. */
#pragma GCC visibility push(hidden)
#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------------------------------------------- */

enum evrec_code {
	EVREC_OK = 0,
	EVREC_EINVALID = -1, /* an argument is invalid: nothing was done */
	EVREC_EDROPPED = -2, /* the event was counted as dropped */
	EVREC_ECLOSED = -3,  /* the broadcaster was shut down */
	EVREC_ENOMEM = -4,   /* no memory */
	EVREC_ETIMEOUT = -5, /* the timeout has passed */
	EVREC_ESYSTEM = -6,  /* the operating system refused: errno is in the message */
	EVREC_ELOST = -7,    /* events were lost, or recording calls refused */
};

typedef struct evrec_error {
	int code;
	char message[256]; /* NUL-terminated, UTF-8 */
} evrec_error;

/* The stable name of a code: "invalid", "dropped", "closed", "memory", "timeout", "system", "lost"; "ok": 0. Any thread. */
const char *evrec_code_name(int code);

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/*
 * Sets the function through which evrec allocates, which may be called by any thread: realloc's contract, but a size
 * of 0 frees the block and returns NULL. NULL: the C library's realloc. Not while any evrec object lives. libcurl,
 * jansson and SQLite keep their own allocators.
 */
typedef void *evrec_realloc_func(void *ctx, void *block, size_t size);
void evrec_set_allocator(evrec_realloc_func *func, void *ctx);

/* ---- strings and times ----------------------------------------------------------------------------------------- */

/* Bytes and their number, not necessarily NUL-terminated. A length of 0 means unset; `data` may then be NULL. */
typedef struct evrec_str {
	const char *data;
	size_t len;
} evrec_str;

#ifdef __cplusplus
#define EVREC_STR(literal) (evrec_str{ "" literal, sizeof(literal) - 1 })
#else
#define EVREC_STR(literal) ((evrec_str){ "" literal, sizeof(literal) - 1 })
#endif

/* Borrows a NUL-terminated text; NULL gives an unset string. Any thread. */
static inline evrec_str evrec_string(const char *text)
{
	evrec_str string;

	string.data = text;
	string.len = text == NULL ? 0 : strlen(text);
	return string;
}

/* Times are nanoseconds since 1970 (UTC), durations nanoseconds. */
#define EVREC_SECOND INT64_C(1000000000)
#define EVREC_UNSET INT64_MIN

/* Seconds to the nearest us if that is the same number, else ns. False: not finite, or not 1678 to 2262. Any thread. */
bool evrec_seconds_to_ns(double seconds, int64_t *ns);

/* Room for an RFC 3339 time and its NUL. */
#define EVREC_RFC3339_SIZE 32
/* Writes RFC 3339 in UTC, in whole seconds or (micro) with six fractional digits; returns the length. Any thread. */
size_t evrec_rfc3339_format(int64_t ns, bool micro, char out[EVREC_RFC3339_SIZE]);
/* Reads RFC 3339 with any offset and up to nine fractional digits. False: it is none, or not in 1678 to 2262. Any thread. */
bool evrec_rfc3339_parse(evrec_str text, int64_t *ns);

/* ---- clocks ---------------------------------------------------------------------------------------------------- */

typedef struct evrec_clock evrec_clock;

/* Any thread. A fake clock is counted; the real one is static, and retain and release do nothing to it. */
evrec_clock *evrec_clock_real(void);
evrec_clock *evrec_clock_fake(int64_t now); /* shows `now` until it is set. NULL: no memory */
evrec_clock *evrec_clock_retain(evrec_clock *clock);
void evrec_clock_release(evrec_clock *clock); /* NULL is fine */
int64_t evrec_clock_now(const evrec_clock *clock);
bool evrec_clock_is_fake(const evrec_clock *clock);
/* Sets a fake clock; does nothing to the real one. Setting it back makes no timeout longer. */
void evrec_clock_set(evrec_clock *clock, int64_t now);

/* ---- references and events -------------------------------------------------------------------------------------- */

typedef struct evrec_reference {
	evrec_str kind, api_version, name, ns, uid, resource_version, field_path;
} evrec_reference;

typedef struct evrec_pair {
	evrec_str key, value;
} evrec_pair;

typedef struct evrec_map {
	const evrec_pair *pairs;
	size_t len;
} evrec_map;

typedef struct evrec_owner {
	evrec_str kind, api_version, name, uid;
	int controller, block_owner_deletion; /* -1 unset, 0, 1 */
} evrec_owner;

/* The union of core/v1 and events.k8s.io/v1. A plain value: copying it copies borrowed pointers. */
typedef struct evrec_fields {
	evrec_str name, ns, resource_version;
	evrec_map labels, annotations;
	const evrec_owner *owners;
	size_t owners_len;
	evrec_reference regarding;
	evrec_reference related; /* unset if its kind and name are */
	evrec_str type, reason, action, note;
	evrec_str component, host;       /* source, deprecatedSource */
	evrec_str controller, instance;  /* reporting controller and instance */
	int64_t first, last, event_time; /* or EVREC_UNSET */
	int32_t count;                   /* 0: unset */
	int32_t series_count;            /* 0: no series */
	int64_t series_last;
	evrec_str series_state; /* "Ongoing", "Finished" or "Unknown"; an API server is not told */
} evrec_fields;

/* Unsets every field. An all-zero struct is different: its times are 1970. Any thread. */
void evrec_fields_init(evrec_fields *fields);

/*
 * An immutable event, in one block of memory with all its strings. An event of evrec_event_new is counted, and any thread may
 * use it. The event that a sink's function gets is not counted: retain and release do nothing, and only one thread at a time
 * may use it, as evrec_event_fields reads its strings when it is first called.
 */
typedef struct evrec_event evrec_event;

evrec_event *evrec_event_new(const evrec_fields *fields); /* a copy, the caller's; NULL: no memory */
evrec_event *evrec_event_retain(evrec_event *event);
void evrec_event_release(evrec_event *event);                     /* NULL is fine */
const evrec_fields *evrec_event_fields(const evrec_event *event); /* valid as long as the event */

/*
 * An event packed in the caller's memory, such as a userdata, which must not move. Any thread. evrec_packed_room returns the
 * bytes that the fields take: SIZE_MAX if they are more than 4 GiB. evrec_packed_make packs them into that many bytes at
 * `memory`, which is aligned as malloc's blocks are. evrec_packed_size and evrec_packed_copy do the same for an evrec_event,
 * in less time. evrec_packed_read sets all fields, which borrow from the packed event.
 */
typedef struct evrec_packed evrec_packed;
size_t evrec_packed_room(const evrec_fields *fields);
evrec_packed *evrec_packed_make(void *memory, const evrec_fields *fields);
size_t evrec_packed_size(const evrec_event *event);
evrec_packed *evrec_packed_copy(void *memory, const evrec_event *event);
void evrec_packed_read(const evrec_packed *packed, evrec_fields *fields);

enum evrec_api { EVREC_CORE_V1, EVREC_EVENTS_V1 };
/* Reads an apiVersion, "v1" or "events.k8s.io/v1"; false: neither. Any thread. */
bool evrec_api_parse(evrec_str api_version, enum evrec_api *api);

/* The types of fields: the value in JSON, and in brackets the C type at the field's offset. */
enum evrec_field_type {
	EVREC_FIELD_CONSTANT,  /* the same string in every event (none) */
	EVREC_FIELD_STRING,    /* (evrec_str) */
	EVREC_FIELD_TIME,      /* RFC 3339 in whole seconds (int64_t) */
	EVREC_FIELD_MICROTIME, /* RFC 3339 with six fractional digits (int64_t) */
	EVREC_FIELD_INTEGER,   /* (int32_t) */
	EVREC_FIELD_TRISTATE,  /* true or false (int: 0, 1, or -1 for unset) */
	EVREC_FIELD_MAP,       /* an object of strings (evrec_map) */
	EVREC_FIELD_OBJECT,    /* an object of `fields` (the struct that their offsets are counted in) */
	EVREC_FIELD_OWNERS,    /* an array of objects of `fields`, each an evrec_owner (owners and owners_len) */
};

/* A field of both APIs: a row of the tables below. */
typedef struct evrec_field evrec_field;
struct evrec_field {
	const char *name[2]; /* by enum evrec_api; NULL in the row that ends a table */
	enum evrec_field_type type;
	size_t offset;             /* in bytes, from the start of evrec_fields, evrec_reference or evrec_owner */
	const evrec_field *fields; /* a table, of an OBJECT and of OWNERS */
	const char *constant[2];   /* the value of a CONSTANT, by enum evrec_api */
	bool nullable;             /* printed as null, not left out, if unset */
	bool essential;            /* its object counts as set if one of the object's essential fields is */
};
/*
 * The encoder and the decoder of JSON and the Lua binding follow these tables, so that each field is named once. A
 * field without a value is left out of JSON and tables; an object, if it has essential fields and none of them is set.
 * Constant; any thread.
 */
extern const evrec_field evrec_event_schema[];     /* of evrec_fields, in the order of core/v1 */
extern const evrec_field evrec_reference_schema[]; /* of evrec_reference */

/*
 * Calls a function of the visitor for every set field, in the order of the API's type: a JSON encoder is such a
 * visitor. `key` is NULL for the outermost object and for elements of an array. If a function returns false, or there
 * is no memory, the visit stops and evrec_fields_visit returns false. `only` is the name of the one top-level field to
 * visit; NULL: all of them, within an outermost object. `null` is called for an unset time that the API prints as null.
 * Any thread.
 */
typedef struct evrec_visitor {
	bool (*begin_object)(void *ctx, const char *key);
	bool (*begin_array)(void *ctx, const char *key);
	bool (*end)(void *ctx);
	bool (*string)(void *ctx, evrec_str key, evrec_str value);
	bool (*integer)(void *ctx, const char *key, int64_t value);
	bool (*boolean)(void *ctx, const char *key, bool value);
	bool (*null)(void *ctx, const char *key);
} evrec_visitor;
bool evrec_fields_visit(const evrec_fields *fields, enum evrec_api api, const char *only, const evrec_visitor *visitor,
                        void *ctx);

/*
 * An event's JSON and a NUL. The caller's: evrec_free. NULL: no memory. *len, unless `len` is NULL: its length. Any thread.
 */
char *evrec_fields_json(const evrec_fields *fields, enum evrec_api api, size_t *len);
void evrec_free(void *block); /* NULL is fine. Any thread */

/*
 * A reference that is checked and copied once, for recording many events about its object. Counted. Any thread.
 * evrec_prepared_ref_new returns NULL, with *err set: EVREC_EINVALID or EVREC_ENOMEM.
 */
typedef struct evrec_prepared_ref evrec_prepared_ref;
evrec_prepared_ref *evrec_prepared_ref_new(const evrec_reference *reference, evrec_error *err);
evrec_prepared_ref *evrec_prepared_ref_retain(evrec_prepared_ref *ref);
void evrec_prepared_ref_release(evrec_prepared_ref *ref); /* NULL is fine */
const evrec_reference *evrec_prepared_ref_fields(const evrec_prepared_ref *ref);

/* ---- correlator ------------------------------------------------------------------------------------------------- */

/*
 * client-go's CorrelatorOptions. A callback sets its results and returns true. If it returns false, or a string's data is
 * NULL, the default is used. The strings belong to the callback, and must be valid until a callback of this correlator is
 * called again. Each event takes a token; if the sink has a min_interval (evrec_otlp.h), only events that are written at once
 * take one.
 */
typedef struct evrec_correlator_options {
	size_t lru_cache_size; /* 4096 entries in each of the three caches */
	unsigned burst_size;   /* 25 tokens */
	double qps;            /* 1/300 tokens a second */
	unsigned max_events;   /* 10 distinct local keys before similar events are combined */
	int64_t max_interval;  /* 600 s, in ns: the pause after which the distinct local keys are counted anew */
	bool (*key_func)(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key);
	bool (*message_func)(void *ctx, const evrec_fields *event, evrec_str *message);
	bool (*spam_key_func)(void *ctx, const evrec_fields *event, evrec_str *key);
	void *ctx;
} evrec_correlator_options;

void evrec_correlator_options_init(evrec_correlator_options *options); /* client-go's defaults. Any thread */

/* How an event was correlated. EVREC_SERIES is for sinks with series alone: no correlator has it, and nothing counts it. */
enum evrec_why { EVREC_NEW, EVREC_DUPLICATE, EVREC_AGGREGATED, EVREC_RATE_LIMITED, EVREC_SERIES, EVREC_WHYS };
/* "new", "duplicate", "aggregated", "rate_limited", "series". Any thread. */
const char *evrec_why_name(enum evrec_why why);

typedef struct evrec_correlation {
	evrec_fields event; /* with its name, count, times and message; borrowed until the correlator's next call */
	uint64_t handle;    /* of the event's entry, for evrec_correlator_answered */
	bool patch;         /* the event was written before: patch it */
	bool skip;          /* no token: write nothing */
	enum evrec_why why;
} evrec_correlation;

typedef struct evrec_correlator evrec_correlator;

/*
 * A correlator by itself, for one thread at a time. Copies `options`; NULL: the defaults. NULL, with *err set:
 * EVREC_ENOMEM, or EVREC_EINVALID with a message that begins with the option's name: lru_cache_size is 1 to 16777216,
 * burst_size and max_events are at least 1, qps is 0 to 1e9, max_interval (max_interval_in_seconds) is not negative.
 */
evrec_correlator *evrec_correlator_new(const evrec_correlator_options *options, evrec_error *err);
void evrec_correlator_free(evrec_correlator *correlator); /* NULL is fine */
/*
 * client-go's EventCorrelate, at the time `now`. A new event gets a name if it has none, and a count of at least 1. 0,
 * or EVREC_ENOMEM, or EVREC_EINVALID from inside a callback of this correlator.
 */
int evrec_correlator_correlate(evrec_correlator *correlator, const evrec_fields *event, int64_t now,
                               evrec_correlation *result);
/*
 * client-go's UpdateState: takes the event that the server answered with, and updates the entry with its name, or else the
 * entry with its event key. Never lowers a count. `event` may be the event of an evrec_correlation, borrowed strings
 * included. Errors as above.
 */
int evrec_correlator_update_state(evrec_correlator *correlator, const evrec_fields *event);
/*
 * The same for the entry with this handle: sets its name, unless `name` is empty, and its resource version. Does
 * nothing if the entry was evicted, or from inside a callback of this correlator.
 */
void evrec_correlator_answered(evrec_correlator *correlator, uint64_t handle, evrec_str name,
                               evrec_str resource_version);
/*
 * The patch of a correlated event, as JSON: count, lastTimestamp and, if it is set, message, in core/v1. If the event has a
 * series and no count, the patch is the series, in either API. Only these fields differ between two writes of an event. Freed
 * with evrec_free; *len as of evrec_fields_json. NULL: no memory. Any thread.
 */
char *evrec_fields_patch(const evrec_fields *event, size_t *len);
/* Writes the patch to `to`, without a NUL. Returns its length; 0: `size` is too small, or no memory. Any thread. */
size_t evrec_fields_write_patch(const evrec_fields *event, char *to, size_t size);

typedef struct evrec_correlator_stats {
	uint64_t correlated, why[EVREC_WHYS]; /* why: by enum evrec_why */
	uint64_t callback_errors;             /* callbacks that returned false, also of a sink with series */
	size_t aggregates, observed, buckets; /* entries in the three caches */
} evrec_correlator_stats;
void evrec_correlator_get_stats(const evrec_correlator *correlator, evrec_correlator_stats *stats);

typedef struct evrec_series_stats {
	size_t series;            /* events that are remembered: single ones, and series */
	size_t ongoing;           /* how many of these are series */
	uint64_t begun;           /* series since the start */
	uint64_t finished;        /* series since the start, the evicted ones included */
	uint64_t evicted;         /* series finished before their time, to make room for a new event */
	uint64_t evicted_singles; /* single events forgotten early, for the same reason */
	uint64_t notes; /* distinct notes that series merged, without each one's first; at most 16 of a series count */
} evrec_series_stats;

/* ---- sinks ------------------------------------------------------------------------------------------------------ */

/*
 * A place that events are written to: a configuration. Only files of credentials are opened before the first write.
 * Counted. Any thread. The functions that make one copy their options, and return NULL, with *err set: EVREC_EINVALID
 * (an option, or one of these files that cannot be read), EVREC_ENOMEM, or EVREC_ESYSTEM: libcurl, or SQLite, which sinks
 * with a spool and evrec_sink_store need, cannot be loaded. The first sink that needs one of them loads it. `options`
 * may be NULL for the defaults, but not those of Kubernetes, for the server has no default.
 */
typedef struct evrec_sink evrec_sink;
evrec_sink *evrec_sink_retain(evrec_sink *sink);
void evrec_sink_release(evrec_sink *sink); /* NULL is fine */

/* The write that a full sink drops (EVREC_CAUSE_QUEUE_FULL). Warning events are dropped after all others. */
enum evrec_overflow {
	EVREC_DROP_NEWEST, /* the new write; if it is a Warning, the newest waiting write that is not a Warning */
	EVREC_DROP_OLDEST, /* the write with the oldest last occurrence; the new write if it alone is no Warning */
};

/*
 * Bounds on the writes that wait in memory, of one broadcaster to one sink. Writes under way count, but are not
 * dropped.
 */
typedef struct evrec_limits {
	/*
	 * 10000 writes; 1 to 10 million. Writes that a series has deferred do not count: max_series bounds those. Once a
	 * flush, an end or their time makes them pending, there may be more than max_pending. As long as there are, a new
	 * write drops two with EVREC_DROP_OLDEST.
	 */
	size_t max_pending;
	/*
	 * The memory of the writes and their events, in bytes, checked when a new write is made: a waiting write may
	 * grow later, by a longer message. 0, the default: 4 KiB for each of max_pending, at least 1 MiB. An ordinary
	 * write takes 0.7 KB, and then max_pending is reached first.
	 */
	size_t max_pending_bytes;
	int64_t max_age; /* 3600 s, in ns, from a write's last occurrence until it is dropped, _EXPIRED; 0: no bound */
	unsigned max_tries;       /* failed tries until a write is dropped, _MAX_TRIES; 0, the default: no bound */
	enum evrec_overflow full; /* EVREC_DROP_NEWEST */
} evrec_limits;
void evrec_limits_init(evrec_limits *limits); /* sets the defaults. Any thread */

/*
 * The API whose form a sink's events have, and to which a Kubernetes sink sends them.
 *
 * With _AUTO, a write is sent to events.k8s.io/v1 first. If that refuses it, because the server does not have this API or
 * the account may not use it, the write is sent to core/v1 at once. If core/v1 takes it, the sink uses core/v1 from then
 * on, for all namespaces, and on_error hears of it once, with the permission that is missing. If core/v1 refuses it too,
 * nothing is settled, and the next write is sent to events.k8s.io/v1 first again. Once events.k8s.io/v1 has taken a
 * write, a namespace that is forbidden is no reason to use core/v1. By either API the events are the same: those of
 * series, with an event time. Other kinds of sinks take _AUTO as _EVENTS_V1.
 */
enum evrec_sink_api {
	EVREC_SINK_CORE_V1,
	EVREC_SINK_EVENTS_V1,
	EVREC_SINK_AUTO,
};

/* How a sink combines events. */
enum evrec_correlate {
	EVREC_CORRELATE_BY_API, /* as client-go does for this API: _RECORD for core/v1, else _SERIES */
	EVREC_CORRELATE_RECORD, /* client-go's tools/record: count, combine similar ones, limit in rate */
	EVREC_CORRELATE_SERIES, /* client-go's tools/events: one event for a series, written when it begins and finishes */
};

/*
 * Options of EVREC_CORRELATE_SERIES. Events are of one series if their type, reason, action, reporting controller and
 * instance, regarding and related object are equal, but for resource versions and field paths. The first is written as
 * an event. The second begins a series, which is written at once. Further ones are counted, and written with the next
 * heartbeat, when the series is finished, by a flush, and at the end. Files and functions also see the series' state, and
 * get a write that says "Finished" if the last one did not.
 */
typedef struct evrec_series_options {
	int64_t refresh_interval; /* 1800 s, in ns: heartbeats; at least 1 s */
	/* 360 s, in ns, at least 1 s: every so often the series that were not seen for longer than this are finished. */
	int64_t finish_time;
	size_t max_series; /* 4096, 1 to 16777216: for a new one, the one that was not seen for longest is finished */
	bool note_in_key;  /* different notes make different series; else a series has the note of its last event */
	/*
	 * Limits requests by spam_key_func, burst_size and qps of evrec_correlator_options: the write of a new event takes
	 * a token, and so does the one that begins a series. Without a token, an occurrence of an event that was written is
	 * counted, to be written with the next heartbeat or the end. A new event is not written: the occurrence counts as
	 * rate_limited, and the event's next occurrence tries again, and is written with the count of both.
	 */
	bool rate_limit;
} evrec_series_options;

/* Room for a sink's name and its NUL. */
#define EVREC_SINK_NAME_SIZE 64

/* Options that all sinks have. */
typedef struct evrec_sink_options {
	evrec_limits limits;
	/*
	 * The path of a folder; unset: no spool, but with a share and a state_file "<state_file>.spool". Events that wait for
	 * longer than `spool_after` are in a file of this folder, with their present counts. Events that are not written by
	 * the deadline of evrec_broadcaster_shutdown, or at exit, go there too. The next sink with this spool, in any
	 * process, sends them: it looks for files in its first recording call, poll, flush or shutdown, and every 3 s. An
	 * event leaves the spool once the server has answered. After a crash before that it is sent again, with the same name
	 * and count, which does not make a second event. A full disk keeps as many events as fit, Warnings first.
	 *
	 * Each sink of each process has a file of its own, so processes and sinks may share a folder. The files are
	 * SQLite's, in WAL mode with synchronous = NORMAL: a crash of the machine may cost the last commits. Without a
	 * thread, no poll waits for the disk (synchronous = OFF), and a crash of the machine may cost the file. Folder and
	 * files have modes 0700 and 0600. The folder must belong to this user or to root, and nobody else may write to it;
	 * links, devices and other users' files in it are refused. In these cases, and if a file is damaged or the disk
	 * fails, on_error gets the name "spool"; the sink goes on without the spool, and tries again every 3 s.
	 */
	evrec_str spool;
	int64_t spool_after; /* 1 s, in ns */
	/*
	 * True, the default: beside the file is a journal, which is mapped into memory. A recording call notes its event there,
	 * without a system call, so that a process that is killed loses nothing; a crash of the machine loses it. A call may
	 * wait for the disk while the kernel writes the page that it changes. The journal is made by the first round of the
	 * sink's thread, or the first poll, after the first event. There is none if the disk is too full, or on file systems
	 * other than ext2 to ext4, XFS, tmpfs and overlayfs. Without a journal, or if it is full (max_pending_bytes), a
	 * killed process loses the occurrences of the last spool_after + 0.5 s.
	 */
	bool spool_journal;
	/*
	 * The path of a file; unset: none, but with a share and a spool one in the spool's folder. The file keeps the state
	 * of the correlator or the series, so that a process that crashes and is started again goes on with their counts and
	 * names, combines similar events as before, and has no new tokens. A series goes on if it was seen within
	 * finish_time; it is Unknown until it is seen again. Occurrences that a killed process had only counted are written
	 * with the next one, at the next heartbeat or at the end. The file is opened and read by the first recording call,
	 * poll, flush or shutdown, which waits for the disk: a sink that was only started touches no file. It is written by
	 * the sink's thread, or by poll, once a second if the state has changed, and at the end. A process that is killed
	 * loses about a second of changes, a crash of the machine more. Entries that were not used for 12 h are not taken
	 * over.
	 *
	 * The file has mode 0600, and one owner: beside it are a lock, `path`.lock, which stays, and at times `path`.new.
	 * If another process or sink has it, or the disk fails, the sink goes on without. So if the workers of one server
	 * name the same path, only the first one keeps its counts. A child that was forked after the first call goes on
	 * without too, silently, as the file is the parent's. If a file is damaged, the part before the damage is used. A
	 * file of another version of evrec is not used at all. Both are replaced; a file of another kind is left alone. In
	 * all these cases but the fork on_error gets the name "state", in the first call at the earliest; also if every entry
	 * is too old.
	 */
	evrec_str state_file;
	/* The sink's name in stats and in messages of on_error, UTF-8, at most 63 bytes; unset: its kind. */
	evrec_str name;
	enum evrec_sink_api api;        /* EVREC_SINK_CORE_V1 */
	enum evrec_correlate correlate; /* EVREC_CORRELATE_BY_API */
	evrec_series_options series;
} evrec_sink_options;
/* Sets the defaults. Any thread. */
void evrec_sink_options_init(evrec_sink_options *options);

/*
 * A credential plugin (client.authentication.k8s.io): a command that prints an ExecCredential with a token, a client
 * certificate, or both. It is run without a shell, with the environment that this process has when the sink is made, and
 * KUBERNETES_EXEC_INFO; without a terminal, and with no descriptors but its standard ones. The sink's thread, or poll,
 * runs it if an event is to be sent and there is no credential, or the credential is about to expire, after a 401, and if
 * the certificate cannot be used. It is about to expire when a tenth of its lifetime is left, but at most 60 s. One run at a
 * time, for 30 s and 1 MiB of output at most; after a failure the next run waits for 1 to 30 s, events wait meanwhile, and
 * on_error gets the name "unauthorized". No run starts before the first write.
 */
typedef struct evrec_exec {
	evrec_str command; /* with a slash: a path; without: it is looked up in $PATH when the sink is made */
	const evrec_str *args;
	size_t args_len;
	evrec_map env;         /* added to the environment */
	evrec_str api_version; /* "client.authentication.k8s.io/v1" or "client.authentication.k8s.io/v1beta1" */
	bool provide_cluster_info;
	evrec_str cluster_config; /* JSON, the field `config` of that information; may be unset */
} evrec_exec;

typedef struct evrec_kubernetes_options {
	evrec_sink_options common;
	evrec_str server;            /* https://host:port[/prefix]; to http:// a token is sent in clear text */
	evrec_str token, token_file; /* at most one of both; the file is read again when it changes, and on a 401 */
	evrec_str ca;                /* the text of a PEM file; unset: the system's authorities */
	evrec_str client_certificate, client_key; /* PEM, both or none */
	/*
	 * The files that hold these two, both or none. They are read again when one of them changes, and on a 401, but the last
	 * ones stay in use if that fails, as in a chroot. The constructor reads them if no text is given. The constructor's
	 * working directory is the start of relative paths, also of token_file.
	 */
	evrec_str client_certificate_file, client_key_file;
	/*
	 * NULL: none. Not together with token and token_file. EVREC_EINVALID, with a message that begins with "exec: ": a
	 * field is wrong, the command is not found, or this process may start no other one (RLIMIT_NPROC is 0).
	 */
	const evrec_exec *exec;
	bool insecure_skip_tls_verify;
	/*
	 * The server's host name is looked up once, by the constructor, in its thread: for a process that will go into a chroot
	 * without the resolver's files, or may then start no thread, by which a name is looked up otherwise. The sink connects
	 * to these addresses, 16 at most, for as long as it lives. If there are none, the sink is made all the same, on_error
	 * gets "transport" with the reason, and the name is looked up for each connection.
	 */
	bool resolve_early;
	unsigned max_in_flight; /* 32 requests at once, as streams of one connection; at most 4 without HTTP/2 */
	int64_t timeout;        /* of one request: 10 s, in ns */
	/*
	 * With series only. Before the first event of a controller is created, the sink lists the controller's events in
	 * all namespaces: those that an earlier process wrote under the same reporting instance, or under one of
	 * `resume_instances`, within refresh_interval + finish_time, go on, with their names and counts. A `*` at the end
	 * of an instance stands for any text ("web-*", "*"). No two processes may resume the same events at a time.
	 *
	 * The account needs the right to list events in the whole cluster. If it lacks that, or no list comes within
	 * 10 s, on_error gets "forbidden" or "resume", and series begin anew. At most 16 pairs of controllers and instances
	 * are resumed, and 256 instances may be given, copied by the sink. If a state_file has the event, too, the event
	 * keeps the name in the file, and the larger count, unless it was seen since.
	 */
	bool resume;
	const evrec_str *resume_instances;
	size_t resume_instances_len;
} evrec_kubernetes_options;
/* Sets the defaults. Any thread. */
void evrec_kubernetes_options_init(evrec_kubernetes_options *options);
evrec_sink *evrec_sink_kubernetes(const evrec_kubernetes_options *options, evrec_error *err);
/*
 * A Kubernetes sink for a process in a pod. The server is KUBERNETES_SERVICE_HOST and _PORT of the environment; token and
 * authority are `token` and `ca.crt` in `folder`: unset, /var/run/secrets/kubernetes.io/serviceaccount. `options` (NULL:
 * the defaults) names no server; its token, token_file or exec replaces `token`, its ca or insecure_skip_tls_verify `ca.crt`.
 * EVREC_EINVALID names the missing variable or file. Not while another thread changes the environment.
 */
evrec_sink *evrec_sink_in_cluster(evrec_str folder, const evrec_kubernetes_options *options, evrec_error *err);

/*
 * Appends one JSON event a line to the file `path`; "-" is standard output, whose file status flags are not changed.
 * While a pipe, a socket or a terminal is full, writes wait, and nothing blocks. If the file was renamed or removed, as log
 * files are rotated, the next line creates it again; if it cannot be created, a renamed file is written on.
 */
evrec_sink *evrec_sink_file(evrec_str path, const evrec_sink_options *options, evrec_error *err);

typedef struct evrec_store_options {
	evrec_str path;
	int64_t keep;      /* 604800 s, in ns, at least 1 s, from an event's last occurrence until it is deleted */
	size_t keep_bytes; /* the oldest events are deleted beyond it; at least 1 MiB; 0, the default: no bound */
	bool occurrences;  /* false; keeps the time of each occurrence, too, also of those that were not written */
	bool suppressions; /* false; keeps suppressed occurrences, too, and why, in spans of a minute */
} evrec_store_options;
void evrec_store_options_init(evrec_store_options *options); /* sets the defaults. Any thread */
/*
 * Keeps events in the file `path` (SQLite, WAL), which evrec_source_store reads: one row an event, as it is now. Made
 * by the first write, with mode 0600, which an empty file at `path` gets, too; it may not be a link or another
 * user's, nor lie on a network file system. Several processes may write and read it at once. A written event survives
 * a kill of the process; a crash of the machine may cost the last writes. If another process writes for long, or the
 * disk is full, writes are retried, and on_error gets the name "store"; also if the file is damaged, not a store, or of a
 * newer version. Events are deleted after writes and in the waits of the sink's thread, some hundred at a time.
 *
 * Notes of occurrences and suppressions are written with the next events, or about a second later, and expire as events
 * do. They wait in memory of their own, at most a quarter of max_pending_bytes, or 1 MiB if that is more. Notes without room
 * are lost: `notes_lost` counts them, on_error gets the name "notes", and the store has their number, as suppressions of
 * the stage "lost". Beside the file lie `path`-wal, up to 32 MiB, and `path`-shm.
 */
evrec_sink *evrec_sink_store(const evrec_store_options *store, const evrec_sink_options *options, evrec_error *err);

/* The result of a write. A sink's function gets it empty and sets members; a string that it sets ends with a NUL. */
typedef struct evrec_answer {
	int status;                /* the HTTP status; 0: no answer */
	bool unsent;               /* with a status of 0: the server has certainly not received the write */
	bool maybe_late;           /* a hanging server may still do the write later: a PATCH is sent again */
	int64_t retry_after;       /* in ns; 0: none */
	bool terminating;          /* a 403 or 404 whose cause is NamespaceTerminating */
	char name[256];            /* of the stored event; empty: unknown */
	char resource_version[64]; /* likewise */
	char message[256];         /* the error, for people */
} evrec_answer;

/*
 * client-go's EventSink. evrec_broadcaster_poll, flush and shutdown call the functions, on the broadcaster's thread.
 * `patch` may be NULL: then `create` gets the event again, with its new count. The event is borrowed for the call; a
 * copy of it is evrec_event_new(evrec_event_fields(event)).
 */
typedef struct evrec_sink_ops {
	const char *name; /* the kind of sink, static; NULL: "custom" */
	void (*create)(void *ctx, const evrec_event *event, evrec_answer *answer);
	void (*patch)(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer);
	void (*free)(void *ctx); /* called after the last release; may be NULL */
} evrec_sink_ops;
/* Copies `ops`, which get `ctx`. Such a sink never has a thread. */
evrec_sink *evrec_sink_new(const evrec_sink_ops *ops, void *ctx, const evrec_sink_options *options, evrec_error *err);

/* ---- broadcaster, watches, recorder ------------------------------------------------------------------------------ */

/*
 * A broadcaster gives every recorded event to all of its watches: sinks, functions and queues. The functions of this part and
 * of `stats` belong to the broadcaster's thread, or with a `name` the handle's, unless they say otherwise.
 */
typedef struct evrec_broadcaster evrec_broadcaster;
typedef struct evrec_recorder evrec_recorder;
typedef struct evrec_watch evrec_watch;

/* Who does the I/O of a broadcaster's sinks. */
enum evrec_drive {
	/* A thread for each sink, from its first write on. If no thread can be started, evrec_broadcaster_poll. */
	EVREC_DRIVE_AUTO,
	/* Likewise; but if a thread cannot be started, on_error gets "thread", and so do the lines of `loud`. */
	EVREC_DRIVE_THREAD,
	/* evrec_broadcaster_poll: no thread is ever started. */
	EVREC_DRIVE_POLL,
};

typedef struct evrec_broadcaster_options {
	evrec_clock *clock; /* NULL: the real one; else retained until the broadcaster and its recorders are freed */
	size_t max_message_bytes; /* 1024; 16 to 262144 */
	enum evrec_drive drive;   /* EVREC_DRIVE_AUTO */
	/*
	 * Either may be NULL. Called on the broadcaster's thread, from inside a recording call, poll, flush or shutdown, with
	 * no lock held. `message`, `name`, `event` and `cause` are borrowed for the call. `name` is the kind of error, and
	 * `cause` is what evrec_cause_name or evrec_why_name (EVREC_RATE_LIMITED) returns. A message about a sink begins with
	 * the sink's name.
	 */
	void (*on_error)(void *ctx, const char *message, const char *name);
	void (*on_drop)(void *ctx, const evrec_event *event, const char *cause);
	void *ctx; /* must live until evrec_broadcaster_free */
	/*
	 * Sums up losses and errors for evrec_broadcaster_next_line, except the error "thread" with EVREC_DRIVE_AUTO: no
	 * event is lost by it. If it is `loud`, or has an on_error, losses after evrec_broadcaster_free, at exit(), or by a
	 * signal of evrec_on_signal, are printed on standard error, in a line for each sink; if it is `loud`, with the number of
	 * losses and errors that no line has shown. False, the default, and no on_error: evrec prints nothing.
	 */
	bool loud;
	/*
	 * Unset, the default: a broadcaster of its own. Else, of all that have this name in this process, evrec_broadcaster_new
	 * makes handles of one broadcaster: they share its sinks, counters and lines, and the other options must be equal; of
	 * callbacks only their presence counts. UTF-8, at most 1024 bytes. A broadcaster with a name differs in this:
	 *
	 * - on_drop and on_error are those of the handle whose call found the drop or the error, and are called at its end.
	 * - A function of evrec_broadcaster_start_event_watcher is called at the end of its handle's calls, but not of those
	 *   that record inside a callback. Until then up to 1000 events wait for it; more are dropped (`watch_dropped`).
	 * - key_func, message_func and spam_key_func are called for each event that the handle records, with the event as it
	 *   is recorded. If the handle has not started the sink, the defaults are used.
	 * - A handle that starts a sink joins the sink of that name that another handle has started: of several sinks of one
	 *   name, its first joins the first, and so on. Their options must be equal, but for functions, of which only their
	 *   presence counts. The sink stops once every handle that joined it has stopped it or is freed.
	 * - The functions of an evrec_sink_new are called by the handle that has started the sink first. Other handles
	 *   neither call them nor wait for them. The sink ends with that handle.
	 * - evrec_broadcaster_shutdown closes the handle, and flushes; the sinks end with the last handle. Handles that are
	 *   made later belong to a new broadcaster.
	 */
	evrec_str name;
	/*
	 * Unset, the default: each process writes for itself. Else an abstract socket ("@name", at most 107 bytes), or
	 * the path of one in a folder of mode 0700 of this user. Of the processes with the same share, the first that
	 * records or polls is the owner: it combines, counts, limits and writes the events of all. The others, the
	 * workers, send it their events, and keep those that are not written or spooled yet, in bounded memory; they
	 * send these to the next owner again. An owner that ends by evrec_broadcaster_shutdown hands names, counts and
	 * tokens to one of the others, which is the next owner: within the timeout. An owner that ends by
	 * evrec_broadcaster_free, exit() or a signal of evrec_on_signal takes no more events, and does the same once
	 * all its events are written. If they are not written within the time that each of these waits, the owner
	 * counts as killed. After a killed owner the next one counts no occurrence twice if the sink has a state file
	 * and at most 256 processes record an event; else, and for series, it may count those again that were not
	 * acknowledged: on_error gets "share" with their largest number. An occurrence that is in the owner's spool is
	 * acknowledged: its worker forgets it. If all name one state_file, the next owner takes names, counts and
	 * tokens from it, also after a crash, or if no worker was left. A sink with a spool and no state_file has a
	 * state file in the folder of the spool. One with a state_file and no spool has the spool "<state_file>.spool",
	 * for events that a killed owner had recorded itself. on_drop is called in the process that recorded the event;
	 * on_error gets errors of the owner's sinks in each process whose events the owner has then. A worker that ends
	 * by evrec_broadcaster_shutdown leaves to the owner the events that it has received: they count as `forwarded`,
	 * and the result is EVREC_ETIMEOUT. evrec_explanation_new asks the owner. A broadcaster without a name has the
	 * share's. Sinks of evrec_sink_new and message_func are refused.
	 *
	 * All must start the same sinks, at most 8 with the stopped ones, with the same options, in the same order: if
	 * a process differs, its on_error gets "share_refused" and the option, and its events wait until the owner
	 * ends; if the process or the broadcaster ends first, it writes them itself, without the state_file. Only
	 * processes of this user, of root and of `share_users` are accepted: on_error of the process that refuses, and
	 * of a worker that is refused, gets "share_refused" with the user that is not listed, once, and the worker's
	 * events wait. A worker of root lists the owner's user, if that is another one. If a worker's events wait and
	 * the owner sends nothing for 10 s, not even an answer to a ping, on_error gets "share_silent", once, with the
	 * owner's process id; and "share_answers", once the owner answers or another process is the owner. No other
	 * process becomes the owner while this one hangs.
	 *
	 * A worker keeps at most as many different events as the smallest max_pending of the sinks, in at most the smallest
	 * max_pending_bytes. Then it drops by `full` of the sinks, if that is the same for all, else as EVREC_DROP_NEWEST:
	 * but only an event that was not sent at all, as the owner may have written the others; if there is none, the new
	 * one. max_age and max_tries count from when an owner has the event. A worker that ends by exit() or a signal of
	 * evrec_on_signal first waits for its acknowledgements, for up to 1.6 s or 80 % of the timeout; if it is `loud`, or
	 * has an on_error, it tells on standard error how many are missing.
	 */
	evrec_str share;
	/*
	 * The process is not the owner until evrec_broadcaster_may_own: for a process that only forks others. Until then a
	 * handle that is made after a fork never joins a broadcaster that was made before it: a server that reads another
	 * configuration makes the next one for the processes that it forks later.
	 */
	bool share_client_only;
	/*
	 * The uids, at most 64, of other users whose processes are accepted; only with `share`. They need not be equal in all
	 * processes. A path may then lie in a folder of one of them too: this process connects there, and is never the owner.
	 */
	const unsigned *share_users;
	size_t share_users_len;
} evrec_broadcaster_options;
void evrec_broadcaster_options_init(evrec_broadcaster_options *options); /* the defaults. Any thread */

/*
 * An on_error that writes the message as a line to standard error: "evrec: name: message", with control characters
 * escaped. Never waits: a line is lost if standard error has no room for it. `ctx` is ignored. Any thread.
 */
void evrec_log_stderr(void *ctx, const char *message, const char *name);

/*
 * Copies `options`; NULL: the defaults. Any thread. NULL, with *err set: EVREC_ENOMEM, or EVREC_EINVALID, with a message
 * that begins with the option's name: it is out of range, or differs from that of the other handles.
 */
evrec_broadcaster *evrec_broadcaster_new(const evrec_broadcaster_options *options, evrec_error *err);
/*
 * From now on share_client_only does not count in this process; in a child that it forks later it does, until the child
 * calls this too. Never blocks.
 */
void evrec_broadcaster_may_own(evrec_broadcaster *b);
/*
 * Ends the broadcaster without waiting. Waiting writes are sent in the background for up to 30 s: by the sink's thread or,
 * without one, by the polls of other broadcasters and at exit(); writes to a sink of evrec_sink_new are dropped, but the
 * next process finds them in the journal of the sink's spool, if it has one. A process of a `share` hands over within
 * that time; if it has no thread, and is to succeed an owner that ends, it drops its events. Watches and recorders stay
 * valid: a recorder refuses with EVREC_ECLOSED, a watch gets no event. NULL is fine. Not from a callback.
 */
void evrec_broadcaster_free(evrec_broadcaster *b);

/*
 * Start a watch, which gets every event that is recorded from now on. The handle is the caller's, to be given up with
 * evrec_watch_free. NULL, with *err set: EVREC_EINVALID (an option), EVREC_ENOMEM, or EVREC_ECLOSED after shutdown.
 * From inside a callback, the watch gets no event before the next one.
 *
 * A sink gets events through a correlator of its own, or series of its own (enum evrec_correlate); of the latter's
 * `options` only those of rate_limit count. `sink` is retained until the broadcaster forgets it (see
 * evrec_watch_stop), and `options` (NULL: the defaults) are copied. Sinks are numbered from 1 in the order of their
 * start. A sink keeps its number for as long as the broadcaster knows it, and a number is never given again.
 */
evrec_watch *evrec_broadcaster_start_recording_to_sink(evrec_broadcaster *b, evrec_sink *sink,
                                                       const evrec_correlator_options *options, evrec_error *err);
/*
 * Calls `func` for every event, in order, inside the recording call or poll. The event is borrowed: retain it to keep it.
 *
 * If a sink combines events by series, functions and queues also get the event with its series when that begins
 * ("Ongoing"), is taken over from an earlier process ("Unknown"), or is finished ("Finished"): after the occurrence that
 * begins it, and in the recording call or poll that finds it finished. If there are several such sinks, the series are those
 * of the sink that was started first, as long as it runs.
 */
evrec_watch *evrec_broadcaster_start_event_watcher(evrec_broadcaster *b, void (*func)(void *ctx, evrec_event *event),
                                                   void *ctx, evrec_error *err);
/*
 * Queues every event. `queue_length` is 1 to 10 million events; while so many wait, this watch drops and counts further ones.
 */
evrec_watch *evrec_broadcaster_watch(evrec_broadcaster *b, size_t queue_length, evrec_error *err);

/*
 * Writes every event to a file as it is recorded, before any correlator, for evrec_replay_new: lines of JSON, with the
 * keys that functions of `correlator` (NULL: the defaults) choose. The watch is a sink "trace"; a line in the file has the
 * number of events that it drops. The first event opens the file, and replaces an earlier trace. It has mode 0600, one
 * writer, no link, and ends at `max_bytes` (4096 at least). Not with a `share`. on_error gets "trace" if it cannot be
 * written.
 */
evrec_watch *evrec_broadcaster_start_trace(evrec_broadcaster *b, evrec_str path, uint64_t max_bytes,
                                           const evrec_correlator_options *correlator, evrec_error *err);

/* The oldest event of a queue, now the caller's to release. NULL: none waits, or the watch is no queue. */
evrec_event *evrec_watch_next(evrec_watch *watch);
/*
 * The watch gets no further events. The waiting writes of a sink are still made, and occurrences that were only counted are
 * written at once. Once all are written or dropped, a poll, flush or shutdown forgets the sink: its memory and number
 * are gone, and its counters are a part of `ended` in evrec_stats. Idempotent. May be called from a callback.
 */
void evrec_watch_stop(evrec_watch *watch);
/* Gives up the handle, and stops nothing. NULL is fine. May be called after evrec_broadcaster_free. */
void evrec_watch_free(evrec_watch *watch);

typedef struct evrec_recorder_options {
	/* The event's source, which `kubectl get events` shows: at most 1024 bytes of UTF-8 each, or unset. */
	evrec_str component, host;
	/*
	 * The reporting instance, at most 1024 bytes; unset: the host. If both are unset, a sink of events.k8s.io/v1, which
	 * needs an instance, uses `<component>-<host name of the machine>`.
	 */
	evrec_str instance;
	/* For all events of the recorder, at most 64 each. If evrec_emit has the same key, the value of evrec_emit wins. */
	evrec_map labels, annotations;
} evrec_recorder_options;
void evrec_recorder_options_init(evrec_recorder_options *options); /* unsets all. Any thread */

/*
 * Copies `options`; NULL: all unset. The recorder is the caller's. NULL, with *err set: EVREC_EINVALID, with a message
 * that begins with the option's name, or EVREC_ENOMEM.
 */
evrec_recorder *evrec_recorder_new(evrec_broadcaster *b, const evrec_recorder_options *options, evrec_error *err);
/* NULL is fine. May be called after evrec_broadcaster_free, but not from a callback. */
void evrec_recorder_free(evrec_recorder *recorder);

/* An event to be recorded. All pointers are borrowed for the call. */
typedef struct evrec_emit {
	const evrec_prepared_ref *object; /* the event's object; NULL: use `regarding` */
	const evrec_reference *regarding; /* the event's object, to be checked by the call */
	const evrec_reference *related;   /* may be NULL */
	evrec_str type;                   /* "Normal" or "Warning" */
	evrec_str reason;                 /* 1 to 1024 bytes; a sink of events.k8s.io/v1 cuts it to 128 */
	evrec_str action;                 /* likewise; may be unset: such a sink then uses the reason */
	evrec_str note;                   /* any bytes: invalid UTF-8 becomes U+FFFD; cut at max_message_bytes */
	evrec_map annotations, labels;
	int64_t timestamp; /* when it happened, in ns since 1970; EVREC_UNSET: now */
} evrec_emit;

/* Unsets every field. An all-zero struct is different: its timestamp is 1970. Any thread. */
void evrec_emit_init(evrec_emit *emit);

/*
 * Records an event, and never blocks. 0, or EVREC_EINVALID (*emit is invalid), EVREC_EDROPPED (no memory, or too many
 * events recorded from inside callbacks), EVREC_ECLOSED (after shutdown). Every call is counted. From inside a callback
 * of the same broadcaster the event is copied and queued until the outermost call is done.
 */
int evrec_recorder_emit(evrec_recorder *recorder, const evrec_emit *emit, evrec_error *err);

/*
 * An event that is recorded often: it is checked and copied, and its keys are made, once. Belongs to the thread of its
 * recorder, whose memory lives as long. evrec_prepared_event_new does not use the timestamp of *emit. NULL, with *err set:
 * EVREC_EINVALID, with a message that begins with the field's name, or EVREC_ENOMEM. The prepared event is the caller's. May
 * be freed after evrec_broadcaster_free, but not from a callback; NULL is fine.
 */
typedef struct evrec_prepared_event evrec_prepared_event;
evrec_prepared_event *evrec_prepared_event_new(evrec_recorder *recorder, const evrec_emit *emit, evrec_error *err);
void evrec_prepared_event_free(evrec_prepared_event *prepared);
/*
 * Record that the event happens now, the second with another note, which saves nothing. Both never block, and return what
 * evrec_recorder_emit returns, but never EVREC_EINVALID.
 */
int evrec_prepared_event_record(evrec_prepared_event *prepared, evrec_error *err);
int evrec_prepared_event_record_note(evrec_prepared_event *prepared, evrec_str note, evrec_error *err);

/*
 * Counts a recording call that a binding itself found invalid. Sets *err to `message`, returns EVREC_EINVALID.
 */
int evrec_recorder_refuse(evrec_recorder *recorder, const char *message, evrec_error *err);
/*
 * Counts a recording call for which a binding itself had no memory, as dropped. Sets *err to `message`, returns
 * EVREC_EDROPPED. on_drop is not called, for there is no event to show.
 */
int evrec_recorder_drop(evrec_recorder *recorder, const char *message, evrec_error *err);

/*
 * Never blocks. Broadcasts events that callbacks recorded, ends finished series, takes answers, drops and errors from all
 * sinks, calls on_drop and on_error, and does the work of sinks without a thread. From inside a callback it does nothing.
 */
void evrec_broadcaster_poll(evrec_broadcaster *b);
/*
 * How long an event loop may wait after evrec_broadcaster_poll until it calls that again, in ns: 10 ms while a sink without
 * a thread has requests under way; while such a sink has something else to do, until that is due, 0.1 s at most; 1 s
 * while the thread of a sink has writes, a series goes on, or a line waits. INT64_MAX: not before the next recording
 * call. Negative: never again, as the broadcaster was shut down, or no thread could be started with EVREC_DRIVE_THREAD.
 */
int64_t evrec_broadcaster_poll_delay(evrec_broadcaster *b);
/*
 * Polls and waits until all is written or dropped; occurrences that were only counted are written now too. 0: all was
 * written, or limited in rate. EVREC_ETIMEOUT: events still wait, as `timeout` ns of real time have passed, or as all of them
 * wait for a fake clock. EVREC_ELOST: nothing waits, but since the last flush events were dropped or recording calls were
 * refused. In both cases *err says how many, why, and gives an example or the last error. Full queues of watches do not
 * count. EVREC_EINVALID from inside a callback. A sink's function that runs is not interrupted, but none is begun after the
 * timeout. With a timeout of 0, or less, one poll does all that is due. Else it waits for threads of stopped sinks.
 */
int evrec_broadcaster_flush(evrec_broadcaster *b, int64_t timeout, evrec_error *err);
/*
 * Refuses further recording calls, flushes, and ends all sinks. The remaining writes then go to the sink's spool, for as long
 * as the disk takes, or are dropped with the cause "closed". The sinks are kept for their stats. The results are those of
 * evrec_broadcaster_flush; a second call returns those of the first. If events wait in a spool, it is EVREC_ETIMEOUT.
 */
int evrec_broadcaster_shutdown(evrec_broadcaster *b, int64_t timeout, evrec_error *err);

/*
 * For a broadcaster that is `loud`. The next line about losses, refused calls and errors, if one is due: of each kind of
 * trouble the first at once, and then one line in 10 s (of the broadcaster's clock) that sums up; with `all`, also those
 * that would have to wait. NUL-terminated UTF-8 without a newline or control characters, and without the tokens of the
 * broadcaster's sinks. Events that were limited in rate are not told. False: no line is due, which is cheap to ask.
 */
#define EVREC_LINE_SIZE 1024
bool evrec_broadcaster_next_line(evrec_broadcaster *b, bool all, char line[EVREC_LINE_SIZE]);
/*
 * The last line could not be written: counts its losses and errors in `untold` of the stats; a later line has their number.
 */
void evrec_broadcaster_not_told(evrec_broadcaster *b);
/* Writes the line to standard error, without waiting. False: it did not take all of it at once. Any thread. */
bool evrec_line_to_stderr(const char *line);
/*
 * For bindings: whether a line will show the recording call that was refused last, and lacks its place in the program.
 * evrec_broadcaster_set_place sets the place, such as "hook.lua:12". Copied.
 */
bool evrec_broadcaster_wants_place(const evrec_broadcaster *b);
void evrec_broadcaster_set_place(evrec_broadcaster *b, const char *place);

/* ---- signals ---------------------------------------------------------------------------------------------------- */

/*
 * From now on, if one of these `n` signals (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2) comes, evrec writes or spools
 * waiting events for up to `timeout` ns (0 to 86400 s; exit() takes 2 s), and ends the process by the signal, or process 1 of
 * a container, which the kernel does not end, by _exit(128 + signal). Neither exit handlers nor anything else of the
 * embedder's runs. A thread of evrec's does it, whatever the embedder's threads are doing. Writes to an evrec_sink_new are
 * made only by calls of evrec_broadcaster_poll, for which the thread waits; else they go to the sink's spool, unless one of
 * the sink's functions is running. Events that were recorded inside a callback are lost if it has not returned. A signal that
 * comes a second time ends the process at once.
 *
 * A later call adds signals, and sets the timeout for all. System calls that a signal interrupts are restarted. In a
 * forked child the default actions hold again. 0, or, with nothing changed: EVREC_EINVALID (a signal or the timeout is
 * invalid; or the process ignores a signal, or has a handler for it), EVREC_ESYSTEM (no thread can be started). Any
 * thread.
 */
int evrec_on_signal(const int *signals, size_t n, int64_t timeout, evrec_error *err);

/* ---- stats ------------------------------------------------------------------------------------------------------ */

/* Why an event was not written; evrec_cause_name gives the word used in stats and on_drop. */
enum evrec_cause {
	EVREC_CAUSE_QUEUE_FULL,  /* "queue_full": a sink's limits, or callbacks' queue */
	EVREC_CAUSE_REJECTED,    /* "rejected": 400, 410, 413, 422, other 4xx, a redirect, 501, 505 */
	EVREC_CAUSE_FORBIDDEN,   /* "forbidden" */
	EVREC_CAUSE_NOT_FOUND,   /* "not_found": no such namespace */
	EVREC_CAUSE_TERMINATING, /* "namespace_terminating" */
	EVREC_CAUSE_CONFLICT,    /* "conflict": the name existed, and so did the name of the second try */
	EVREC_CAUSE_CLOSED,      /* "closed" */
	EVREC_CAUSE_MEMORY,      /* "memory" */
	EVREC_CAUSE_EXPIRED,     /* "expired": max_age */
	EVREC_CAUSE_MAX_TRIES,   /* "max_tries" */
	EVREC_CAUSE_UNFIT,       /* "unfit": the sink's API cannot take such an event */
	EVREC_CAUSES
};
const char *evrec_cause_name(enum evrec_cause cause); /* static; "" for EVREC_CAUSES. Any thread */

/* How the server's answers slow a sink down. */
typedef struct evrec_throttle_stats {
	unsigned window;    /* requests that may be under way at once; 0: paused */
	double rate;        /* requests a second that may start; 0: not limited */
	int64_t paused_for; /* ns until the next request may start; 0: not paused */
	uint64_t refused;   /* requests that the server had no room for (429, 503), or did not answer in time */
} evrec_throttle_stats;

/*
 * The counters of one sink. At every moment received = rate_limited + created + patched + coalesced + counted + pending +
 * spooled + forwarded + the sum of dropped. A write that carries n occurrences counts one of them as created or patched, n - 1 as
 * coalesced. An event that is taken up from a spool is received anew: received = events broadcast since the sink's
 * start + restored. In a forked child all counters begin at 0.
 */
typedef struct evrec_sink_stats {
	char name[EVREC_SINK_NAME_SIZE]; /* the option `name`, or "kubernetes", "file", or the name of evrec_sink_ops */
	size_t number;                   /* the sink's number in its broadcaster, from 1 */
	enum evrec_api api;              /* by which events are written; with EVREC_SINK_AUTO the present one */
	uint64_t received, rate_limited, created, patched, coalesced, pending; /* occurrences */
	uint64_t counted;               /* occurrences to be written later: of series, or within a minimum interval */
	uint64_t spooled;               /* occurrences left in the spool at the end, for the next process */
	uint64_t forwarded;             /* occurrences written by another process, or left to it (the option `share`) */
	uint64_t restored;              /* occurrences that an earlier process had left; counted in `received` too */
	uint64_t dropped[EVREC_CAUSES]; /* occurrences, by enum evrec_cause */
	uint64_t retries;               /* requests sent again */
	uint64_t pending_writes;        /* requests still to be made or under way */
	uint64_t pending_bytes;         /* the memory that they take */
	uint64_t errors_lost;           /* messages that on_error did not get, as their queue was full */
	uint64_t notes_lost;            /* notes of occurrences and suppressions that were lost */
	evrec_throttle_stats throttle;
	evrec_correlator_stats correlator; /* of EVREC_CORRELATE_RECORD */
	evrec_series_stats series;         /* of EVREC_CORRELATE_SERIES */
} evrec_sink_stats;

/* The part of this process in a `share`. */
enum evrec_share_role {
	EVREC_SHARE_NONE,    /* the broadcaster has no share */
	EVREC_SHARE_SEEKING, /* this process looks for the owner, or is about to be the owner */
	EVREC_SHARE_WORKER,  /* another process is the owner */
	EVREC_SHARE_OWNER,
	EVREC_SHARE_SILENT, /* another process is the owner, and does not answer */
};

/* At every moment recorded = broadcast + queued + invalid + the sum of dropped. */
typedef struct evrec_stats {
	uint64_t recorded;              /* recording calls */
	uint64_t broadcast;             /* events given to the watches */
	uint64_t queued;                /* events recorded inside a callback, not yet broadcast */
	uint64_t invalid;               /* recording calls refused with EVREC_EINVALID */
	uint64_t dropped[EVREC_CAUSES]; /* events dropped before any sink, by enum evrec_cause */
	uint64_t watch_dropped;         /* events dropped by full queues; not in the equation */
	uint64_t callback_errors;       /* callbacks that failed */
	uint64_t untold;                /* losses and errors in lines that could not be written */
	size_t sinks;                   /* sinks that the broadcaster knows: started, and not forgotten */
	enum evrec_share_role share_role;
	int64_t share_silent_for; /* ns since the owner's last message; 0 unless EVREC_SHARE_SILENT */
	size_t components; /* different components of the handle's recorders, freed ones too; 101: more than 100 */
	/*
	 * The sums over the sinks that were stopped and forgotten; the equation of evrec_sink_stats holds for them too. The
	 * name is empty; the number, the pending counters, and the sizes of the correlator's caches are 0.
	 */
	evrec_sink_stats ended;
} evrec_stats;
void evrec_broadcaster_get_stats(const evrec_broadcaster *b, evrec_stats *stats);
/*
 * The different reasons and actions of one recorder's recording calls, those before a fork too; 101 stands for more than
 * 100, which on_error is told once, with the name "cardinality". Events are counted by these fields: if they hold data,
 * each event is a new one. The strings are the recorder's: valid until it is freed.
 */
typedef struct evrec_recorder_stats {
	evrec_str component, host, instance; /* may be unset; an unset instance is the host */
	size_t reasons, actions;             /* an unset action is not counted */
} evrec_recorder_stats;
void evrec_recorder_get_stats(const evrec_recorder *recorder, evrec_recorder_stats *stats);
/* The handle's recorders that are not freed, in the order in which they were made: the first one for NULL. NULL: no other. */
const evrec_recorder *evrec_broadcaster_next_recorder(const evrec_broadcaster *b, const evrec_recorder *previous);
/*
 * Sets *number to the lowest number of a sink that is not below *number. False, with *number as it was, if there is
 * none. Visits all sinks that the broadcaster knows, in the order of their start:
 *
 *   for (size_t number = 1; evrec_broadcaster_next_sink(b, &number); number++)
 */
bool evrec_broadcaster_next_sink(const evrec_broadcaster *b, size_t *number);
/* False, with *stats as it was, if the broadcaster knows no sink of that number. */
bool evrec_broadcaster_get_sink_stats(const evrec_broadcaster *b, size_t number, evrec_sink_stats *stats);
/*
 * The stats of a watch that is a sink; the final ones once the broadcaster has forgotten it, also after
 * evrec_broadcaster_free. False if the watch is no sink, or the broadcaster was freed before it forgot the sink.
 */
bool evrec_watch_get_sink_stats(const evrec_watch *watch, evrec_sink_stats *stats);
/* The events that wait in a queue, and the number that it dropped because it was full; 0 for another watch. */
void evrec_watch_get_queue(const evrec_watch *watch, size_t *queued, uint64_t *dropped);

/* The stage of a sink that kept an event from being seen as it was recorded. */
enum evrec_stage {
	EVREC_STAGE_AGGREGATED,   /* "aggregated": it is a part of "(combined from similar events)" */
	EVREC_STAGE_RATE_LIMITED, /* "rate_limited": no token; the event's next write counts it */
	EVREC_STAGE_DROPPED,      /* "dropped": lost, for a cause */
	EVREC_STAGE_MERGED,       /* "merged": its note replaced another note of its series, which has the last one */
	EVREC_STAGE_FINISHED,     /* "finished": nothing was suppressed; a series ended, with this count */
	EVREC_STAGES
};
/* The word in quotes above; static. Any thread. */
const char *evrec_stage_name(enum evrec_stage stage);

/* A key is the default one, of the fields in the evrec_suppressed; or the text of a callback; or it was forgotten since. */
enum evrec_key { EVREC_KEY_DEFAULT, EVREC_KEY_CUSTOM, EVREC_KEY_UNKNOWN };

/* Events of one source, object, type and reason that one stage suppressed, and why. Borrowed. */
typedef struct evrec_suppressed {
	enum evrec_stage stage;
	enum evrec_cause cause;    /* of EVREC_STAGE_DROPPED; else EVREC_CAUSES */
	evrec_reference regarding; /* without resource version and field path */
	evrec_str component, host, controller, instance, type, reason;
	evrec_str message;   /* of the last occurrence, as it was or would have been written; 200 bytes of it at most */
	uint64_t count;      /* occurrences */
	int64_t first, last; /* when the first and the last of them were suppressed; of a series, when they happened */
	/* The key of similar events: by default the source, object, type, reason, controller and instance. */
	enum evrec_key aggregate_kind;
	evrec_str aggregate_key; /* of EVREC_KEY_CUSTOM */
	/* The key that has tokens of its own: by default the source, object and type. */
	enum evrec_key spam_kind;
	evrec_str spam_key;
	double tokens;      /* in its bucket now; a full bucket's, if that was forgotten */
	int64_t next_token; /* ns from now: 0 if there is a token, INT64_MAX if none will ever come (qps 0) */
} evrec_suppressed;

/*
 * Tells which events of an object the sink of that number suppressed lately: calls `func` stage by stage, cause by
 * cause, the most recent event first, until it returns false. Does nothing if the broadcaster knows no such sink.
 * Objects are compared by kind, namespace and name, and by uid and apiVersion if `object` has them; NULL: all objects.
 * The latest 128 of each stage and cause are remembered. If callbacks chose more than one key for an entry, it has the
 * last one. Events that were refused before any sink are not told: the recording call said so. `func` must not call the
 * broadcaster. Of this process alone: in a worker of a `share` use evrec_explanation_new.
 */
void evrec_broadcaster_explain(const evrec_broadcaster *b, size_t number, const evrec_reference *object,
                               bool (*func)(void *ctx, const evrec_suppressed *suppressed), void *ctx);

/* A sink, and its suppressed events in the order of evrec_broadcaster_explain. */
typedef struct evrec_explained_sink {
	size_t number;
	evrec_str name;
	const evrec_suppressed *suppressed;
	size_t suppressed_len;
} evrec_explained_sink;
typedef struct evrec_explanation {
	const evrec_explained_sink *sinks; /* in the order of their start */
	size_t sinks_len;
} evrec_explanation;
/*
 * Returns for all sinks the suppressed events that evrec_broadcaster_explain tells. A worker of a `share` asks the owner,
 * after all events that this process has recorded, and gets those of all processes. It waits up to `timeout` ns of real time,
 * and blocks the embedder's event loop. In the owner, or without a `share`, it never waits; after evrec_broadcaster_shutdown
 * it then returns the state at that time.
 *
 * The explanation is a copy, which never changes, and is the caller's: evrec_explanation_free, in any thread. NULL, with
 * *err set: EVREC_ETIMEOUT (no owner was found, or it did not answer in time, as it polls too rarely, or hangs), EVREC_ENOMEM
 * (of this process or of the owner; or an answer of more than 64 MiB), EVREC_ECLOSED (after the shutdown of a worker), or
 * EVREC_EINVALID: a worker asks from inside a callback, or a field of `object` is too long.
 */
const evrec_explanation *evrec_explanation_new(evrec_broadcaster *b, const evrec_reference *object, int64_t timeout,
                                               evrec_error *err);
void evrec_explanation_free(const evrec_explanation *explanation); /* NULL is fine */

/* Counts a failed callback. Unless it is on_error, calls on_error with `message` and "callback": for bindings. */
void evrec_broadcaster_callback_error(evrec_broadcaster *b, const char *message);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif

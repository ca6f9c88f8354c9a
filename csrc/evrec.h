/*
 * evrec.h - a Kubernetes event recorder: the whole public C interface.
 *
 *   evrec_error err;
 *   evrec_sink *sink = evrec_sink_file(EVREC_STR("-"), NULL, &err);
 *   evrec_broadcaster *b = evrec_broadcaster_new(NULL, &err);
 *   evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, &err);
 *   evrec_recorder *r = evrec_recorder_new(b, EVREC_STR("my-operator"), EVREC_STR("node-1"), &err);
 *
 *   evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0"), .ns = EVREC_STR("shop") };
 *   evrec_emit what = { .regarding = &pod, .type = EVREC_STR("Normal"), .reason = EVREC_STR("Started"),
 *                       .note = EVREC_STR("Started container"), .timestamp = EVREC_UNSET };
 *   evrec_recorder_emit(r, &what, &err);
 *
 *   evrec_broadcaster_shutdown(b, 2 * EVREC_SECOND);
 *   evrec_watch_free(watch); evrec_recorder_free(r); evrec_sink_release(sink); evrec_broadcaster_free(b);
 *
 * The way of an event: recorder (checks, stamps) -> broadcaster -> every watcher, and every sink's lane: correlator
 * (aggregate, count, limit) -> outbox (fold into a waiting write, or a new one) -> sender (thread, or poll) -> the
 * server's answer -> outbox -> lane -> correlator.
 *
 * Threads. A broadcaster, with its recorders, watches and correlators, belongs to one thread at a time: an embedder
 * with several threads gives each its own broadcaster or holds a lock around the calls. Sinks, references, events and
 * clocks may be shared by threads. What evrec runs on threads of its own touches only what is locked inside.
 *
 * Ownership. A `const` pointer and an evrec_str are borrowed for the call. What a `_new` function returns is the
 * caller's, ended by `_free`; what can be shared is counted: `_retain`, `_release`. Functions that return int return
 * 0 or a negative enum evrec_code; `err` may be NULL. Nothing here aborts or prints.
 */
#ifndef EVREC_H
#define EVREC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVREC_VERSION "0.1.0"

/* All of it is linked into its user; nothing is exported from a shared object but what that object itself names. */
#pragma GCC visibility push(hidden)

/* ---- errors ---------------------------------------------------------------------------------------------------- */

enum evrec_code {
	EVREC_OK = 0,
	EVREC_EINVALID = -1, /* the arguments: nothing was done */
	EVREC_EDROPPED = -2, /* the event was counted as dropped */
	EVREC_ECLOSED = -3,  /* the broadcaster was shut down */
	EVREC_ENOMEM = -4,
	EVREC_ETIMEOUT = -5,
	EVREC_ESYSTEM = -6, /* the operating system refused: errno is in the message */
};

typedef struct evrec_error {
	int code;
	char message[256]; /* NUL-terminated, UTF-8 */
} evrec_error;

/* The stable name of a code: "invalid", "dropped", "closed", "memory", "timeout", "system"; "ok" for 0. Any thread. */
const char *evrec_code_name(int code);

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/*
 * Every allocation of the core goes through one function, with realloc's contract (size 0 frees, returns NULL).
 * Set it before anything else is called, or to NULL for the C library's. Libraries below (libcurl, jansson, SQLite) keep
 * their own. Not while any evrec object lives.
 */
typedef void *evrec_realloc_func(void *ctx, void *block, size_t size);
void evrec_set_allocator(evrec_realloc_func *func, void *ctx);

/* ---- strings and times ----------------------------------------------------------------------------------------- */

/* Bytes with a length, not necessarily NUL-terminated. { NULL, 0 } is unset; the empty string counts as unset too. */
typedef struct evrec_str {
	const char *data;
	size_t len;
} evrec_str;

#define EVREC_STR(literal) ((evrec_str){ "" literal, sizeof(literal) - 1 })

/* Times are nanoseconds since 1970 (UTC), durations nanoseconds. */
#define EVREC_SECOND INT64_C(1000000000)
#define EVREC_UNSET INT64_MIN

/*
 * Seconds to nanoseconds, rounded to the nearest. False where the number is not finite or outside the years 1678 to
 * 2262, which is what 64 bits hold. Any thread.
 */
bool evrec_seconds_to_ns(double seconds, int64_t *ns);

/* Room for an RFC 3339 time and its NUL. */
#define EVREC_RFC3339_SIZE 32
/* Writes RFC 3339 in UTC, whole seconds or (micro) exactly six fractional digits; returns the length. Any thread. */
size_t evrec_rfc3339_format(int64_t ns, bool micro, char out[EVREC_RFC3339_SIZE]);
/* Reads RFC 3339, any offset and up to nine fractional digits. Any thread. */
bool evrec_rfc3339_parse(evrec_str text, int64_t *ns);

/* ---- clocks ---------------------------------------------------------------------------------------------------- */

typedef struct evrec_clock evrec_clock;

evrec_clock *evrec_clock_real(void);        /* the one real clock; retain and release do nothing to it */
evrec_clock *evrec_clock_fake(int64_t now); /* NULL where there is no memory */
evrec_clock *evrec_clock_retain(evrec_clock *clock);
void evrec_clock_release(evrec_clock *clock);
int64_t evrec_clock_now(const evrec_clock *clock); /* any thread */
bool evrec_clock_is_fake(const evrec_clock *clock);
/* A fake clock only; any thread. Set back, it makes nothing wait longer, as a step of the real one does not. */
void evrec_clock_set(evrec_clock *clock, int64_t now);

/* ---- references and events (semantics 1) ------------------------------------------------------------------------ */

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
	evrec_reference related; /* unset where its kind and name are */
	evrec_str type, reason, action, note;
	evrec_str component, host;       /* source, deprecatedSource */
	evrec_str controller, instance;  /* reporting controller and instance */
	int64_t first, last, event_time; /* EVREC_UNSET where unset */
	int32_t count;                   /* 0 where unset */
	int32_t series_count;            /* 0: no series */
	int64_t series_last;
} evrec_fields;

/* Every field unset. An all-zero struct is not that: its times would be 1970. */
void evrec_fields_init(evrec_fields *fields);

/* An immutable event, counted; one block of memory with all it holds. Any thread. */
typedef struct evrec_event evrec_event;

evrec_event *evrec_event_new(const evrec_fields *fields); /* copies; NULL where there is no memory */
evrec_event *evrec_event_retain(evrec_event *event);
void evrec_event_release(evrec_event *event); /* NULL is fine */
const evrec_fields *evrec_event_fields(const evrec_event *event);

enum evrec_api { EVREC_CORE_V1, EVREC_EVENTS_V1 };

/*
 * Names every set field in the JSON of `api`, in the order of that API's type, without building anything: the encoder
 * and the Lua tables are two such visitors. `key` is NULL for the outermost object and for elements of an array. A
 * visitor returns false to stop; evrec_event_visit then returns false. `only`, where not NULL, names the one top-level
 * field wanted. `null` is called for times that the API prints as null where unset. Any thread.
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
 * The JSON of an event, NUL-terminated, freed with evrec_free; NULL where there is no memory. Any thread.
 */
char *evrec_event_json(const evrec_event *event, enum evrec_api api, size_t *len);
void evrec_free(void *block);

/* A reference, checked and copied once, to be recorded against many times. Counted; any thread. */
typedef struct evrec_ref evrec_ref;
evrec_ref *evrec_ref_new(const evrec_reference *reference, evrec_error *err);
evrec_ref *evrec_ref_retain(evrec_ref *ref);
void evrec_ref_release(evrec_ref *ref);
const evrec_reference *evrec_ref_fields(const evrec_ref *ref);

/* ---- correlator (semantics 2) ----------------------------------------------------------------------------------- */

/*
 * Callbacks take the default's place. Each sets its results and returns true; the strings stay the callback's and must
 * live until it, or another callback of this correlator, is called again. False: the default is used.
 */
typedef struct evrec_correlator_options {
	size_t lru_cache_size; /* 4096 entries in each of the three caches */
	unsigned burst_size;   /* 25 tokens */
	double qps;            /* 1/300 tokens a second */
	unsigned max_events;   /* 10 distinct local keys before similar events are combined */
	int64_t max_interval;  /* 600 s */
	bool (*key_func)(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key);
	bool (*message_func)(void *ctx, const evrec_fields *event, evrec_str *message);
	bool (*spam_key_func)(void *ctx, const evrec_fields *event, evrec_str *key);
	void *ctx;
} evrec_correlator_options;

void evrec_correlator_options_init(evrec_correlator_options *options); /* client-go's defaults */

enum evrec_why { EVREC_NEW, EVREC_DUPLICATE, EVREC_AGGREGATED, EVREC_RATE_LIMITED };
const char *evrec_why_name(enum evrec_why why); /* "new", "duplicate", "aggregated", "rate_limited" */

typedef struct evrec_correlation {
	evrec_fields event; /* as observed: name, count and times set; borrowed until the correlator's next call */
	uint64_t handle;    /* the logger's entry: what a write and its answer are filed under */
	bool patch;         /* the event is known: patch it */
	bool skip;          /* no token: write nothing */
	enum evrec_why why;
} evrec_correlation;

typedef struct evrec_correlator evrec_correlator;

/* The range of an option is checked: EVREC_EINVALID names it as api.md does. */
evrec_correlator *evrec_correlator_new(const evrec_correlator_options *options, evrec_error *err);
void evrec_correlator_free(evrec_correlator *correlator);
/*
 * client-go's EventCorrelate at the time `now`. An event without a name gets one, without a count 1. EVREC_ENOMEM, or
 * EVREC_EINVALID where one of its own callbacks calls it.
 */
int evrec_correlator_correlate(evrec_correlator *correlator, const evrec_fields *event, int64_t now,
                               evrec_correlation *result);
/*
 * client-go's UpdateState: the server's answer. Never lowers a count; filed under the entry of that name, if any.
 * Errors as above.
 */
int evrec_correlator_update_state(evrec_correlator *correlator, const evrec_fields *event);
/*
 * The same for a write that was told by its handle: `name` where it is not empty, and the resource version. Of no
 * effect once the entry was evicted, or from inside a callback of this correlator.
 */
void evrec_correlator_answered(evrec_correlator *correlator, uint64_t handle, evrec_str name,
                               evrec_str resource_version);
/* The patch of a correlated event (semantics 2), freed with evrec_free; NULL where there is no memory. */
char *evrec_fields_patch(const evrec_fields *event, size_t *len);

typedef struct evrec_correlator_stats {
	uint64_t correlated, why[4];              /* why: by enum evrec_why */
	uint64_t callback_errors;                 /* a callback answered false */
	size_t aggregates, observed, rate_limits; /* entries in the three caches */
} evrec_correlator_stats;
void evrec_correlator_get_stats(const evrec_correlator *correlator, evrec_correlator_stats *stats);

/* ---- sinks (semantics 3, 5) ------------------------------------------------------------------------------------- */

/* Where events are written; configuration only: nothing is opened before the first write. Counted; any thread. */
typedef struct evrec_sink evrec_sink;
evrec_sink *evrec_sink_retain(evrec_sink *sink);
void evrec_sink_release(evrec_sink *sink);

/* What a sink drops that has no room, EVREC_CAUSE_QUEUE_FULL. Warning events are dropped after all others. */
enum evrec_full {
	EVREC_DROP_NEWEST, /* what comes; for a Warning event, the newest other one */
	EVREC_DROP_OLDEST, /* what has not happened for longest; where only Warning events wait, what comes if it is none */
};

/*
 * What may wait in memory to be written, of one broadcaster to one sink. What is under way counts, but is not dropped.
 */
typedef struct evrec_limits {
	size_t max_pending; /* 10000 writes; 1 to 10 million */
	/*
	 * And the memory that they take, with the blocks of their events. Looked at where a write is made; one that waits
	 * may grow with a longer message. 0, the default: 4 KiB for each of max_pending, at least 1 MiB. Of ordinary
	 * events, which take 1.5 KB, that is never the first bound; annotations of 256 KB cannot go beyond it.
	 */
	size_t max_pending_bytes;
	int64_t max_age;    /* 3600 s (--event-ttl) after its last occurrence a write is dropped, _EXPIRED; 0: never */
	unsigned max_tries; /* so many tries that failed, and a write is dropped, _MAX_TRIES; 0, the default: never */
	enum evrec_full full; /* EVREC_DROP_NEWEST */
} evrec_limits;
void evrec_limits_init(evrec_limits *limits); /* the defaults */

typedef struct evrec_kubernetes_options {
	evrec_str server;            /* https://host:port[/prefix] */
	evrec_str token, token_file; /* at most one; the file is read again when it changes, and on a 401 */
	evrec_str ca;                /* PEM; unset: the system's authorities */
	evrec_str client_certificate, client_key; /* PEM, both or none */
	bool insecure_skip_tls_verify;
	bool threadless;        /* no thread: evrec_broadcaster_poll does the I/O, and waits for the disk of a spool */
	unsigned max_in_flight; /* 32 requests at once, streams of one connection; 4 where there is no HTTP/2 */
	evrec_limits limits;
	int64_t timeout; /* of one request: 10 s */
	/*
	 * A file of SQLite; unset: none. What could not be written by the deadline of evrec_broadcaster_shutdown, or at
	 * exit, is kept there, and is taken up by the first recording call, poll, flush or shutdown of the next sink that has
	 * the file, in this process or another. One sink at a time: where another has it, on_error says so, "spool", and
	 * the sink goes on without. Neither a full disk nor a damaged file does more than that. An event in there is
	 * removed once it was answered. So it is sent again after a crash in between; its name and its count make that the
	 * same event, not a second one. What SQLite has open does not survive a fork: record first in the child.
	 */
	evrec_str spool;
} evrec_kubernetes_options;
void evrec_kubernetes_options_init(evrec_kubernetes_options *options);
evrec_sink *evrec_sink_kubernetes(const evrec_kubernetes_options *options, evrec_error *err);

/*
 * One JSON event a line, appended to `path`; "-" is standard output, whose flags stay as they are. While a pipe, a
 * socket or a terminal is full, what is recorded is pending. `limits`: NULL for the defaults.
 */
evrec_sink *evrec_sink_file(evrec_str path, const evrec_limits *limits, evrec_error *err);

/* What became of a write. Zeroed before the sink is called. */
typedef struct evrec_answer {
	int status;                /* HTTP's; 0: nothing was answered */
	bool unsent;               /* status 0 and surely not received: not even connected */
	bool lingers;              /* may be carried out later still, by a server that hangs: a PATCH is told again */
	int64_t retry_after;       /* 0: not said */
	bool terminating;          /* a 403 or 404 whose cause is NamespaceTerminating */
	char name[256];            /* the stored event's, where told */
	char resource_version[64]; /* likewise */
	char message[256];         /* what went wrong, for people */
} evrec_answer;

/*
 * client-go's EventSink. Run on the broadcaster's thread, by evrec_broadcaster_poll. patch may be NULL: then create
 * gets the event again, with its new count.
 */
typedef struct evrec_sink_ops {
	const char *name; /* static; in stats; NULL: "custom" */
	void (*create)(void *ctx, const evrec_event *event, evrec_answer *answer);
	void (*patch)(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer);
	void (*free)(void *ctx); /* the last reference is gone; may be NULL */
} evrec_sink_ops;
/* `ops` is copied. `limits`: NULL for the defaults. */
evrec_sink *evrec_sink_new(const evrec_sink_ops *ops, void *ctx, const evrec_limits *limits, evrec_error *err);

/* ---- broadcaster, watches, recorder (semantics 4) --------------------------------------------------------------- */

typedef struct evrec_broadcaster evrec_broadcaster;
typedef struct evrec_recorder evrec_recorder;
typedef struct evrec_watch evrec_watch;

typedef struct evrec_broadcaster_options {
	evrec_clock *clock;       /* NULL: the real one */
	size_t max_message_bytes; /* 1024; 16 to 262144 */
	/* Called on the broadcaster's thread, inside a recording call or poll, with no lock held. Either may be NULL. */
	void (*on_error)(void *ctx, const char *message, const char *name);
	void (*on_drop)(void *ctx, const evrec_event *event, const char *why);
	void *ctx;
} evrec_broadcaster_options;
void evrec_broadcaster_options_init(evrec_broadcaster_options *options);

evrec_broadcaster *evrec_broadcaster_new(const evrec_broadcaster_options *options, evrec_error *err);
/*
 * Ends it without waiting. What still waits is sent in the background for 30 s more: by its thread, or, where it has
 * none, by the polls of other broadcasters, and at exit(). What waits for a sink of the embedder's own is dropped.
 * Watches and recorders still held stay valid, and inert. Not from a callback.
 */
void evrec_broadcaster_free(evrec_broadcaster *b);

/* From now on, every event goes through a correlator of its own (NULL: defaults) to the sink. */
evrec_watch *evrec_broadcaster_start_recording_to_sink(evrec_broadcaster *b, evrec_sink *sink,
                                                       const evrec_correlator_options *options, evrec_error *err);
/* From now on, calls `func` for every event, in order, inside the recording call. */
evrec_watch *evrec_broadcaster_start_event_watcher(evrec_broadcaster *b, void (*func)(void *ctx, evrec_event *event),
                                                   void *ctx, evrec_error *err);
/* From now on, queues every event, up to `queue_length`; further ones are dropped for this watch alone, and counted. */
evrec_watch *evrec_broadcaster_watch(evrec_broadcaster *b, size_t queue_length, evrec_error *err);

evrec_event *evrec_watch_next(evrec_watch *watch); /* the oldest, now the caller's to release; NULL: none waits */
/*
 * No further events. A sink's waiting writes are still made; once they are, a poll gives back its memory, and its stats
 * are what is left of it. Idempotent.
 */
void evrec_watch_stop(evrec_watch *watch);
void evrec_watch_free(evrec_watch *watch); /* gives up the handle, stops nothing; NULL is fine */

/* component, host: what `kubectl get events` shows as source. Copied. */
evrec_recorder *evrec_recorder_new(evrec_broadcaster *b, evrec_str component, evrec_str host, evrec_error *err);
void evrec_recorder_free(evrec_recorder *recorder); /* not from a callback */

typedef struct evrec_emit {
	const evrec_ref *object;          /* a prepared reference, or */
	const evrec_reference *regarding; /* one to be checked now */
	const evrec_reference *related;   /* may be NULL */
	evrec_str type, reason, action, note;
	evrec_map annotations, labels;
	int64_t timestamp; /* EVREC_UNSET: now */
} evrec_emit;

/*
 * Records: never blocks, never fails for reasons outside. EVREC_EINVALID (what was given), EVREC_EDROPPED (no memory,
 * or too many recorded from inside callbacks), EVREC_ECLOSED (after shutdown); each is counted. The note may be any
 * bytes: it is cleaned and cut (see README). From inside a callback of the same broadcaster it is queued.
 */
int evrec_recorder_emit(evrec_recorder *recorder, const evrec_emit *what, evrec_error *err);
/* Counts a call that was refused before it could be given to emit, as invalid, and says what came of it. */
int evrec_recorder_refuse(evrec_recorder *recorder, const char *message, evrec_error *err);
/*
 * Likewise one that did not come to emit for want of memory, as dropped: for bindings, which need some of their own.
 * There is no event that on_drop could be shown.
 */
int evrec_recorder_drop(evrec_recorder *recorder, const char *message, evrec_error *err);

/* Runs what waits for this thread; never blocks. */
void evrec_broadcaster_poll(evrec_broadcaster *b);
/*
 * Polls and waits, `timeout` of real time at most, until all is written or dropped: 0, or EVREC_ETIMEOUT. A sink's
 * functions are not interrupted, but no more of them begun; with a timeout of 0, one poll does all that is due.
 */
int evrec_broadcaster_flush(evrec_broadcaster *b, int64_t timeout);
/*
 * Flush, then stop; what is left goes to the sink's spool, however long the disk takes, or is dropped, cause "closed".
 * Idempotent: 0 again. Both: EVREC_EINVALID in a callback, and no callback may fork a process that goes on using evrec.
 */
int evrec_broadcaster_shutdown(evrec_broadcaster *b, int64_t timeout);

/* Why an event was not written; evrec_cause_name gives the word used in stats and on_drop. */
enum evrec_cause {
	EVREC_CAUSE_QUEUE_FULL,  /* "queue_full": a sink's limits, or callbacks' queue */
	EVREC_CAUSE_REJECTED,    /* "rejected": 400, 410, 413, 422, other 4xx */
	EVREC_CAUSE_FORBIDDEN,   /* "forbidden" */
	EVREC_CAUSE_NOT_FOUND,   /* "not_found": no such namespace */
	EVREC_CAUSE_TERMINATING, /* "namespace_terminating" */
	EVREC_CAUSE_CONFLICT,    /* "conflict": the name is taken, and so was another */
	EVREC_CAUSE_CLOSED,      /* "closed" */
	EVREC_CAUSE_MEMORY,      /* "memory" */
	EVREC_CAUSE_EXPIRED,     /* "expired": max_age */
	EVREC_CAUSE_MAX_TRIES,   /* "max_tries" */
	EVREC_CAUSES
};
const char *evrec_cause_name(enum evrec_cause cause);

/*
 * Occurrences, each in exactly one place: received = rate_limited + created + patched + coalesced + pending + spooled +
 * the sum of dropped. A write that carries n occurrences counts one of them as created or patched, n - 1 as coalesced.
 * What is taken up from a spool is received anew: received = what was broadcast since the sink's start + restored.
 */
typedef struct evrec_sink_stats {
	const char *name; /* "kubernetes", "file", or what evrec_sink_ops says */
	uint64_t received, rate_limited, created, patched, coalesced, pending;
	uint64_t spooled;  /* at the end, for the next process */
	uint64_t restored; /* of those received: left by an earlier one */
	uint64_t dropped[EVREC_CAUSES];
	uint64_t retries;        /* requests sent again */
	uint64_t pending_writes; /* requests still to be made or under way */
	uint64_t pending_bytes;  /* the memory that they take */
	uint64_t errors_lost;    /* messages that on_error did not get, its queue being full */
	evrec_correlator_stats correlator;
} evrec_sink_stats;

/* recorded = broadcast + queued + invalid + the sum of dropped. */
typedef struct evrec_stats {
	uint64_t recorded;  /* recording calls */
	uint64_t broadcast; /* given to the watchers and sinks */
	uint64_t queued;    /* recorded inside a callback, not yet broadcast */
	uint64_t invalid;
	uint64_t dropped[EVREC_CAUSES]; /* before any sink */
	uint64_t watch_dropped;         /* by full watches; not in the equation */
	uint64_t callback_errors;
	size_t sinks;
} evrec_stats;
void evrec_broadcaster_get_stats(const evrec_broadcaster *b, evrec_stats *stats);
/* The i-th sink that was started; false past the last. */
bool evrec_broadcaster_get_sink_stats(const evrec_broadcaster *b, size_t i, evrec_sink_stats *stats);
bool evrec_watch_get_sink_stats(const evrec_watch *watch, evrec_sink_stats *stats);
/* Events that wait in, and that were dropped by, a queue. */
void evrec_watch_get_queue(const evrec_watch *watch, size_t *queued, uint64_t *dropped);

/* Which stage of a sink (semantics 2, 5) kept an event from being seen as it was recorded. */
enum evrec_stage {
	EVREC_STAGE_AGGREGATED,   /* "aggregated": it is a part of "(combined from similar events)" */
	EVREC_STAGE_RATE_LIMITED, /* "rate_limited": no token; counted, and told by the next one that is written */
	EVREC_STAGE_DROPPED,      /* "dropped": lost, for a cause */
};
const char *evrec_stage_name(enum evrec_stage stage);

/* A key is a callback's, whole; or the source, object and type in an evrec_suppressed; or was forgotten since. */
enum evrec_key { EVREC_KEY_DEFAULT, EVREC_KEY_CUSTOM, EVREC_KEY_UNKNOWN };

/* Events of one source, object, type and reason that one stage suppressed, and why. Borrowed for the callback. */
typedef struct evrec_suppressed {
	enum evrec_stage stage;
	enum evrec_cause cause;    /* of EVREC_STAGE_DROPPED; else EVREC_CAUSES */
	evrec_reference regarding; /* without resource version and field path */
	evrec_str component, host, controller, instance, type, reason;
	evrec_str message;   /* the last one's, as it was or would have been written; 200 bytes of it at most */
	uint64_t count;      /* occurrences */
	int64_t first, last; /* when the first and the last of them were suppressed */
	/* What similar events are known by: by default the source, object, type, reason, controller and instance. */
	enum evrec_key aggregate_kind;
	evrec_str aggregate_key; /* of EVREC_KEY_CUSTOM */
	/* What has tokens of its own: by default the source, object and type. */
	enum evrec_key spam_kind;
	evrec_str spam_key;
	double tokens;      /* in its bucket now; full, where that was forgotten */
	int64_t next_token; /* from now: 0 where there is one, INT64_MAX where none will ever come (qps 0) */
} evrec_suppressed;

/*
 * Which events of an object (kind, namespace and name; uid and apiVersion where they are set; NULL: all objects) one
 * sink suppressed lately: calls `func` stage by stage, cause by cause, the most recent first, until it returns false.
 * Of each the latest 128 are remembered, until the sink was stopped and all was written. Where callbacks choose more
 * than one key for them, it is the last one's that is told. `func` must not call the broadcaster. What was refused
 * before any sink is not in here: the recording call said so. The broadcaster's thread.
 */
void evrec_broadcaster_explain(const evrec_broadcaster *b, size_t sink, const evrec_reference *object,
                               bool (*func)(void *ctx, const evrec_suppressed *what), void *ctx);

/* Counts and reports an error of a callback: for bindings, whose callbacks can fail. */
void evrec_broadcaster_callback_error(evrec_broadcaster *b, const char *message);

#pragma GCC visibility pop

#endif

/*
 * pipeline.h - one sink's correlator, outbox and sender. Belongs to a broadcaster, and to its thread. With the sender's
 * thread it shares only the outbox, which has a lock.
 *
 *   an event goes in:     pipeline_record: correlator or series, then outbox
 *   an answer comes back: pipeline_record and pipeline_poll take it from the outbox to the correlator; drops and errors
 *                         go to the listener
 */
#ifndef EVREC_PIPELINE_H
#define EVREC_PIPELINE_H

#include "correlate/origins.h"
#include "event/key.h"
#include "outbox/receipt.h"
#include "sink/sink.h"

#pragma GCC visibility push(hidden)

/* `count` occurrences of an event that goes no further. Borrowed. */
struct pipeline_drop {
	const evrec_fields *event;
	enum evrec_cause cause;
	uint64_t count;
};

/* The outcome of occurrences that were recorded with a receipt. */
enum settled_as {
	SETTLED_WRITTEN, /* by a write of their own, or one of several occurrences */
	SETTLED_SPOOLED,
	SETTLED_RATE_LIMITED,
	SETTLED_DROPPED,
};

struct pipeline_settled {
	struct receipt_id receipt;
	uint64_t handle; /* of the correlator's entry; 0: none */
	uint32_t n;      /* occurrences; others of the same id may be settled differently, and later */
	enum settled_as as;
	enum evrec_cause cause; /* of SETTLED_DROPPED */
};

struct pipeline;

/* The functions are called with no lock held, from inside pipeline_record, pipeline_tick, pipeline_poll and pipeline_join. */
struct pipeline_listener {
	void (*dropped)(void *ctx, const struct pipeline_drop *drop);
	/* The event was rate limited. NULL: not needed. */
	void (*limited)(void *ctx, const evrec_fields *event);
	/* A series has begun, was taken over, or is finished, as series_state says. */
	void (*series)(void *ctx, const struct pipeline *pipeline, const evrec_fields *event);
	/* `name` is static; `sink` is the sink's name, borrowed for the call. */
	void (*error)(void *ctx, const char *message, const char *name, const char *sink);
	/* Once for each occurrence of pipeline_record_for. NULL: there are none. */
	void (*settled)(void *ctx, const struct pipeline *pipeline, const struct pipeline_settled *settled);
	void *ctx;
	bool opens_state; /* pipeline_open_state is called: the first use does not open the state file */
	bool loud;        /* losses after the pipeline is freed, or at exit(), are printed on standard error */
};

struct pipeline_options {
	const evrec_correlator_options *correlator; /* copied; NULL: the defaults */
	evrec_clock *clock;                         /* retained */
	const struct pipeline_listener *listener;   /* outlives the pipeline */
	size_t max_message_bytes;                   /* the length at which messages are cut, also those of aggregates */
	enum evrec_drive drive;
	/*
	 * 0: the sink is this process's own. Else processes share it: a number that is equal in all these processes,
	 * and different for other sinks. The next owner needs both the state and the unwritten events of the last one.
	 * So if the sink has a spool and no state file, its state file is in the folder of the spool; if it has a state
	 * file and no spool, its spool is the folder "<state_file>.spool", unless SQLite cannot be loaded, which the
	 * listener gets as an error.
	 */
	uint64_t share;
};

/*
 * Retains `sink`. NULL, with *err set, if an option is out of range or there is no memory.
 */
struct pipeline *pipeline_new(evrec_sink *sink, const struct pipeline_options *options, evrec_error *err);
/* Never waits: the sender's thread sends the waiting writes in the background; without a thread they are dropped. */
void pipeline_free(struct pipeline *pipeline);

/* True if the sink is a trace that takes no more events: call pipeline_stop. */
bool pipeline_has_enough(const struct pipeline *pipeline);
/* `keys` are the event's own; NULL if there was no memory for them. Does nothing once the pipeline was stopped. */
void pipeline_record(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now);
/*
 * The same for one occurrence that another process has recorded: `settled` of the listener is called with its outcome,
 * maybe before this returns. It is not called for occurrences that the pipeline has when it is freed, nor in a forked
 * child for those of the parent. `receipt` NULL: not called. `origin`: the process that recorded the occurrence; if it
 * is counted already, the event is written with its present count; NULL: it was not recorded before. `again`: an
 * earlier owner may have created the event under its name; if it has, the event is patched. False: the pipeline was
 * stopped, and `settled` will not be called.
 */
bool pipeline_record_for(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now,
                         const struct receipt_id *receipt, const struct origin *origin, bool again);
/* Occurrences that may have been counted twice, as no state tells: an upper bound of the error of all counts. */
uint64_t pipeline_unsure(const struct pipeline *pipeline);
/*
 * `n` occurrences that came over this connection (struct origin) are to be acknowledged in this batch, or their process has got
 * it (origins_tell); `handle` and `as` are how they settled.
 */
void pipeline_tell(struct pipeline *pipeline, uint64_t connection, uint64_t handle, enum settled_as as, uint32_t n,
                   uint64_t batch);
void pipeline_acknowledge(struct pipeline *pipeline, uint64_t connection, uint64_t handle, enum settled_as as,
                          uint32_t n);
/* As origins_reconnect, for all events. */
void pipeline_reconnect(struct pipeline *pipeline, const struct origin *from);
/* The process of this connection (struct origin) records none of its occurrences again. */
void pipeline_leave(struct pipeline *pipeline, uint64_t connection);
/* True if the sink combines events by series. */
bool pipeline_has_series(const struct pipeline *pipeline);
/*
 * Ends a few series that are finished by `now`. Each recording call does so, before pipeline_record (which does it
 * itself unless this was called for its event), so that no call pays for all; pipeline_poll ends all.
 */
void pipeline_tick(struct pipeline *pipeline, int64_t now);
/*
 * The counted occurrences, of series or within a sink's min_interval, become pending. Writes that wait for a batch are
 * due now.
 */
void pipeline_release(struct pipeline *pipeline);
/*
 * Takes answers, drops and errors from the outbox. Does the sender's work too if that has no thread; after `deadline`
 * (CLOCK_MONOTONIC, ns) it begins at most one write.
 */
void pipeline_poll(struct pipeline *pipeline, int64_t deadline);
/* True: the sink could have a thread, and has none. */
bool pipeline_lacks_thread(struct pipeline *pipeline);
/* How long the next pipeline_poll may be put off, as evrec_broadcaster_poll_delay. */
int64_t pipeline_poll_delay(struct pipeline *pipeline);
/*
 * The parts of a poll, for a pipeline under a lock: pipeline_begin_poll with the lock; if it returned true,
 * pipeline_step without it; then pipeline_drain with the lock.
 */
bool pipeline_begin_poll(struct pipeline *pipeline);
void pipeline_step(struct pipeline *pipeline, int64_t deadline);
/* Takes all answers, drops and errors. False: there is no sender, as a forked child had no memory for one. */
bool pipeline_take_all_news(struct pipeline *pipeline);
/* As pipeline_take_all_news, and ends a stopped pipeline if nothing is left to write. */
void pipeline_begin_drain(struct pipeline *pipeline);
/* As pipeline_begin_drain; the pipeline is over once its sender has ended. */
void pipeline_drain(struct pipeline *pipeline);
/*
 * Whether pipeline_drain or pipeline_join would write and close its state file, which waits for the disk. Then
 * pipeline_close_state may do so before, by one thread at a time, without the lock.
 */
bool pipeline_can_close_state(const struct pipeline *pipeline);
void pipeline_close_state(struct pipeline *pipeline);

/* Whether it was stopped, and its sender's thread, which may have the sink's files open, has not ended yet. */
bool pipeline_is_ending(const struct pipeline *pipeline);

/* Waits a moment for progress, until `deadline` (CLOCK_MONOTONIC, ns) at most. False, at once: no progress can come. */
bool pipeline_wait(struct pipeline *pipeline, int64_t deadline);
/* True if no write waits or is under way. */
bool pipeline_empty(struct pipeline *pipeline);

/* Ends recording. Polls go on with the waiting writes until all are made; then the pipeline is over. Idempotent. */
void pipeline_stop(struct pipeline *pipeline);
/* Ends recording, and from now on tries no write twice. Does not wait. Idempotent. */
void pipeline_end(struct pipeline *pipeline);
/* After pipeline_end: waits until `deadline` for writes that are under way, then spools or drops the rest. */
void pipeline_join(struct pipeline *pipeline, int64_t deadline);
/* The part of pipeline_join that waits, and needs no lock. */
void pipeline_wait_for_end(struct pipeline *pipeline, int64_t deadline);
/*
 * True if it was stopped by pipeline_stop, and a poll or join has found and reported that all writes are made or
 * dropped.
 */
bool pipeline_is_over(const struct pipeline *pipeline);

/* ---- the state file: of the option state_file, or in the spool ---- */

/* In a forked child, abandons the parent's objects. With the lock. False: no memory. */
bool pipeline_renew_if_forked(struct pipeline *pipeline);

/*
 * Does the I/O of pipeline_open_state ahead, after pipeline_renew_if_forked. By one thread at a time, without the lock;
 * the pipeline must not be freed meanwhile.
 */
void pipeline_open_state_ahead(struct pipeline *pipeline);
/*
 * For a listener that has `opens_state`: this process is the owner from now on, and takes over the counts of the last
 * owner. Before the first recording call or poll of the pipeline in this process. False: the last owner still has the
 * file, perhaps because it is just ending; call again. After the `last` call the pipeline goes on without counts, and
 * gets the file as soon as the last owner has ended.
 */
bool pipeline_open_state(struct pipeline *pipeline, bool last);
/*
 * After that, before the first recording call, in three steps: pipeline_look_ahead finds the counts that killed
 * processes had in their journals, but not yet in their state; pipeline_take_all_news takes them over;
 * pipeline_end_look_ahead writes them into the state file, and removes the journals. The first and the last wait for
 * the disk, by one thread at a time, without the lock.
 */
void pipeline_look_ahead(struct pipeline *pipeline);
void pipeline_end_look_ahead(struct pipeline *pipeline);
/*
 * The number of changes of the state until now. Once pipeline_state_has returns true for this number, the next process
 * knows all occurrences recorded and settled before. Always true if there is no state file, or if it cannot be written.
 */
uint64_t pipeline_state_changes(const struct pipeline *pipeline);
bool pipeline_state_has(const struct pipeline *pipeline, uint64_t changes);
/* Asks for a write of the state file now, and not within a second. */
void pipeline_write_state(struct pipeline *pipeline);
/*
 * `func` is called after each write of the state, by the sender's driver, until the pipeline is freed. Call this right
 * after pipeline_new or pipeline_open_state.
 */
void pipeline_on_state_written(struct pipeline *pipeline, void (*func)(void *ctx), void *ctx);
/*
 * From now on no event is sent before the state file has its name and count, unless the file cannot be written. Call
 * this right after pipeline_new or pipeline_open_state.
 */
void pipeline_write_state_ahead(struct pipeline *pipeline);

/* ---- a state that one process hands to the next one ---- */

/*
 * Appends the state of the correlator or the series, for pipeline_load_state of another process; out->failed: no
 * memory. False: it is in a state file.
 */
bool pipeline_save_state(struct pipeline *pipeline, struct buf *out);
/* Before the first recording call. Entries that cannot be read, or for which there is no memory, begin anew. */
void pipeline_load_state(struct pipeline *pipeline, evrec_str bytes);

/* Overwrites in `text` the secrets that the sink was configured with. */
void pipeline_hide_secrets(const struct pipeline *pipeline, char *text);
/* True if the embedder gave the sink a spool: writes that are still unsent at its end are kept on disk. */
bool pipeline_has_spool(const struct pipeline *pipeline);
/* The limits of the sink. */
const evrec_limits *pipeline_limits(const struct pipeline *pipeline);
/* Sets all but `number`. In a forked child that has recorded nothing yet all counters are 0. */
void pipeline_get_stats(const struct pipeline *pipeline, evrec_sink_stats *stats);
/* evrec_broadcaster_explain, for this sink. */
void pipeline_explain(const struct pipeline *pipeline, const evrec_reference *object,
                      bool (*func)(void *ctx, const evrec_suppressed *suppressed), void *ctx);

#pragma GCC visibility pop

#endif

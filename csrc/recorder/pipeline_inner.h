/*
 * pipeline_inner.h - shared by the files of a pipeline:
 *
 *   pipeline.c          the way of an event
 *   pipeline_poll.c     polls
 *   pipeline_end.c      the end
 *   pipeline_drop.c     tells of occurrences that the pipeline drops
 *   pipeline_stats.c    counters, and what was suppressed
 *   pipeline_open.c     how a pipeline is made, renewed in a forked child, and freed
 *   pipeline_state.c    its state file
 *   pipeline_series.c   what its series has to be asked and told, besides the events; deferred writes
 *   pipeline_trace.c    the way of an event into a trace
 *   pipeline_notes.c    when events occurred, and which were suppressed, for a sink that keeps that too
 *   pipeline_news.c     answers, drops and errors from the outbox
 *   pipeline_receipts.c what becomes of occurrences that other processes have recorded
 */
#ifndef EVREC_PIPELINE_INNER_H
#define EVREC_PIPELINE_INNER_H

#include "base/clock.h"
#include "correlate/correlator.h"
#include "correlate/series.h"
#include "event/event.h"
#include "event/fit.h"
#include "recorder/pipeline.h"
#include "recorder/suppressed.h"
#include "sender/sender.h"
#include "sink/write.h"

#pragma GCC visibility push(hidden)

enum pipeline_phase {
	PIPELINE_RUNNING, /* takes events */
	PIPELINE_STOPPED, /* by pipeline_stop: takes no event; the waiting writes are made, with all their tries */
	PIPELINE_ENDING,  /* stopped, and the sender was told to end; its thread may still run */
	PIPELINE_OVER,    /* stopped, the sender has ended, and everything was reported: may be freed */
	PIPELINE_SHUT,    /* ended together with its broadcaster, which keeps the pipeline for its stats */
};

#define HOST_NAME_SIZE 256

/*
 * The most answers and drops that a recording call takes from the outbox, and the most series that it ends. One call
 * causes fewer, so the backlog shrinks; and no call pays for a thousand writes that expired together, or a thousand
 * series that end at the same tick.
 */
#define NEWS_WHILE_RECORDING 4

/* The fields that a recording call reads come first, so that they take few cache lines. */
struct pipeline {
	enum pipeline_phase phase;
	evrec_sink *sink;
	evrec_clock *clock;
	const struct pipeline_listener *listener;
	/* A pipeline has a correlator or a series, and the other is NULL; both are if there was no memory. */
	evrec_correlator *correlator;
	struct series *series;
	struct sender *sender; /* owns the outbox and the protocol; NULL: a forked child had no memory for one */
	struct outbox *outbox;
	struct protocol *noting;          /* the sender's, if it takes notes; else NULL */
	const struct receipt_id *receipt; /* of the occurrence that is recorded now; NULL: none */
	const struct origin *origin;      /* of that; NULL: none */
	bool again;                       /* another process may have created its event under the same name */
	bool has_used_state;              /* pipeline_use_state was called, here or in the parent before the fork */
	bool new_style;                   /* of struct write_draft */
	bool ticked;                      /* pipeline_tick was called for the event that is recorded next */
	unsigned fork_generation;
	uint64_t received, rate_limited;
	size_t max_note; /* in bytes */
	struct buf note; /* an aggregate's note, if it had to be cleaned or cut */
	struct suppressed suppressed;
	enum evrec_drive drive;
	evrec_correlator_options options;
	struct state_file *state;       /* owned by the sender (option state_file); NULL: none */
	struct state_file *state_ahead; /* pipeline_open_state_ahead; NULL: none */
	/* From the sink's options; if processes share the sink, one may be derived from the other; empty: none. */
	evrec_str spool, state_path;
	char *made_path;      /* the derived path, or NULL */
	struct keys own_keys; /* the keys of a write that the outbox dropped, or of a series that has ended */
	struct fit fit;       /* for an event in the new style */
	char host_name[HOST_NAME_SIZE];
	uint64_t unsure;                /* pipeline_unsure */
	uint64_t dropped[EVREC_CAUSES]; /* occurrences dropped before the outbox */
	uint64_t traced;                /* occurrences that were given to the outbox of a trace */
};

/* Sets the phase. A debug build traps unless the step is legal. */
void pipeline_enter_phase(struct pipeline *pipeline, enum pipeline_phase phase);

/* ---- pipeline_drop.c ---- */

/* Reports an occurrence that the outbox did not take. */
void pipeline_drop(struct pipeline *pipeline, const struct observed *o, struct keys *keys, enum evrec_cause cause,
                   int64_t now);
/* Counts and reports an event, as it was recorded, that neither correlator nor series has observed. */
void pipeline_drop_unobserved(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys,
                              enum evrec_cause cause, int64_t now);

/* ---- pipeline_trace.c ---- */

/* The part of pipeline_record of a pipeline whose sink is a trace. */
void pipeline_trace(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now);

/* ---- pipeline_notes.c: but for the last two, only if the pipeline's `noting` is set ---- */

/* Notes an occurrence that is in the event's count. */
void pipeline_note_occurrence(const struct pipeline *pipeline, const struct observed *o);
/* Notes that the stage suppressed `count` occurrences at `now`. */
void pipeline_note_suppressed(const struct pipeline *pipeline, enum evrec_stage stage, enum evrec_cause cause,
                              const struct observed *o, uint64_t count, int64_t now);
/* Whether notes are not written yet. */
bool pipeline_has_notes(const struct pipeline *pipeline);
/* The number of lost notes. */
uint64_t pipeline_notes_lost(const struct pipeline *pipeline);

/* Remembers that the stage suppressed an occurrence. `keys` may be NULL: there was no memory for them. */
static inline void pipeline_suppress(struct pipeline *pipeline, enum evrec_stage stage, enum evrec_cause cause,
                                     struct keys *keys, const struct observed *o, int64_t now)
{
	if (keys != NULL) {
		suppressed_add(&pipeline->suppressed, stage, cause, keys, o, now);
	}
	if (pipeline->noting != NULL) {
		pipeline_note_suppressed(pipeline, stage, cause, o, 1, now);
	}
}

/* ---- pipeline_open.c ---- */

/* In a forked child: tries to replace the objects that belong to the parent. */
COLD void pipeline_renew(struct pipeline *pipeline);

/*
 * In a forked child the parent's sender thread does not exist, and its locks may be held for ever; the parent still
 * writes the events that it recorded. The child leaks the parent's objects, and counts anew from here on. False: it had
 * no memory for a sender.
 */
static inline bool pipeline_ready(struct pipeline *pipeline)
{
	if (pipeline->fork_generation != sender_fork_generation()) {
		pipeline_renew(pipeline);
	}
	return pipeline->sender != NULL;
}

/* ---- pipeline_state.c ---- */

/* Opens the state file, if the sink has one; only pipeline_use_state calls it. */
COLD void pipeline_begin_state(struct pipeline *pipeline);
/*
 * The first call, before anything is recorded, opens the state file, if the sink has one and the listener does not open
 * it. In a child that was forked after that it does nothing: the file is the parent's.
 */
static inline void pipeline_use_state(struct pipeline *pipeline)
{
	if (!pipeline->has_used_state && !pipeline->listener->opens_state) {
		pipeline_begin_state(pipeline);
	}
}

/* ---- pipeline_series.c ---- */

/* Makes the series, whose ticks count from `now`. False: no memory. */
bool pipeline_open_series(struct pipeline *pipeline, int64_t now);
/* Ends at most `max` series that are finished by `now`. */
void pipeline_finish_series(struct pipeline *pipeline, int64_t now, size_t max);
/*
 * Tells the series or the correlator that the deferred write with this handle (0: each one) is written before its time,
 * or was not deferred after all.
 */
void pipeline_tell_released(struct pipeline *pipeline, uint64_t handle);
/* Converts `due`, by the pipeline's clock, to the outbox's clock, which is at `monotonic` now; 0: at once. */
int64_t pipeline_due(const struct pipeline *pipeline, int64_t due, int64_t now, int64_t monotonic);
/* Tells the series that occurrences of the entry, which was collected, have ended. */
void pipeline_settle_series(const struct pipeline *pipeline, const struct entry *entry);

/* ---- pipeline_receipts.c ---- */

/* Settles the occurrence that is recorded now. `handle` and `cause` are those of struct pipeline_settled. */
void pipeline_settle_now(const struct pipeline *pipeline, uint64_t handle, enum settled_as as, enum evrec_cause cause);
/* Settles the receipts of a collected entry. */
void pipeline_settle_entry(const struct pipeline *pipeline, const struct entry *entry);

/* ---- pipeline_news.c ---- */

static inline void pipeline_tell_dropped(const struct pipeline *pipeline, const struct pipeline_drop *dropped)
{
	pipeline->listener->dropped(pipeline->listener->ctx, dropped);
}

/* Takes all errors out of the outbox. */
void pipeline_take_messages(struct pipeline *pipeline);
/* Takes up to `max` answers and drops, and all errors, out of the outbox. */
void pipeline_take_news(struct pipeline *pipeline, size_t max);

#pragma GCC visibility pop

#endif

/*
 * share.h - one recorder for the processes of a host. All of them name the same endpoint; whoever binds it is the owner, and
 * writes the events of all. The others are workers: they hand over what they record, and keep it in a ledger until the
 * owner says how it ended. If the owner goes away, a worker takes its place.
 *
 *            share_add          event, more            record
 *   recorder ---------> ledger ------------> owner ------------> its pipelines
 *                          ^       ack         |                     |
 *                          +-------------------+<--------------------+ share_settled
 *              share_ask                  ask              explain
 *   explain ------------------------------> owner ----------> its pipelines
 *
 * Roles are found out in steps. share_step is driven by a thread of the embedder of this file, or by polls: by one
 * thread at a time. All other functions may be called by any thread at any time, unless they say more. The share has a
 * lock of its own, which is held for no system call but a wake, and for no call of share_ops.
 */
#ifndef EVREC_SHARE_H
#define EVREC_SHARE_H

#include "share/ledger.h"

#pragma GCC visibility push(hidden)

struct share;

struct share_options {
	evrec_str name;        /* "@name" or an absolute path */
	bool client_only;      /* not the owner before share_may_own */
	bool holds_acks;       /* an owner acknowledges nothing before share_release */
	const unsigned *users; /* besides root and the own one, whose processes are talked to; copied */
	size_t users_len;
	struct ledger_limits limits;
};

/* Occurrences for the pipelines. Borrowed. */
struct share_event {
	uint64_t source,
		node; /* for share_settled; source is 0 if this process has recorded them: nobody waits for their end */
	const struct frame_event *event;
	uint64_t process; /* the random number of the process that has recorded them */
	evrec_str name;   /* for the event, if it is a new one; empty: it needs one of its own */
	uint16_t flags;   /* of the frame */
	uint32_t n;
	int64_t first, last;
};

/* Called from inside share_step, share_end, share_drop_all and share_flush, with no lock held. */
struct share_ops {
	/* An owner: to be recorded; for each sink, share_settled is called for all `n` of them, now or later. */
	void (*record)(void *ctx, const struct share_event *event);
	/* An owner: a worker waits until all that it has recorded is written. */
	void (*flush)(void *ctx);
	/*
	 * From now on an owner, unless this returns false: then it is called again in the next step. `alone`: another process
	 * is the owner too, and has the state.
	 */
	bool (*begin)(void *ctx, bool alone);
	/* An owner: the source of share_events ends, and records none of them again. */
	void (*left)(void *ctx, uint64_t source);
	/* A worker: `n` occurrences were dropped or limited in rate (frame_ack.end). */
	void (*lost)(void *ctx, const evrec_fields *event, size_t sink, unsigned end, uint32_t n);
	/* `name` is "share", "share_refused", "share_silent" or "share_answers". */
	void (*error)(void *ctx, const char *message, const char *name);
	/* A worker: the owner had an error with a sink (share_report). */
	void (*trouble)(void *ctx, evrec_str text, evrec_str problem, evrec_str sink_name);
	/*
	 * The state of a sink's correlator or series: an owner that ends saves it, and the next one loads it. False: there is none;
	 * out->failed: no memory for it.
	 */
	bool (*save_state)(void *ctx, size_t sink, struct buf *out);
	void (*load_state)(void *ctx, size_t sink, evrec_str state);
	/* An owner: appends what its sinks have suppressed of an object (NULL: of all objects), as explained.h has it. */
	void (*explain)(void *ctx, const evrec_reference *object, struct buf *out);
};

/*
 * No I/O is done before the first step. NULL, with *err set: EVREC_EINVALID (the name) or EVREC_ENOMEM. `ops` must live as
 * long as the share.
 */
struct share *share_new(const struct share_options *options, const struct share_ops *ops, void *ctx, evrec_error *err);
/*
 * Closes all connections. What the ledger still has is forgotten. Not while another function runs; also in a forked child,
 * whose parent then keeps the endpoint and the connections.
 */
void share_free(struct share *s); /* NULL is fine */
/*
 * In a forked child, which has closed its copies of the sockets: closes that of the wake, and nothing more, for a thread
 * that does not exist here may have been changing the rest. The memory stays taken.
 */
void share_abandon(const struct share *s);

/*
 * Copies the options that all processes must have alike, and the number of sinks. Before the first step, and when a sink
 * has been started or stopped. False: no memory.
 */
bool share_set_options(struct share *s, const struct frame_option *options, size_t n, size_t sinks);

/* From now on `client_only` does not count. */
void share_may_own(struct share *s);
/*
 * The process is about to end. An owner reads no more: the workers keep their events for the next owner. A process that the
 * owner refuses, as its options differ, waits no longer for the owner's end, but is the owner of its own events.
 * Idempotent.
 */
void share_leave(struct share *s);
/* An owner that some worker is connected to, which share_end is to tell the end. */
bool share_has_workers(struct share *s);
/* As of the options. The owner believes no ledger to have had more events than the most of these limits. */
void share_set_limits(struct share *s, const struct ledger_limits *limits);

/* As `full` of the limits of a sink. */
void share_set_full(struct share *s, enum evrec_overflow full);

enum share_role { SHARE_UNKNOWN, SHARE_WORKER, SHARE_OWNER };
enum share_role share_role(const struct share *s);
/*
 * A worker whose owner does not answer: since when nothing was heard of it, though something is awaited; 0: it answers. By
 * the clock of share_step. What is recorded meanwhile waits in the ledger: only one process can have the endpoint.
 */
int64_t share_silent_since(const struct share *s);

/*
 * Hands over one occurrence. SHARE_KEPT: the ledger has it. SHARE_DROPPED: it was counted as dropped, for *cause.
 * SHARE_OWN: this process is the owner, and records it itself. `keys` are one for each sink; NULL: defaults.
 */
enum share_result { SHARE_KEPT, SHARE_DROPPED, SHARE_OWN };
enum share_result share_add(struct share *s, const evrec_fields *event, const struct frame_keys *keys, int64_t at,
                            enum evrec_cause *cause);

/*
 * After share_add: the next event that a full ledger has dropped for the new one, and counted, for EVREC_CAUSE_QUEUE_FULL; the
 * caller's. NULL with *n != 0: there was no memory for it. *n == 0: there is none.
 */
evrec_event *share_next_dropped(struct share *s, uint32_t *n);

/* An owner had an error with a sink: it is told to each process whose events it has, or had a moment ago. */
void share_report(struct share *s, evrec_str problem, evrec_str sink_name, evrec_str text);
/* An owner: `n` occurrences of a share_event ended for a sink (frame_ack.end). */
void share_settled(struct share *s, uint64_t source, uint64_t node, size_t sink, unsigned end, uint32_t n);
/*
 * Whether the source of a share_event is connected, and keeps what was not acknowledged. Else it has left that to this
 * process, or records it again.
 */
bool share_has_source(struct share *s, uint64_t source);
/*
 * An owner that holds acknowledgements: the state that is saved from now on has all that was settled until now. False:
 * nothing is held.
 */
bool share_mark(struct share *s);
/* The state of that moment is in its file: the marked occurrences are acknowledged. */
void share_release(struct share *s);

/*
 * Does what can be done at once, and before that waits for up to `timeout` ns until there is something to do. `now` is the
 * time of CLOCK_MONOTONIC, in ns.
 */
void share_step(struct share *s, int64_t now, int64_t timeout);
/*
 * The process is about to end, and goes on with steps until then. It is to be no owner, unless there is no other process: the
 * owner learns that, and this one first looks for another one for a while.
 */
void share_close(struct share *s);
/*
 * From now on this process takes few steps, so it must not become the next owner. False: it has accepted that already. As
 * share_step.
 */
bool share_decline(struct share *s);
/* Ends the wait of a step, the present one or the next one. */
void share_wake(struct share *s);
/* A worker asks the owner to write all that it has. */
void share_flush(struct share *s);
/* Whether all that this process has recorded is acknowledged. */
bool share_is_settled(struct share *s);
/*
 * Ends in order, within `timeout` ns, instead of further steps: an owner has written what it could by now, sends
 * acknowledgements, and hands its state to one worker, which is to be the next owner; one that has become the owner just now
 * waits for the workers of the last one. A worker leaves what the owner has received to the owner, and drops the rest, for
 * the cause "closed"; it passes on the state if it was made the next owner.
 */
void share_end(struct share *s, int64_t timeout);
/* After share_end: occurrences that the owner has received, and has not acknowledged. */
uint64_t share_left_to_owner(struct share *s);
/* Instead, if a step hangs: drops what the ledger has, for the cause "closed". */
void share_drop_all(struct share *s);

void share_count(struct share *s, size_t sink, struct ledger_counts *counts);

/*
 * A worker asks the owner which events of an object (NULL: of all objects) it has suppressed, behind all that waits here.
 * The present owner, or the next one if this one goes. There is one question at a time. False: another one was asked
 * first; or see *err, whose code is 0 in that case: EVREC_ENOMEM or EVREC_EINVALID (a field of the object is too long).
 */
bool share_ask(struct share *s, const evrec_reference *object, evrec_error *err);
/*
 * SHARE_ANSWERED: `answer` is replaced by the owner's, which nobody has read yet, as explained.h has it. SHARE_REFUSED:
 * there was no memory for an answer, at either side, or it would be too long. In both cases nothing is asked any more.
 */
enum share_answer { SHARE_ASKED, SHARE_ANSWERED, SHARE_REFUSED };
enum share_answer share_take_answer(struct share *s, struct buf *answer);
/* The question was asked by this caller, who wants no answer any more. */
void share_forget_question(struct share *s);

#pragma GCC visibility pop

#endif

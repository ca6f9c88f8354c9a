/*
 * share.h - one recorder for the processes of a host. All of them name the same endpoint; the process that binds it is
 * the owner, and writes the events of all. The others are workers: they send it the events that they record, and keep
 * them in a ledger until the owner acknowledges their outcome. If the owner ends, a worker takes its place.
 *
 *            share_add          event, more            record
 *   recorder ---------> ledger ------------> owner ------------> its pipelines
 *                          ^       ack         |                     |
 *                          +-------------------+<--------------------+ share_settled
 *              share_ask                  ask              explain
 *   explain ------------------------------> owner ----------> its pipelines
 *
 * share_step decides the role. It is called by a thread of the caller, or by polls: by one thread at a time. All other
 * functions may be called by any thread at any time, unless they say otherwise. The share has a lock of its own, which
 * is not held during system calls (except a wake), nor during calls of share_ops.
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
	const unsigned *users; /* users besides root and this one, whose processes are accepted; copied */
	size_t users_len;
	struct ledger_limits limits;
};

/* Occurrences for the pipelines. Borrowed. */
struct share_event {
	uint64_t source, node; /* for share_settled; source 0: this process has recorded them, and nobody waits */
	const struct frame_event *event;
	uint64_t process; /* the random number of the process that has recorded them */
	evrec_str name;   /* for the event, if it is new; empty: the owner makes a name */
	uint16_t flags;   /* of the frame */
	uint32_t n;
	int64_t first, last;
	uint64_t batch; /* the last one that the process has got from the owner before */
};

/* Called from inside share_step, share_end, share_drop_all and share_flush, with no lock held. */
struct share_ops {
	/*
	 * An owner: record these occurrences; for each sink, the callee calls share_settled for all `n` of them, now or
	 * later.
	 */
	void (*record)(void *ctx, const struct share_event *event);
	/* An owner: a worker waits until all that it has recorded is written. */
	void (*flush)(void *ctx);
	/*
	 * This process becomes the owner. False: call again in the next step. `alone`: another process is the owner
	 * too, and has the state.
	 */
	bool (*begin)(void *ctx, bool alone);
	/*
	 * An owner, before the first event of a source (0: of this process itself): `batch` is the last one that the source
	 * has got from an earlier owner. The source records again the occurrences whose acknowledgement it has not got.
	 */
	void (*connected)(void *ctx, uint64_t source, uint64_t process, uint64_t batch);
	/* An owner: the process of this source has ended, and records none of its share_events again. */
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
 * Closes all connections, and frees the ledger with its events. Not while another function runs. In a forked child the
 * parent keeps the endpoint and the connections.
 */
void share_free(struct share *s); /* NULL is fine */
/*
 * In a forked child, which has closed its copies of the sockets: closes only the descriptor of the wake, as a thread
 * that does not exist here may have been changing the rest. The memory leaks.
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
 * The process is about to end. An owner stops reading: the workers keep their events for the next owner. A process that
 * the owner refuses, as its options differ, does not wait for the owner's end, but becomes the owner of its own events.
 * Idempotent.
 */
void share_leave(struct share *s);
/* Whether this process is an owner with a connected worker, to which share_end sends the end. */
bool share_has_workers(struct share *s);
/* As in the options. The largest of these limits bounds the events that an owner accepts of one worker. */
void share_set_limits(struct share *s, const struct ledger_limits *limits);

/* As `full` of the limits of a sink. */
void share_set_full(struct share *s, enum evrec_overflow full);

enum share_role { SHARE_UNKNOWN, SHARE_WORKER, SHARE_OWNER };
enum share_role share_role(const struct share *s);
/*
 * Since when the owner of this worker has sent nothing, though a frame is expected; 0: it answers. By the clock of
 * share_step. Meanwhile events wait in the ledger: only one process can have the endpoint.
 */
int64_t share_silent_since(const struct share *s);

/*
 * Adds one occurrence for the owner. SHARE_KEPT: the ledger has it. SHARE_DROPPED: it was counted as dropped, for
 * *cause. SHARE_OWN: this process is the owner, and records it itself. `keys` are one for each sink; NULL: defaults.
 */
enum share_result { SHARE_KEPT, SHARE_DROPPED, SHARE_OWN };
enum share_result share_add(struct share *s, const evrec_fields *event, const struct frame_keys *keys, int64_t at,
                            enum evrec_cause *cause);

/*
 * After share_add: the next event that a full ledger has dropped for the new one, and counted (EVREC_CAUSE_QUEUE_FULL);
 * the caller's. NULL with *n != 0: there was no memory for it. *n == 0: there is none.
 */
evrec_event *share_next_dropped(struct share *s, uint32_t *n);

/* An owner had an error with a sink: sends it to each process whose events it has, or had a moment ago. */
void share_report(struct share *s, evrec_str problem, evrec_str sink_name, evrec_str text);
/* An owner: `n` occurrences of a share_event ended for a sink (frame_ack.end). */
void share_settled(struct share *s, uint64_t source, uint64_t node, size_t sink, unsigned end, uint32_t n);
/*
 * Whether the source of a share_event is connected, and keeps its unacknowledged occurrences. Else it has left them to
 * this process, or records them again.
 */
bool share_has_source(struct share *s, uint64_t source);
/*
 * An owner that holds acknowledgements sends them in batches; a worker applies all of a batch, or none. Each function is
 * for whoever steps.
 *
 *   share_begin_batch     returns the number of the next batch
 *   share_has_sent_batch  whether the source of a share_event is connected, and the last batch was sent to it: it takes part
 *                         in the next one
 *   share_mark            the occurrences settled until now are in this batch, and the state that is saved from now on says
 *                         so; as often as there are more, before share_release. False: none is held
 *   share_release         that state is in its file: the next step sends the batch
 *   share_send_batch      if no step follows: sends at once, as much as the sockets take
 */
uint64_t share_begin_batch(struct share *s);
void share_send_batch(struct share *s);
bool share_has_sent_batch(struct share *s, uint64_t source);
bool share_mark(struct share *s);
void share_release(struct share *s);

/*
 * Waits for up to `timeout` ns until there is something to do, and then does it without waiting. `now` is the time of
 * CLOCK_MONOTONIC, in ns.
 */
void share_step(struct share *s, int64_t now, int64_t timeout);
/*
 * The process is about to end, and continues with steps until then. It does not become an owner, unless there is no
 * other process: it tells the owner, and, without one, first looks for another process for a while.
 */
void share_close(struct share *s);
/*
 * From now on this process takes few steps, so it must not become the next owner. False: it has already accepted to.
 * Called as share_step is.
 */
bool share_decline(struct share *s);
/* Ends the wait of a step, the present one or the next one. */
void share_wake(struct share *s);
/* A worker asks the owner to write all its waiting events. */
void share_flush(struct share *s);
/* Whether all occurrences that this process has recorded are acknowledged. */
bool share_is_settled(struct share *s);
/*
 * Ends in order, within `timeout` ns, in place of further steps. An owner, which has written what it could, sends
 * acknowledgements, and hands its state to one worker, the next owner; a process that became the owner only a moment
 * ago first waits for the workers of the last one. A worker leaves the events that the owner has received to the owner,
 * and drops the rest, with the cause "closed"; it passes on the state if it was made the next owner.
 */
void share_end(struct share *s, int64_t timeout);
/* After share_end: occurrences that the owner has received, and has not acknowledged. */
uint64_t share_left_to_owner(struct share *s);
/* In place of share_end, if a step hangs: drops the events in the ledger, with the cause "closed". */
void share_drop_all(struct share *s);

void share_count(struct share *s, size_t sink, struct ledger_counts *counts);

/*
 * A worker asks the owner which events of an object (NULL: of all objects) it has suppressed, after all events that
 * wait here. If the owner ends, the next one is asked. There is one question at a time. False: another one was asked
 * first; or see *err, whose code is 0 in that case: EVREC_ENOMEM or EVREC_EINVALID (a field of the object is too long).
 */
bool share_ask(struct share *s, const evrec_reference *object, evrec_error *err);
/*
 * SHARE_ANSWERED: `answer` is set to the owner's answer, in the form of explained.h and not checked. SHARE_REFUSED:
 * there was no memory for an answer, at either side, or it would be too long. Both end the question.
 */
enum share_answer { SHARE_ASKED, SHARE_ANSWERED, SHARE_REFUSED };
enum share_answer share_take_answer(struct share *s, struct buf *answer);
/* Cancels the caller's question. */
void share_forget_question(struct share *s);

#pragma GCC visibility pop

#endif

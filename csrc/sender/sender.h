/*
 * sender.h - takes writes from an outbox, gives them to a protocol, and brings the outcomes back. Only this room starts
 * threads.
 *
 * A sender owns its outbox and its protocol. Its thread starts at the first wake in a process, with all signals blocked.
 * If no thread can be had (HAProxy's worker), or the protocol calls the embedder's functions, the sender is driven by
 * sender_step, which the broadcaster's poll calls.
 *
 *   1. new        no thread, nothing open
 *   2. wake       the outbox has something to send: starts the thread, or ends its wait; any thread
 *   3. end        accept nothing more, send what waits once more, then stop; never blocks
 *   4. join       waits for the thread; drops what is left at the deadline
 *   5. release    frees it. A protocol that does I/O first sends what waits, for up to 30 s: by its thread, or, if it has
 *                 none, by the steps of other senders and by exit()
 *
 * A throttle (outbox/throttle.h) says how many requests may be under way, and when the next one may start. If four requests
 * in a row are not answered, it pauses the sender for up to 3 s each time, and lets one request try; so an outage, or a
 * token that has run out, costs the waiting writes no tries.
 *
 * At exit() every listed sender is ended and joined, 2 s at most in all. What is left then goes to its spool if it has
 * one. The handler is registered with atexit after the protocol's library has been set up, so that it runs before the
 * library's own. After a signal of evrec_on_signal a thread does the same while the embedder's threads go on, and ends the
 * process.
 */
#ifndef EVREC_SENDER_H
#define EVREC_SENDER_H

#include "outbox/protocol.h"
#include "spool/spooler.h"
#include "spool/state_file.h"

#include <pthread.h>

#pragma GCC visibility push(hidden)

struct sender_options {
	evrec_clock *clock; /* retained; its monotonic time decides what is due */
	enum evrec_drive drive;
	struct spooler *spooler; /* keeps what is left at the end; NULL: it is dropped */
	const char *name;        /* the sink's, copied */
	bool loud; /* tells on standard error what it loses without its owner: after release, and at exit */
};

/* Owns `ob`, `p` and the spooler from here on, even if it fails. NULL: no memory. */
struct sender *sender_new(struct outbox *ob, struct protocol *p, const struct sender_options *options);

/* Gives it a state, which it owns from here on, and which whoever drives writes: before anything else is asked of it. */
void sender_set_state(struct sender *s, struct state_file *state);
/*
 * Before it is driven, after sender_set_state: looks for what a killed process has left in the spool, as
 * spooler_look_ahead. One thread, which waits for the disk.
 */
void sender_look_ahead(struct sender *s);
/*
 * After that, once the caller has taken what outbox_next_brought returns: writes the state, which then has these counts
 * unless another thread uses it for longer than 0.1 s, and calls spooler_end_look_ahead. Until then nobody drives the sender.
 */
void sender_end_look_ahead(struct sender *s);
/* If a spool may have something to send, starts the drive as the first write would. Any thread. */
void sender_begin(struct sender *s);
/* True: nothing happens unless the broadcaster's thread calls sender_step. Any thread. */
bool sender_needs_step(const struct sender *s);
/* True: sender_needs_step, although the protocol does I/O, which a thread could do. Any thread. */
bool sender_lacks_thread(const struct sender *s);
/*
 * How long the caller of sender_step may wait until the next call, in ns, `max` at most. INT64_MAX: nothing is to be done
 * before the next submit. The broadcaster's thread.
 */
int64_t sender_step_delay(struct sender *s, int64_t max);
/*
 * One round without waiting: take, send, step the protocol; and one round for each sender that was released without a
 * thread. The broadcaster's thread.
 */
void sender_step(struct sender *s);
/* Likewise, but sends no more than one request after `deadline` (CLOCK_MONOTONIC). */
void sender_step_by(struct sender *s, int64_t deadline);

/* From the protocol: the outcome of one write, then, once for each send, the result of the request. Whoever drives. */
void sender_answered(struct sender *s, struct entry *entry, const struct outcome *outcome);
void sender_request_ended(struct sender *s, enum request_result result, int64_t retry_after);
struct outbox *sender_outbox(struct sender *s);
evrec_clock *sender_clock(const struct sender *s);

/* True under a fake clock if nothing can happen before somebody moves that clock. Any thread. */
bool sender_is_stalled(const struct sender *s);
/* The API by which the protocol sends new objects at present; `usual` unless that changes. Any thread. */
enum evrec_api sender_api(const struct sender *s, enum evrec_api usual);
/* How the sink is slowed down by now. Any thread. */
void sender_get_throttle(const struct sender *s, evrec_throttle_stats *stats);

void sender_end(struct sender *s); /* any thread; idempotent */
/* After sender_end: true if its thread has finished, so that sender_release leaves no thread behind. */
bool sender_has_ended(const struct sender *s);
/*
 * Ends it and waits until `deadline` (CLOCK_MONOTONIC), and a moment longer for a thread to let go. True: nothing was
 * left. Else what was left went to the spool, for as long as the disk took, or was dropped, cause "closed". Frees
 * nothing. Idempotent.
 */
bool sender_join(struct sender *s, int64_t deadline);
/* After sender_join, or if sender_has_ended: writes what has changed since, and gives up the state. Idempotent. */
void sender_close_state(struct sender *s);
/*
 * Never blocks. The sender, its outbox and protocol are gone for the caller. Writes that wait for a protocol that calls
 * the embedder's functions are lost.
 */
void sender_release(struct sender *s);

/*
 * Somebody else whom the end of the process waits for as long as for senders: who hands events over to another process.
 * The fields up to `ctx` are the caller's.
 */
struct sender_guest {
	bool (*go_on)(void *ctx); /* does what can be done at once, with no lock held. False: nothing is left */
	void (*tell)(void *ctx);  /* tells what is left. Must not call this room */
	void *ctx;
	void (*let_go)(void *ctx); /* of one without an owner: frees it; NULL: it has an owner */
	struct sender_guest *prev, *next;
	bool listed, busy;
};
/* Not if it is listed. A forked child finds it listed no more, and clears it before it adds it again. Any thread. */
void senders_add_guest(struct sender_guest *guest);
void senders_remove_guest(struct sender_guest *guest); /* waits while the guest is called. Idempotent */
/*
 * The guest, which is listed, has no owner any more. Polls of others go on with it, by this function; once nothing is left,
 * it is unlisted, and `let_go` is called with no lock held. At the end of the process it is not.
 */
void senders_adopt_guest(struct sender_guest *guest, bool (*go_on)(void *ctx), void (*let_go)(void *ctx));
/* A poll: goes on with each guest without an owner. Cheap if there is none. Not inside a function of a guest. Any thread. */
void senders_poll_guests(void);

/*
 * Changes in a forked child, in which the parent's threads do not exist and its locks may be held for ever. Whoever finds
 * it changed makes a new outbox, protocol and sender, and leaves the old ones alone, memory and all: the functions
 * above do nothing for these. Cheap; any thread. Forks before the first sender_watch_forks go unnoticed.
 */
unsigned sender_fork_generation(void);
void sender_watch_forks(void);

/* pthread_create, with all signals blocked in the new thread: they belong to the embedder's threads. */
int sender_create_thread(pthread_t *thread, void *(*function)(void *ctx), void *ctx);

#pragma GCC visibility pop

#endif

/*
 * sender.h - takes writes from an outbox, gives them to a transport, brings the answers back. The one place that
 * starts threads.
 *
 * A sender owns its outbox and its transport. Its thread starts at the first wake in a process, with all signals
 * blocked; where none can be had (HAProxy's worker), or the transport wants none, sender_step is the drive, called by
 * whoever polls.
 *
 *   1. new        no thread, nothing open
 *   2. wake       (outbox had nothing) starts the thread, or pokes it; any thread
 *   3. end        accept nothing more, send what waits once more, then stop; never blocks
 *   4. join       waits for the thread; at the deadline drops what is left
 *   5. release    frees it; what I/O has still to send is sent first, for 30 s at most: by its thread, or where it
 *                 has none by the steps of any other sender, and by exit
 *
 * Where a transport that does I/O meets no answer at all, or 401, four times in a row, the sender pauses, a few seconds
 * at most, and then tries one write at a time, until there is another answer; so an outage, or a token that has run out,
 * costs the waiting writes no tries.
 *
 * At exit() every sender still alive is ended and joined, 2 s at most in all (registered with atexit once, after
 * libcurl's own set-up); what is left then goes to its spool, where it has one.
 */
#ifndef EVREC_SENDER_H
#define EVREC_SENDER_H

#include "deliver/spooler.h"
#include "deliver/transport.h"

#pragma GCC visibility push(hidden)

struct sender_options {
	unsigned max_in_flight;
	evrec_clock *clock; /* retained; its monotonic time decides what is due */
	bool threadless;
	struct spooler *spooler; /* for what is left at the end; NULL: that is dropped */
};

/* Owns `ob`, `t` and the spooler from here on, also where it fails: NULL, no memory. */
struct sender *sender_new(struct outbox *ob, struct transport *t, const struct sender_options *options);

/* Where a spool may have something to send: does what the first write would do. Any thread. */
void sender_begin(struct sender *s);
/* True where the broadcaster's thread has to call sender_step for anything to happen. Any thread. */
bool sender_needs_step(const struct sender *s);
/*
 * One round: take, send, let the transport work, without waiting; and one for those that were released without a
 * thread. The broadcaster's thread.
 */
void sender_step(struct sender *s);
/* Likewise, but sends no more than one write after `deadline` (CLOCK_MONOTONIC). */
void sender_step_by(struct sender *s, int64_t deadline);

/* From the transport: the outcome of a request. Resets *answer to zero afterwards. */
void sender_answered(struct sender *s, struct entry *entry, evrec_answer *answer);
struct outbox *sender_outbox(struct sender *s);

void sender_end(struct sender *s); /* any thread; idempotent */
/* After sender_end: true where no thread of it runs any more, so that sender_release does not leave one behind. */
bool sender_has_ended(const struct sender *s);
/*
 * Ends it and waits until `deadline` (CLOCK_MONOTONIC), and a moment longer for a thread to let go. True if nothing
 * was left; else that goes to the spool, for as long as the disk takes, or is dropped, cause "closed". Frees nothing.
 * Idempotent.
 */
bool sender_join(struct sender *s, int64_t deadline);
/*
 * Never blocks; the sender, outbox and transport are gone for the caller. What waits for a transport that calls
 * functions of the embedder's, not I/O, is lost.
 */
void sender_release(struct sender *s);

/*
 * Changes in a forked child, where the parent's threads do not exist and its locks may be held for ever: whoever finds
 * it changed makes a new outbox, transport and sender, and leaves the old ones alone, memory and all: the functions
 * above do nothing there. Cheap; any thread.
 */
unsigned sender_fork_generation(void);

#pragma GCC visibility pop

#endif

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
 *   3. end        accept nothing more, try each waiting write once more, then stop; never blocks
 *   4. join       waits for the thread; drops the rest at the deadline
 *   5. release    frees it. If the protocol does I/O, waiting writes are sent first, for up to 30 s: by the thread, or,
 *                 if there is none, by the steps of other senders and by exit()
 *
 * A throttle (outbox/throttle.h) says how many requests may be under way, and when the next one may start. If four
 * requests in a row are not answered, it pauses the sender for up to 3 s each time, and lets one request try; so the
 * waiting writes use up no tries in an outage, or after a token has expired.
 *
 * At exit() every listed sender is ended and joined, 2 s at most in all. The rest then goes to its spool, if it has
 * one. The handler is registered with atexit after the protocol's library has been set up, so that it runs before the
 * library's own. After a signal of evrec_on_signal a thread does the same while the embedder's threads go on, and ends
 * the process.
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
	struct spooler *spooler; /* keeps the rest at the end; NULL: the rest is dropped */
	const char *name;        /* the sink's, copied */
	bool loud;               /* prints losses after release, and at exit, on standard error */
};

/* Owns `ob`, `p` and the spooler from here on, also after a failure. NULL: no memory. */
struct sender *sender_new(struct outbox *ob, struct protocol *p, const struct sender_options *options);

/* Gives the sender a state, which it owns from here on, and which the driver writes. Before all other calls. */
void sender_set_state(struct sender *s, struct state_file *state);
/*
 * Before the sender is driven, after sender_set_state: calls spooler_look_ahead. One thread, which waits for the disk.
 */
void sender_look_ahead(struct sender *s);
/*
 * After that, once the caller has taken the items of outbox_next_brought: writes the state, which then has their counts
 * unless another thread uses it for longer than 0.1 s, and calls spooler_end_look_ahead. Until then nobody drives the
 * sender.
 */
void sender_end_look_ahead(struct sender *s);
/* If a spool may have rows to send, starts the driver as the first write would. Any thread. */
void sender_begin(struct sender *s);
/* True: nothing happens unless the broadcaster's thread calls sender_step. Any thread. */
bool sender_needs_step(const struct sender *s);
/* True: sender_needs_step, although a thread could drive the protocol. Any thread. */
bool sender_lacks_thread(const struct sender *s);
/*
 * How long the caller of sender_step may wait until the next call, in ns, `max` at most. INT64_MAX: until the next
 * submit. The broadcaster's thread.
 */
int64_t sender_step_delay(struct sender *s, int64_t max);
/*
 * One round without waiting: take, send, step the protocol; and one round for each sender that was released without a
 * thread. The broadcaster's thread.
 */
void sender_step(struct sender *s);
/* Likewise, but sends no more than one request after `deadline` (CLOCK_MONOTONIC). */
void sender_step_by(struct sender *s, int64_t deadline);

/*
 * From the protocol: the outcome of one write, then, once for each send, the result of the request. The driver's
 * thread.
 */
void sender_answered(struct sender *s, struct entry *entry, const struct outcome *outcome);
void sender_request_ended(struct sender *s, enum request_result result, int64_t retry_after);
struct outbox *sender_outbox(struct sender *s);
evrec_clock *sender_clock(const struct sender *s);

/* True under a fake clock if nothing can happen before the clock is set. Any thread. */
bool sender_is_stalled(const struct sender *s);
/* The API by which the protocol sends new objects at present; `usual` unless that changes. Any thread. */
enum evrec_api sender_api(const struct sender *s, enum evrec_api usual);
/* The present state of the throttle. Any thread. */
void sender_get_throttle(const struct sender *s, evrec_throttle_stats *stats);

void sender_end(struct sender *s); /* any thread; idempotent */
/* After sender_end: true if its thread has finished, so that sender_release leaves no thread behind. */
bool sender_has_ended(const struct sender *s);
/*
 * Ends it and waits until `deadline` (CLOCK_MONOTONIC), and a moment longer for its thread to stop. True: no write was
 * left. Else the rest went to the spool, for as long as the disk took, or was dropped, cause "closed". Frees nothing.
 * Idempotent.
 */
bool sender_join(struct sender *s, int64_t deadline);
/* After sender_join, or if sender_has_ended: writes the last changes of the state, and closes it. Idempotent. */
void sender_close_state(struct sender *s);
/*
 * Never blocks. The caller must not use the sender, its outbox and protocol any more. If the protocol calls the
 * embedder's functions, waiting writes are lost.
 */
void sender_release(struct sender *s);

/*
 * Another object for which the end of the process waits as for senders: a sharing, which hands events over to another
 * process. The fields up to `ctx` are the caller's.
 */
struct sender_guest {
	bool (*go_on)(void *ctx); /* does a step without waiting, with no lock held. False: nothing is left */
	void (*tell)(void *ctx);  /* reports what is left. Must not call this room */
	void *ctx;
	void (*let_go)(void *ctx); /* frees a guest without an owner; NULL: it has an owner */
	struct sender_guest *prev, *next;
	bool listed, busy;
};
/*
 * Adds a guest that is not listed. In a forked child it is not listed any more; the child clears it before it adds it
 * again. Any thread.
 */
void senders_add_guest(struct sender_guest *guest);
void senders_remove_guest(struct sender_guest *guest); /* waits while the guest is called. Idempotent */
/*
 * The guest, which is listed, has no owner any more. Polls of other broadcasters call `go_on`; once nothing is left, it
 * is unlisted, and `let_go` is called with no lock held, but not at the end of the process.
 */
void senders_adopt_guest(struct sender_guest *guest, bool (*go_on)(void *ctx), void (*let_go)(void *ctx));
/*
 * A poll: calls `go_on` of each guest without an owner. Cheap if there is none. Not inside a function of a guest. Any
 * thread.
 */
void senders_poll_guests(void);

/*
 * A number that changes in a forked child, in which the parent's threads do not exist and its locks may be held for
 * ever. The owner of a sender who finds the number changed makes a new outbox, protocol and sender, and leaks the old
 * ones: the functions above do nothing for these. Cheap; any thread.
 */
unsigned sender_fork_generation(void);

/* pthread_create, with all signals blocked in the new thread: they belong to the embedder's threads. */
int sender_create_thread(pthread_t *thread, void *(*function)(void *ctx), void *ctx);

#pragma GCC visibility pop

#endif

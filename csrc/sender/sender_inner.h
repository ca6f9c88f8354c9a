/*
 * sender_inner.h - the structs and internal functions of a sender. Its files call each other in this order:
 *
 *   sender.c         its owner's calls: new, step, join, release
 *   sender_thread.c  its thread: start, run
 *   sender_losses.c  tells what a sender has lost that its owner does not know of
 *   sender_exit.c    exit(), or a signal: ends all senders
 *   on_signal.c      the handler of signals, and the thread that acts on the first one
 *   last_words.c     the number of losses that broadcasters have not told, at the end of the process
 *   sender_round.c   one round: take, send, step the protocol, see to the spool
 *   sender_phase.c   the phases of its life
 *   sender_list.c    the list of all senders, and forks
 */
#ifndef EVREC_SENDER_INNER_H
#define EVREC_SENDER_INNER_H

#include "outbox/throttle.h"
#include "sender/sender.h"

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

/*
 * How long a thread may take to stop once it is told to. The wait is split into turns: if the whole process is
 * descheduled for so long, its thread has not had time to run, and a single wait would give it up.
 */
#define LETTING_GO_MAX (EVREC_SECOND / 5)
#define LETTING_GO_TURNS 20

enum drive { DRIVE_NONE, DRIVE_THREAD, DRIVE_STEPS };

/* A sender only ever moves to a later phase. */
enum sender_phase {
	SENDER_OPEN,
	SENDER_DRAINING, /* its owner is gone: sends what waits, with all tries, until `give_up` */
	SENDER_ENDING,   /* accepts no writes, and tries no write twice, until `give_up` */
	SENDER_STOPPING, /* stops at once */
	SENDER_FINISHED, /* its thread has finished, or nobody steps it any more; the rest is in the spool */
};

/* A copy of the throttle's state for threads that do not drive the sender. */
struct throttle_view {
	atomic_uint window, unanswered;
	_Atomic double rate;
	_Atomic int64_t paused_until, next_slot; /* INT64_MIN: no pause; no rate limit */
	_Atomic uint64_t refused;
};

struct sender {
	struct outbox *outbox;
	struct protocol *protocol;
	struct spooler *spooler;  /* or NULL */
	struct state_file *state; /* or NULL */
	evrec_clock *clock;
	char name[EVREC_SINK_NAME_SIZE]; /* the sink's */
	bool loud;                       /* until it has printed its losses */
	bool does_io;                    /* the protocol's, which may be freed while the sender is listed */
	unsigned generation;             /* sender_fork_generation when it was made */
	_Atomic enum drive drive;
	_Atomic enum sender_phase phase;
	_Atomic int64_t give_up; /* CLOCK_MONOTONIC; holds from SENDER_DRAINING on */
	atomic_flag stepping;    /* a poll, or the end of the process, steps it; from SENDER_FINISHED on it stays set */
	atomic_bool looks_ahead; /* from sender_look_ahead to sender_end_look_ahead: nothing wakes it */
	atomic_bool on_disk;     /* it uses its spool: a wait for its thread is a wait for the disk */
	/* Of the one that drives it: */
	struct entry **batch; /* room for protocol->max_batch */
	unsigned in_flight;   /* requests */
	bool held;            /* an entry is due, and the protocol or the state was not ready for it */
	uint64_t random;
	int64_t memory_due; /* when the outbox has memory to free */
	int64_t now;        /* the clock, as last read: an answer inside `send` needs no second reading */
	struct throttle throttle;
	struct throttle_view view; /* of any thread */
	/* Under senders.lock: */
	struct sender *prev, *next;
	bool listed;
	bool released; /* its thread, or the last one that steps it, frees it */
	bool joined;
	pthread_t thread;
};

/* ---- sender_list.c ---- */

enum ending { NOT_ENDED, ENDING, ENDED };

/*
 * All senders that have had a write. The end of the process ends those that do I/O. After a signal it also waits for
 * the others, whose protocol calls the embedder's functions.
 */
struct senders {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a thread has finished, or `ending` has changed */
	struct sender *head;
	unsigned away; /* senders without an owner that a poll steps; they are not in the list meanwhile */
	struct sender_guest *guests;
	atomic_uint orphans; /* guests without an owner */
	enum ending ending;
	pthread_t leaver; /* the last thread that left the list with its sender: the next one joins it, or exit() */
	bool has_leaver;
};
extern struct senders senders; /* a forked child finds the list empty, and the generation changed */

/* CLOCK_MONOTONIC in ns, even if the sender's clock is a fake one. */
int64_t sender_real_now(void);
/* With the lock held. Removing a sender that is not listed does nothing. */
void senders_add(struct sender *s);
void senders_remove(struct sender *s);
void senders_list_guest(struct sender_guest *guest); /* the same for a guest, which is not listed */
/*
 * Calls `go_on`. With the lock held, which it releases meanwhile; the guest stays in the list. False: nothing is left.
 */
bool senders_run_guest(struct sender_guest *guest);
/*
 * With the lock held: the calling thread's sender was freed, and the thread ends. True: the thread must join `*before`.
 * So exit(), which joins the last one, waits for all of them, and at most one ended thread is not joined.
 */
bool senders_leave(pthread_t *before);
/* Joins the last thread of senders_leave, and so all of them. With the lock held. */
void senders_join_leaver(void);
/* Waits for `changed`, with the lock held, until `deadline` (CLOCK_MONOTONIC); false: it is past. */
bool senders_wait(int64_t deadline);
/* Waits for `changed` for a moment, while a thread is on_disk, which may take longer than any deadline. Always true. */
bool senders_wait_for_disk(void);
/* The sender was made before a fork, by the parent process. Any thread. */
bool sender_is_parents(const struct sender *s);

/* ---- sender_phase.c: any thread ---- */

/* Moves the sender to `phase`, if it is in an earlier one, and wakes its thread. */
void sender_enter(struct sender *s, enum sender_phase phase);
bool sender_has_reached(const struct sender *s, enum sender_phase phase);
/* Whether it was told to stop, or its `give_up` has passed. */
bool sender_has_given_up(const struct sender *s);
/* Ends the wait of its thread. */
void sender_poke(struct sender *s);
/* Joins its thread, which is SENDER_FINISHED and so needs the lock no more. With the lock held. Idempotent. */
void sender_join_thread(struct sender *s);

/* ---- sender_round.c: whoever drives ---- */

/*
 * One round: takes and sends due entries, but after `send_deadline` (CLOCK_MONOTONIC) sends at most one; then steps the
 * protocol, which waits for up to `max_wait` ns.
 */
void sender_go_round(struct sender *s, int64_t max_wait, int64_t send_deadline);
/*
 * Rounds until nothing is left or the deadline has passed; at least one, without waiting. Does nothing if another
 * thread steps it.
 */
void sender_step_until(struct sender *s, int64_t deadline);
/* One round without waiting. Does nothing if another thread steps it. */
void sender_step_once(struct sender *s, int64_t send_deadline);
/* Copies the throttle, which has changed, to `view`. */
void sender_publish_throttle(struct sender *s);
/* After the last round: the rest goes to the spool, if there is one; if that fails, it stays pending. */
void sender_save_kept(struct sender *s);
/* After the last round: lets the protocol finish, and writes the state, if there is one. */
void sender_save_state(struct sender *s);
/*
 * For a sender without a thread that is SENDER_STOPPING: waits until nobody steps it, saves the rest, and is
 * SENDER_FINISHED. False: it is still stepped, the deadline (CLOCK_MONOTONIC) has passed, and it is not on_disk.
 */
bool sender_end_steps(struct sender *s, int64_t deadline);
/* Frees the outbox, the protocol, the spooler, the state and the clock; the sender itself stays. */
void sender_free_parts(struct sender *s);

/* ---- sender_losses.c: whoever drives, or with the lock held at the end of the process ---- */

/* If it is loud, writes one line on standard error about entries that wait, or were dropped and not collected. Once. */
void sender_tell_losses(struct sender *s);

/* ---- sender_exit.c ---- */

/* Initializes the libraries of the protocol. From now on exit() ends all listed senders. */
void senders_watch_exit(const struct protocol *p);
/*
 * Ends all senders as exit() does, but within `timeout` ns, and as long waits for polls to do the writes of protocols
 * that call the embedder's functions. Returns with the lock of the list held: the caller ends the process.
 */
void senders_end_for_signal(int64_t timeout);

/* ---- sender_thread.c ---- */

/*
 * Starts the thread and lists the sender, unless it has a driver. If no thread can be started, it is driven by steps.
 */
void sender_start_thread(struct sender *s);

#pragma GCC visibility pop

#endif

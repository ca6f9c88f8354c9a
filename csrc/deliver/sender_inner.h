/*
 * sender_inner.h - what the files of the sender share: sender.c has its life and its thread, sender_round.c its work,
 * sender_list.c the list of all of them.
 */
#ifndef EVREC_SENDER_INNER_H
#define EVREC_SENDER_INNER_H

#include "deliver/sender.h"

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

/*
 * From being told to stop to having stopped; waited for in turns, as a process that is held up for that long, by its
 * quota or its machine, would give up a thread that has not had a moment for it.
 */
#define LETTING_GO_MAX (EVREC_SECOND / 5)
#define LETTING_GO_TURNS 20

enum drive { DRIVE_NONE, DRIVE_THREAD, DRIVE_STEPS };

struct sender {
	struct outbox *outbox;
	struct transport *transport;
	struct spooler *spooler; /* or NULL */
	evrec_clock *clock;
	unsigned max_in_flight, generation;
	_Atomic enum drive drive;
	atomic_bool ending, stop;
	atomic_bool hurries;     /* nothing is tried twice: an outage makes no pause */
	_Atomic int64_t give_up; /* CLOCK_MONOTONIC: where it is ending, until when */
	atomic_flag driven;      /* somebody steps it: a poll, or exit */
	atomic_bool on_disk;     /* its thread has the spool to see to: who waits for the one waits for the other */
	/* Of the one that drives: */
	unsigned in_flight;
	atomic_uint unanswered; /* in a row */
	unsigned pauses;        /* since the last answer */
	int64_t pause_until;
	uint64_t random;
	/* Under senders.lock: */
	struct sender *prev, *next;
	bool listed, finished, released, joined;
	pthread_t thread;
};

/* All that exit() has to end. */
struct senders {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a thread has finished */
	struct sender *head;
};
extern struct senders senders;

/* Once, before the first sender: from then on a forked child finds the list empty and the generation changed. */
void senders_init(void);
/* With the lock held. Removing one that is not there does nothing. */
void senders_add(struct sender *s);
void senders_remove(struct sender *s);
/* Waits for `changed`, with the lock held, until CLOCK_MONOTONIC is `deadline`; false: it is. */
bool senders_wait(int64_t deadline);
/* Likewise for a moment, where a thread is on_disk, which may take longer than any deadline; true. */
bool senders_wait_for_disk(void);
/* From now on exit() ends them all. */
void senders_watch_exit(void);
/* Its thread is told to stop. */
void sender_stop(struct sender *s);
/* With the lock held, which a thread that is `finished` needs no more. Idempotent. */
void sender_join_thread(struct sender *s);
/* It was made before a fork, on the other side. Any thread. */
bool sender_is_parents(const struct sender *s);

/* CLOCK_MONOTONIC, whatever the sender's clock. */
int64_t sender_real_now(void);
/* It was told to stop, or is ending and its time is up. Any thread. */
bool sender_has_given_up(const struct sender *s);
/* After the last round: what is left goes to the spool, if there is one; where that fails it is pending as before. */
void sender_spool_rest(struct sender *s);
/*
 * Takes and sends what is due, but nothing more once CLOCK_MONOTONIC is `enough` and something was sent; then lets the
 * transport work and wait, `max_wait` ns at most. Whoever drives.
 */
void sender_go_round(struct sender *s, int64_t max_wait, int64_t enough);
/* Rounds until nothing is left or the deadline; one without waiting where it is past. Nothing if another steps it. */
void sender_step_until(struct sender *s, int64_t deadline);
/* One round without waiting. Likewise. */
void sender_step_once(struct sender *s, int64_t enough);

#pragma GCC visibility pop

#endif

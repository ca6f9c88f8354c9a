/*
 * sharing_inner.h - the struct and internal functions of a sharing, for its files.
 *
 *   sharing.c          how it begins and is driven
 *   sharing_news.c     the functions that a share calls: an owner records for workers and learns the outcomes; a worker is
 *                      told
 *   sharing_answers.c  an owner takes the answers to its sinks, and acknowledges what workers have sent
 *   sharing_state.c    the counts of the last owner, and for the next one
 *   sharing_exit.c     the end of a process, or of a broadcaster
 *   sharing_ask.c      a question to the owner
 *   sharing_stats.c    how it stands
 */
#ifndef EVREC_SHARING_INNER_H
#define EVREC_SHARING_INNER_H

#include "base/clock.h"
#include "recorder/sharing.h"
#include "sender/sender.h"
#include "share/share.h"

#pragma GCC visibility push(hidden)

#define SHARING_BUSY (EVREC_SECOND / 100) /* the wait while answers are expected */

enum drive_state { NOT_DRIVEN, BY_THREAD, BY_POLLS };

struct sharing {
	struct hub *hub;
	struct share *share; /* NULL: there was no memory for it in a forked child */
	_Atomic enum drive_state drive;
	pthread_t thread;
	atomic_bool stops;
	atomic_bool stepping; /* a poll is in a step */
	atomic_bool owns;
	atomic_bool told; /* its losses were printed */
	atomic_bool ends; /* it ends without a shutdown: the stepping thread hands over to a worker */
	_Atomic int64_t flushed_at;
	_Atomic int64_t linger_until; /* sharing_linger; INT64_MAX: there is a handle */
	struct sender_guest guest;    /* the end of the process waits for acknowledgements */

	/* With the hub's lock held: */
	bool hangs;     /* a step did not end in time, and the broadcaster has ended without it */
	bool has_ended; /* the thread has ended */
	pthread_cond_t ended;
	bool may_own;               /* share_client_only does not count any more */
	bool is_set;                /* the share knows the options of all sinks */
	uint64_t left[FRAME_SINKS]; /* occurrences of workers that this owner leaves to the next one, for each sink */
	uint64_t dropped;           /* occurrences dropped for want of memory for the share */
	int64_t wait;               /* the length of the last wait for answers, in ns */
	uint64_t unsettled_before;  /* `unsettled` at that time */
	uint64_t unsettled;         /* occurrences of workers in the pipelines of this process, for each sink */
	bool marked;                /* share_mark was called */
	uint64_t changes[FRAME_SINKS]; /* of the states, at that time */
	struct buf settled;            /* occurrences settled since then that are in no batch */
	struct buf in_batch;           /* those in the last batch, or in an earlier one that was not sent yet */
	uint64_t batch;                /* the number of the last batch */
	bool is_last;                  /* there is no later one: what settles is in it, until sharing_end sends it */
	uint64_t unsure;               /* occurrences that may be counted twice, at the last look; when that changed */
	int64_t unsure_at;
	uint64_t unsure_told; /* how many of these were reported */
	int64_t state_until;  /* when the wait for the last owner's state file ends; 0: it has not begun */
	struct keys keys;
};

static inline int64_t sharing_mono(void)
{
	return clock_monotonic(evrec_clock_real());
}

/* The sinks, in the order of their start: the number of a sink is its place. NULL: it was forgotten. */
evrec_watch *sharing_sink_at(const struct hub *hub, size_t i);
/* Takes the answers for the workers' events. Returns the time in ns until there may be more. Without the lock. */
int64_t sharing_take_answers(struct hub *hub);

/*
 * Reports how many occurrences may be counted twice, once no more come for a while, or if the owner ends. With the
 * hub's lock held.
 */
void sharing_tell_unsure(struct hub *hub, bool ends);

/*
 * The states that are written from now on name the occurrences in the next batch of acknowledgements, and omit those in
 * the last batch, which was sent. The second function: the batch was not sent yet, and occurrences that have settled
 * since it began are in it too. With the hub's lock held.
 */
void sharing_begin_batch(struct sharing *sh);
void sharing_add_to_batch(struct sharing *sh);
/*
 * Notes which changes the states must include before the batch is sent: it has all occurrences that have settled until
 * now. The second function: whether the states include them. With the hub's lock held.
 */
void sharing_mark(const struct hub *hub);
bool sharing_has_states(const struct hub *hub);

/*
 * After a step, by the stepping thread: an owner that ends, and has written all events that it has read, hands over to
 * a worker.
 */
void sharing_hand_over(struct hub *hub);
/* After sharing_linger: nothing is left, or the rest is in spools, or the time is up. */
bool sharing_has_lingered(struct hub *hub);
/* Then, for the thread: hands over, and releases the hub, which no handle ends. */
void sharing_end_lingering(struct hub *hub);
/* After sharing_stop, the last call of the thread: if nobody waited for the thread, releases the hub. */
void sharing_end_thread(struct hub *hub);
/* From now on the end of the process waits for acknowledgements, for a while, and reports the rest. */
void sharing_watch_exit(struct hub *hub);

/* Functions of sharing_ops: begin, save_state, load_state. */
bool sharing_begin_owner(void *ctx, bool alone);
bool sharing_save_state(void *ctx, size_t sink, struct buf *out);
void sharing_load_state(void *ctx, size_t sink, evrec_str state);
/* The functions that a share calls, with the hub as their context. */
extern const struct share_ops sharing_ops;

#pragma GCC visibility pop

#endif

/*
 * broadcaster.h - a handle of a broadcaster, for its recorders. One thread at a time. Its callbacks run only in its own
 * calls. Handles of one name share a hub (hub.h); the handle of a broadcaster without a name has its own hub.
 */
#ifndef EVREC_BROADCASTER_H
#define EVREC_BROADCASTER_H

#include "recorder/cardinality.h"
#include "recorder/hub.h"
#include "sender/sender.h"

#pragma GCC visibility push(hidden)

/* Events that wait for a function of a broadcaster that has a name. */
#define FUNCTION_QUEUE 1000
/* Events recorded from inside callbacks that may wait until the outermost call is done. */
#define DEFERRED_MAX 1000

enum broadcaster_phase {
	BROADCASTER_OPEN,
	BROADCASTER_CLOSED, /* refuses recording calls and new watches */
	BROADCASTER_ENDED,  /* shutdown is done */
};

/* Occurrences and calls that were lost, or left in spools, since a broadcaster's beginning. */
struct losses {
	uint64_t invalid, spooled;
	uint64_t dropped[EVREC_CAUSES];
};

/* The fields that a recording call reads come first, so that they take few cache lines. */
struct evrec_broadcaster {
	struct hub *hub;
	enum broadcaster_phase phase;
	unsigned fork_generation;
	bool busy;      /* a callback may be running: recording is deferred, other calls are refused */
	bool dropping;  /* on_drop runs */
	bool reporting; /* on_error runs */
	unsigned refs;  /* the user's, and one of every recorder */
	size_t deferred_len, deferred_head; /* of the ring `deferred` */
	evrec_broadcaster_options options;
	evrec_event **deferred; /* a ring of DEFERRED_MAX, made when first needed */
	struct keys deferred_keys;
	struct buf inner_note; /* of an event recorded from inside a callback, if it had to be cleaned or cut */
	evrec_recorder *first_recorder, *last_recorder;
	struct cardinality components; /* of its recorders, also of those that were freed */
	bool suspects;                 /* a field has too many different values, which is not reported yet */
	struct losses flushed;         /* the losses until the end of the last flush */
	int ended_code;                /* the results of shutdown */
	evrec_error ended;

	/* If it has a name: */
	struct watch_list own;  /* its watches; those that have stopped are taken out later */
	struct notices notices; /* callbacks that are due */
	struct buf event_name;  /* of the event that its sinks' callbacks see */
};

void broadcaster_unref(evrec_broadcaster *b);
void broadcaster_enter_phase(evrec_broadcaster *b, enum broadcaster_phase phase);

/* In a forked child: abandons what belongs to the parent. With the lock of the hub held. */
COLD void broadcaster_check_fork_slowly(evrec_broadcaster *b);

static inline void broadcaster_check_fork(evrec_broadcaster *b)
{
	if (b->fork_generation != sender_fork_generation()) {
		broadcaster_check_fork_slowly(b);
	}
}

/*
 * Enclose each use of the hub that may cause callbacks. handle_leave calls the callbacks that became due, unless it is
 * itself called from inside a callback: then the outer call does.
 */
void handle_enter(evrec_broadcaster *b);
void handle_leave(evrec_broadcaster *b);
/* In place of handle_leave, for a call that must not call back: due callbacks wait for the next call that may. */
void handle_unlock(evrec_broadcaster *b);

/*
 * Every recording call hands its event, checked and stamped, to one of these: broadcaster_record gives it to all
 * watches, and broadcaster_defer, for a broadcaster that is busy, queues a copy. `event` has no name yet; `keys` are
 * its own. `keys` are NULL, or `whole` is false, if there was no memory for the whole event. Each returns 0,
 * EVREC_EDROPPED or EVREC_ECLOSED, and counts the call in either case.
 */
int broadcaster_record(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now, evrec_error *err);
int broadcaster_defer(evrec_broadcaster *b, const evrec_fields *event, bool whole, evrec_error *err);
/*
 * Counts an event that is dropped because the broadcaster is closed, or because there was no memory for the whole
 * event.
 */
COLD int broadcaster_turn_away(evrec_broadcaster *b, const evrec_fields *event, evrec_error *err);

/*
 * A poll in which every sink without a thread begins at most one write after `deadline` (CLOCK_MONOTONIC, ns). If it
 * `flushes`, series are written as well.
 */
void broadcaster_poll_by(evrec_broadcaster *b, int64_t deadline, bool flushes);

/* Count a recording call that was invalid, or for which there was no memory. */
COLD void broadcaster_refuse(evrec_broadcaster *b, const char *message);
void broadcaster_drop(evrec_broadcaster *b);

/* Reports recorders with too many different values in a field. Not from a callback. */
void recorders_tell(evrec_broadcaster *b);
/*
 * The result of a flush that has the result `code` without regard to losses: EVREC_ELOST or EVREC_ETIMEOUT, with *err
 * set, or 0. The next flush does not report the losses until now.
 */
int broadcaster_sum_up(evrec_broadcaster *b, int code, evrec_error *err);
/* As evrec_broadcaster_get_stats, with the lock held. */
void broadcaster_get_stats(const evrec_broadcaster *b, evrec_stats *stats);
/* Sets *sum to all losses since the beginning; returns the number of waiting occurrences. With the lock held. */
uint64_t broadcaster_count_losses(const evrec_broadcaster *b, struct losses *sum);

/* Calls on_drop and on_error, with no lock held. */
void handle_call_on_drop(evrec_broadcaster *b, const evrec_event *event, const char *cause);
void handle_call_on_error(evrec_broadcaster *b, const char *message, const char *name);

#pragma GCC visibility pop

#endif

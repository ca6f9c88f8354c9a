/*
 * broadcaster.h - the inside of a broadcaster, for its recorders. One thread at a time.
 */
#ifndef EVREC_BROADCASTER_H
#define EVREC_BROADCASTER_H

#include "recorder/cardinality.h"
#include "recorder/trouble.h"
#include "recorder/watch_list.h"

#pragma GCC visibility push(hidden)

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

struct evrec_broadcaster {
	unsigned refs; /* the user's, and one of every recorder */
	evrec_broadcaster_options options;
	struct pipeline_listener listener;
	enum broadcaster_phase phase;
	struct watch_list watches; /* those that a recording call visits: running, or stopped a moment ago */
	struct watch_list sinks;   /* all sinks until they are forgotten; those that still run are in `watches` too */
	size_t last_number;        /* of the sink that was started last; 0: none was */
	bool copies;               /* a watch takes a copy of the event */
	bool names;                /* a watch needs the event's name */
	bool broadcasting;         /* an event, of which watches take a copy */
	evrec_event *told;         /* a series as that event has left it, for the watches to get after the event */
	evrec_event **deferred;    /* a ring of DEFERRED_MAX, made when first needed */
	size_t deferred_head, deferred_len;
	struct keys deferred_keys;
	struct buf inner_note; /* of an event recorded from inside a callback, if it had to be cleaned or cut */
	struct buf name;
	evrec_stats stats; /* `sinks` is not kept up to date */
	unsigned fork_generation;
	evrec_recorder *first_recorder, *last_recorder;
	struct cardinality components;   /* of its recorders, also of those that were freed */
	bool suspects;                   /* a field has too many different values, which is not told yet */
	struct troubles *troubles;       /* NULL: the broadcaster is not loud */
	struct losses flushed;           /* until the end of the last flush */
	char lost_example[TROUBLE_TEXT]; /* the first loss since then */
	const char *error_name;          /* of a sink's last error; static */
	char error[TROUBLE_TEXT];        /* empty: none since a flush found nothing waiting */
	int ended_code;                  /* the results of shutdown */
	evrec_error ended;
	bool dropping; /* on_drop runs */
	bool busy;     /* a callback may be running: recording is deferred, all else refused */
};

void broadcaster_unref(evrec_broadcaster *b);
void broadcaster_enter_phase(evrec_broadcaster *b, enum broadcaster_phase phase);

/*
 * Every recording call hands its event, checked and stamped, to one of these: broadcaster_record gives it to all
 * watches, and broadcaster_defer, for a broadcaster that is busy, queues a copy. `event` has no name yet; `keys` are
 * its own. `keys` are NULL, or `whole` is false, if there was no memory for all of the event. Each returns 0,
 * EVREC_EDROPPED or EVREC_ECLOSED, and counts the call in either case.
 */
int broadcaster_record(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now, evrec_error *err);
int broadcaster_defer(evrec_broadcaster *b, const evrec_fields *event, bool whole, evrec_error *err);

/* Gives functions and queues, and no sinks, an event: NULL if there was no memory for it. */
void broadcaster_offer(evrec_broadcaster *b, evrec_event *event);
/* Tells of a series: `series` of a listener. */
void broadcaster_tell_series(void *ctx, const struct pipeline *pipeline, const evrec_fields *event);

/*
 * A poll in which every sink without a thread begins at most one write after `deadline` (CLOCK_MONOTONIC, ns). If it
 * `flushes`, series are written as well.
 */
void broadcaster_poll_by(evrec_broadcaster *b, int64_t deadline, bool flushes);

/*
 * Takes stopped watches out of the list that recording calls visit, and lets go of those with nothing left to write. A
 * sink's counters are added to the sum of ended sinks. Not from a callback.
 */
void broadcaster_forget_stopped(evrec_broadcaster *b);
/* The broadcaster is freed: lets go of all watches. */
void broadcaster_release_watches(evrec_broadcaster *b);
/* Adds the final counters of a sink to the sum of ended sinks. */
void stats_add_ended(evrec_sink_stats *sum, const evrec_sink_stats *sink);

/* Count a recording call that was invalid, or for which there was no memory. */
void broadcaster_refuse(evrec_broadcaster *b, const char *message);
void broadcaster_drop(evrec_broadcaster *b);

/*
 * Note a drop of `n` occurrences, a refused call, or an error, for lines and for the results of a flush; call on_drop
 * and on_error. `cause` and `name` are static. `event` is NULL if there is none to show; `sink` is the name of the sink
 * that had the error, or NULL. Of the error "thread" only on_error gets to know, unless the drive is a thread.
 */
void broadcaster_tell_drop(evrec_broadcaster *b, const evrec_fields *event, const char *cause, uint64_t n);
void broadcaster_tell_refusal(evrec_broadcaster *b, const char *message);
void broadcaster_tell_error(evrec_broadcaster *b, const char *message, const char *name, const char *sink);
/* Tells of recorders with too many different values in a field. Not from a callback. */
void recorders_tell(evrec_broadcaster *b);
/*
 * The results of a flush that returned `code` before it looked for losses: EVREC_ELOST or EVREC_ETIMEOUT, with *err set,
 * or 0. What was lost until now is not told by the next flush.
 */
int broadcaster_sum_up(evrec_broadcaster *b, int code, evrec_error *err);
/* Calls on_drop alone. */
void broadcaster_call_on_drop(evrec_broadcaster *b, const evrec_fields *event, const char *cause);

#pragma GCC visibility pop

#endif

/*
 * broadcaster.h - the inside of a broadcaster, for its recorders. One thread at a time.
 */
#ifndef EVREC_BROADCASTER_H
#define EVREC_BROADCASTER_H

#include "flow/watch.h"

#pragma GCC visibility push(hidden)

/* Events recorded from inside callbacks that may wait until the outermost call is done. */
#define DEFERRED_MAX 1000

struct evrec_broadcaster {
	unsigned refs; /* the user's, and one of every recorder */
	evrec_broadcaster_options options;
	struct lane_listener listener;
	evrec_watch **watches; /* in the order of their start */
	size_t watches_len, watches_cap;
	bool copies;            /* some take a copy of the event */
	bool names;             /* and some need it to have its name */
	evrec_event **deferred; /* a ring of DEFERRED_MAX, made when first needed */
	size_t deferred_head, deferred_len;
	struct keys deferred_keys;
	struct buf inner_note; /* of an event recorded from inside a callback, where it had to be cleaned or cut */
	struct buf name;
	evrec_stats stats;
	unsigned fork_generation;
	bool dropping; /* on_drop runs */
	bool busy;     /* a callback may be running: recording is deferred, all else refused */
	bool closed;   /* no recording */
	bool ended;    /* shutdown is done */
};

void broadcaster_unref(evrec_broadcaster *b);

/*
 * What every recording call goes through, checked and stamped: to all that watch, or, where the broadcaster is busy,
 * into the queue. `event` has no name yet; `keys` are its own. NULL, or not `whole`: there was no memory for all of it.
 * 0, EVREC_EDROPPED or EVREC_ECLOSED; counted in either case.
 */
int broadcaster_record(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now, evrec_error *err);
int broadcaster_defer(evrec_broadcaster *b, const evrec_fields *event, bool whole, evrec_error *err);

/* A poll in which every sink without a thread sends no more than one write after `deadline` (CLOCK_MONOTONIC). */
void broadcaster_poll_by(evrec_broadcaster *b, int64_t deadline);

/* Count a call that was invalid, or for which there was no memory. */
void broadcaster_refuse(evrec_broadcaster *b);
void broadcaster_drop(evrec_broadcaster *b);

#pragma GCC visibility pop

#endif

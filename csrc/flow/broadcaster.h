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
	evrec_event **deferred; /* a ring of DEFERRED_MAX, made when first needed */
	size_t deferred_head, deferred_len;
	struct buf scratch;       /* the cleaned note of the event being recorded */
	struct buf inner_scratch; /* and of one recorded meanwhile, from inside a callback */
	struct buf name;
	evrec_stats stats;
	unsigned fork_generation;
	bool dropping; /* on_drop runs */
	bool busy;     /* a callback may be running: recording is deferred, all else refused */
	bool closed;   /* no recording */
	bool ended;    /* shutdown is done */
};

static inline struct buf *broadcaster_scratch(evrec_broadcaster *b)
{
	return b->busy ? &b->inner_scratch : &b->scratch;
}

void broadcaster_unref(evrec_broadcaster *b);

/*
 * What every recording call goes through, checked and stamped: to all that watch, or, from inside a callback, into the
 * queue. `event` has no name yet. 0, EVREC_EDROPPED or EVREC_ECLOSED; counted in either case.
 */
int broadcaster_record(evrec_broadcaster *b, evrec_fields *event, int64_t now, evrec_error *err);

/* Counts an invalid call. */
void broadcaster_refuse(evrec_broadcaster *b);

#pragma GCC visibility pop

#endif

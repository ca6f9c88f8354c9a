/*
 * watch.h - one receiver of a broadcaster's events: a function, a queue, or a sink's lane. Belongs to the
 * broadcaster's thread. Counted: the broadcaster holds one reference until it ends, the user's handle another.
 */
#ifndef EVREC_WATCH_H
#define EVREC_WATCH_H

#include "flow/lane.h"

#pragma GCC visibility push(hidden)

struct evrec_watch {
	unsigned refs;
	bool stopped;
	bool shows_events;                           /* a sink's correlator calls back */
	struct lane *lane;                           /* a sink; or */
	void (*func)(void *ctx, evrec_event *event); /* a function; or, where both are NULL, a queue: */
	void *ctx;
	evrec_event **queue; /* a ring of `queue_cap` */
	size_t queue_cap, queue_head, queue_len;
	uint64_t dropped;
};

/* Gives the event to a function or queue. False where a full queue dropped it. */
bool watch_offer(evrec_watch *watch, evrec_event *event);
void watch_unref(evrec_watch *watch);
/* The broadcaster ends: the lane with it, the queue stays to be read. */
void watch_detach(evrec_watch *watch);

#pragma GCC visibility pop

#endif

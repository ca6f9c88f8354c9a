/*
 * watch.h - one receiver of a broadcaster's events: a function, a queue, or a sink's pipeline. Belongs to the
 * broadcaster's thread. Counted: the broadcaster holds one reference until it lets go of the watch, the user's handle
 * another.
 */
#ifndef EVREC_WATCH_H
#define EVREC_WATCH_H

#include "recorder/pipeline.h"

#pragma GCC visibility push(hidden)

enum watch_phase {
	WATCH_RUNNING,
	WATCH_STOPPED,  /* gets no event; the broadcaster has not let go of it yet */
	WATCH_DETACHED, /* the broadcaster has let go of it */
};

struct evrec_watch {
	unsigned refs;
	enum watch_phase phase;
	bool shows_events;                           /* a sink's correlator calls back */
	struct pipeline *pipeline;                   /* of a sink; NULL once detached */
	size_t number;                               /* of a sink */
	evrec_sink_stats final_stats;                /* of a sink that was forgotten; name NULL: of no such sink */
	unsigned final_generation;                   /* the fork generation that final_stats are from */
	void (*func)(void *ctx, evrec_event *event); /* of a function; a queue has neither pipeline nor func */
	void *ctx;
	evrec_event **queue; /* a ring of `queue_cap` */
	size_t queue_cap, queue_head, queue_len;
	uint64_t dropped; /* by a full queue */
};

/* Gives the event to a function or queue. False if a full queue dropped it. */
bool watch_offer(evrec_watch *watch, evrec_event *event);
/* True if the watch is a sink that was stopped, and all that it was given was written or dropped. */
bool watch_is_over(const evrec_watch *watch);
/* The final stats of a sink that is over: from now on evrec_watch_get_sink_stats returns these. */
const evrec_sink_stats *watch_keep_stats(evrec_watch *watch);
/* The broadcaster lets go of the watch: frees a sink's pipeline; a queue can still be read. Gives up no reference. */
void watch_detach(evrec_watch *watch);
void watch_unref(evrec_watch *watch);

#pragma GCC visibility pop

#endif

/*
 * watch.h - one receiver of a broadcaster's events: a function, a queue, or a sink's pipeline. Belongs to the
 * broadcaster's thread, or needs the lock of its hub. Counted: the broadcaster has one reference until it detaches the
 * watch, the user's handle another.
 *
 * If the broadcaster has a name, a sink is one watch of the hub, and each handle that has started the sink has a watch
 * that has joined the hub's; a function has a queue, which its handle empties.
 */
#ifndef EVREC_WATCH_H
#define EVREC_WATCH_H

#include "recorder/chosen.h"
#include "recorder/pipeline.h"

#pragma GCC visibility push(hidden)

enum watch_phase {
	WATCH_RUNNING,
	WATCH_STOPPED,  /* gets no event; the broadcaster has not detached it yet */
	WATCH_DETACHED, /* the broadcaster has released it */
};

struct evrec_watch {
	unsigned refs;
	enum watch_phase phase;
	bool shows_events;                           /* a sink's correlator calls back */
	struct pipeline *pipeline;                   /* of a sink; NULL once detached */
	size_t number;                               /* of a sink */
	evrec_sink_stats final_stats;                /* of a sink that was forgotten; an empty name: not forgotten */
	unsigned final_generation;                   /* the fork generation of final_stats */
	void (*func)(void *ctx, evrec_event *event); /* of a function; a queue has neither pipeline nor func */
	void *ctx;
	evrec_event **queue; /* a ring of `queue_cap` */
	size_t queue_cap, queue_head, queue_len;
	uint64_t dropped; /* by a full queue */

	/* If the broadcaster has a name: */
	struct hub *hub; /* retained for the user's handle; NULL: no name, or a sink's watch in the hub */
	const evrec_broadcaster *owner; /* whose functions a function or a sink calls; NULL: no function */
	evrec_watch *joined;            /* the sink's watch in the hub, a reference; NULL: a function or a queue */
	unsigned joiners;               /* of a sink in the hub: handles that have joined it and not stopped */
	unsigned pins;                  /* of a sink in the hub: calls that use its pipeline without the lock */
	bool closes;                    /* one of these calls is in pipeline_close_state */
	char sink_name[EVREC_SINK_NAME_SIZE]; /* of a sink in the hub */
	size_t ordinal;                       /* among the sinks of its name: from 1 */
	struct fingerprint *fingerprint;
	const struct hub *shares;           /* of a sink in the hub: this hub */
	const struct chosen *chosen;        /* of a sink in the hub: for the event that is recorded; NULL: none */
	evrec_correlator_options functions; /* of a watch that has joined: its handle's functions */
	struct chosen answers;              /* and their results */
};

/* evrec_watch_next, evrec_watch_stop and evrec_watch_get_sink_stats without taking the lock: the caller has it. */
evrec_event *watch_next(evrec_watch *watch);
void watch_stop(evrec_watch *watch);
bool watch_get_sink_stats(const evrec_watch *watch, evrec_sink_stats *stats);
/* Gives the event to a function or queue. False if a full queue dropped it. */
bool watch_offer(evrec_watch *watch, evrec_event *event);
/* True if the watch is a sink that was stopped, and all its writes were made or dropped. */
bool watch_is_over(const evrec_watch *watch);
/* The final stats of a sink that is over: from now on evrec_watch_get_sink_stats returns these. */
const evrec_sink_stats *watch_keep_stats(evrec_watch *watch);
/* The same for a sink that is dropped with its waiting writes. */
const evrec_sink_stats *watch_drop_stats(evrec_watch *watch);
/* The broadcaster detaches the watch: frees a sink's pipeline; a queue can still be read. Releases no reference. */
void watch_detach(evrec_watch *watch);
void watch_unref(evrec_watch *watch);

#pragma GCC visibility pop

#endif

/*
 * ledger.h - the occurrences that a worker has recorded and its owner has not acknowledged. One thread at a time.
 *
 * There is one node for each different event, with numbers of occurrences: a repeated event takes no memory. A node
 * whose occurrences are all acknowledged is idle; some idle nodes are kept, so that the next occurrence need not send
 * the event again. If the connection to the owner ends, all occurrences that it has not acknowledged are sent again, to
 * the next owner, before all others.
 *
 *   recorded ---> unsent ---> sent ---> acknowledged for each sink
 *                   ^          |
 *                   +----------+ the connection ended
 */
#ifndef EVREC_LEDGER_H
#define EVREC_LEDGER_H

#include "share/frame.h"

#pragma GCC visibility push(hidden)

#define LEDGER_SEND_MAX 10000 /* occurrences of one event that are sent at once */

struct ledger_limits {
	size_t max_events; /* different events that are not acknowledged; below 2^31 */
	size_t max_bytes;  /* the memory of these */
};

struct ledger;
struct ledger *ledger_new(const struct ledger_limits *limits); /* NULL: no memory */
void ledger_free(struct ledger *l);                            /* NULL is fine */
/* If the new limits are lower, the events beyond them stay. */
void ledger_set_limits(struct ledger *l, const struct ledger_limits *limits);

/*
 * Sets which event a full ledger drops, by the rules of the limits of a sink; EVREC_DROP_NEWEST at first. Only events
 * of which no occurrence was sent are dropped, as the owner may have written the others.
 */
void ledger_set_full(struct ledger *l, enum evrec_overflow full);
/* The next event that was dropped to make room. Valid until the ledger changes. False: there is none. */
bool ledger_next_dropped(struct ledger *l, evrec_str *bytes, uint32_t *n);

/* From now on each occurrence has to be acknowledged for so many sinks, at most FRAME_SINKS. */
void ledger_set_sinks(struct ledger *l, size_t sinks);

/*
 * Adds one occurrence, at the time `at`, of the event with these bytes (frame_event_put). False: it was counted as
 * dropped, for *cause.
 */
bool ledger_add(struct ledger *l, evrec_str bytes, int64_t at, enum evrec_cause *cause);
/* Counts an occurrence that was dropped before it could be added. */
void ledger_drop(struct ledger *l, enum evrec_cause cause);

/* Occurrences that are to be sent, or an event that the owner may forget (times.n is 0). */
struct ledger_item {
	struct frame_times times;
	bool known;     /* the owner has the event */
	uint16_t flags; /* of its frame: FRAME_AGAIN, FRAME_RESENT, FRAME_ENDED */
	evrec_str name; /* for the event, if the owner counts it as new. Valid until the ledger changes, like `bytes` */
	evrec_str bytes; /* of the event */
};
/* The next item. False: there is none, or there is no memory for its name. */
bool ledger_next(struct ledger *l, struct ledger_item *item);
/* The last item of ledger_next was sent. */
void ledger_sent(struct ledger *l);

/*
 * `n` occurrences ended for a sink. Returns the number that was counted: at most as many as were sent. *bytes are those
 * of the event, valid until the ledger changes.
 */
uint32_t ledger_ack(struct ledger *l, const struct frame_ack *ack, evrec_str *bytes);

/*
 * The connection ended: the next owner knows no event, and occurrences that were sent and not acknowledged are sent
 * again.
 */
void ledger_disconnect(struct ledger *l);

/*
 * Removes the next item from a disconnected ledger, which no longer counts it, as this process writes it itself.
 * item->known: a part of the event was taken before. The item, and the event, which the caller frees with
 * frame_event_destroy, are valid until the next call. False: there is none, or no memory.
 */
bool ledger_take(struct ledger *l, struct ledger_item *item, struct frame_event *event);
/*
 * The owner has received all sent occurrences, and this process does not wait for the answers: counts them as
 * forwarded. Returns the number of these occurrences, each once.
 */
uint64_t ledger_leave_to_owner(struct ledger *l);
/* Drops an event with all its occurrences. The item is valid until the next call. False: there is none. */
bool ledger_drop_next(struct ledger *l, enum evrec_cause cause, struct ledger_item *item);

/* An owner before the present one had occurrences that are not acknowledged yet. */
bool ledger_has_again(const struct ledger *l);
bool ledger_is_empty(const struct ledger *l); /* nothing waits for an acknowledgement */
size_t ledger_events(const struct ledger *l); /* different events that wait for one */
size_t ledger_bytes(const struct ledger *l);  /* the memory of these */

/* Occurrences, by their end for one sink. Their sum is the number of received occurrences. */
struct ledger_counts {
	uint64_t forwarded, rate_limited, pending;
	uint64_t dropped[EVREC_CAUSES];
};
void ledger_count(const struct ledger *l, size_t sink, struct ledger_counts *counts);

#pragma GCC visibility pop

#endif

/*
 * throttle.h - how many requests a sink may have under way, and when the next one may start, as the server's answers
 * tell. It finds the server's limit, whether that is on requests at once or on requests a second, and stays below it.
 *
 *   OPEN      --refused------------------> PAUSED     the window grows by 1 for every 7 successes
 *   PAUSED    --the next start-----------> CAUTIOUS
 *   CAUTIOUS  --refused------------------> PAUSED     the window stays
 *             --many successes-----------> PROBING
 *   PROBING   --refused------------------> PAUSED     the window is larger by 1
 *             --many successes-----------> OPEN
 *   any other --4 without an answer------> OUTAGE
 *   OUTAGE    --refused------------------> PAUSED     the window counts as 1
 *             --any other answer---------> OPEN
 *
 * Requests at once. A refusal cuts the window to the requests that are still under way, as the server admitted those,
 * and all requests wait until the server's Retry-After is over. CAUTIOUS then keeps the window. PROBING tries one more,
 * so rarely that a server which refuses it costs a few percent of the time and of the requests.
 *
 * Requests a second. A refusal counts as one of the rate if no other request was in flight, if many requests succeeded
 * with the same window, or if the rate limit held requests back. The rate limit is then a tenth below the rate of the
 * successes. It grows faster with every second without a refusal, and is removed once it holds nothing back.
 *
 * An outage. The server cannot be reached, or answers 401. One request at a time finds out when the outage ends.
 *
 * Pure: no clock, lock or I/O. `now` is monotonic time in ns and must not go back; `random` is any 64 random bits. A
 * throttle is a plain value: it may be copied, and needs no release.
 */
#ifndef EVREC_THROTTLE_H
#define EVREC_THROTTLE_H

#include "outbox/protocol.h"

#pragma GCC visibility push(hidden)

enum throttle_state {
	THROTTLE_OPEN,     /* the server has refused nothing lately */
	THROTTLE_CAUTIOUS, /* the server has refused something lately: the window stays as it is */
	THROTTLE_PROBING,  /* the window is larger by one request than the server is known to admit */
	THROTTLE_PAUSED,   /* the server has just refused: nothing starts before paused_until */
	THROTTLE_OUTAGE,   /* the server does not answer: after each pause one request tries */
	THROTTLE_STATES
};

struct throttle {
	enum throttle_state state;
	bool jitter;
	unsigned max_in_flight, window, in_flight;
	bool was_full;        /* the last start filled the window */
	bool was_alone;       /* nothing else was under way at the last start */
	unsigned old;         /* requests in flight that started before the last refusal */
	unsigned gained;      /* successes with a full window, since the window or the state has changed */
	unsigned probe_needs; /* the `gained` that a probe needs to begin, and again to succeed */
	int64_t probe_from;   /* the earliest time of a probe */
	int64_t paused_until; /* the end of the last pause; INT64_MIN: there was none */
	unsigned refusals;    /* without a success in between */
	uint64_t refused;     /* in all */
	double rate;          /* starts a second; 0: not limited */
	double growth;        /* the next increase of the rate */
	bool rate_holds;      /* the rate held requests back, in the last turn */
	unsigned idle_turns;  /* turns since the rate held requests back */
	int64_t next_slot;    /* the next start by the rate */
	int64_t turn_from;    /* the rate changes once in a turn */
	unsigned turn_starts;
	double successes; /* since measured_from, to know the server's rate */
	int64_t measured_from;
	int64_t last_end;
	bool begun;          /* there was a first start */
	unsigned unanswered; /* in a row */
	unsigned outage_pauses;
};

/* For `max_in_flight` requests at most, at least 1. Without `jitter` pauses have no random part. */
void throttle_init(struct throttle *t, unsigned max_in_flight, bool jitter);

/* How many requests may be under way; 0 during a pause. */
unsigned throttle_window(const struct throttle *t, int64_t now);

/* When the next request may start: a time <= now for at once, INT64_MAX if one must end first. */
int64_t throttle_next_start(const struct throttle *t, int64_t now);

/* A request starts. If it starts before throttle_next_start, it counts like any other. */
void throttle_started(struct throttle *t, int64_t now);

/*
 * A request has ended. `retry_after`, ns, is the server's Retry-After: 0 if there is none; capped at 5 minutes. True if
 * an outage has just ended: requests that wait for want of an answer may be made due at once.
 */
bool throttle_ended(struct throttle *t, enum request_result result, int64_t retry_after, int64_t now, uint64_t random);

/* Whether a throttle may go from one state to the other; a build with -DEVREC_DEBUG traps if it does otherwise. */
bool throttle_may_step(enum throttle_state from, enum throttle_state to);

#pragma GCC visibility pop

#endif

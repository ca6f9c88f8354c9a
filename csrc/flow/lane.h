/*
 * lane.h - one sink's way: its correlator, its outbox, its sender. Belongs to its broadcaster, and to that one's
 * thread; what the sender does on a thread of its own is behind the outbox's lock.
 *
 *   an event there:    lane_record: drain answers, correlate, submit
 *   an answer back:    lane_record, lane_poll: into the correlator; drops and errors to the broadcaster's callbacks
 */
#ifndef EVREC_LANE_H
#define EVREC_LANE_H

#include "event/key.h"
#include "flow/sink.h"

#pragma GCC visibility push(hidden)

/* Whom a lane tells what, with no lock held: from inside every function below but lane_new, lane_free, lane_stop. */
struct lane_listener {
	/* NULL: nobody asks */
	void (*dropped)(void *ctx, const evrec_fields *event, const char *why);
	void (*error)(void *ctx, const char *message, const char *name);
	void *ctx;
};

struct lane;

/*
 * `listener` must outlive the lane. Messages are cut at `max_message_bytes`, also those of aggregates. NULL and *err
 * where an option is out of range, or there is no memory.
 */
struct lane *lane_new(evrec_sink *sink, const evrec_correlator_options *options, evrec_clock *clock,
                      size_t max_message_bytes, const struct lane_listener *listener, evrec_error *err);
/* Never waits: what waits for a thread is sent by it in the background, other writes are dropped. */
void lane_free(struct lane *lane);

/* `keys` are those of the event; NULL where there was no memory for them. */
void lane_record(struct lane *lane, const evrec_fields *event, struct keys *keys, int64_t now);
/* Drains answers; does the sender's work where it has no thread, but for one write not after `deadline`. */
void lane_poll(struct lane *lane, int64_t deadline);

/*
 * Waits a little for progress, not beyond `deadline` (CLOCK_MONOTONIC), or not at all where there can be none. True: it
 * waited.
 */
bool lane_wait(struct lane *lane, int64_t deadline);
bool lane_empty(struct lane *lane);

void lane_stop(struct lane *lane); /* nothing more is recorded; what waits is written */
void lane_end(struct lane *lane);  /* likewise, but nothing is tried twice; does not wait */
/* After lane_end: waits for what is under way until `deadline`, then drops what is left. */
void lane_join(struct lane *lane, int64_t deadline);

void lane_get_stats(const struct lane *lane, evrec_sink_stats *stats);
/* evrec_broadcaster_explain, for this sink. */
void lane_explain(const struct lane *lane, const evrec_reference *object,
                  bool (*func)(void *ctx, const evrec_suppressed *what), void *ctx);

#pragma GCC visibility pop

#endif

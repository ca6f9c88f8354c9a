/*
 * pipeline.h - one sink's correlator, outbox and sender. Belongs to a broadcaster, and to that one's thread. A sender's
 * own thread shares nothing with it but the outbox, which has a lock.
 *
 *   an event goes in:     pipeline_record: correlator or series, then outbox
 *   an answer comes back: pipeline_record and pipeline_poll take it from the outbox to the correlator; drops and errors
 *                         go to the listener
 */
#ifndef EVREC_PIPELINE_H
#define EVREC_PIPELINE_H

#include "event/key.h"
#include "sink/sink.h"

#pragma GCC visibility push(hidden)

/* `count` occurrences of an event that goes no further. Borrowed. */
struct pipeline_drop {
	const evrec_fields *event;
	enum evrec_cause cause;
	uint64_t count;
};

struct pipeline;

/* The functions are called with no lock held, from inside pipeline_record, pipeline_tick, pipeline_poll and pipeline_join. */
struct pipeline_listener {
	void (*dropped)(void *ctx, const struct pipeline_drop *drop);
	/* The event was limited in rate. NULL: nobody asks. */
	void (*limited)(void *ctx, const evrec_fields *event);
	/* A series has begun, was taken over, or is finished, as series_state says. */
	void (*series)(void *ctx, const struct pipeline *pipeline, const evrec_fields *event);
	/* `name` is static; `sink` is the sink's name, borrowed for the call. */
	void (*error)(void *ctx, const char *message, const char *name, const char *sink);
	void *ctx;
	bool loud; /* what is lost after the pipeline is freed, or at exit(), is told on standard error */
};

/*
 * Retains `sink` and `clock`, copies `options` (NULL: the defaults). `listener` must outlive the pipeline. Messages,
 * also those of aggregates, are cut at `max_message_bytes`. NULL, with *err set, if an option is out of range or there
 * is no memory.
 */
struct pipeline *pipeline_new(evrec_sink *sink, const evrec_correlator_options *options, evrec_clock *clock,
                              size_t max_message_bytes, enum evrec_drive drive,
                              const struct pipeline_listener *listener, evrec_error *err);
/* Never waits: the sender's thread sends the waiting writes in the background; without a thread they are dropped. */
void pipeline_free(struct pipeline *pipeline);

/* `keys` are the event's own; NULL if there was no memory for them. Does nothing once the pipeline was stopped. */
void pipeline_record(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now);
/* True if the sink combines events by series. */
bool pipeline_has_series(const struct pipeline *pipeline);
/*
 * Tells of series that are finished by `now`: of a few, as each recording call does, so that none pays for all. Before
 * pipeline_record, which does the same unless it was done for its event; pipeline_poll tells of all.
 */
void pipeline_tick(struct pipeline *pipeline, int64_t now);
/* The occurrences that its series have counted and not written become pending. */
void pipeline_release(struct pipeline *pipeline);
/*
 * Takes answers, drops and errors from the outbox. Does the sender's work too if that has no thread; after `deadline`
 * (CLOCK_MONOTONIC, ns) it begins at most one write.
 */
void pipeline_poll(struct pipeline *pipeline, int64_t deadline);
/* True: its sink could have a thread, and has none. */
bool pipeline_lacks_thread(struct pipeline *pipeline);
/* How long the next pipeline_poll may be put off, as evrec_broadcaster_poll_delay. */
int64_t pipeline_poll_delay(struct pipeline *pipeline);

/* Waits a moment for progress, until `deadline` (CLOCK_MONOTONIC, ns) at most. False, at once: no progress can come. */
bool pipeline_wait(struct pipeline *pipeline, int64_t deadline);
/* True if no write waits or is under way. */
bool pipeline_empty(struct pipeline *pipeline);

/* Ends recording. Polls go on with the waiting writes until all are made; then the pipeline is over. Idempotent. */
void pipeline_stop(struct pipeline *pipeline);
/* Ends recording, and from now on tries no write twice. Does not wait. Idempotent. */
void pipeline_end(struct pipeline *pipeline);
/* After pipeline_end: waits until `deadline` for writes that are under way, then spools or drops the rest. */
void pipeline_join(struct pipeline *pipeline, int64_t deadline);
/* True if it was stopped by pipeline_stop and a poll or join found all written or dropped, and told. */
bool pipeline_is_over(const struct pipeline *pipeline);

/* The token that the sink was configured with, or an empty string. */
evrec_str pipeline_secret(const struct pipeline *pipeline);
/* Sets all but `number`. In a forked child that has recorded nothing yet all counters are 0. */
void pipeline_get_stats(const struct pipeline *pipeline, evrec_sink_stats *stats);
/* evrec_broadcaster_explain, for this sink. */
void pipeline_explain(const struct pipeline *pipeline, const evrec_reference *object,
                      bool (*func)(void *ctx, const evrec_suppressed *suppressed), void *ctx);

#pragma GCC visibility pop

#endif

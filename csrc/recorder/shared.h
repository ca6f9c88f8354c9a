/*
 * shared.h - a handle of a broadcaster that has a name, and so a lock. The other handles may be in use by other threads
 * at the same time.
 */
#ifndef EVREC_SHARED_H
#define EVREC_SHARED_H

#include "recorder/broadcaster.h"

#pragma GCC visibility push(hidden)

/* A new handle has joined its hub. */
void shared_begin(evrec_broadcaster *b);
/* The handle is freed: leaves its watches and, with the last handle, ends the hub. From shared_enter; gives up the lock. */
void shared_end(evrec_broadcaster *b);
/* With the lock held, in a forked child: the handle, which was not in use by another thread, is one of the hub's. */
void shared_count_in_child(evrec_broadcaster *b);

/* Take the lock; release it, and then call the handle's due callbacks. */
void shared_enter(evrec_broadcaster *b);
void shared_leave(evrec_broadcaster *b);
/* Releases the lock without calling back: due callbacks wait for the next call that may. */
void shared_unlock(const evrec_broadcaster *b);

/* Parts of the functions of broadcaster.h with these names. */
int shared_record(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now, evrec_error *err);
void shared_broadcast_deferred(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now);
void shared_poll(evrec_broadcaster *b, int64_t deadline, bool flushes);

/* Whether the handle steps the sink. A sink that calls functions is stepped by the handle that has them. */
bool shared_steps(const evrec_broadcaster *b, const evrec_watch *watch);
/* Whether the sinks that this handle steps are empty. */
bool shared_settled(evrec_broadcaster *b);
/* Whether a sink that this handle steps is ending (see pipeline_is_ending). */
bool shared_is_ending(evrec_broadcaster *b);
/* Waits a moment for progress of one of these sinks. False: all remaining writes wait for a fake clock. */
bool shared_wait(evrec_broadcaster *b, int64_t deadline);
/* Refuses further recording calls of this handle. True: it was the last handle, which ends the sinks. */
bool shared_close(evrec_broadcaster *b);
/* Ends the sinks, all of them or those that call functions of this handle, until `deadline`. */
void shared_end_sinks(evrec_broadcaster *b, bool all, int64_t deadline);

/* ---- shared_callbacks.c ---- */

/* Calls the handle's due callbacks. */
void shared_call_back(evrec_broadcaster *b);
/* Whether this thread is in a callback of shared_call_back, of this handle or of another one of its broadcaster. */
bool shared_calls_back(const evrec_broadcaster *b);

/* ---- joined.c ---- */

/* evrec_broadcaster_start_recording_to_sink: starts the sink, or joins the one that another handle has started. */
evrec_watch *shared_start_sink(evrec_broadcaster *b, evrec_sink *sink, const evrec_correlator_options *options,
                               evrec_error *err);
/* Starts a copy of the function or queue `model`, which has a queue. Takes over the queue, unless it fails. */
evrec_watch *shared_start_watch(evrec_broadcaster *b, const evrec_watch *model, evrec_error *err);
/* The handle gives up its watches that have stopped, or all of them. With the lock held. */
void shared_forget_own(evrec_broadcaster *b, bool all);
/* Whether a watch of the handle has functions for its correlator. */
bool shared_has_functions(const evrec_broadcaster *b);

#pragma GCC visibility pop

#endif

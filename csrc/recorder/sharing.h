/*
 * sharing.h - a broadcaster whose sinks are those of all processes of a host (the option `share`). A worker sends its
 * events to the owner, and its own pipelines are idle; an owner's pipelines get the events of all.
 *
 * A thread of evrec steps the share; with EVREC_DRIVE_POLL, or if no thread can be started, polls do. It has the hub's
 * lock while it records what workers have sent, and while it takes the answers.
 */
#ifndef EVREC_SHARING_H
#define EVREC_SHARING_H

#include "recorder/hub.h"

#pragma GCC visibility push(hidden)

/* Checks the options. 0 or EVREC_EINVALID. */
int sharing_check(const evrec_broadcaster_options *options, evrec_error *err);
/* Sets hub->sharing. False: no memory. */
bool sharing_open(struct hub *hub);
/* `settled` of a listener. */
void sharing_settled(void *ctx, const struct pipeline *pipeline, const struct pipeline_settled *settled);
/* Without the lock, when no handle uses the hub any more. */
void sharing_free(struct hub *hub);

/* All below do nothing for a hub without `sharing`. With the lock of the hub held: */

/* Checks that a sink can be shared. False: see *err. */
bool sharing_check_sink(const struct hub *hub, const evrec_sink *sink, const evrec_correlator_options *options,
                        evrec_error *err);
/* A sink was started. */
void sharing_add_sink(struct hub *hub);
/* Whether the event was handed to the owner, or dropped, and so is not for the pipelines of this process. */
bool sharing_forward(struct hub *hub, const evrec_fields *event);
/* Whether this process drives the pipelines: it is the owner, or the broadcaster has no share. */
bool sharing_owns(const struct hub *hub);
/*
 * An owner had an error with a sink: passes it to the processes whose events the owner has. Arguments as of
 * hub_tell_error.
 */
void sharing_report(const struct hub *hub, const char *message, const char *name, const char *sink);
/* The last handle was closed. */
void sharing_close(const struct hub *hub);
/* evrec_broadcaster_may_own. */
void sharing_may_own(struct hub *hub);
enum evrec_share_role sharing_role(const struct hub *hub);
int64_t sharing_silent_for(const struct hub *hub); /* of evrec_stats */
/* In a forked child. */
void sharing_renew(struct hub *hub);
/* Adds the occurrences of a worker's ledger to the counters of the sink of this number. */
void sharing_add_stats(const struct hub *hub, size_t number, evrec_sink_stats *stats);

/* Without the lock: */

/* Starts the thread, or determines that polls have to do its work. Cheap. */
void sharing_begin(struct hub *hub);
/* The same, and does a step if there is no thread. If the call `flushes`, also asks the owner to flush. */
void sharing_poll(struct hub *hub, bool flushes);
/* Whether everything is acknowledged. */
bool sharing_is_settled(struct hub *hub);
/* Whether everything is acknowledged, and no worker needs to be told that this process ends. */
bool sharing_is_over(struct hub *hub);
/* This process, or the broadcaster, is about to end: if the owner refuses this process, it writes its events itself. */
void sharing_leave(struct hub *hub);
/* After sharing_end: occurrences that the owner has received, and will write. */
uint64_t sharing_left_to_owner(const struct hub *hub);
/* How long the next poll may be put off, as evrec_broadcaster_poll_delay. */
int64_t sharing_poll_delay(struct hub *hub);
/*
 * Asks the owner what its sinks have suppressed of an object (NULL: of all objects), and waits up to `timeout` ns. 0:
 * `answer` is set, in the form of share/explained.h; or *owns is set: this process is the owner. EVREC_ETIMEOUT,
 * EVREC_ECLOSED, EVREC_ENOMEM or EVREC_EINVALID.
 */
int sharing_ask(struct hub *hub, const evrec_reference *object, int64_t timeout, struct buf *answer, bool *owns,
                evrec_error *err);
/* Waits a moment for acknowledgements. */
void sharing_wait(int64_t deadline);
/*
 * The last handle was freed, and not shut down. True: some occurrences are not acknowledged yet, or this process is an
 * owner with workers. The thread waits for their end and hands over, after 30 s at most, or at once if spools keep the
 * rest; and then releases the hub's watches. Without a thread, a process that has no owner is stepped by polls of other
 * broadcasters, or by the end of the process. False: that is up to the caller, after sharing_stop.
 */
bool sharing_linger(struct hub *hub);
/*
 * Stops the steps, before the sinks end. Waits for a running step until the deadline, and for a minimum time. False:
 * the step has not ended, as for a disk that hangs. Then the thread of the share, which still uses the hub, releases
 * it, and its watches if no handle is left.
 */
bool sharing_stop(struct hub *hub, int64_t deadline);
/*
 * After that: prints the number of unacknowledged occurrences on standard error, once. Does nothing after sharing_end.
 */
void sharing_tell_losses(struct hub *hub);
/*
 * After sharing_stop: tells workers or the owner the end. If a step has not ended, drops the unacknowledged
 * occurrences, and reports them.
 */
void sharing_end(struct hub *hub, int64_t deadline);

#pragma GCC visibility pop

#endif

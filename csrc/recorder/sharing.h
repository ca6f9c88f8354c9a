/*
 * sharing.h - a broadcaster whose sinks are those of all processes of a host (the option `share`). A worker's events go to
 * the owner, and its own pipelines stand still; an owner's pipelines get the events of all.
 *
 * One thread of evrec's steps the share; or, with EVREC_DRIVE_POLL or if no thread can be started, polls do. It has the
 * hub's lock while it records what workers have sent, and while it takes the answers.
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

/* A sink can be shared. False: see *err. */
bool sharing_check_sink(const struct hub *hub, const evrec_sink *sink, const evrec_correlator_options *options,
                        evrec_error *err);
/* A sink was started. */
void sharing_add_sink(struct hub *hub);
/* Whether the event is not for the pipelines of this process: it was handed over, or dropped. */
bool sharing_forward(struct hub *hub, const evrec_fields *event);
/* Whether the pipelines are to be driven: this process is the owner, or there is nothing to share. */
bool sharing_owns(const struct hub *hub);
/* An owner had an error with a sink: the processes whose events it has hear of it. Names are those of hub_tell_error. */
void sharing_report(const struct hub *hub, const char *message, const char *name, const char *sink);
/* The last handle was closed. */
void sharing_close(const struct hub *hub);
/* evrec_broadcaster_may_own. */
void sharing_may_own(struct hub *hub);
enum evrec_share_role sharing_role(const struct hub *hub);
int64_t sharing_silent_for(const struct hub *hub); /* of evrec_stats */
/* In a forked child. */
void sharing_renew(struct hub *hub);
/* Adds what a worker has handed over to the counters of the sink of this number. */
void sharing_add_stats(const struct hub *hub, size_t number, evrec_sink_stats *stats);

/* Without the lock: */

/* Starts the thread, or finds that polls have to do its work. Cheap. */
void sharing_begin(struct hub *hub);
/* The same, and does a step if there is no thread. A call that `flushes` also asks the owner to. */
void sharing_poll(struct hub *hub, bool flushes);
/* Whether everything is acknowledged. */
bool sharing_is_settled(struct hub *hub);
/* Whether it is, and no worker needs to be told the end of this process. */
bool sharing_is_over(struct hub *hub);
/* This process, or the broadcaster, is about to end: if the owner refuses it, it writes its events itself. */
void sharing_leave(struct hub *hub);
/* After sharing_end: occurrences that the owner has received, and will write. */
uint64_t sharing_left_to_owner(const struct hub *hub);
/* How long the next poll may be put off, as evrec_broadcaster_poll_delay. */
int64_t sharing_poll_delay(struct hub *hub);
/*
 * Asks the owner what its sinks have suppressed of an object (NULL: of all objects), and waits up to `timeout` ns. 0:
 * `answer` has it, as share/explained.h tells; or *owns is set: this process is the owner. EVREC_ETIMEOUT, EVREC_ECLOSED,
 * EVREC_ENOMEM or EVREC_EINVALID.
 */
int sharing_ask(struct hub *hub, const evrec_reference *object, int64_t timeout, struct buf *answer, bool *owns,
                evrec_error *err);
/* Waits a moment for acknowledgements. */
void sharing_wait(int64_t deadline);
/*
 * The last handle was freed, and not shut down. True: something is not acknowledged yet, or this process is an owner with
 * workers. The thread waits for that and hands over, after 30 s at most, or at once if spools keep the rest; and then lets
 * go of the hub's watches. Without a thread, a process that has no owner is stepped by polls of other broadcasters, or by
 * the end of the process. False: that is up to the caller, after sharing_stop.
 */
bool sharing_linger(struct hub *hub);
/*
 * No more steps are done. Before the sinks end. False: one was not over at the deadline, and some time at least, as for
 * a disk that hangs. Then a thread of the share, which still uses the hub, lets go of it, and of its watches if no handle is
 * left.
 */
bool sharing_stop(struct hub *hub, int64_t deadline);
/* After that: tells on standard error what is not acknowledged, once. Nothing after sharing_end. */
void sharing_tell_losses(struct hub *hub);
/* After sharing_stop: tells workers or the owner the end. If a step was not over, drops what is not acknowledged, and tells. */
void sharing_end(struct hub *hub, int64_t deadline);

#pragma GCC visibility pop

#endif

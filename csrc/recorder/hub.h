/*
 * hub.h - the shared state of the handles of one broadcaster: watches, sinks, counters and troubles. A handle (struct
 * evrec_broadcaster) belongs to one thread at a time.
 *
 * The hub of a broadcaster without a name has one handle, `user`, and no lock. Its callbacks run as soon as they are
 * due. The hub of a name has a lock, and any number of handles in any threads. No callback runs with the lock held: it
 * is queued (notices.h), and the handle whose call caused it calls it after releasing the lock.
 *
 *   hub.c        registry by name, lock, references, forks
 *   broadcast.c  the way of an event to the watches
 *   watches.c    starts and forgets watches; joined.c: of a broadcaster with a name
 *   telling.c    drops, refused calls and errors
 */
#ifndef EVREC_HUB_H
#define EVREC_HUB_H

#include "recorder/notices.h"
#include "recorder/trouble.h"
#include "recorder/watch_list.h"

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

/* The fields that a recording call reads come first, so that they take few cache lines. */
struct hub {
	bool shared;       /* it has a name and a lock */
	bool forwards;     /* the event being broadcast is not for the sinks of this process */
	bool copies;       /* a watch takes a copy of the event */
	bool names;        /* a watch needs the event's name */
	bool broadcasting; /* an event is being broadcast, and a watch takes a copy of it */
	unsigned fork_generation;
	evrec_broadcaster *user;   /* the handle in whose call the hub is used; NULL: a thread of evrec's uses it */
	struct troubles *troubles; /* NULL: the broadcaster is not loud */
	struct watch_list watches; /* the watches that a recording call visits: running, or just stopped */
	evrec_stats stats;         /* `sinks` and `components` are not kept up to date */
	struct pipeline_listener listener;
	struct watch_list sinks; /* all sinks until they are forgotten; running ones are in `watches` too */
	size_t last_number;      /* of the sink that was started last; 0: none was */
	evrec_event *told;       /* the series after the event being broadcast; the watches get it after the event */
	struct buf event_name;
	char lost_example[TROUBLE_TEXT]; /* the first loss since the last flush */
	const char *error_name;          /* of a sink's last error; static */
	char error[TROUBLE_TEXT];        /* empty: no error since a flush after which nothing waited */

	/* Of a hub with a name: */
	struct hub *next; /* in the registry */
	char *name;
	pthread_mutex_t lock;
	atomic_uint refs;       /* handles, until their memory is freed, and watches that the user retains */
	unsigned users, open;   /* handles that are not freed; how many of these accept recording calls */
	pthread_t thread;       /* that made the first handle */
	bool one_thread;        /* no other thread has used a handle */
	bool keeps_handles;     /* in a forked child: that thread has forked, so the child has all handles */
	bool ended;             /* the sinks have ended: no handle joins it any more */
	bool locked_for_fork;   /* by the thread that forks */
	bool has_forked;        /* this process has forked since it has the hub */
	bool has_loop;          /* evrec_broadcaster_may_own was called in this process */
	struct notices notices; /* callbacks that are due, until a handle leaves */
	evrec_broadcaster_options options;
	char *share;             /* the memory of options.share */
	unsigned *share_users;   /* likewise */
	struct sharing *sharing; /* of the option `share`; or NULL */
};

/*
 * The hub for a new handle with these checked options: a new one, or that of the name. The handle has joined it. NULL,
 * with *err set: EVREC_ENOMEM, or EVREC_EINVALID (an option differs from that of the other handles).
 */
struct hub *hub_open(const evrec_broadcaster_options *options, evrec_error *err);
void hub_retain(struct hub *hub);
void hub_release(struct hub *hub); /* not with the lock held */
/* With the lock held: a forked child counts and reports only events that it records itself. */
void hub_check_fork(struct hub *hub);

void hub_lock_shared(struct hub *hub);
void hub_unlock_shared(struct hub *hub);

/* All functions below, and all fields above but `shared` and `refs`, need the lock. */
static inline void hub_lock(struct hub *hub)
{
	if (hub->shared) {
		hub_lock_shared(hub);
	}
}

static inline void hub_unlock(struct hub *hub)
{
	if (hub->shared) {
		hub_unlock_shared(hub);
	}
}

/* ---- broadcast.c ---- */

/*
 * Gives an event to all watches. It needs no name yet. `keys` are its own; NULL: there was no memory for them. True: a
 * watch was stopped; call hub_forget_stopped.
 */
bool hub_broadcast(struct hub *hub, evrec_fields *event, struct keys *keys, int64_t now);
/* Gives an event to functions and queues, not to sinks. NULL: there was no memory for the event. */
void hub_offer(struct hub *hub, evrec_event *event);
/* Tells of a series: `series` of a listener. */
void hub_tell_series(void *ctx, const struct pipeline *pipeline, const evrec_fields *event);

/* ---- watches.c ---- */

/* Makes room for a watch in the lists. False: no memory. */
bool hub_reserve_watch(struct hub *hub, bool is_sink);
/* Adds the watch, which gets a number if it is a sink; takes over a reference. */
void hub_add_watch(struct hub *hub, evrec_watch *watch);
/*
 * Removes stopped watches from the list that recording calls visit, and releases those that have nothing left to write.
 * Adds the counters of such a sink to the sum of ended sinks. Not from a callback.
 */
void hub_forget_stopped(struct hub *hub);
/* Releases the sinks that call functions of this handle, without calling them: their waiting writes are dropped. */
void hub_abandon_sinks(struct hub *hub, const evrec_broadcaster *owner);
/* The broadcaster is freed: releases all watches. */
void hub_release_watches(struct hub *hub);
/* Adds the final counters of a sink to the sum of ended sinks. */
void stats_add_ended(evrec_sink_stats *sum, const evrec_sink_stats *sink);

/* ---- telling.c ---- */

/*
 * Note a drop of `n` occurrences, a refused call, or an error, for lines and for the results of a flush; call on_drop
 * and on_error, or note them. `cause` and `name` are static. `event` is NULL if there is none to show; `sink` is the
 * name of the sink that had the error, or NULL. The error "thread" is passed only to on_error, unless the drive is
 * EVREC_DRIVE_THREAD.
 */
void hub_tell_drop(struct hub *hub, const evrec_fields *event, const char *cause, uint64_t n);
void hub_tell_refusal(struct hub *hub, const char *message);
void hub_tell_error(struct hub *hub, const char *message, const char *name, const char *sink);
/* Only calls on_drop, or notes the call. */
void hub_tell_on_drop(struct hub *hub, const evrec_fields *event, const char *cause);

#pragma GCC visibility pop

#endif

#include "recorder/sharing_inner.h"

#include "base/line.h"
#include "base/wait.h"

#include <inttypes.h>
#include <time.h>

#define LINGER_MAX (30 * EVREC_SECOND)   /* after the last handle was freed, as for a released sender */
#define LINGER_STEPS 10                  /* without a thread */
#define SHORTEST_END (EVREC_SECOND / 10) /* the least time for an end in order */
#define LAST_WRITES (2 * EVREC_SECOND)   /* after the linger, by a thread; a spool or the next owner has the rest */
#define STEP_PAUSE (EVREC_SECOND / 500)  /* between two checks whether another handle is in a step */

/* The number of occurrences that are not acknowledged for some sink. */
static uint64_t count_pending(struct share *share)
{
	uint64_t most = 0;

	for (size_t i = 0; i < FRAME_SINKS; i++) {
		struct ledger_counts counts;

		share_count(share, i, &counts);
		most = counts.pending > most ? counts.pending : most;
	}
	return most;
}

void sharing_tell_losses(struct hub *hub)
{
	struct sharing *sh = hub->sharing;
	struct line line = { .len = 0 };
	uint64_t n;

	if (sh == NULL || sh->share == NULL || !hub->listener.loud) {
		return;
	}
	n = count_pending(sh->share);
	if (n != 0 && !atomic_exchange(&sh->told, true)) {
		line_printf(&line, "evrec: the share ");
		line_put_escaped(&line, str_from(hub->share));
		line_printf(&line, ": %" PRIu64 " %s not acknowledged by the process that writes for all", n,
		            n == 1 ? "event was" : "events were");
		(void)evrec_line_to_stderr(line.text);
	}
}

void sharing_close(const struct hub *hub)
{
	if (hub->sharing != NULL && hub->sharing->share != NULL) {
		share_close(hub->sharing->share);
	}
}

void sharing_leave(struct hub *hub)
{
	if (hub->sharing != NULL && hub->sharing->share != NULL) {
		share_leave(hub->sharing->share);
	}
}

/* Idempotent. */
static void begin_end(struct hub *hub)
{
	if (!atomic_exchange(&hub->sharing->ends, true)) {
		sharing_ops.flush(hub);
		sharing_leave(hub);
	}
}

static bool go_on(void *ctx)
{
	struct hub *hub = ctx;

	if (hub->sharing->share != NULL) {
		begin_end(hub);
	}
	sharing_poll(hub, true);
	return !sharing_is_over(hub);
}

static void tell(void *ctx)
{
	sharing_tell_losses(ctx);
}

void sharing_watch_exit(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	sh->guest = (struct sender_guest){ .go_on = go_on, .tell = tell, .ctx = hub };
	senders_add_guest(&sh->guest);
}

/* ---- the end of an owner ---- */

bool sharing_is_over(struct hub *hub)
{
	return sharing_is_settled(hub) &&
	       (hub->sharing == NULL || hub->sharing->share == NULL || !share_has_workers(hub->sharing->share));
}

/* No write waits for a server or for a state file: from here on this process writes no event. */
static bool has_written_all(struct hub *hub)
{
	struct sharing *sh = hub->sharing;
	bool all;

	hub_lock(hub);
	all = sh->unsettled == 0 && !sh->marked && sh->settled.len == 0;
	for (size_t i = 0; i < hub->sinks.len && all; i++) {
		(void)pipeline_take_all_news(hub->sinks.items[i]->pipeline);
		all = pipeline_empty(hub->sinks.items[i]->pipeline);
	}
	hub_unlock(hub);
	return all;
}

void sharing_hand_over(struct hub *hub)
{
	if (atomic_load(&hub->sharing->ends) && share_has_workers(hub->sharing->share) && has_written_all(hub)) {
		sharing_end(hub, 0);
	}
}

/* ---- the end of a broadcaster ---- */

/*
 * An owner's spools keep the unwritten events: it need not wait for a server while its workers wait for the next owner.
 */
static bool is_kept_by_spools(struct hub *hub)
{
	bool all = share_role(hub->sharing->share) == SHARE_OWNER;

	hub_lock(hub);
	for (size_t i = 0; i < hub->sinks.len && all; i++) {
		all = pipeline_has_spool(hub->sinks.items[i]->pipeline);
	}
	hub_unlock(hub);
	return all;
}

bool sharing_has_lingered(struct hub *hub)
{
	const int64_t until = atomic_load(&hub->sharing->linger_until);

	return until != INT64_MAX && (sharing_is_over(hub) || sharing_mono() >= until || is_kept_by_spools(hub));
}

/* No handle is left that uses the sinks. */
static void end_sinks(struct hub *hub, int64_t deadline)
{
	hub_lock(hub);
	for (size_t i = 0; i < hub->sinks.len; i++) {
		pipeline_end(hub->sinks.items[i]->pipeline);
	}
	for (size_t i = 0; i < hub->sinks.len; i++) {
		struct pipeline *pipeline = hub->sinks.items[i]->pipeline;

		hub_unlock(hub);
		pipeline_wait_for_end(pipeline, deadline);
		hub_lock(hub);
		(void)pipeline_take_all_news(pipeline);
		if (pipeline_can_close_state(pipeline)) {
			hub_unlock(hub);
			pipeline_close_state(pipeline);
			hub_lock(hub);
		}
		pipeline_join(pipeline, deadline);
	}
	hub_unlock(hub);
}

/* Prepares the last batch. The states are written when the sinks end, and then sharing_end sends it. */
static void tell_last(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	if (sh->share == NULL) {
		return;
	}
	share_send_batch(sh->share);
	hub_lock(hub);
	if (sh->marked) {
		sharing_add_to_batch(sh);
	} else {
		sharing_begin_batch(sh);
	}
	sh->is_last = true;
	hub_unlock(hub);
}

/*
 * An owner that has not written all events closes the files of its sinks, which the next owner needs, and hands over.
 */
static void end_owner(struct hub *hub)
{
	struct sharing *sh = hub->sharing;
	const int64_t deadline = sharing_mono() + (atomic_load(&sh->drive) == BY_THREAD ? LAST_WRITES : 0);

	if (share_role(sh->share) != SHARE_OWNER || !share_has_workers(sh->share)) {
		return;
	}
	atomic_store(&sh->stops, true);
	tell_last(hub);
	end_sinks(hub, deadline);
	sharing_end(hub, deadline);
}

static void let_go(void *ctx)
{
	struct hub *hub = ctx;

	sharing_tell_losses(hub);
	hub_lock(hub);
	hub_release_watches(hub);
	hub_unlock(hub);
	hub_release(hub);
}

void sharing_end_lingering(struct hub *hub)
{
	/* The end of the process waits for this sharing as long as it is a guest. */
	end_owner(hub);
	senders_remove_guest(&hub->sharing->guest);
	(void)pthread_detach(pthread_self());
	let_go(hub);
}

/* There is no thread, and no handle polls any more. */
static void step_sinks(struct hub *hub)
{
	for (size_t i = 0; i < FRAME_SINKS; i++) {
		evrec_watch *watch;
		bool steps;

		hub_lock(hub);
		watch = sharing_sink_at(hub, i);
		steps = watch != NULL && pipeline_begin_poll(watch->pipeline);
		if (steps) {
			watch->pins++;
		}
		hub_unlock(hub);
		if (steps) {
			pipeline_step(watch->pipeline, INT64_MAX);
			hub_lock(hub);
			watch->pins -= watch->pins != 0; /* 0: in a forked child */
			hub_unlock(hub);
		}
	}
}

static bool linger_in_polls(void *ctx)
{
	step_sinks(ctx);
	(void)go_on(ctx);
	if (!sharing_has_lingered(ctx)) {
		return true;
	}
	end_owner(ctx);
	return false;
}

bool sharing_linger(struct hub *hub)
{
	struct sharing *sh = hub->sharing;
	bool threaded, lingers;

	if (sh == NULL || sh->share == NULL) {
		return false;
	}
	begin_end(hub);
	for (unsigned i = 0; i < LINGER_STEPS && atomic_load(&sh->drive) != BY_THREAD && !sharing_is_over(hub); i++) {
		sharing_poll(hub, true);
	}
	threaded = atomic_load(&sh->drive) == BY_THREAD;
	lingers = !atomic_load(&sh->stops) && !sharing_is_over(hub);
	lingers = lingers && (threaded || share_decline(sh->share));
	if (lingers) {
		hub_retain(hub);
		atomic_store(&sh->linger_until, sharing_mono() + LINGER_MAX);
	}
	if (lingers && threaded) {
		share_wake(sh->share);
	} else if (lingers) {
		senders_adopt_guest(&sh->guest, linger_in_polls, let_go);
	}
	return lingers;
}

void sharing_end_thread(struct hub *hub)
{
	struct sharing *sh = hub->sharing;
	bool left;

	hub_lock(hub);
	left = sh->hangs;
	sh->has_ended = true;
	(void)pthread_cond_signal(&sh->ended);
	if (left && hub->users == 0) {
		hub_release_watches(hub);
	}
	hub_unlock(hub);
	if (left) {
		(void)pthread_detach(pthread_self());
		hub_release(hub);
	}
}

/* With the lock held. True: the thread has ended. False: it keeps the hub until it ends. */
static bool await_thread(struct hub *hub, int64_t deadline)
{
	struct sharing *sh = hub->sharing;

	while (!sh->has_ended && wait_until(&sh->ended, &hub->lock, deadline)) {
	}
	if (!sh->has_ended) {
		sh->hangs = true;
		hub_retain(hub);
	}
	return sh->has_ended;
}

static bool stop_thread(struct hub *hub, int64_t deadline)
{
	struct sharing *sh = hub->sharing;
	bool ended;

	share_wake(sh->share);
	hub_lock(hub);
	ended = await_thread(hub, deadline);
	hub_unlock(hub);
	if (ended) {
		(void)pthread_join(sh->thread, NULL);
	}
	return ended;
}

/* A poll of another handle may be in a step; from now on no other step begins. */
static bool stop_polls(struct hub *hub, int64_t deadline)
{
	struct sharing *sh = hub->sharing;
	bool stops;

	while (!(stops = !atomic_exchange(&sh->stepping, true)) && sharing_mono() < deadline) {
		(void)nanosleep(&(struct timespec){ 0, STEP_PAUSE }, NULL);
	}
	hub_lock(hub);
	sh->hangs = !stops;
	hub_unlock(hub);
	return stops;
}

/* Whether a thread that had not ended at the deadline still has not. */
static bool still_hangs(struct hub *hub)
{
	const struct sharing *sh = hub->sharing;
	bool left;

	hub_lock(hub);
	left = sh->hangs && !sh->has_ended && atomic_load(&sh->drive) == BY_THREAD;
	hub_unlock(hub);
	return left;
}

static int64_t at_least(int64_t deadline)
{
	const int64_t least = sharing_mono() + SHORTEST_END;

	return deadline > least ? deadline : least;
}

bool sharing_stop(struct hub *hub, int64_t deadline)
{
	struct sharing *sh = hub->sharing;

	if (sh == NULL) {
		return true;
	}
	if (atomic_exchange(&sh->stops, true)) {
		return !still_hangs(hub);
	}
	senders_remove_guest(&sh->guest);
	deadline = at_least(deadline);
	if ((atomic_load(&sh->drive) == BY_THREAD && !stop_thread(hub, deadline)) || !stop_polls(hub, deadline)) {
		return false;
	}
	atomic_store(&sh->drive, BY_POLLS);
	tell_last(hub);
	return true;
}

/* Gives up a share that a hanging step still uses. */
static void give_up(struct hub *hub)
{
	share_drop_all(hub->sharing->share);
	hub_lock(hub);
	hub_tell_error(hub, "a step of the share did not end in time: a disk may hang", "share", NULL);
	hub_unlock(hub);
}

void sharing_end(struct hub *hub, int64_t deadline)
{
	struct sharing *sh = hub->sharing;

	if (sh == NULL || sh->share == NULL) {
		return;
	}
	if (sh->hangs) {
		give_up(hub);
		return;
	}
	hub_lock(hub);
	sharing_tell_unsure(hub, true);
	sh->is_last = false;
	sharing_mark(hub);
	/* The states were written when their sinks ended, but not if the thread of one hangs. */
	if (sh->marked && sharing_has_states(hub)) {
		share_release(sh->share);
	}
	hub_unlock(hub);
	share_end(sh->share, at_least(deadline) - sharing_mono());
}

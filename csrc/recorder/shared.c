#include "recorder/shared.h"

#include <time.h>

#include "event/event.h"
#include "recorder/sharing.h"

void shared_enter(evrec_broadcaster *b)
{
	struct hub *hub = b->hub;

	hub_lock_shared(hub);
	hub->user = b;
	hub->one_thread = hub->one_thread && pthread_equal(hub->thread, pthread_self()) != 0;
}

void shared_unlock(const evrec_broadcaster *b)
{
	b->hub->user = NULL;
	hub_unlock_shared(b->hub);
}

static void leave(evrec_broadcaster *b)
{
	notices_move(&b->hub->notices, &b->notices);
	shared_unlock(b);
}

void shared_leave(evrec_broadcaster *b)
{
	leave(b);
	if (!b->busy) {
		shared_call_back(b);
	}
}

/* Ends a recording call. One that a callback makes by another handle runs no callbacks, which might record in turn. */
static void leave_record(evrec_broadcaster *b)
{
	leave(b);
	if (!shared_calls_back(b)) {
		shared_call_back(b);
	}
}

/* ---- beginning and end ---- */

void shared_begin(evrec_broadcaster *b)
{
	shared_enter(b);
	(void)broadcaster_count_losses(b, &b->flushed);
	shared_unlock(b);
}

void shared_count_in_child(evrec_broadcaster *b)
{
	notices_clear(&b->notices);
	if (!b->hub->keeps_handles) {
		b->hub->users++;
		b->hub->open += b->phase == BROADCASTER_OPEN;
	}
}

/* The sinks continue without a handle. */
static void keep_sinks(const struct hub *hub)
{
	for (size_t i = 0; i < hub->sinks.len; i++) {
		hub->sinks.items[i]->joiners++;
	}
}

void shared_end(evrec_broadcaster *b)
{
	struct hub *hub = b->hub;
	bool stopped;

	if (hub->users == 1 && !sharing_is_over(hub)) {
		keep_sinks(hub);
	}
	shared_forget_own(b, true);
	if (--hub->users == 0) {
		hub->ended = true;
		shared_unlock(b);
		if (sharing_linger(hub)) {
			return;
		}
		stopped = sharing_stop(hub, 0);
		sharing_tell_losses(hub);
		if (!stopped) {
			return;
		}
		shared_enter(b);
		hub_release_watches(hub);
	} else {
		hub_abandon_sinks(hub, b);
	}
	shared_unlock(b);
}

bool shared_close(evrec_broadcaster *b)
{
	struct hub *hub = b->hub;
	bool last;

	shared_enter(b);
	broadcaster_check_fork(b);
	broadcaster_enter_phase(b, BROADCASTER_CLOSED);
	last = --hub->open == 0 && !hub->ended;
	hub->ended = hub->ended || last;
	if (last) {
		sharing_close(hub);
	}
	shared_leave(b);
	return last;
}

/* ---- recording ---- */

/*
 * Whether the sink that the watch has joined still runs. The functions of a sink that has ended may be gone; only a call of
 * this handle lets them go.
 */
static bool joined_sink_runs(const evrec_broadcaster *b, const evrec_watch *watch)
{
	bool running;

	if (watch->joined == NULL || watch->phase != WATCH_RUNNING) {
		return false;
	}
	hub_lock_shared(b->hub);
	running = watch->joined->phase == WATCH_RUNNING;
	hub_unlock_shared(b->hub);
	return running;
}

/* Calls the functions of the handle's sinks, with no lock held. False: no memory. */
static bool ask(evrec_broadcaster *b, evrec_fields *event, int64_t now)
{
	const size_t n = b->own.len;
	bool ok = true;

	if (event->name.len == 0) {
		buf_clear(&b->event_name);
		name_make(&b->event_name, event->regarding.name, now);
		ok = !b->event_name.failed;
		event->name = ok ? buf_str(&b->event_name) : event->name;
	}
	b->busy = true;
	for (size_t i = 0; i < n; i++) {
		evrec_watch *watch = b->own.items[i];

		if (joined_sink_runs(b, watch)) {
			ok = chosen_ask(&watch->answers, &watch->functions, event) && ok;
		}
	}
	b->busy = false;
	return ok;
}

/* Sets, or clears, the functions' results that the sinks use. */
static void show_answers(const evrec_broadcaster *b, bool shown)
{
	for (size_t i = 0; i < b->own.len; i++) {
		evrec_watch *watch = b->own.items[i];

		if (watch->joined != NULL && watch->phase == WATCH_RUNNING) {
			watch->joined->chosen = shown ? &watch->answers : NULL;
		}
	}
}

static void broadcast(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now, bool asked)
{
	bool stopped;

	if (asked) {
		show_answers(b, true);
	}
	b->hub->forwards = keys != NULL && sharing_forward(b->hub, event);
	stopped = hub_broadcast(b->hub, event, keys, now);
	b->hub->forwards = false;
	if (asked) {
		show_answers(b, false);
	}
	if (stopped) {
		shared_forget_own(b, false);
		hub_forget_stopped(b->hub);
	}
}

int shared_record(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now, evrec_error *err)
{
	const bool asks = keys != NULL && b->phase == BROADCASTER_OPEN && shared_has_functions(b);
	const bool ok = !asks || ask(b, event, now);
	int code = 0;

	sharing_begin(b->hub);
	shared_enter(b);
	b->hub->stats.recorded++;
	if (b->phase != BROADCASTER_OPEN || b->hub->ended || keys == NULL || !ok) {
		code = broadcaster_turn_away(b, event, err);
	} else {
		broadcast(b, event, keys, now, asks);
	}
	leave_record(b);
	return code;
}

void shared_broadcast_deferred(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now)
{
	const bool asks = shared_has_functions(b);
	const bool ok = !asks || ask(b, event, now);

	shared_enter(b);
	b->hub->stats.queued--;
	broadcast(b, event, ok ? keys : NULL, now, asks);
	leave_record(b);
}

/* ---- polls, and waiting ---- */

bool shared_steps(const evrec_broadcaster *b, const evrec_watch *watch)
{
	return watch->owner == NULL || watch->owner == b;
}

/* A worker's sinks are idle: only the owner writes, or waits for its spool. */
static bool is_waited_for(const evrec_broadcaster *b, const evrec_watch *watch)
{
	return sharing_owns(b->hub) && shared_steps(b, watch) && !pipeline_empty(watch->pipeline);
}

/* The next sink after the one with this number, pinned; NULL: there is none. */
static evrec_watch *pin_next(const struct hub *hub, size_t number)
{
	const size_t i = watch_list_find_sink(&hub->sinks, number + 1);

	if (i == hub->sinks.len) {
		return NULL;
	}
	hub->sinks.items[i]->pins++;
	return hub->sinks.items[i];
}

static void unpin(evrec_watch *watch)
{
	watch->pins -= watch->pins != 0;
}

/*
 * Writes the state file of an ended, pinned sink for the last time, without the lock, so that recording calls do not
 * wait for the disk.
 */
static void close_state(evrec_broadcaster *b, evrec_watch *watch)
{
	if (!watch->closes && pipeline_can_close_state(watch->pipeline)) {
		watch->closes = true;
		shared_unlock(b);
		b->busy = true;
		pipeline_close_state(watch->pipeline);
		b->busy = false;
		shared_enter(b);
		watch->closes = false;
	}
}

static void poll_sink(evrec_broadcaster *b, evrec_watch *watch, int64_t deadline, bool flushes)
{
	const bool owns = sharing_owns(b->hub);

	if (flushes && owns) {
		pipeline_release(watch->pipeline);
	}
	if (owns && pipeline_begin_poll(watch->pipeline) && shared_steps(b, watch)) {
		shared_unlock(b);
		b->busy = true;
		pipeline_step(watch->pipeline, deadline);
		b->busy = false;
		shared_enter(b);
	}
	/* Another call that uses the sender without the lock must not find that it has ended. */
	if (watch->pins == 1) {
		pipeline_begin_drain(watch->pipeline);
		if (shared_steps(b, watch)) {
			close_state(b, watch);
		}
	}
	if (watch->pins == 1) {
		pipeline_drain(watch->pipeline);
	} else {
		pipeline_take_all_news(watch->pipeline);
	}
}

void shared_poll(evrec_broadcaster *b, int64_t deadline, bool flushes)
{
	size_t number = 0;
	evrec_watch *watch;

	sharing_poll(b->hub, flushes);
	shared_enter(b);
	while ((watch = pin_next(b->hub, number)) != NULL) {
		number = watch->number;
		poll_sink(b, watch, deadline, flushes);
		unpin(watch);
	}
	shared_forget_own(b, false);
	hub_forget_stopped(b->hub);
	shared_leave(b);
	recorders_tell(b);
}

bool shared_settled(evrec_broadcaster *b)
{
	const struct watch_list *sinks = &b->hub->sinks;
	bool settled = sharing_is_settled(b->hub);

	shared_enter(b);
	for (size_t i = 0; i < sinks->len && settled; i++) {
		settled = !is_waited_for(b, sinks->items[i]);
	}
	shared_unlock(b);
	return settled;
}

bool shared_is_ending(evrec_broadcaster *b)
{
	const struct watch_list *sinks = &b->hub->sinks;
	bool ending = false;

	shared_enter(b);
	for (size_t i = 0; i < sinks->len && !ending; i++) {
		ending = shared_steps(b, sinks->items[i]) && pipeline_is_ending(sinks->items[i]->pipeline);
	}
	shared_unlock(b);
	return ending;
}

bool shared_wait(evrec_broadcaster *b, int64_t deadline)
{
	bool stuck = false, waited = false;
	evrec_watch *watch;
	size_t number = 0;

	shared_enter(b);
	while (!waited && (watch = pin_next(b->hub, number)) != NULL) {
		number = watch->number;
		if (is_waited_for(b, watch)) {
			shared_unlock(b);
			waited = pipeline_wait(watch->pipeline, deadline);
			shared_enter(b);
			stuck = !waited;
		}
		unpin(watch);
	}
	shared_unlock(b);
	if (!waited && !sharing_is_settled(b->hub)) {
		sharing_wait(deadline);
		return true;
	}
	return waited || !stuck;
}

static bool is_ended(const evrec_broadcaster *b, const evrec_watch *watch, bool all)
{
	return watch->owner == b || (all && watch->owner == NULL);
}

void shared_end_sinks(evrec_broadcaster *b, bool all, int64_t deadline)
{
	evrec_watch *watch;
	size_t number;

	shared_enter(b);
	for (number = 0; (watch = pin_next(b->hub, number)) != NULL; number = watch->number) {
		if (is_ended(b, watch, all)) {
			pipeline_end(watch->pipeline);
		}
		unpin(watch);
	}
	for (number = 0; (watch = pin_next(b->hub, number)) != NULL; number = watch->number) {
		if (is_ended(b, watch, all)) {
			shared_unlock(b);
			b->busy = true;
			pipeline_wait_for_end(watch->pipeline, deadline);
			b->busy = false;
			shared_enter(b);
			while (watch->closes) {
				shared_unlock(b);
				(void)nanosleep(&(struct timespec){ 0, EVREC_SECOND / 1000 }, NULL);
				shared_enter(b);
			}
			(void)pipeline_take_all_news(watch->pipeline);
			close_state(b, watch);
			pipeline_join(watch->pipeline, deadline);
		}
		unpin(watch);
	}
	hub_forget_stopped(b->hub);
	shared_leave(b);
}

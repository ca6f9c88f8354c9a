#include "recorder/broadcaster.h"

#include "base/phase.h"
#include "event/event.h"
#include "recorder/shared.h"
#include "recorder/sharing.h"
#include "sender/last_words.h"
#include "sender/sender.h"

static const unsigned legal_steps[] = {
	[BROADCASTER_OPEN] = PHASE_BIT(BROADCASTER_CLOSED),
	[BROADCASTER_CLOSED] = PHASE_BIT(BROADCASTER_ENDED),
	[BROADCASTER_ENDED] = 0,
};

void broadcaster_enter_phase(evrec_broadcaster *b, enum broadcaster_phase phase)
{
	phase_step(&b->phase, phase, legal_steps);
}

void evrec_broadcaster_callback_error(evrec_broadcaster *b, const char *message)
{
	handle_enter(b);
	b->hub->stats.callback_errors++;
	/* on_error never gets its own error, or a broadcaster with a name would call it again and again. */
	if (!b->reporting) {
		hub_tell_error(b->hub, message, "callback", NULL);
	}
	handle_leave(b);
}

void evrec_broadcaster_options_init(evrec_broadcaster_options *options)
{
	*options = (evrec_broadcaster_options){ .max_message_bytes = 1024 };
}

static int check_options(const evrec_broadcaster_options *options, evrec_error *err)
{
	if (options->max_message_bytes < 16 || options->max_message_bytes > 262144) {
		return error_set(err, EVREC_EINVALID, "max_message_bytes: must be 16 to 262144");
	}
	if (options->drive > EVREC_DRIVE_POLL) {
		return error_set(err, EVREC_EINVALID, "drive: must be auto, thread or poll");
	}
	if (sharing_check(options, err) != 0) {
		return EVREC_EINVALID;
	}
	return check_text(options->name, "name", FIELD_MAX, false, err);
}

evrec_broadcaster *evrec_broadcaster_new(const evrec_broadcaster_options *options, evrec_error *err)
{
	evrec_broadcaster_options own;
	evrec_broadcaster *b;

	evrec_broadcaster_options_init(&own);
	if (options != NULL) {
		own = *options;
	}
	if (check_options(&own, err) != 0) {
		return NULL;
	}
	/* A broadcaster with a share has a lock, like one with a name. */
	own.name = own.name.len != 0 ? own.name : own.share;
	own.clock = own.clock == NULL ? evrec_clock_real() : own.clock;
	b = mem_zalloc(sizeof(*b));
	if (b == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	b->hub = hub_open(&own, err);
	if (b->hub == NULL) {
		mem_free(b);
		return NULL;
	}
	b->refs = 1;
	b->options = own;
	b->options.name = b->hub->options.name;
	b->options.share = b->hub->options.share;
	b->options.share_users = b->hub->options.share_users;
	b->fork_generation = sender_fork_generation();
	if (b->hub->shared) {
		shared_begin(b);
	} else {
		b->hub->user = b;
	}
	return b;
}

static evrec_event *pop_deferred(evrec_broadcaster *b)
{
	evrec_event *event = b->deferred[b->deferred_head];

	b->deferred_head = (b->deferred_head + 1) % DEFERRED_MAX;
	b->deferred_len--;
	return event;
}

/* Until this call, the end of the process counts the event as lost. */
static evrec_event *take_deferred(evrec_broadcaster *b)
{
	if (b->hub->troubles != NULL) {
		last_words_subtract(1);
	}
	return pop_deferred(b);
}

/*
 * A forked child counts and writes only events that it records itself: its parent still writes and counts all earlier
 * events, also those that its callbacks have recorded.
 */
void broadcaster_check_fork_slowly(evrec_broadcaster *b)
{
	b->fork_generation = sender_fork_generation();
	while (b->deferred_len != 0) {
		evrec_event_release(pop_deferred(b));
	}
	b->flushed = (struct losses){ 0 };
	hub_check_fork(b->hub);
	if (b->hub->shared) {
		shared_count_in_child(b);
	}
}

void handle_enter(evrec_broadcaster *b)
{
	if (b->hub->shared) {
		shared_enter(b);
	}
	broadcaster_check_fork(b);
}

void handle_leave(evrec_broadcaster *b)
{
	if (b->hub->shared) {
		shared_leave(b);
	}
}

void handle_unlock(evrec_broadcaster *b)
{
	if (b->hub->shared) {
		shared_unlock(b);
	}
}

void broadcaster_unref(evrec_broadcaster *b)
{
	if (--b->refs != 0) {
		return;
	}
	mem_free(b->deferred);
	buf_free(&b->inner_note);
	buf_free(&b->event_name);
	keys_free(&b->deferred_keys);
	notices_clear(&b->notices);
	hub_release(b->hub);
	mem_free(b);
}

void evrec_broadcaster_may_own(evrec_broadcaster *b)
{
	hub_lock(b->hub);
	hub_check_fork(b->hub);
	b->hub->has_loop = true;
	sharing_may_own(b->hub);
	hub_unlock(b->hub);
}

/* Drops an event before it came to any sink. */
static void drop(evrec_broadcaster *b, const evrec_fields *event, enum evrec_cause cause)
{
	b->hub->stats.dropped[cause]++;
	hub_tell_drop(b->hub, event, evrec_cause_name(cause), 1);
}

void evrec_broadcaster_free(evrec_broadcaster *b)
{
	struct hub *hub;

	if (b == NULL) {
		return;
	}
	hub = b->hub;
	/* Does not call on_drop, whose owner may be gone. */
	b->options.on_drop = NULL;
	b->options.on_error = NULL;
	if (!hub->shared) {
		hub->options.on_drop = NULL;
		hub->options.on_error = NULL;
	}
	handle_enter(b);
	if (b->phase == BROADCASTER_OPEN) {
		broadcaster_enter_phase(b, BROADCASTER_CLOSED);
		hub->open--;
	}
	if (!hub->shared) {
		hub_release_watches(hub);
	}
	while (b->deferred_len != 0) {
		hub->stats.queued--;
		drop(b, NULL, EVREC_CAUSE_CLOSED);
		evrec_event_release(take_deferred(b));
	}
	if (hub->shared) {
		shared_end(b);
	}
	broadcaster_unref(b);
}

static void give(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now)
{
	bool stopped;

	b->busy = true;
	stopped = hub_broadcast(b->hub, event, keys, now);
	b->busy = false;
	if (stopped) {
		hub_forget_stopped(b->hub);
	}
}

/*
 * Broadcasts the events that callbacks have recorded until now, and no later ones: a callback that records an event for
 * every event that it sees would otherwise never let this end.
 */
HOT static void broadcast_deferred(evrec_broadcaster *b)
{
	size_t n = b->deferred_len;

	while (n-- > 0) {
		evrec_event *event = take_deferred(b);
		evrec_fields fields = *evrec_event_fields(event);
		struct keys *keys = keys_make(&b->deferred_keys, &fields) ? &b->deferred_keys : NULL;
		const int64_t now = evrec_clock_now(b->options.clock);

		if (b->hub->shared) {
			shared_broadcast_deferred(b, &fields, keys, now);
		} else {
			b->hub->stats.queued--;
			give(b, &fields, keys, now);
		}
		evrec_event_release(event);
	}
}

void broadcaster_refuse(evrec_broadcaster *b, const char *message)
{
	handle_enter(b);
	b->hub->stats.recorded++;
	b->hub->stats.invalid++;
	hub_tell_refusal(b->hub, message);
	handle_unlock(b);
}

void broadcaster_drop(evrec_broadcaster *b)
{
	handle_enter(b);
	b->hub->stats.recorded++;
	drop(b, NULL, EVREC_CAUSE_MEMORY);
	handle_unlock(b);
}

int broadcaster_turn_away(evrec_broadcaster *b, const evrec_fields *event, evrec_error *err)
{
	if (b->phase != BROADCASTER_OPEN || b->hub->ended) {
		drop(b, event, EVREC_CAUSE_CLOSED);
		return error_set(err, EVREC_ECLOSED, "the broadcaster is shut down");
	}
	drop(b, event, EVREC_CAUSE_MEMORY);
	return error_set(err, EVREC_EDROPPED, "no memory");
}

static int defer(evrec_broadcaster *b, const evrec_fields *event, bool whole, evrec_error *err)
{
	enum evrec_cause cause = EVREC_CAUSE_QUEUE_FULL;
	evrec_event *copy = NULL;

	b->hub->stats.recorded++;
	if (b->phase != BROADCASTER_OPEN || !whole) {
		return broadcaster_turn_away(b, event, err);
	}
	if (b->deferred == NULL) {
		b->deferred = mem_alloc(DEFERRED_MAX * sizeof(evrec_event *));
	}
	if (b->deferred_len < DEFERRED_MAX) {
		cause = EVREC_CAUSE_MEMORY;
		copy = b->deferred == NULL ? NULL : evrec_event_new(event);
	}
	if (copy == NULL) {
		drop(b, event, cause);
		return error_set(err, EVREC_EDROPPED, "recorded from inside a callback: %s", evrec_cause_name(cause));
	}
	b->deferred[(b->deferred_head + b->deferred_len) % DEFERRED_MAX] = copy;
	b->deferred_len++;
	b->hub->stats.queued++;
	if (b->hub->troubles != NULL) {
		last_words_add(1);
	}
	return 0;
}

int broadcaster_defer(evrec_broadcaster *b, const evrec_fields *event, bool whole, evrec_error *err)
{
	int code;

	handle_enter(b);
	code = defer(b, event, whole, err);
	handle_leave(b);
	return code;
}

HOT int broadcaster_record(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now, evrec_error *err)
{
	int code;

	if (b->fork_generation != sender_fork_generation()) {
		handle_enter(b);
		handle_leave(b);
	}
	/* Deferred events are older, so they go first; those that callbacks record about this event go after it. */
	if (b->deferred_len != 0 && b->phase == BROADCASTER_OPEN) {
		broadcast_deferred(b);
	}
	if (b->hub->shared) {
		code = shared_record(b, event, keys, now, err);
		if (code != 0) {
			return code;
		}
	} else {
		b->hub->stats.recorded++;
		if (b->phase != BROADCASTER_OPEN || keys == NULL) {
			return broadcaster_turn_away(b, event, err);
		}
		give(b, event, keys, now);
	}
	broadcast_deferred(b);
	return 0;
}

static void poll_sinks(evrec_broadcaster *b, int64_t deadline, bool flushes)
{
	const struct watch_list *sinks = &b->hub->sinks;

	b->busy = true;
	for (size_t i = 0; i < sinks->len; i++) {
		if (flushes) {
			pipeline_release(sinks->items[i]->pipeline);
		}
		pipeline_poll(sinks->items[i]->pipeline, deadline);
	}
	b->busy = false;
	recorders_tell(b);
	hub_forget_stopped(b->hub);
}

void broadcaster_poll_by(evrec_broadcaster *b, int64_t deadline, bool flushes)
{
	if (b->busy) {
		return;
	}
	handle_enter(b);
	handle_leave(b);
	broadcast_deferred(b);
	senders_poll_guests();
	if (b->hub->shared) {
		shared_poll(b, deadline, flushes);
	} else {
		poll_sinks(b, deadline, flushes);
	}
	broadcast_deferred(b);
}

void evrec_broadcaster_poll(evrec_broadcaster *b)
{
	broadcaster_poll_by(b, INT64_MAX, false);
}

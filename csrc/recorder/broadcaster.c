#include "recorder/broadcaster.h"

#include "base/phase.h"
#include "event/event.h"
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

static void on_dropped(void *ctx, const struct pipeline_drop *drop)
{
	broadcaster_tell_drop(ctx, drop->event, evrec_cause_name(drop->cause), drop->count);
}

static void on_limited(void *ctx, const evrec_fields *event)
{
	broadcaster_call_on_drop(ctx, event, evrec_why_name(EVREC_RATE_LIMITED));
}

static void on_error(void *ctx, const char *message, const char *name, const char *sink)
{
	broadcaster_tell_error(ctx, message, name, sink);
}

void evrec_broadcaster_callback_error(evrec_broadcaster *b, const char *message)
{
	b->stats.callback_errors++;
	broadcaster_tell_error(b, message, "callback", NULL);
}

void evrec_broadcaster_options_init(evrec_broadcaster_options *options)
{
	*options = (evrec_broadcaster_options){ .max_message_bytes = 1024 };
}

evrec_broadcaster *evrec_broadcaster_new(const evrec_broadcaster_options *options, evrec_error *err)
{
	const bool loud = options != NULL && options->loud;
	evrec_broadcaster *b;

	if (options != NULL && (options->max_message_bytes < 16 || options->max_message_bytes > 262144)) {
		error_set(err, EVREC_EINVALID, "max_message_bytes: must be 16 to 262144");
		return NULL;
	}
	if (options != NULL && options->drive > EVREC_DRIVE_POLL) {
		error_set(err, EVREC_EINVALID, "drive: must be auto, thread or poll");
		return NULL;
	}
	b = mem_zalloc(sizeof(*b));
	if (b != NULL && loud) {
		b->troubles = mem_zalloc(sizeof(*b->troubles));
		last_words_begin();
	}
	if (b == NULL || (loud && b->troubles == NULL)) {
		mem_free(b);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	b->refs = 1;
	if (options != NULL) {
		b->options = *options;
	} else {
		evrec_broadcaster_options_init(&b->options);
	}
	b->options.clock = b->options.clock == NULL ? evrec_clock_real() : evrec_clock_retain(b->options.clock);
	b->listener = (struct pipeline_listener){
		.dropped = on_dropped,
		.limited = b->options.on_drop != NULL ? on_limited : NULL,
		.series = broadcaster_tell_series,
		.error = on_error,
		.ctx = b,
		.loud = loud,
	};
	sender_watch_forks();
	b->fork_generation = sender_fork_generation();
	return b;
}

static evrec_event *pop_deferred(evrec_broadcaster *b)
{
	evrec_event *event = b->deferred[b->deferred_head];

	b->deferred_head = (b->deferred_head + 1) % DEFERRED_MAX;
	b->deferred_len--;
	b->stats.queued--;
	return event;
}

/*
 * A forked child counts and writes only what it records itself: its parent still writes, and counts, all that came
 * before, also what its callbacks have recorded.
 */
static void check_fork(evrec_broadcaster *b)
{
	if (b->fork_generation == sender_fork_generation()) {
		return;
	}
	b->fork_generation = sender_fork_generation();
	while (b->deferred_len != 0) {
		evrec_event_release(pop_deferred(b));
	}
	b->stats = (evrec_stats){ .recorded = 0 };
	b->flushed = (struct losses){ 0 };
	b->lost_example[0] = b->error[0] = '\0';
	if (b->troubles != NULL) {
		*b->troubles = (struct troubles){ 0 };
	}
}

void broadcaster_unref(evrec_broadcaster *b)
{
	if (--b->refs != 0) {
		return;
	}
	mem_free(b->deferred);
	mem_free(b->troubles);
	buf_free(&b->inner_note);
	buf_free(&b->name);
	keys_free(&b->deferred_keys);
	evrec_clock_release(b->options.clock);
	mem_free(b);
}

void evrec_broadcaster_free(evrec_broadcaster *b)
{
	if (b == NULL) {
		return;
	}
	if (b->phase == BROADCASTER_OPEN) {
		broadcaster_enter_phase(b, BROADCASTER_CLOSED);
	}
	b->options.on_drop = NULL;
	b->options.on_error = NULL;
	broadcaster_release_watches(b);
	check_fork(b);
	while (b->deferred_len != 0) {
		broadcaster_tell_drop(b, NULL, evrec_cause_name(EVREC_CAUSE_CLOSED), 1);
		evrec_event_release(pop_deferred(b));
	}
	broadcaster_unref(b);
}

static bool name_event(evrec_broadcaster *b, evrec_fields *event, int64_t now)
{
	buf_clear(&b->name);
	name_make(&b->name, event->regarding.name, now);
	if (!b->name.failed) {
		event->name = buf_str(&b->name);
	}
	return !b->name.failed;
}

/*
 * Prepares a broadcast. Watches are told of series that have ended, a few of each sink, before they see the event.
 * (If more have ended, the end of the event's own series may be told after it.) Returns a copy of the event if one is
 * needed, or NULL.
 */
static evrec_event *prepare(evrec_broadcaster *b, evrec_fields *event, int64_t now)
{
	const bool named = event->name.len != 0 || name_event(b, event, now);

	if (!b->copies) {
		return NULL;
	}
	for (size_t i = 0; i < b->sinks.len; i++) {
		pipeline_tick(b->sinks.items[i]->pipeline, now);
	}
	b->broadcasting = true;
	return named ? evrec_event_new(event) : NULL;
}

/* The event was given to all watches. A series that it began is told after it. */
static void finish_broadcast(evrec_broadcaster *b, evrec_event *copy)
{
	b->broadcasting = false;
	evrec_event_release(copy);
	if (b->told != NULL) {
		broadcaster_offer(b, b->told);
		evrec_event_release(b->told);
		b->told = NULL;
	}
}

static void broadcast(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now)
{
	/* A watch that a callback starts is appended after these `n`: it gets later events only. */
	const size_t n = b->watches.len;
	evrec_event *copy = NULL;
	bool stopped = false;
	size_t i;

	b->busy = true;
	b->stats.broadcast++;
	if (b->names) {
		copy = prepare(b, event, now);
	}
	for (i = 0; i < n; i++) {
		evrec_watch *watch = b->watches.items[i];

		if (watch->phase != WATCH_RUNNING) {
			stopped = true;
		} else if (watch->pipeline != NULL) {
			pipeline_record(watch->pipeline, event, keys, now);
		} else if (copy == NULL || !watch_offer(watch, copy)) {
			b->stats.watch_dropped++;
		}
	}
	if (b->copies) {
		finish_broadcast(b, copy);
	}
	b->busy = false;
	if (stopped) {
		broadcaster_forget_stopped(b);
	}
}

/*
 * Broadcasts the events that callbacks have recorded until now, and no later ones: a callback that records an event for
 * every event that it sees would otherwise never let this end.
 */
static void broadcast_deferred(evrec_broadcaster *b)
{
	size_t n = b->deferred_len;

	while (n-- > 0) {
		evrec_event *event = pop_deferred(b);
		evrec_fields fields = *evrec_event_fields(event);
		struct keys *keys = keys_make(&b->deferred_keys, &fields) ? &b->deferred_keys : NULL;

		broadcast(b, &fields, keys, evrec_clock_now(b->options.clock));
		evrec_event_release(event);
	}
}

/* Drops an event before it came to any sink. */
static void drop(evrec_broadcaster *b, const evrec_fields *event, enum evrec_cause cause)
{
	b->stats.dropped[cause]++;
	broadcaster_tell_drop(b, event, evrec_cause_name(cause), 1);
}

void broadcaster_refuse(evrec_broadcaster *b, const char *message)
{
	check_fork(b);
	b->stats.recorded++;
	b->stats.invalid++;
	broadcaster_tell_refusal(b, message);
}

void broadcaster_drop(evrec_broadcaster *b)
{
	check_fork(b);
	b->stats.recorded++;
	b->stats.dropped[EVREC_CAUSE_MEMORY]++;
	broadcaster_tell_drop(b, NULL, evrec_cause_name(EVREC_CAUSE_MEMORY), 1);
}

/* Drops an event because the broadcaster is closed, or because there was no memory for all of it. */
static int turn_away(evrec_broadcaster *b, const evrec_fields *event, evrec_error *err)
{
	if (b->phase != BROADCASTER_OPEN) {
		drop(b, event, EVREC_CAUSE_CLOSED);
		return error_set(err, EVREC_ECLOSED, "the broadcaster is shut down");
	}
	drop(b, event, EVREC_CAUSE_MEMORY);
	return error_set(err, EVREC_EDROPPED, "no memory");
}

int broadcaster_defer(evrec_broadcaster *b, const evrec_fields *event, bool whole, evrec_error *err)
{
	enum evrec_cause cause = EVREC_CAUSE_QUEUE_FULL;
	evrec_event *copy = NULL;

	check_fork(b);
	b->stats.recorded++;
	if (b->phase != BROADCASTER_OPEN || !whole) {
		return turn_away(b, event, err);
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
	b->stats.queued++;
	return 0;
}

int broadcaster_record(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now, evrec_error *err)
{
	check_fork(b);
	/* Deferred events are older, so they go first; those that callbacks record about this event go after it. */
	if (b->deferred_len != 0 && b->phase == BROADCASTER_OPEN) {
		broadcast_deferred(b);
	}
	b->stats.recorded++;
	if (b->phase != BROADCASTER_OPEN || keys == NULL) {
		return turn_away(b, event, err);
	}
	broadcast(b, event, keys, now);
	broadcast_deferred(b);
	return 0;
}

void broadcaster_poll_by(evrec_broadcaster *b, int64_t deadline, bool flushes)
{
	size_t i;

	if (b->busy) {
		return;
	}
	check_fork(b);
	broadcast_deferred(b);
	b->busy = true;
	for (i = 0; i < b->sinks.len; i++) {
		if (flushes) {
			pipeline_release(b->sinks.items[i]->pipeline);
		}
		pipeline_poll(b->sinks.items[i]->pipeline, deadline);
	}
	b->busy = false;
	recorders_tell(b);
	broadcaster_forget_stopped(b);
}

void evrec_broadcaster_poll(evrec_broadcaster *b)
{
	broadcaster_poll_by(b, INT64_MAX, false);
}

#include "flow/broadcaster.h"

#include "deliver/sender.h"
#include "event/event.h"

static void on_dropped(void *ctx, const evrec_fields *event, const char *why)
{
	evrec_broadcaster *b = ctx;
	bool busy = b->busy;
	evrec_event *copy;

	/* What on_drop itself records, and is dropped, is only counted. */
	if (b->options.on_drop == NULL || b->dropping) {
		return;
	}
	copy = evrec_event_new(event);
	if (copy != NULL) {
		b->dropping = b->busy = true;
		b->options.on_drop(b->options.ctx, copy, why);
		b->dropping = false;
		b->busy = busy;
		evrec_event_release(copy);
	}
}

static void on_error(void *ctx, const char *message, const char *name)
{
	evrec_broadcaster *b = ctx;
	bool busy = b->busy;

	if (b->options.on_error != NULL) {
		b->busy = true;
		b->options.on_error(b->options.ctx, message, name);
		b->busy = busy;
	}
}

void evrec_broadcaster_callback_error(evrec_broadcaster *b, const char *message)
{
	b->stats.callback_errors++;
	on_error(b, message, "callback");
}

void evrec_broadcaster_options_init(evrec_broadcaster_options *options)
{
	*options = (evrec_broadcaster_options){ .max_message_bytes = 1024 };
}

evrec_broadcaster *evrec_broadcaster_new(const evrec_broadcaster_options *options, evrec_error *err)
{
	evrec_broadcaster *b;

	if (options != NULL && (options->max_message_bytes < 16 || options->max_message_bytes > 262144)) {
		error_set(err, EVREC_EINVALID, "max_message_bytes: must be 16 to 262144");
		return NULL;
	}
	b = mem_zalloc(sizeof(*b));
	if (b == NULL) {
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
	b->listener = (struct lane_listener){ b->options.on_drop != NULL ? on_dropped : NULL, on_error, b };
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

void broadcaster_unref(evrec_broadcaster *b)
{
	if (--b->refs != 0) {
		return;
	}
	mem_free(b->deferred);
	buf_free(&b->inner_note);
	buf_free(&b->name);
	keys_free(&b->deferred_keys);
	evrec_clock_release(b->options.clock);
	mem_free(b);
}

void evrec_broadcaster_free(evrec_broadcaster *b)
{
	size_t i;

	if (b == NULL) {
		return;
	}
	b->closed = true;
	b->options.on_drop = NULL;
	b->options.on_error = NULL;
	for (i = 0; i < b->watches_len; i++) {
		watch_detach(b->watches[i]);
		watch_unref(b->watches[i]);
	}
	mem_free(b->watches);
	b->watches = NULL;
	b->watches_len = b->watches_cap = 0;
	while (b->deferred_len != 0) {
		evrec_event_release(pop_deferred(b));
	}
	broadcaster_unref(b);
}

/*
 * Who sees what: sinks get the borrowed fields, so that an event which ends as a count is never copied; functions and
 * queues share one copy. An event needs its name before anyone sees it, and where two sinks have to agree on it.
 */
static void look_around(evrec_broadcaster *b)
{
	size_t i, sinks = 0;

	b->copies = b->names = false;
	for (i = 0; i < b->watches_len; i++) {
		const evrec_watch *watch = b->watches[i];

		sinks += watch->lane != NULL;
		b->copies = b->copies || watch->lane == NULL;
		b->names = b->names || watch->lane == NULL || watch->shows_events || sinks > 1;
	}
}

static evrec_watch *add_watch(evrec_broadcaster *b, const evrec_watch *model, evrec_error *err)
{
	evrec_watch *watch = NULL;

	if (b->closed) {
		error_set(err, EVREC_ECLOSED, "the broadcaster is shut down");
		return NULL;
	}
	if (b->watches_len == b->watches_cap) {
		size_t cap = b->watches_cap == 0 ? 4 : b->watches_cap * 2;
		evrec_watch **watches = mem_realloc(b->watches, cap * sizeof(*watches));

		if (watches != NULL) {
			b->watches = watches;
			b->watches_cap = cap;
		}
	}
	if (b->watches_len < b->watches_cap) {
		watch = mem_alloc(sizeof(*watch));
	}
	if (watch == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	*watch = *model;
	watch->refs = 2;
	b->watches[b->watches_len++] = watch;
	look_around(b);
	return watch;
}

evrec_watch *evrec_broadcaster_start_recording_to_sink(evrec_broadcaster *b, evrec_sink *sink,
                                                       const evrec_correlator_options *options, evrec_error *err)
{
	evrec_watch model = { .lane = lane_new(sink, options, b->options.clock, b->options.max_message_bytes,
		                               &b->listener, err) };
	evrec_watch *watch;

	if (model.lane == NULL) {
		return NULL;
	}
	model.shows_events = options != NULL && (options->key_func != NULL || options->message_func != NULL ||
	                                         options->spam_key_func != NULL);
	watch = add_watch(b, &model, err);
	if (watch == NULL) {
		lane_free(model.lane);
	}
	return watch;
}

evrec_watch *evrec_broadcaster_start_event_watcher(evrec_broadcaster *b, void (*func)(void *ctx, evrec_event *event),
                                                   void *ctx, evrec_error *err)
{
	return add_watch(b, &(evrec_watch){ .func = func, .ctx = ctx }, err);
}

evrec_watch *evrec_broadcaster_watch(evrec_broadcaster *b, size_t queue_length, evrec_error *err)
{
	evrec_watch model = { .queue_cap = queue_length }, *watch;

	if (queue_length < 1 || queue_length > 10000000) {
		error_set(err, EVREC_EINVALID, "queue_length: must be 1 to 10000000");
		return NULL;
	}
	model.queue = mem_alloc(queue_length * sizeof(evrec_event *));
	if (model.queue == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	watch = add_watch(b, &model, err);
	if (watch == NULL) {
		mem_free(model.queue);
	}
	return watch;
}

/* The end of a callback that could have stopped watches: those without anything to write are forgotten. */
static void prune(evrec_broadcaster *b)
{
	size_t i, kept = 0;

	for (i = 0; i < b->watches_len; i++) {
		evrec_watch *watch = b->watches[i];

		if (watch->stopped && watch->lane == NULL) {
			watch->func = NULL;
			watch_unref(watch);
		} else {
			b->watches[kept++] = watch;
		}
	}
	b->watches_len = kept;
	look_around(b);
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

static void broadcast(evrec_broadcaster *b, evrec_fields *event, struct keys *keys, int64_t now)
{
	/* Watches that a callback adds come behind these: they see later events only. */
	const size_t n = b->watches_len;
	evrec_event *copy = NULL;
	bool stopped = false;
	size_t i;

	b->busy = true;
	b->stats.broadcast++;
	if (b->names && (event->name.len != 0 || name_event(b, event, now)) && b->copies) {
		copy = evrec_event_new(event);
	}
	for (i = 0; i < n; i++) {
		evrec_watch *watch = b->watches[i];

		if (watch->stopped) {
			stopped = true;
		} else if (watch->lane != NULL) {
			lane_record(watch->lane, event, keys, now);
		} else if (copy == NULL || !watch_offer(watch, copy)) {
			b->stats.watch_dropped++;
		}
	}
	evrec_event_release(copy);
	b->busy = false;
	if (stopped) {
		prune(b);
	}
}

/*
 * What callbacks recorded meanwhile. Only what waits now: a callback that records for every event that it sees keeps
 * nobody busy for longer than that.
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

/* Before it came to any sink. */
static void drop(evrec_broadcaster *b, const evrec_fields *event, enum evrec_cause cause)
{
	b->stats.dropped[cause]++;
	on_dropped(b, event, evrec_cause_name(cause));
}

/* A forked child keeps its own books; see lane.c. */
static void check_fork(evrec_broadcaster *b)
{
	if (b->fork_generation != sender_fork_generation()) {
		b->fork_generation = sender_fork_generation();
		b->stats = (evrec_stats){ .queued = b->deferred_len, .recorded = b->deferred_len };
	}
}

void broadcaster_refuse(evrec_broadcaster *b)
{
	check_fork(b);
	b->stats.recorded++;
	b->stats.invalid++;
}

void broadcaster_drop(evrec_broadcaster *b)
{
	check_fork(b);
	b->stats.recorded++;
	b->stats.dropped[EVREC_CAUSE_MEMORY]++;
}

/* Of an event that goes nowhere, as the broadcaster is closed, or there was no memory for all of it. */
static int turn_away(evrec_broadcaster *b, const evrec_fields *event, evrec_error *err)
{
	if (b->closed) {
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
	if (b->closed || !whole) {
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
	/* What was left from before comes first, and before this one is counted; what it makes callbacks record, after. */
	if (b->deferred_len != 0 && !b->closed) {
		broadcast_deferred(b);
	}
	b->stats.recorded++;
	if (b->closed || keys == NULL) {
		return turn_away(b, event, err);
	}
	broadcast(b, event, keys, now);
	broadcast_deferred(b);
	return 0;
}

void broadcaster_poll_by(evrec_broadcaster *b, int64_t deadline)
{
	size_t i;

	if (b->busy) {
		return;
	}
	check_fork(b);
	broadcast_deferred(b);
	b->busy = true;
	for (i = 0; i < b->watches_len; i++) {
		if (b->watches[i]->lane != NULL) {
			lane_poll(b->watches[i]->lane, deadline);
		}
	}
	b->busy = false;
	prune(b);
}

void evrec_broadcaster_poll(evrec_broadcaster *b)
{
	broadcaster_poll_by(b, INT64_MAX);
}

#include "recorder/broadcaster.h"
#include "recorder/shared.h"
#include "sink/trace.h"

/*
 * Sinks get the borrowed fields, so that an event which ends as a count is never copied. Functions and queues share one
 * copy. The event needs its name before a watch shows it, and if two sinks have to use the same.
 */
static void update_needs(struct hub *hub)
{
	size_t i, sinks = 0;

	hub->copies = hub->names = false;
	for (i = 0; i < hub->watches.len; i++) {
		const evrec_watch *watch = hub->watches.items[i];

		sinks += watch->pipeline != NULL;
		hub->copies = hub->copies || watch->pipeline == NULL;
		hub->names = hub->names || watch->pipeline == NULL || watch->shows_events || sinks > 1;
	}
}

bool hub_reserve_watch(struct hub *hub, bool is_sink)
{
	return watch_list_reserve(&hub->watches) && (!is_sink || watch_list_reserve(&hub->sinks));
}

void hub_add_watch(struct hub *hub, evrec_watch *watch)
{
	watch_list_append(&hub->watches, watch);
	if (watch->pipeline != NULL) {
		watch->number = ++hub->last_number;
		watch_list_append(&hub->sinks, watch);
	}
	update_needs(hub);
}

static evrec_watch *add_watch(evrec_broadcaster *b, const evrec_watch *model, evrec_error *err)
{
	evrec_watch *watch = NULL;

	if (b->phase != BROADCASTER_OPEN) {
		error_set(err, EVREC_ECLOSED, "the broadcaster is shut down");
		return NULL;
	}
	if (hub_reserve_watch(b->hub, model->pipeline != NULL)) {
		watch = mem_alloc(sizeof(*watch));
	}
	if (watch == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	*watch = *model;
	watch->refs = 2;
	hub_add_watch(b->hub, watch);
	return watch;
}

evrec_watch *evrec_broadcaster_start_recording_to_sink(evrec_broadcaster *b, evrec_sink *sink,
                                                       const evrec_correlator_options *options, evrec_error *err)
{
	evrec_watch model = { .refs = 0 };
	evrec_watch *watch;

	if (b->hub->shared) {
		return shared_start_sink(b, sink, options, err);
	}
	model.pipeline = pipeline_new(sink,
	                              &(struct pipeline_options){
					      .correlator = options,
					      .clock = b->options.clock,
					      .listener = &b->hub->listener,
					      .max_message_bytes = b->options.max_message_bytes,
					      .drive = b->options.drive,
				      },
	                              err);
	if (model.pipeline == NULL) {
		return NULL;
	}
	model.shows_events = options != NULL && (options->key_func != NULL || options->message_func != NULL ||
	                                         options->spam_key_func != NULL);
	watch = add_watch(b, &model, err);
	if (watch == NULL) {
		pipeline_free(model.pipeline);
	}
	return watch;
}

evrec_watch *evrec_broadcaster_start_trace(evrec_broadcaster *b, evrec_str path, uint64_t max_bytes,
                                           const evrec_correlator_options *correlator, evrec_error *err)
{
	struct trace_header header = { .fake_clock = evrec_clock_is_fake(b->options.clock) };
	evrec_watch *watch;
	evrec_sink *sink;

	if (correlator != NULL) {
		header.correlator = *correlator;
	} else {
		evrec_correlator_options_init(&header.correlator);
	}
	sink = trace_sink_new(path, max_bytes, &header, err);
	if (sink == NULL) {
		return NULL;
	}
	watch = evrec_broadcaster_start_recording_to_sink(b, sink, &header.correlator, err);
	evrec_sink_release(sink);
	return watch;
}

/* Starts a watch with a queue of this length. */
static evrec_watch *start_queue(evrec_broadcaster *b, evrec_watch *model, size_t length, evrec_error *err)
{
	evrec_watch *watch;

	model->queue_cap = length;
	model->queue = mem_alloc(length * sizeof(evrec_event *));
	if (model->queue == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	watch = b->hub->shared ? shared_start_watch(b, model, err) : add_watch(b, model, err);
	if (watch == NULL) {
		mem_free(model->queue);
	}
	return watch;
}

evrec_watch *evrec_broadcaster_start_event_watcher(evrec_broadcaster *b, void (*func)(void *ctx, evrec_event *event),
                                                   void *ctx, evrec_error *err)
{
	evrec_watch model = { .func = func, .ctx = ctx };

	return b->hub->shared ? start_queue(b, &model, FUNCTION_QUEUE, err) : add_watch(b, &model, err);
}

evrec_watch *evrec_broadcaster_watch(evrec_broadcaster *b, size_t queue_length, evrec_error *err)
{
	evrec_watch model = { .refs = 0 };

	if (queue_length < 1 || queue_length > 10000000) {
		error_set(err, EVREC_EINVALID, "queue_length: must be 1 to 10000000");
		return NULL;
	}
	return start_queue(b, &model, queue_length, err);
}

static void let_go(evrec_watch *watch)
{
	watch_detach(watch);
	watch_unref(watch);
}

void hub_release_watches(struct hub *hub)
{
	size_t i;

	for (i = 0; i < hub->watches.len; i++) {
		if (hub->watches.items[i]->pipeline == NULL) {
			let_go(hub->watches.items[i]);
		}
	}
	watch_list_truncate(&hub->watches, 0);
	for (i = 0; i < hub->sinks.len; i++) {
		let_go(hub->sinks.items[i]);
	}
	watch_list_truncate(&hub->sinks, 0);
}

static void forget_watches(struct hub *hub)
{
	size_t i, kept = 0;

	for (i = 0; i < hub->watches.len; i++) {
		evrec_watch *watch = hub->watches.items[i];

		if (watch->phase == WATCH_RUNNING) {
			hub->watches.items[kept++] = watch;
		} else if (watch->pipeline == NULL) {
			let_go(watch);
		}
	}
	watch_list_truncate(&hub->watches, kept);
	update_needs(hub);
}

/* A sink that calls functions is freed by the handle whose functions these are. */
static bool can_forget(const struct hub *hub, const evrec_watch *watch)
{
	return watch_is_over(watch) && watch->pins == 0 && (watch->owner == NULL || watch->owner == hub->user);
}

static void forget_sinks(struct hub *hub)
{
	size_t i, kept = 0;

	for (i = 0; i < hub->sinks.len; i++) {
		evrec_watch *watch = hub->sinks.items[i];

		if (can_forget(hub, watch)) {
			stats_add_ended(&hub->stats.ended, watch_keep_stats(watch));
			let_go(watch);
		} else {
			hub->sinks.items[kept++] = watch;
		}
	}
	watch_list_truncate(&hub->sinks, kept);
}

void hub_forget_stopped(struct hub *hub)
{
	forget_watches(hub);
	forget_sinks(hub);
}

void hub_abandon_sinks(struct hub *hub, const evrec_broadcaster *owner)
{
	size_t i, kept = 0;

	for (i = 0; i < hub->sinks.len; i++) {
		if (hub->sinks.items[i]->owner == owner) {
			watch_stop(hub->sinks.items[i]);
		}
	}
	forget_watches(hub);
	for (i = 0; i < hub->sinks.len; i++) {
		evrec_watch *watch = hub->sinks.items[i];

		if (watch->owner == owner) {
			stats_add_ended(&hub->stats.ended, watch_drop_stats(watch));
			let_go(watch);
		} else {
			hub->sinks.items[kept++] = watch;
		}
	}
	watch_list_truncate(&hub->sinks, kept);
}

#include "recorder/broadcaster.h"

/*
 * Sinks get the borrowed fields, so that an event which ends as a count is never copied. Functions and queues share one
 * copy. The event needs its name before anyone sees it, and if two sinks have to agree on it.
 */
static void update_needs(evrec_broadcaster *b)
{
	size_t i, sinks = 0;

	b->copies = b->names = false;
	for (i = 0; i < b->watches.len; i++) {
		const evrec_watch *watch = b->watches.items[i];

		sinks += watch->pipeline != NULL;
		b->copies = b->copies || watch->pipeline == NULL;
		b->names = b->names || watch->pipeline == NULL || watch->shows_events || sinks > 1;
	}
}

static evrec_watch *add_watch(evrec_broadcaster *b, const evrec_watch *model, evrec_error *err)
{
	evrec_watch *watch = NULL;

	if (b->phase != BROADCASTER_OPEN) {
		error_set(err, EVREC_ECLOSED, "the broadcaster is shut down");
		return NULL;
	}
	if (watch_list_reserve(&b->watches) && (model->pipeline == NULL || watch_list_reserve(&b->sinks))) {
		watch = mem_alloc(sizeof(*watch));
	}
	if (watch == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	*watch = *model;
	watch->refs = 2;
	watch_list_append(&b->watches, watch);
	if (watch->pipeline != NULL) {
		watch->number = ++b->last_number;
		watch_list_append(&b->sinks, watch);
	}
	update_needs(b);
	return watch;
}

evrec_watch *evrec_broadcaster_start_recording_to_sink(evrec_broadcaster *b, evrec_sink *sink,
                                                       const evrec_correlator_options *options, evrec_error *err)
{
	evrec_watch model = { .pipeline = pipeline_new(sink, options, b->options.clock, b->options.max_message_bytes,
		                                       b->options.drive, &b->listener, err) };
	evrec_watch *watch;

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

static void let_go(evrec_watch *watch)
{
	watch_detach(watch);
	watch_unref(watch);
}

void broadcaster_release_watches(evrec_broadcaster *b)
{
	size_t i;

	for (i = 0; i < b->watches.len; i++) {
		if (b->watches.items[i]->pipeline == NULL) {
			let_go(b->watches.items[i]);
		}
	}
	watch_list_truncate(&b->watches, 0);
	for (i = 0; i < b->sinks.len; i++) {
		let_go(b->sinks.items[i]);
	}
	watch_list_truncate(&b->sinks, 0);
}

static void forget_watches(evrec_broadcaster *b)
{
	size_t i, kept = 0;

	for (i = 0; i < b->watches.len; i++) {
		evrec_watch *watch = b->watches.items[i];

		if (watch->phase == WATCH_RUNNING) {
			b->watches.items[kept++] = watch;
		} else if (watch->pipeline == NULL) {
			let_go(watch);
		}
	}
	watch_list_truncate(&b->watches, kept);
	update_needs(b);
}

static void forget_sinks(evrec_broadcaster *b)
{
	size_t i, kept = 0;

	for (i = 0; i < b->sinks.len; i++) {
		evrec_watch *watch = b->sinks.items[i];

		if (watch_is_over(watch)) {
			stats_add_ended(&b->stats.ended, watch_keep_stats(watch));
			let_go(watch);
		} else {
			b->sinks.items[kept++] = watch;
		}
	}
	watch_list_truncate(&b->sinks, kept);
}

void broadcaster_forget_stopped(evrec_broadcaster *b)
{
	forget_watches(b);
	forget_sinks(b);
}

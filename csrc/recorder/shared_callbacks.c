#include "recorder/shared.h"

/* The broadcaster whose callbacks this thread runs. A thread may have several handles of it. */
static _Thread_local const struct hub *calling;

/* Calls the function for the events that waited at the beginning, and for no later ones. */
static void show_events(evrec_broadcaster *b, evrec_watch *watch)
{
	evrec_event *event;
	size_t n;

	hub_lock(b->hub);
	n = watch->queue_len;
	hub_unlock(b->hub);
	while (n-- > 0) {
		hub_lock(b->hub);
		event = watch->phase == WATCH_RUNNING ? watch_next(watch) : NULL;
		hub_unlock(b->hub);
		if (event == NULL) {
			return;
		}
		watch->func(watch->ctx, event);
		evrec_event_release(event);
	}
}

bool shared_calls_back(const evrec_broadcaster *b)
{
	return calling == b->hub;
}

void shared_call_back(evrec_broadcaster *b)
{
	const struct hub *outer = calling;
	const size_t n = b->own.len;
	struct notice *notice;

	calling = b->hub;
	b->busy = true;
	while ((notice = notices_next(&b->notices)) != NULL) {
		if (notice->event != NULL) {
			handle_call_on_drop(b, notice->event, notice->name);
		} else {
			handle_call_on_error(b, notice->message, notice->name);
		}
		notice_free(notice);
	}
	for (size_t i = 0; i < n; i++) {
		if (b->own.items[i]->owner != NULL) {
			show_events(b, b->own.items[i]);
		}
	}
	b->busy = false;
	calling = outer;
}

#include "recorder/shared.h"

/* A call of shared_call_back. */
struct call {
	const struct hub *hub;
	const struct call *outer; /* its callback records by a handle of another broadcaster; or NULL */
};

static _Thread_local const struct call *innermost; /* NULL: this thread is in no such call */

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
	const struct call *call = innermost;

	while (call != NULL && call->hub != b->hub) {
		call = call->outer;
	}
	return call != NULL;
}

void shared_call_back(evrec_broadcaster *b)
{
	const struct call call = { b->hub, innermost };
	const size_t n = b->own.len;
	struct notice *notice;

	innermost = &call;
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
	innermost = call.outer;
}

/* When a broadcaster is to be polled next. */
#include "recorder/shared.h"
#include "recorder/sharing.h"

/*
 * Whether the broadcaster itself needs polls: for a line that is not due yet, for events recorded by callbacks, or for
 * the queue of a function.
 */
static bool has_own_work(const evrec_broadcaster *b)
{
	const struct troubles *troubles = b->hub->troubles;

	for (size_t i = 0; i < b->own.len; i++) {
		if (b->own.items[i]->func != NULL) {
			return true; /* of a broadcaster with a name: other handles record for it */
		}
	}
	return b->deferred_len != 0 || (troubles != NULL && (troubles->waiting != 0 || troubles->untold != 0));
}

/* With the lock held. */
static int64_t find_delay(evrec_broadcaster *b)
{
	const struct watch_list *sinks = &b->hub->sinks;
	int64_t delay = has_own_work(b) ? EVREC_SECOND : INT64_MAX;

	for (size_t i = 0; i < sinks->len; i++) {
		int64_t own;

		if (!shared_steps(b, sinks->items[i])) {
			continue;
		}
		if (b->options.drive == EVREC_DRIVE_THREAD && pipeline_lacks_thread(sinks->items[i]->pipeline)) {
			return -1;
		}
		own = pipeline_poll_delay(sinks->items[i]->pipeline);
		delay = own < delay ? own : delay;
	}
	return delay;
}

int64_t evrec_broadcaster_poll_delay(evrec_broadcaster *b)
{
	int64_t delay, sharing;

	if (b->phase == BROADCASTER_ENDED) {
		return -1;
	}
	hub_lock(b->hub);
	delay = find_delay(b);
	hub_unlock(b->hub);
	sharing = sharing_poll_delay(b->hub);
	return sharing < delay ? sharing : delay;
}

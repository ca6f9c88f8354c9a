#include "flow/watch.h"

bool watch_offer(evrec_watch *watch, evrec_event *event)
{
	if (watch->func != NULL) {
		watch->func(watch->ctx, event);
		return true;
	}
	if (watch->queue_len == watch->queue_cap) {
		watch->dropped++;
		return false;
	}
	watch->queue[(watch->queue_head + watch->queue_len) % watch->queue_cap] = evrec_event_retain(event);
	watch->queue_len++;
	return true;
}

evrec_event *evrec_watch_next(evrec_watch *watch)
{
	evrec_event *event;

	if (watch->queue_len == 0) {
		return NULL;
	}
	event = watch->queue[watch->queue_head];
	watch->queue_head = (watch->queue_head + 1) % watch->queue_cap;
	watch->queue_len--;
	return event;
}

void evrec_watch_stop(evrec_watch *watch)
{
	watch->stopped = true;
	if (watch->lane != NULL) {
		lane_stop(watch->lane);
	}
}

void watch_detach(evrec_watch *watch)
{
	watch->stopped = true;
	watch->func = NULL;
	if (watch->lane != NULL) {
		lane_free(watch->lane);
		watch->lane = NULL;
	}
}

void watch_unref(evrec_watch *watch)
{
	evrec_event *event;

	if (--watch->refs != 0) {
		return;
	}
	while ((event = evrec_watch_next(watch)) != NULL) {
		evrec_event_release(event);
	}
	mem_free(watch->queue);
	mem_free(watch);
}

void evrec_watch_free(evrec_watch *watch)
{
	if (watch != NULL) {
		watch_unref(watch);
	}
}

bool evrec_watch_get_sink_stats(const evrec_watch *watch, evrec_sink_stats *stats)
{
	if (watch->lane == NULL) {
		return false;
	}
	lane_get_stats(watch->lane, stats);
	return true;
}

void evrec_watch_get_queue(const evrec_watch *watch, size_t *queued, uint64_t *dropped)
{
	*queued = watch->queue_len;
	*dropped = watch->dropped;
}

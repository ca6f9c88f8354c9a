/* The functions of evrec.h that take the handle of a watch. */
#include "recorder/hub.h"

static void lock(const evrec_watch *watch)
{
	if (watch->hub != NULL) {
		hub_lock_shared(watch->hub);
	}
}

static void unlock(const evrec_watch *watch)
{
	if (watch->hub != NULL) {
		hub_unlock_shared(watch->hub);
	}
}

evrec_event *evrec_watch_next(evrec_watch *watch)
{
	evrec_event *event;

	lock(watch);
	event = watch->func == NULL ? watch_next(watch) : NULL;
	unlock(watch);
	return event;
}

void evrec_watch_stop(evrec_watch *watch)
{
	lock(watch);
	watch_stop(watch);
	unlock(watch);
}

void evrec_watch_free(evrec_watch *watch)
{
	struct hub *hub;

	if (watch == NULL) {
		return;
	}
	hub = watch->hub;
	if (hub == NULL) {
		watch_unref(watch);
		return;
	}
	hub_lock_shared(hub);
	watch_unref(watch);
	hub_unlock_shared(hub);
	hub_release(hub);
}

bool evrec_watch_get_sink_stats(const evrec_watch *watch, evrec_sink_stats *stats)
{
	bool found;

	lock(watch);
	found = watch_get_sink_stats(watch->joined != NULL ? watch->joined : watch, stats);
	unlock(watch);
	return found;
}

void evrec_watch_get_queue(const evrec_watch *watch, size_t *queued, uint64_t *dropped)
{
	lock(watch);
	*queued = watch->queue_len;
	*dropped = watch->dropped;
	unlock(watch);
}

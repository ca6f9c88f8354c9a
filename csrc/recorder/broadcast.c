/* The way of an event from the recording call to the watches. */
#include "event/event.h"
#include "recorder/hub.h"

static bool name_event(struct hub *hub, evrec_fields *event, int64_t now)
{
	buf_clear(&hub->event_name);
	name_make(&hub->event_name, event->regarding.name, now);
	if (!hub->event_name.failed) {
		event->name = buf_str(&hub->event_name);
	}
	return !hub->event_name.failed;
}

/*
 * Prepares a broadcast. First a few ended series of each sink are reported to the watches. (If more have ended, the end
 * of the event's own series may be reported after the event.) Returns a copy of the event if one is needed, or NULL.
 */
static evrec_event *prepare(struct hub *hub, evrec_fields *event, int64_t now)
{
	const bool named = event->name.len != 0 || name_event(hub, event, now);

	if (!hub->copies) {
		return NULL;
	}
	for (size_t i = 0; i < hub->sinks.len && !hub->forwards; i++) {
		pipeline_tick(hub->sinks.items[i]->pipeline, now);
	}
	hub->broadcasting = true;
	return named ? evrec_event_new(event) : NULL;
}

/* The event was given to all watches. A series that it began is reported after it. */
static void finish_broadcast(struct hub *hub, evrec_event *copy)
{
	hub->broadcasting = false;
	evrec_event_release(copy);
	if (hub->told != NULL) {
		hub_offer(hub, hub->told);
		evrec_event_release(hub->told);
		hub->told = NULL;
	}
}

HOT bool hub_broadcast(struct hub *hub, evrec_fields *event, struct keys *keys, int64_t now)
{
	/* A watch that a callback starts is appended after these `n`: it gets later events only. */
	const size_t n = hub->watches.len;
	evrec_event *copy = NULL;
	bool stopped = false;
	size_t i;

	hub->stats.broadcast++;
	if (hub->names) {
		copy = prepare(hub, event, now);
	}
	for (i = 0; i < n; i++) {
		evrec_watch *watch = hub->watches.items[i];

		if (watch->phase != WATCH_RUNNING) {
			stopped = true;
		} else if (watch->pipeline != NULL) {
			if (pipeline_has_enough(watch->pipeline)) {
				watch_stop(watch);
				stopped = true;
			} else if (!hub->forwards) {
				pipeline_record(watch->pipeline, event, keys, now);
			}
		} else if (copy == NULL || !watch_offer(watch, copy)) {
			hub->stats.watch_dropped++;
		}
	}
	if (hub->copies) {
		finish_broadcast(hub, copy);
	}
	return stopped;
}

void hub_offer(struct hub *hub, evrec_event *event)
{
	/* A watch that a callback starts is appended after these `n`: it gets later events only. */
	const size_t n = hub->watches.len;

	for (size_t i = 0; i < n; i++) {
		evrec_watch *watch = hub->watches.items[i];

		if (watch->phase == WATCH_RUNNING && watch->pipeline == NULL &&
		    (event == NULL || !watch_offer(watch, event))) {
			hub->stats.watch_dropped++;
		}
	}
}

/* If several sinks combine events by series, only the first one reports them. */
static bool tells_of_series(const struct hub *hub, const struct pipeline *pipeline)
{
	for (size_t i = 0; i < hub->watches.len; i++) {
		const evrec_watch *watch = hub->watches.items[i];

		if (watch->phase == WATCH_RUNNING && watch->pipeline != NULL && pipeline_has_series(watch->pipeline)) {
			return watch->pipeline == pipeline;
		}
	}
	return false;
}

/* Called only while the broadcaster is busy, so that callbacks cannot re-enter it. */
void hub_tell_series(void *ctx, const struct pipeline *pipeline, const evrec_fields *event)
{
	struct hub *hub = ctx;
	evrec_event *copy;

	if (!hub->copies || !tells_of_series(hub, pipeline)) {
		return;
	}
	copy = evrec_event_new(event);
	if (hub->broadcasting && hub->told == NULL && copy != NULL) {
		hub->told = copy;
		return;
	}
	hub_offer(hub, copy);
	evrec_event_release(copy);
}

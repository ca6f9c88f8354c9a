#include "recorder/watch.h"

#include "base/phase.h"
#include "recorder/sharing.h"
#include "sender/sender.h"

static const unsigned legal_steps[] = {
	[WATCH_RUNNING] = PHASE_BIT(WATCH_STOPPED) | PHASE_BIT(WATCH_DETACHED),
	[WATCH_STOPPED] = PHASE_BIT(WATCH_DETACHED),
	[WATCH_DETACHED] = 0,
};

bool watch_offer(evrec_watch *watch, evrec_event *event)
{
	if (watch->queue == NULL) {
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

evrec_event *watch_next(evrec_watch *watch)
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

void watch_stop(evrec_watch *watch)
{
	if (watch->phase != WATCH_RUNNING) {
		return;
	}
	phase_step(&watch->phase, WATCH_STOPPED, legal_steps);
	if (watch->pipeline != NULL) {
		pipeline_stop(watch->pipeline);
	}
	if (watch->joined != NULL && --watch->joined->joiners == 0) {
		watch_stop(watch->joined);
	}
}

bool watch_is_over(const evrec_watch *watch)
{
	return watch->pipeline != NULL && pipeline_is_over(watch->pipeline);
}

const evrec_sink_stats *watch_keep_stats(evrec_watch *watch)
{
	(void)watch_get_sink_stats(watch, &watch->final_stats);
	watch->final_generation = sender_fork_generation();
	return &watch->final_stats;
}

const evrec_sink_stats *watch_drop_stats(evrec_watch *watch)
{
	evrec_sink_stats *stats = &watch->final_stats;

	(void)watch_keep_stats(watch);
	stats->dropped[EVREC_CAUSE_CLOSED] += stats->pending + stats->counted;
	stats->pending = stats->counted = stats->pending_writes = stats->pending_bytes = 0;
	return stats;
}

void watch_detach(evrec_watch *watch)
{
	phase_step(&watch->phase, WATCH_DETACHED, legal_steps);
	watch->func = NULL;
	if (watch->pipeline != NULL) {
		pipeline_free(watch->pipeline);
		watch->pipeline = NULL;
	}
}

void watch_unref(evrec_watch *watch)
{
	evrec_event *event;

	if (--watch->refs != 0) {
		return;
	}
	while ((event = watch_next(watch)) != NULL) {
		evrec_event_release(event);
	}
	if (watch->joined != NULL) {
		watch_unref(watch->joined);
	}
	chosen_free(&watch->answers);
	mem_free(watch->fingerprint);
	mem_free(watch->queue);
	mem_free(watch);
}

bool watch_get_sink_stats(const evrec_watch *watch, evrec_sink_stats *stats)
{
	if (watch->pipeline != NULL) {
		pipeline_get_stats(watch->pipeline, stats);
		stats->number = watch->number;
		if (watch->shares != NULL) {
			sharing_add_stats(watch->shares, watch->number, stats);
		}
		return true;
	}
	*stats = watch->final_stats;
	if (watch->final_generation != sender_fork_generation()) {
		/* A child does not count the writes of its parent process. */
		*stats = (evrec_sink_stats){ .number = watch->final_stats.number };
		memcpy(stats->name, watch->final_stats.name, sizeof(stats->name));
	}
	return stats->number != 0;
}

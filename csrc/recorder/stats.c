#include "recorder/broadcaster.h"
#include "recorder/sharing.h"
#include "sender/sender.h"

static void correlator_stats_add(evrec_correlator_stats *sum, const evrec_correlator_stats *one)
{
	size_t i;

	sum->correlated += one->correlated;
	sum->callback_errors += one->callback_errors;
	for (i = 0; i < sizeof(sum->why) / sizeof(sum->why[0]); i++) {
		sum->why[i] += one->why[i];
	}
}

static void series_stats_add(evrec_series_stats *sum, const evrec_series_stats *one)
{
	sum->begun += one->begun;
	sum->finished += one->finished;
	sum->evicted += one->evicted;
	sum->evicted_singles += one->evicted_singles;
	sum->notes += one->notes;
}

/* Gauges stay 0: nothing of an ended sink waits, and its correlator is gone. */
void stats_add_ended(evrec_sink_stats *sum, const evrec_sink_stats *sink)
{
	size_t i;

	sum->received += sink->received;
	sum->rate_limited += sink->rate_limited;
	sum->created += sink->created;
	sum->patched += sink->patched;
	sum->coalesced += sink->coalesced;
	sum->spooled += sink->spooled;
	sum->forwarded += sink->forwarded;
	sum->restored += sink->restored;
	sum->retries += sink->retries;
	sum->errors_lost += sink->errors_lost;
	sum->notes_lost += sink->notes_lost;
	sum->throttle.refused += sink->throttle.refused;
	for (i = 0; i < EVREC_CAUSES; i++) {
		sum->dropped[i] += sink->dropped[i];
	}
	correlator_stats_add(&sum->correlator, &sink->correlator);
	series_stats_add(&sum->series, &sink->series);
}

/* NULL if no living sink has that number. */
static const evrec_watch *find_sink(const struct hub *hub, size_t number)
{
	const size_t i = watch_list_find_sink(&hub->sinks, number);

	return i < hub->sinks.len && hub->sinks.items[i]->number == number ? hub->sinks.items[i] : NULL;
}

bool evrec_broadcaster_next_sink(const evrec_broadcaster *b, size_t *number)
{
	struct hub *hub = b->hub;
	bool found;
	size_t i;

	hub_lock(hub);
	i = watch_list_find_sink(&hub->sinks, *number);
	found = i < hub->sinks.len;
	if (found) {
		*number = hub->sinks.items[i]->number;
	}
	hub_unlock(hub);
	return found;
}

void broadcaster_get_stats(const evrec_broadcaster *b, evrec_stats *stats)
{
	*stats = b->hub->stats;
	stats->share_role = sharing_role(b->hub);
	stats->share_silent_for = sharing_silent_for(b->hub);
	if (b->hub->fork_generation != sender_fork_generation()) {
		/* A forked child that has recorded nothing yet. */
		*stats = (evrec_stats){ .share_role = b->hub->sharing ? EVREC_SHARE_SEEKING : EVREC_SHARE_NONE };
	}
	stats->sinks = b->hub->sinks.len;
	stats->components = b->components.len;
}

void evrec_broadcaster_get_stats(const evrec_broadcaster *b, evrec_stats *stats)
{
	hub_lock(b->hub);
	broadcaster_get_stats(b, stats);
	hub_unlock(b->hub);
}

bool evrec_broadcaster_get_sink_stats(const evrec_broadcaster *b, size_t number, evrec_sink_stats *stats)
{
	const evrec_watch *watch;
	bool found;

	hub_lock(b->hub);
	watch = find_sink(b->hub, number);
	found = watch != NULL && watch_get_sink_stats(watch, stats);
	hub_unlock(b->hub);
	return found;
}

void evrec_broadcaster_explain(const evrec_broadcaster *b, size_t number, const evrec_reference *object,
                               bool (*func)(void *ctx, const evrec_suppressed *suppressed), void *ctx)
{
	const evrec_watch *watch;

	hub_lock(b->hub);
	watch = find_sink(b->hub, number);
	if (watch != NULL) {
		pipeline_explain(watch->pipeline, object, func, ctx);
	}
	hub_unlock(b->hub);
}

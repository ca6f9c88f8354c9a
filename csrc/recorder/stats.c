#include "recorder/broadcaster.h"
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
	sum->restored += sink->restored;
	sum->retries += sink->retries;
	sum->errors_lost += sink->errors_lost;
	sum->throttle.refused += sink->throttle.refused;
	for (i = 0; i < EVREC_CAUSES; i++) {
		sum->dropped[i] += sink->dropped[i];
	}
	correlator_stats_add(&sum->correlator, &sink->correlator);
	series_stats_add(&sum->series, &sink->series);
}

/* NULL if no living sink has that number. */
static const evrec_watch *find_sink(const evrec_broadcaster *b, size_t number)
{
	const size_t i = watch_list_find_sink(&b->sinks, number);

	return i < b->sinks.len && b->sinks.items[i]->number == number ? b->sinks.items[i] : NULL;
}

bool evrec_broadcaster_next_sink(const evrec_broadcaster *b, size_t *number)
{
	const size_t i = watch_list_find_sink(&b->sinks, *number);

	if (i < b->sinks.len) {
		*number = b->sinks.items[i]->number;
	}
	return i < b->sinks.len;
}

void evrec_broadcaster_get_stats(const evrec_broadcaster *b, evrec_stats *stats)
{
	*stats = b->stats;
	if (b->fork_generation != sender_fork_generation()) {
		/* A forked child that has recorded nothing yet. */
		*stats = (evrec_stats){ 0 };
	}
	stats->sinks = b->sinks.len;
	stats->components = b->components.len;
}

bool evrec_broadcaster_get_sink_stats(const evrec_broadcaster *b, size_t number, evrec_sink_stats *stats)
{
	const evrec_watch *watch = find_sink(b, number);

	return watch != NULL && evrec_watch_get_sink_stats(watch, stats);
}

void evrec_broadcaster_explain(const evrec_broadcaster *b, size_t number, const evrec_reference *object,
                               bool (*func)(void *ctx, const evrec_suppressed *suppressed), void *ctx)
{
	const evrec_watch *watch = find_sink(b, number);

	if (watch != NULL) {
		pipeline_explain(watch->pipeline, object, func, ctx);
	}
}

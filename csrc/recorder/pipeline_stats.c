#include "recorder/pipeline_inner.h"

#include <stdio.h>

void pipeline_get_stats(const struct pipeline *pipeline, evrec_sink_stats *stats)
{
	struct outbox_stats outbox = { 0 };
	size_t i;

	*stats = (evrec_sink_stats){ .number = 0 };
	(void)snprintf(stats->name, sizeof(stats->name), "%s", sink_name(pipeline->sink));
	stats->api = sink_api(&pipeline->sink->options);
	if (pipeline->fork_generation != sender_fork_generation()) {
		/* A child that has recorded nothing yet. The outbox's lock is the parent's, perhaps held for ever. */
		return;
	}
	if (pipeline->outbox != NULL) {
		outbox_get_stats(pipeline->outbox, &outbox);
		sender_get_throttle(pipeline->sender, &stats->throttle);
		stats->api = sender_api(pipeline->sender, stats->api);
	}
	if (pipeline->correlator != NULL) {
		evrec_correlator_get_stats(pipeline->correlator, &stats->correlator);
	}
	if (pipeline->series != NULL) {
		series_get_stats(pipeline->series, &stats->series);
		stats->correlator.callback_errors = series_callback_errors(pipeline->series);
	}
	stats->received = pipeline->received + outbox.restored;
	stats->restored = outbox.restored;
	stats->spooled = outbox.spooled;
	stats->rate_limited = pipeline->rate_limited;
	stats->created = outbox.created;
	stats->patched = outbox.patched;
	stats->coalesced = outbox.coalesced;
	stats->counted = outbox.counted;
	stats->pending = outbox.pending;
	stats->retries = outbox.retries;
	stats->pending_writes = outbox.writes;
	stats->pending_bytes = outbox.bytes;
	stats->errors_lost = outbox.messages_lost;
	stats->notes_lost = pipeline_notes_lost(pipeline);
	for (i = 0; i < EVREC_CAUSES; i++) {
		stats->dropped[i] = outbox.dropped[i] + pipeline->dropped[i];
	}
}

void pipeline_explain(const struct pipeline *pipeline, const evrec_reference *object,
                      bool (*func)(void *ctx, const evrec_suppressed *suppressed), void *ctx)
{
	const struct suppressed_keys known = { pipeline->correlator, pipeline->series };

	/* There are no keys without correlator or series, or in a child that has recorded nothing yet. */
	if ((known.correlator != NULL || known.series != NULL) &&
	    pipeline->fork_generation == sender_fork_generation()) {
		suppressed_visit(&pipeline->suppressed, &known, object, evrec_clock_now(pipeline->clock), func, ctx);
	}
}

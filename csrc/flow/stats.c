#include "deliver/sender.h"
#include "flow/broadcaster.h"

const char *evrec_cause_name(enum evrec_cause cause)
{
	static const char *const names[EVREC_CAUSES] = {
		[EVREC_CAUSE_QUEUE_FULL] = "queue_full",
		[EVREC_CAUSE_REJECTED] = "rejected",
		[EVREC_CAUSE_FORBIDDEN] = "forbidden",
		[EVREC_CAUSE_NOT_FOUND] = "not_found",
		[EVREC_CAUSE_TERMINATING] = "namespace_terminating",
		[EVREC_CAUSE_CONFLICT] = "conflict",
		[EVREC_CAUSE_CLOSED] = "closed",
		[EVREC_CAUSE_MEMORY] = "memory",
		[EVREC_CAUSE_EXPIRED] = "expired",
		[EVREC_CAUSE_MAX_TRIES] = "max_tries",
	};

	return names[cause];
}

const char *evrec_stage_name(enum evrec_stage stage)
{
	static const char *const names[] = { "aggregated", "rate_limited", "dropped" };

	return names[stage];
}

static struct lane *sink_at(const evrec_broadcaster *b, size_t index)
{
	size_t i;

	for (i = 0; i < b->watches_len; i++) {
		if (b->watches[i]->lane != NULL && index-- == 0) {
			return b->watches[i]->lane;
		}
	}
	return NULL;
}

void evrec_broadcaster_get_stats(const evrec_broadcaster *b, evrec_stats *stats)
{
	*stats = b->stats;
	if (b->fork_generation != sender_fork_generation()) {
		*stats = (evrec_stats){ 0 }; /* a child that has recorded nothing yet */
	}
	stats->sinks = 0;
	while (sink_at(b, stats->sinks) != NULL) {
		stats->sinks++;
	}
}

bool evrec_broadcaster_get_sink_stats(const evrec_broadcaster *b, size_t i, evrec_sink_stats *stats)
{
	const struct lane *lane = sink_at(b, i);

	if (lane != NULL) {
		lane_get_stats(lane, stats);
	}
	return lane != NULL;
}

void evrec_broadcaster_explain(const evrec_broadcaster *b, size_t sink, const evrec_reference *object,
                               bool (*func)(void *ctx, const evrec_suppressed *what), void *ctx)
{
	const struct lane *lane = sink_at(b, sink);

	if (lane != NULL) {
		lane_explain(lane, object, func, ctx);
	}
}

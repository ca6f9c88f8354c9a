#include "recorder/sharing_inner.h"

int64_t sharing_silent_for(const struct hub *hub)
{
	const struct share *share = hub->sharing == NULL ? NULL : hub->sharing->share;
	const int64_t since = share == NULL ? 0 : share_silent_since(share);

	return since == 0 ? 0 : sharing_mono() - since;
}

enum evrec_share_role sharing_role(const struct hub *hub)
{
	static const enum evrec_share_role roles[] = {
		[SHARE_UNKNOWN] = EVREC_SHARE_SEEKING,
		[SHARE_WORKER] = EVREC_SHARE_WORKER,
		[SHARE_OWNER] = EVREC_SHARE_OWNER,
	};
	const struct share *share = hub->sharing == NULL ? NULL : hub->sharing->share;

	if (hub->sharing == NULL) {
		return EVREC_SHARE_NONE;
	}
	if (share == NULL) {
		return EVREC_SHARE_SEEKING;
	}
	return share_silent_since(share) != 0 ? EVREC_SHARE_SILENT : roles[share_role(share)];
}

uint64_t sharing_left_to_owner(const struct hub *hub)
{
	return hub->sharing == NULL || hub->sharing->share == NULL ? 0 : share_left_to_owner(hub->sharing->share);
}

void sharing_add_stats(const struct hub *hub, size_t number, evrec_sink_stats *stats)
{
	struct ledger_counts counts;

	if (hub->sharing == NULL || number == 0 || number > FRAME_SINKS) {
		return;
	}
	stats->dropped[EVREC_CAUSE_CLOSED] -= hub->sharing->left[number - 1];
	stats->forwarded += hub->sharing->left[number - 1];
	stats->dropped[EVREC_CAUSE_MEMORY] += hub->sharing->dropped;
	stats->received += hub->sharing->dropped;
	if (hub->sharing->share == NULL) {
		return;
	}
	share_count(hub->sharing->share, number - 1, &counts);
	stats->forwarded += counts.forwarded;
	stats->rate_limited += counts.rate_limited;
	stats->pending += counts.pending;
	stats->received += counts.forwarded + counts.rate_limited + counts.pending;
	for (size_t i = 0; i < EVREC_CAUSES; i++) {
		stats->dropped[i] += counts.dropped[i];
		stats->received += counts.dropped[i];
	}
}

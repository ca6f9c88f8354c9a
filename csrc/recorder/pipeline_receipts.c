#include "recorder/pipeline_inner.h"

static void settle(const struct pipeline *pipeline, const struct pipeline_settled *settled)
{
	if (settled->n != 0) {
		pipeline->listener->settled(pipeline->listener->ctx, pipeline, settled);
	}
}

HOT void pipeline_settle_now(const struct pipeline *pipeline, uint64_t handle, enum settled_as as,
                             enum evrec_cause cause)
{
	if (pipeline->receipt != NULL) {
		settle(pipeline, &(struct pipeline_settled){ *pipeline->receipt, handle, 1, as, cause });
	}
}

void pipeline_settle_entry(const struct pipeline *pipeline, const struct entry *entry)
{
	const enum settled_as as = entry->spooled ? SETTLED_SPOOLED : SETTLED_DROPPED;
	const struct receipt *receipt;

	for (receipt = entry->receipts; receipt != NULL; receipt = receipt->next) {
		settle(pipeline,
		       &(struct pipeline_settled){ receipt->id, entry->id, receipt->written, SETTLED_WRITTEN, 0 });
		settle(pipeline, &(struct pipeline_settled){ receipt->id, entry->id, receipt->n, as, entry->cause });
	}
}

uint64_t pipeline_unsure(const struct pipeline *pipeline)
{
	return pipeline->unsure;
}

void pipeline_tell(struct pipeline *pipeline, uint64_t connection, uint64_t handle, enum settled_as as, uint32_t n,
                   uint64_t batch)
{
	if (pipeline_ready(pipeline) && pipeline->correlator != NULL) {
		correlator_tell(pipeline->correlator, handle, connection, as == SETTLED_RATE_LIMITED, n, batch);
	}
}

void pipeline_acknowledge(struct pipeline *pipeline, uint64_t connection, uint64_t handle, enum settled_as as,
                          uint32_t n)
{
	if (pipeline_ready(pipeline) && pipeline->correlator != NULL) {
		correlator_acknowledge(pipeline->correlator, handle, connection, as == SETTLED_RATE_LIMITED, n);
	}
}

void pipeline_reconnect(struct pipeline *pipeline, const struct origin *from)
{
	if (pipeline_ready(pipeline) && pipeline->correlator != NULL) {
		correlator_reconnect(pipeline->correlator, from);
	}
}

void pipeline_leave(struct pipeline *pipeline, uint64_t connection)
{
	if (pipeline_ready(pipeline) && pipeline->correlator != NULL) {
		correlator_leave(pipeline->correlator, connection);
	}
}

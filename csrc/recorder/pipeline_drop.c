#include "recorder/pipeline_inner.h"

void pipeline_drop(struct pipeline *pipeline, const struct observed *o, struct keys *keys, enum evrec_cause cause,
                   int64_t now)
{
	evrec_fields event;

	pipeline_suppress(pipeline, EVREC_STAGE_DROPPED, cause, keys, o, now);
	if (pipeline->receipt == NULL) {
		observed_fields(o, &event);
		pipeline_tell_dropped(pipeline, &(struct pipeline_drop){ &event, cause, 1 });
	}
	pipeline_settle_now(pipeline, o->handle, SETTLED_DROPPED, cause);
}

COLD void pipeline_drop_unobserved(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys,
                                   enum evrec_cause cause, int64_t now)
{
	struct observed observed;

	pipeline->received++;
	pipeline->dropped[cause]++;
	observed_init(&observed, event);
	observed.handle = 0;
	pipeline_drop(pipeline, &observed, keys, cause, now);
}

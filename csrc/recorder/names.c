/* The words of the enums that users see. */
#include "evrec.h"

const char *evrec_cause_name(enum evrec_cause cause)
{
	static const char *const names[EVREC_CAUSES + 1] = {
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
		[EVREC_CAUSE_UNFIT] = "unfit",
		[EVREC_CAUSES] = "", /* the cause of an evrec_suppressed that was not dropped */
	};

	return names[cause];
}

const char *evrec_stage_name(enum evrec_stage stage)
{
	static const char *const names[] = { "aggregated", "rate_limited", "dropped", "merged", "finished" };

	return names[stage];
}

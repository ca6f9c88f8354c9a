/* When a broadcaster is to be polled next. */
#include "recorder/broadcaster.h"

/* Until a line that sums up is due, or events that callbacks have recorded are broadcast. */
static bool has_own_work(const evrec_broadcaster *b)
{
	return b->deferred_len != 0 || (b->troubles != NULL && (b->troubles->waiting != 0 || b->troubles->untold != 0));
}

int64_t evrec_broadcaster_poll_delay(evrec_broadcaster *b)
{
	int64_t delay = has_own_work(b) ? EVREC_SECOND : INT64_MAX;

	if (b->phase == BROADCASTER_ENDED) {
		return -1;
	}
	for (size_t i = 0; i < b->sinks.len; i++) {
		struct pipeline *pipeline = b->sinks.items[i]->pipeline;
		const int64_t own = pipeline_poll_delay(pipeline);

		if (b->options.drive == EVREC_DRIVE_THREAD && pipeline_lacks_thread(pipeline)) {
			return -1;
		}
		delay = own < delay ? own : delay;
	}
	return delay;
}

#include "correlate/schedule.h"

/* `ns` after `time`. Never 0, which means that there was no write. */
static int64_t after(int64_t time, int64_t ns)
{
	int64_t at;

	if (__builtin_add_overflow(time, ns, &at)) {
		at = INT64_MAX;
	}
	return at != 0 ? at : 1;
}

int64_t schedule_next(int64_t *scheduled, int64_t now, int64_t min_interval)
{
	/* No write is due more than min_interval ahead, unless the clock was set back. */
	if (*scheduled == 0 || time_since(now, *scheduled) >= min_interval ||
	    time_since(*scheduled, now) > min_interval) {
		*scheduled = after(now, 0);
		return 0;
	}
	if (*scheduled <= now) {
		*scheduled = after(*scheduled, min_interval);
	}
	return *scheduled;
}

void schedule_release(int64_t *scheduled, int64_t now)
{
	if (*scheduled > now) {
		*scheduled = after(now, 0);
	}
}

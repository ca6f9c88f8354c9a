#include "base/clock.h"
#include "flow/broadcaster.h"

static int64_t real_now(void)
{
	return clock_monotonic(evrec_clock_real());
}

static int64_t deadline_in(int64_t timeout)
{
	int64_t deadline;

	if (timeout < 0) {
		timeout = 0;
	}
	return __builtin_add_overflow(real_now(), timeout, &deadline) ? INT64_MAX : deadline;
}

/* Without any time it is a poll, which does whatever is due. */
static int64_t enough_by(int64_t deadline, int64_t timeout)
{
	return timeout > 0 ? deadline : INT64_MAX;
}

static bool settled(const evrec_broadcaster *b)
{
	size_t i;

	for (i = 0; i < b->watches_len; i++) {
		if (b->watches[i]->lane != NULL && !lane_empty(b->watches[i]->lane)) {
			return false;
		}
	}
	return b->deferred_len == 0;
}

/* Waits a little on a lane that can move. False where all that is left waits for a fake clock. */
static bool wait_for_progress(const evrec_broadcaster *b, int64_t deadline)
{
	bool stuck = false;
	size_t i;

	for (i = 0; i < b->watches_len; i++) {
		struct lane *lane = b->watches[i]->lane;

		/* One that was not settled a moment ago may be by now. */
		if (lane == NULL || lane_empty(lane)) {
			continue;
		}
		if (lane_wait(lane, deadline)) {
			return true;
		}
		stuck = true;
	}
	return !stuck || b->deferred_len != 0;
}

/* `enough`: when no more writes are begun. */
static int flush_until(evrec_broadcaster *b, int64_t deadline, int64_t enough)
{
	for (;;) {
		broadcaster_poll_by(b, enough);
		if (settled(b)) {
			/* What was answered since the poll above. */
			broadcaster_poll_by(b, enough);
			if (settled(b)) {
				return 0;
			}
		}
		if (real_now() >= deadline || !wait_for_progress(b, deadline)) {
			return EVREC_ETIMEOUT;
		}
	}
}

int evrec_broadcaster_flush(evrec_broadcaster *b, int64_t timeout)
{
	int64_t deadline;

	if (b->busy) {
		return EVREC_EINVALID;
	}
	deadline = deadline_in(timeout);
	return flush_until(b, deadline, enough_by(deadline, timeout));
}

int evrec_broadcaster_shutdown(evrec_broadcaster *b, int64_t timeout)
{
	int64_t deadline = deadline_in(timeout);
	size_t i;
	int code;

	if (b->busy) {
		return EVREC_EINVALID;
	}
	if (b->ended) {
		return 0;
	}
	/* What callbacks have recorded until now goes out with the first poll; from now on they are refused. */
	b->closed = true;
	code = flush_until(b, deadline, enough_by(deadline, timeout));
	b->busy = true;
	for (i = 0; i < b->watches_len; i++) {
		if (b->watches[i]->lane != NULL) {
			lane_end(b->watches[i]->lane);
		}
	}
	for (i = 0; i < b->watches_len; i++) {
		if (b->watches[i]->lane != NULL) {
			lane_join(b->watches[i]->lane, deadline);
		}
	}
	b->busy = false;
	b->ended = true;
	return code;
}

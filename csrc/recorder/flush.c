#include "base/clock.h"
#include "recorder/shared.h"
#include "recorder/sharing.h"

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

/* The time after which no writes are begun. A flush with a timeout of 0 is a poll, which begins all due writes. */
static int64_t last_write_by(int64_t deadline, int64_t timeout)
{
	return timeout > 0 ? deadline : INT64_MAX;
}

static bool settled(evrec_broadcaster *b)
{
	size_t i;

	if (b->hub->shared) {
		return shared_settled(b) && b->deferred_len == 0;
	}
	for (i = 0; i < b->hub->sinks.len; i++) {
		if (!pipeline_empty(b->hub->sinks.items[i]->pipeline)) {
			return false;
		}
	}
	return b->deferred_len == 0;
}

static bool is_ending(evrec_broadcaster *b)
{
	bool ending = false;

	if (b->hub->shared) {
		return shared_is_ending(b);
	}
	for (size_t i = 0; i < b->hub->sinks.len && !ending; i++) {
		ending = pipeline_is_ending(b->hub->sinks.items[i]->pipeline);
	}
	return ending;
}

/*
 * Waits for the threads of sinks that were stopped: the next sink may need their resources, such as a file's lock.
 * False: there are none.
 */
static bool wait_for_stopped(evrec_broadcaster *b, int64_t deadline)
{
	const bool some = is_ending(b);

	while (is_ending(b) && real_now() < deadline) {
		(void)nanosleep(&(struct timespec){ 0, EVREC_SECOND / 1000 }, NULL);
	}
	return some;
}

/* Waits a moment for a pipeline that can make progress. False if all remaining writes wait for a fake clock. */
static bool wait_for_progress(evrec_broadcaster *b, int64_t deadline)
{
	bool stuck = false;
	size_t i;

	if (b->hub->shared) {
		return shared_wait(b, deadline) || b->deferred_len != 0;
	}
	for (i = 0; i < b->hub->sinks.len; i++) {
		struct pipeline *pipeline = b->hub->sinks.items[i]->pipeline;

		/* A sender's thread may have emptied it since settled() looked. */
		if (pipeline_empty(pipeline)) {
			continue;
		}
		if (pipeline_wait(pipeline, deadline)) {
			return true;
		}
		stuck = true;
	}
	return !stuck || b->deferred_len != 0;
}

static int flush_until(evrec_broadcaster *b, int64_t deadline, int64_t last_write)
{
	for (;;) {
		broadcaster_poll_by(b, last_write, true);
		if (settled(b)) {
			/*
			 * Takes the answers since the poll above, and ends stopped sinks that have nothing left.
			 * Callbacks may record again.
			 */
			broadcaster_poll_by(b, last_write, true);
			if (wait_for_stopped(b, deadline)) {
				broadcaster_poll_by(b, last_write, true);
			}
			if (settled(b)) {
				return 0;
			}
		}
		if (real_now() >= deadline || !wait_for_progress(b, deadline)) {
			return EVREC_ETIMEOUT;
		}
	}
}

static int refuse_inside(evrec_error *err)
{
	return error_set(err, EVREC_EINVALID, "called from inside a callback of this broadcaster");
}

int evrec_broadcaster_flush(evrec_broadcaster *b, int64_t timeout, evrec_error *err)
{
	int64_t deadline;

	if (b->busy) {
		return refuse_inside(err);
	}
	if (b->phase == BROADCASTER_ENDED) {
		return error_set(err, b->ended_code, "%s", b->ended.message);
	}
	deadline = deadline_in(timeout);
	return broadcaster_sum_up(b, flush_until(b, deadline, last_write_by(deadline, timeout)), err);
}

static void end_sinks(evrec_broadcaster *b, int64_t deadline)
{
	size_t i;

	b->busy = true;
	for (i = 0; i < b->hub->sinks.len; i++) {
		pipeline_end(b->hub->sinks.items[i]->pipeline);
	}
	for (i = 0; i < b->hub->sinks.len; i++) {
		pipeline_join(b->hub->sinks.items[i]->pipeline, deadline);
	}
	b->busy = false;
	hub_forget_stopped(b->hub);
}

/* True: the sinks end with this handle. */
static bool close_handle(evrec_broadcaster *b)
{
	if (b->hub->shared) {
		return shared_close(b);
	}
	broadcaster_enter_phase(b, BROADCASTER_CLOSED);
	b->hub->open--;
	return true;
}

int evrec_broadcaster_shutdown(evrec_broadcaster *b, int64_t timeout, evrec_error *err)
{
	int64_t deadline = deadline_in(timeout);

	if (b->busy) {
		return refuse_inside(err);
	}
	if (b->phase != BROADCASTER_ENDED) {
		/* The first poll broadcasts events that callbacks have recorded until now; later ones are refused. */
		const bool last = close_handle(b);

		if (last) {
			sharing_leave(b->hub);
		}
		(void)flush_until(b, deadline, last_write_by(deadline, timeout));
		if (b->hub->shared) {
			if (last) {
				(void)sharing_stop(b->hub, deadline);
			}
			shared_end_sinks(b, last, deadline);
			if (last) {
				sharing_end(b->hub, deadline);
				/* Calls on_drop for the dropped events. */
				handle_enter(b);
				handle_leave(b);
			}
		} else {
			end_sinks(b, deadline);
		}
		b->ended_code = broadcaster_sum_up(b, 0, &b->ended);
		broadcaster_enter_phase(b, BROADCASTER_ENDED);
	}
	return error_set(err, b->ended_code, "%s", b->ended.message);
}

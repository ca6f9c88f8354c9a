#include "recorder/pipeline_inner.h"

/* The poll intervals of a pipeline whose sender has a thread, or nothing to do; and of one whose sender needs polls. */
#define SLOW_POLL EVREC_SECOND
#define STEPPED_POLL (EVREC_SECOND / 10)

bool pipeline_begin_poll(struct pipeline *pipeline)
{
	pipeline_finish_series(pipeline, evrec_clock_now(pipeline->clock), SIZE_MAX);
	if (!pipeline_ready(pipeline)) {
		return false;
	}
	if (pipeline->phase == PIPELINE_RUNNING) {
		pipeline_use_state(pipeline);
	}
	sender_begin(pipeline->sender);
	return sender_needs_step(pipeline->sender);
}

void pipeline_step(struct pipeline *pipeline, int64_t deadline)
{
	sender_step_by(pipeline->sender, deadline);
}

void pipeline_poll(struct pipeline *pipeline, int64_t deadline)
{
	if (pipeline_begin_poll(pipeline)) {
		pipeline_step(pipeline, deadline);
	}
	pipeline_drain(pipeline);
}

bool pipeline_lacks_thread(struct pipeline *pipeline)
{
	return pipeline_ready(pipeline) && sender_lacks_thread(pipeline->sender);
}

int64_t pipeline_poll_delay(struct pipeline *pipeline)
{
	evrec_series_stats series = { .ongoing = 0 };
	int64_t delay = INT64_MAX;
	bool busy;

	if (pipeline->series != NULL) {
		series_get_stats(pipeline->series, &series);
	}
	busy = series.ongoing != 0 || pipeline_has_notes(pipeline) || pipeline->phase == PIPELINE_STOPPED ||
	       pipeline->phase == PIPELINE_ENDING;
	if (!pipeline_ready(pipeline)) {
		return busy ? SLOW_POLL : INT64_MAX;
	}
	if (sender_needs_step(pipeline->sender)) {
		delay = sender_step_delay(pipeline->sender, STEPPED_POLL);
	} else {
		busy = busy || !outbox_at_rest(pipeline->outbox);
	}
	return busy && delay > SLOW_POLL ? SLOW_POLL : delay;
}

bool pipeline_empty(struct pipeline *pipeline)
{
	return !pipeline_ready(pipeline) || outbox_empty(pipeline->outbox);
}

bool pipeline_wait(struct pipeline *pipeline, int64_t deadline)
{
	const int64_t slice = sender_needs_step(pipeline->sender) ? EVREC_SECOND / 500 : EVREC_SECOND / 20;
	int64_t now = clock_monotonic(evrec_clock_real());

	if (sender_is_stalled(pipeline->sender)) {
		return false;
	}
	(void)outbox_wait(pipeline->outbox, deadline - now > slice ? now + slice : deadline);
	return true;
}

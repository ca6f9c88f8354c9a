#include "recorder/pipeline_inner.h"

void pipeline_stop(struct pipeline *pipeline)
{
	if (pipeline->phase == PIPELINE_RUNNING) {
		pipeline_enter_phase(pipeline, PIPELINE_STOPPED);
		pipeline_release(pipeline);
	}
}

void pipeline_end(struct pipeline *pipeline)
{
	if (pipeline->phase == PIPELINE_RUNNING) {
		pipeline_enter_phase(pipeline, PIPELINE_SHUT);
	} else if (pipeline->phase == PIPELINE_STOPPED) {
		pipeline_enter_phase(pipeline, PIPELINE_ENDING);
	} else {
		return;
	}
	if (pipeline_ready(pipeline)) {
		sender_end(pipeline->sender);
	}
}

bool pipeline_is_ending(const struct pipeline *pipeline)
{
	return pipeline->phase == PIPELINE_ENDING && pipeline->sender != NULL &&
	       pipeline->fork_generation == sender_fork_generation() && !sender_has_ended(pipeline->sender);
}

bool pipeline_is_over(const struct pipeline *pipeline)
{
	return pipeline->phase == PIPELINE_OVER;
}

void pipeline_wait_for_end(struct pipeline *pipeline, int64_t deadline)
{
	if (pipeline->sender != NULL) {
		(void)sender_join(pipeline->sender, deadline);
	}
}

bool pipeline_can_close_state(const struct pipeline *pipeline)
{
	return pipeline->state != NULL && pipeline->sender != NULL &&
	       pipeline->fork_generation == sender_fork_generation() &&
	       (pipeline->phase == PIPELINE_ENDING || pipeline->phase == PIPELINE_SHUT) &&
	       sender_has_ended(pipeline->sender);
}

void pipeline_close_state(struct pipeline *pipeline)
{
	(void)sender_join(pipeline->sender, 0);
	sender_close_state(pipeline->sender);
}

void pipeline_join(struct pipeline *pipeline, int64_t deadline)
{
	if (pipeline_ready(pipeline)) {
		pipeline_wait_for_end(pipeline, deadline);
		pipeline_drain(pipeline);
		sender_close_state(pipeline->sender);
	}
}

void pipeline_begin_drain(struct pipeline *pipeline)
{
	const bool has_sender = pipeline_take_all_news(pipeline);

	if (pipeline->phase == PIPELINE_STOPPED && (!has_sender || outbox_empty(pipeline->outbox))) {
		pipeline_end(pipeline);
	}
}

void pipeline_drain(struct pipeline *pipeline)
{
	const bool has_sender = pipeline_ready(pipeline);

	pipeline_begin_drain(pipeline);
	if (pipeline->phase == PIPELINE_ENDING && (!has_sender || sender_has_ended(pipeline->sender))) {
		if (has_sender) {
			/* The thread may have received answers since the first check. */
			pipeline_take_news(pipeline, SIZE_MAX);
			sender_close_state(pipeline->sender);
		}
		pipeline_enter_phase(pipeline, PIPELINE_OVER);
	}
}

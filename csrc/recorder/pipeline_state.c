#include "recorder/kept_state.h"
#include "recorder/pipeline_inner.h"

/* `in_use` is that of kept_state_new. */
static void open_state(struct pipeline *pipeline, bool *in_use)
{
	const evrec_str path = pipeline->sink->options.state_file;

	if (path.len == 0 || pipeline->state != NULL) {
		return;
	}
	pipeline->state =
		kept_state_new(path, pipeline->correlator, evrec_clock_now(pipeline->clock), pipeline->outbox, in_use);
	if (pipeline->state != NULL) {
		sender_set_state(pipeline->sender, pipeline->state);
	}
}

void pipeline_use_state(struct pipeline *pipeline)
{
	if (!pipeline->has_used_state && !pipeline->listener->opens_state) {
		pipeline->has_used_state = true;
		open_state(pipeline, NULL);
	}
}

bool pipeline_open_state(struct pipeline *pipeline, bool last)
{
	bool in_use = false;

	if (pipeline_ready(pipeline)) {
		open_state(pipeline, last ? NULL : &in_use);
	}
	return !in_use;
}

/* NULL: none. In a forked child the parent's is not its own. */
static struct state_file *own_state(const struct pipeline *pipeline)
{
	return pipeline->fork_generation == sender_fork_generation() ? pipeline->state : NULL;
}

uint64_t pipeline_state_changes(const struct pipeline *pipeline)
{
	const struct state_file *state = own_state(pipeline);

	return state != NULL ? state_file_changes(state) : 0;
}

bool pipeline_state_has(const struct pipeline *pipeline, uint64_t changes)
{
	const struct state_file *state = own_state(pipeline);

	return state == NULL || state_file_has(state, changes);
}

void pipeline_write_state(struct pipeline *pipeline)
{
	struct state_file *state = own_state(pipeline);

	if (state != NULL) {
		state_file_hurry(state);
	}
}

void pipeline_on_state_written(struct pipeline *pipeline, void (*func)(void *ctx), void *ctx)
{
	struct state_file *state = own_state(pipeline);

	if (state != NULL) {
		state_file_on_written(state, func, ctx);
	}
}

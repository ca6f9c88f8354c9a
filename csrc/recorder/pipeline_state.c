#include "correlate/state.h"
#include "recorder/kept_state.h"
#include "recorder/pipeline_inner.h"

static struct state_file *open_file(const struct pipeline *pipeline)
{
	const evrec_str none = { NULL, 0 };
	const bool in_spool = pipeline->state_path.data == pipeline->made_path;

	return kept_state_open(pipeline->state_path, in_spool ? pipeline->spool : none);
}

/* `in_use` is that of kept_state_new. */
static void open_state(struct pipeline *pipeline, bool *in_use)
{
	const evrec_str path = pipeline->state_path;

	if (path.len == 0 || pipeline->state != NULL) {
		return;
	}
	if (pipeline->state_ahead == NULL) {
		pipeline->state_ahead = open_file(pipeline);
	}
	pipeline->state =
		kept_state_new(path, pipeline->state_ahead, &(struct kept){ pipeline->correlator, pipeline->series },
	                       evrec_clock_now(pipeline->clock), pipeline->outbox, in_use);
	pipeline->state_ahead = NULL;
	if (pipeline->state != NULL) {
		sender_set_state(pipeline->sender, pipeline->state);
	}
}

void pipeline_begin_state(struct pipeline *pipeline)
{
	pipeline->has_used_state = true;
	open_state(pipeline, NULL);
}

void pipeline_open_state_ahead(struct pipeline *pipeline)
{
	if (pipeline->state_path.len != 0 && pipeline->state == NULL && pipeline->state_ahead == NULL) {
		pipeline->state_ahead = open_file(pipeline);
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

/* The state file of this process; NULL: none, or the parent's in a forked child. */
static struct state_file *own_state(const struct pipeline *pipeline)
{
	return pipeline->fork_generation == sender_fork_generation() ? pipeline->state : NULL;
}

void pipeline_look_ahead(struct pipeline *pipeline)
{
	if (own_state(pipeline) != NULL) {
		sender_look_ahead(pipeline->sender);
	}
}

void pipeline_end_look_ahead(struct pipeline *pipeline)
{
	if (own_state(pipeline) != NULL) {
		sender_end_look_ahead(pipeline->sender);
	}
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

void pipeline_write_state_ahead(struct pipeline *pipeline)
{
	struct state_file *state = own_state(pipeline);

	if (state != NULL) {
		state_file_lead(state);
	}
}

/* ---- handed over ---- */

static bool hands_over(struct pipeline *pipeline)
{
	return pipeline_ready(pipeline) && pipeline->state_path.len == 0;
}

static struct state *new_state(const struct pipeline *pipeline)
{
	return pipeline->series != NULL ? state_new_of_series(pipeline->series) : state_new(pipeline->correlator);
}

bool pipeline_save_state(struct pipeline *pipeline, struct buf *out)
{
	const uint32_t version = STATE_VERSION;
	struct state *state;
	uint64_t cursor = 0;
	bool ok;

	if (!hands_over(pipeline)) {
		return false;
	}
	state = new_state(pipeline);
	ok = state != NULL && state_note_all(state, evrec_clock_now(pipeline->clock));
	if (ok) {
		buf_put(out, &version, sizeof(version));
		(void)state_take_all(state, &cursor, SIZE_MAX, out);
	}
	state_free(state);
	out->failed = out->failed || !ok;
	return true;
}

void pipeline_load_state(struct pipeline *pipeline, evrec_str bytes)
{
	const uint32_t own = STATE_VERSION;
	struct state_loaded loaded;
	struct state *state = NULL;

	if (bytes.len >= sizeof(own) && memcmp(bytes.data, &own, sizeof(own)) == 0 && hands_over(pipeline)) {
		state = new_state(pipeline);
	}
	if (state != NULL) {
		const evrec_str records = { bytes.data + sizeof(own), bytes.len - sizeof(own) };

		/* Entries of any age, as if the process had continued. */
		(void)state_load(state, records, evrec_clock_now(pipeline->clock), INT64_MAX, &loaded);
		state_free(state);
	}
}

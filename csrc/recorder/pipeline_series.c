#include "recorder/pipeline_inner.h"

static void get_event(const void *fields, evrec_fields *event)
{
	*event = *(const evrec_fields *)fields;
}

/*
 * Submits a write without an occurrence, deferred until `due`, which no limit bounds. `again`: it is unknown whether an
 * earlier process has created the event.
 */
static void write_told(const struct pipeline *pipeline, const struct series_told *told, bool finished, bool again,
                       int64_t due)
{
	const struct write_draft draft = {
		.new_style = true,
		.finished = finished,
		.finishes = told->finishes,
		.note = told->event->note,
		.last = told->event->series_last,
		.count = told->event->series_count - (int32_t)told->base,
		.base = told->base,
		.get_event = get_event,
		.source = told->event,
	};
	const struct occurrence occurrence = {
		.id = told->handle,
		.verb = told->event->series_count > 1 ? VERB_PATCH : VERB_CREATE,
		.important = write_is_important(told->event),
		.now = clock_coarse(pipeline->clock),
		.due = due,
		.again = again,
		.silent = true,
		.draft = &draft,
	};
	enum evrec_cause cause;

	/* It counts no occurrence, so none is lost with it. */
	(void)outbox_submit(pipeline->outbox, &occurrence, &cause);
}

/* The last write said "Ongoing": one more says "Finished". */
static void write_finished(const struct pipeline *pipeline, const struct series_told *told)
{
	const int64_t now = clock_coarse(pipeline->clock);

	write_told(pipeline, told, true, false, now != 0 ? now : 1);
}

/* An earlier process may not have written the count. */
static void write_restored(const struct pipeline *pipeline, const struct series_told *told)
{
	write_told(
		pipeline, told, false, true,
		pipeline_due(pipeline, told->due, evrec_clock_now(pipeline->clock), clock_monotonic(pipeline->clock)));
}

static void end(struct pipeline *pipeline, const struct series_told *told)
{
	if (keys_make(&pipeline->own_keys, told->event)) {
		suppressed_finish(&pipeline->suppressed, &pipeline->own_keys, told->event);
	}
	if (told->untold && pipeline->sink->shows_states) {
		write_finished(pipeline, told);
	}
	/* Makes it pending, so that limits bound it: else the ends of all series would accumulate in an outage. */
	outbox_release(pipeline->outbox, told->handle, clock_coarse(pipeline->clock));
}

static void tell(void *ctx, const struct series_told *told)
{
	struct pipeline *pipeline = ctx;

	if (str_eq(told->event->series_state, EVREC_STR("Finished"))) {
		end(pipeline, told);
	} else if (told->due != 0) {
		write_restored(pipeline, told);
	}
	if (told->event->series_state.len != 0) {
		pipeline->listener->series(pipeline->listener->ctx, pipeline, told->event);
	}
}

bool pipeline_open_series(struct pipeline *pipeline, int64_t now)
{
	pipeline->series = series_new(&pipeline->sink->options.series, &pipeline->options, now, tell, pipeline);
	if (pipeline->series != NULL && !evrec_clock_is_fake(pipeline->clock)) {
		series_use_real_clock(pipeline->series);
	}
	return pipeline->series != NULL;
}

void pipeline_finish_series(struct pipeline *pipeline, int64_t now, size_t max)
{
	if (pipeline->phase == PIPELINE_RUNNING && pipeline->series != NULL && pipeline_ready(pipeline) &&
	    series_next_due(pipeline->series) <= now) {
		series_tick(pipeline->series, now, max);
	}
}

void pipeline_tick(struct pipeline *pipeline, int64_t now)
{
	pipeline_finish_series(pipeline, now, NEWS_WHILE_RECORDING);
	pipeline->ticked = true;
}

int64_t pipeline_due(const struct pipeline *pipeline, int64_t due, int64_t now, int64_t monotonic)
{
	int64_t at;

	/* A callback may have stopped the pipeline, whose deferred writes are all released by now. */
	if (due == 0 || pipeline->phase != PIPELINE_RUNNING) {
		return 0;
	}
	if (__builtin_add_overflow(monotonic, time_since(due, now), &at)) {
		at = INT64_MAX;
	}
	return at != 0 ? at : 1;
}

void pipeline_tell_released(struct pipeline *pipeline, uint64_t handle)
{
	if (pipeline->series != NULL) {
		series_released(pipeline->series, handle);
	} else {
		correlator_released(pipeline->correlator, handle, evrec_clock_now(pipeline->clock));
	}
}

void pipeline_release(struct pipeline *pipeline)
{
	if (pipeline->sender == NULL || pipeline->fork_generation != sender_fork_generation()) {
		return;
	}
	outbox_release_all(pipeline->outbox, clock_monotonic(pipeline->clock));
	if (pipeline->series != NULL || pipeline->sink->min_interval != 0) {
		pipeline_tell_released(pipeline, 0);
	}
}

void pipeline_settle_series(const struct pipeline *pipeline, const struct entry *entry)
{
	/* If an owner ends, the workers keep the occurrences that it has not written. */
	const bool is_left = entry->dropped && entry->cause == EVREC_CAUSE_CLOSED;
	uint32_t others = 0;

	for (const struct receipt *receipt = entry->receipts; receipt != NULL; receipt = receipt->next) {
		others += receipt->written + (is_left ? 0 : receipt->n);
	}
	series_settled(pipeline->series, entry->id, entry->written + entry->count, others);
}

bool pipeline_has_series(const struct pipeline *pipeline)
{
	return pipeline->series != NULL;
}

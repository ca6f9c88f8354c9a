#include "recorder/pipeline_inner.h"

static void get_event(const void *fields, evrec_fields *event)
{
	*event = *(const evrec_fields *)fields;
}

/* The last write said "Ongoing": one more, of no occurrence, says "Finished". */
static void write_finished(const struct pipeline *pipeline, const struct series_told *told)
{
	const struct write_draft draft = {
		.new_style = true,
		.finished = true,
		.note = told->event->note,
		.last = told->event->series_last,
		.count = told->event->series_count - (int32_t)told->base,
		.base = told->base,
		.get_event = get_event,
		.source = told->event,
	};
	const int64_t now = clock_coarse(pipeline->clock);
	/* Deferred until now: no limit holds for it. */
	const struct occurrence occurrence = {
		.id = told->handle,
		.verb = VERB_PATCH,
		.important = write_is_important(told->event),
		.now = now,
		.due = now != 0 ? now : 1,
		.silent = true,
		.draft = &draft,
	};
	enum evrec_cause cause;

	/* It counts no occurrence, so none is lost with it. */
	(void)outbox_submit(pipeline->outbox, &occurrence, &cause);
}

static void end(struct pipeline *pipeline, const struct series_told *told)
{
	if (keys_make(&pipeline->own_keys, told->event)) {
		suppressed_finish(&pipeline->suppressed, &pipeline->own_keys, told->event);
	}
	if (told->untold && pipeline->sink->shows_states) {
		write_finished(pipeline, told);
	}
	/* From now on it counts as pending. Else an outage would gather the ends of all series that there were. */
	outbox_release(pipeline->outbox, told->handle, clock_coarse(pipeline->clock));
}

static void tell(void *ctx, const struct series_told *told)
{
	struct pipeline *pipeline = ctx;

	if (str_eq(told->event->series_state, EVREC_STR("Finished"))) {
		end(pipeline, told);
	}
	pipeline->listener->series(pipeline->listener->ctx, pipeline, told->event);
}

bool pipeline_open_series(struct pipeline *pipeline, int64_t now)
{
	pipeline->series = series_new(&pipeline->sink->options.series, &pipeline->options, now, tell, pipeline);
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

int64_t pipeline_due(const struct pipeline *pipeline, const struct observed *o, int64_t now, int64_t monotonic)
{
	int64_t due;

	/* A callback may have stopped the pipeline, whose deferred writes are all released by now. */
	if (o->due == 0 || pipeline->phase != PIPELINE_RUNNING) {
		return 0;
	}
	if (__builtin_add_overflow(monotonic, time_since(o->due, now), &due)) {
		due = INT64_MAX;
	}
	return due != 0 ? due : 1;
}

void pipeline_release(struct pipeline *pipeline)
{
	if (pipeline->series != NULL && pipeline->sender != NULL &&
	    pipeline->fork_generation == sender_fork_generation()) {
		outbox_release_all(pipeline->outbox, clock_monotonic(pipeline->clock));
		series_released(pipeline->series, 0);
	}
}

bool pipeline_has_series(const struct pipeline *pipeline)
{
	return pipeline->series != NULL;
}

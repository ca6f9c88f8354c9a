#include "recorder/pipeline_inner.h"

/* The event, as it was observed, had no token. */
HOT static void tell_limited(const struct pipeline *pipeline, const struct observed *o)
{
	evrec_fields event;

	if (pipeline->listener->limited != NULL && pipeline->receipt == NULL) {
		observed_fields(o, &event);
		pipeline->listener->limited(pipeline->listener->ctx, &event);
	}
}

/* An aggregate's message comes from a callback or has a prefix, so it is cleaned and cut here, not by the recorder. */
static bool bound_note(struct pipeline *pipeline, struct observed *o)
{
	/* Skipping the check of a clean note saves 100 of 2,345 instructions of a similar event. */
	if (o->note.data == o->event->note.data || (o->combined_note && o->note.len <= pipeline->max_note)) {
		return true;
	}
	buf_clear(&pipeline->note);
	o->note = text_clean(o->note, pipeline->max_note, &pipeline->note);
	return !pipeline->note.failed;
}

static void get_event(const void *observed, evrec_fields *event)
{
	observed_fields(observed, event);
}

static int observe_once(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now,
                        struct observed *observed)
{
	if (pipeline->series != NULL) {
		series_for_others(pipeline->series, pipeline->receipt != NULL);
		return series_observe(pipeline->series, event, keys, now, observed);
	}
	observed->due = 0;
	observed->base = 0;
	observed->finishes = observed->merged = observed->again = false;
	return correlator_observe(pipeline->correlator, event, keys, now, pipeline->origin, observed);
}

/* The last owner has left a note of all that it had counted. */
static bool has_origins(const struct pipeline *pipeline)
{
	return pipeline->state != NULL && pipeline->correlator != NULL;
}

HOT static int observe(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now,
                       struct observed *observed)
{
	const int code = observe_once(pipeline, event, keys, now, observed);
	const struct origin *origin = pipeline->origin;

	if (code == 0 && origin != NULL && origin->again && origin->unsure && !observed->repeated &&
	    !has_origins(pipeline)) {
		pipeline->unsure++;
	}
	if (code == 0 && pipeline->noting != NULL) {
		pipeline_note_occurrence(pipeline, observed);
	}
	return code;
}

/* The outbox did not take the occurrence. */
static COLD void refuse(struct pipeline *pipeline, const struct observed *o, struct keys *keys, enum evrec_cause cause,
                        int64_t now)
{
	if (pipeline->series != NULL) {
		series_settled(pipeline->series, o->handle, 1, pipeline->receipt != NULL);
		series_dropped(pipeline->series, o->handle, cause, now);
	} else {
		correlator_refused(pipeline->correlator, o->handle);
	}
	pipeline_drop(pipeline, o, keys, cause, now);
}

/* Submits an occurrence in either style, deferred or not. */
static void submit(struct pipeline *pipeline, const struct observed *o, struct keys *keys, int64_t now)
{
	/* Exact: with a clock that is some ms late, each occurrence within these would be a heartbeat of its own. */
	const int64_t monotonic = clock_monotonic(pipeline->clock);
	const struct write_draft draft = {
		.new_style = pipeline->new_style,
		.finishes = o->finishes,
		.base = o->base,
		.note = o->note,
		.note_changes = pipeline->series != NULL || o->why == EVREC_AGGREGATED,
		.last = o->last,
		.count = o->count,
		.sure = o->sure,
		.get_event = get_event,
		.source = o,
	};
	bool deferred = false;
	const struct occurrence occurrence = {
		.id = o->handle,
		.verb = o->patch ? VERB_PATCH : VERB_CREATE,
		.important = write_is_important(o->event),
		.now = monotonic,
		.due = pipeline_due(pipeline, o->due, now, monotonic),
		/* Series have a bound of their own, max_series. */
		.max_deferred = pipeline->series != NULL ? 0 : pipeline->options.lru_cache_size,
		.deferred = &deferred,
		.receipt = pipeline->receipt,
		.again = o->again || (pipeline->again && o->name.data == o->event->name.data),
		.draft = &draft,
	};
	enum evrec_cause cause;

	if (!outbox_submit(pipeline->outbox, &occurrence, &cause)) {
		refuse(pipeline, o, keys, cause, now);
		return;
	}
	if (o->due != 0 && !deferred) {
		pipeline_tell_released(pipeline, o->handle);
	}
	if (o->merged || o->why == EVREC_AGGREGATED) {
		pipeline_suppress(pipeline, o->merged ? EVREC_STAGE_MERGED : EVREC_STAGE_AGGREGATED, EVREC_CAUSES, keys,
		                  o, now);
	}
}

/* An event had no token. */
HOT static void limit(struct pipeline *pipeline, const struct observed *o, struct keys *keys, int64_t now)
{
	pipeline->rate_limited++;
	pipeline_suppress(pipeline, EVREC_STAGE_RATE_LIMITED, EVREC_CAUSES, keys, o, now);
	tell_limited(pipeline, o);
	pipeline_settle_now(pipeline, o->handle, SETTLED_RATE_LIMITED, 0);
}

static void record_new_style(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now)
{
	evrec_fields fitted = *event;
	struct observed observed;
	evrec_error err;
	int code;

	if (!pipeline->ticked) {
		pipeline_tick(pipeline, now);
	}
	pipeline->ticked = false;
	code = fit_event(&pipeline->fit, &fitted, str_from(pipeline->host_name), &err);
	if (code == EVREC_EINVALID) {
		/* Reported before the drop, so that the line about the drop has the reason. */
		outbox_report(pipeline->outbox, "unfit", err.message);
		pipeline_take_messages(pipeline);
		pipeline_drop_unobserved(pipeline, event, keys, EVREC_CAUSE_UNFIT, now);
	} else if (keys == NULL || code != 0 || observe(pipeline, &fitted, keys, now, &observed) != 0 ||
	           !bound_note(pipeline, &observed)) {
		pipeline_drop_unobserved(pipeline, event, keys, EVREC_CAUSE_MEMORY, now);
	} else {
		pipeline->received++;
		if (observed.skip) {
			limit(pipeline, &observed, keys, now);
		} else {
			submit(pipeline, &observed, keys, now);
		}
	}
}

HOT void pipeline_record(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now)
{
	struct occurrence occurrence;
	struct write_draft draft;
	struct observed observed;
	enum evrec_cause cause;

	if (pipeline->phase != PIPELINE_RUNNING) {
		return;
	}
	if (!pipeline_ready(pipeline)) {
		pipeline_drop_unobserved(pipeline, event, keys, EVREC_CAUSE_MEMORY, now);
		return;
	}
	pipeline_use_state(pipeline);
	if (outbox_has_news(pipeline->outbox)) {
		pipeline_take_news(pipeline, NEWS_WHILE_RECORDING);
	}
	if (pipeline->sink->traces) {
		pipeline_trace(pipeline, event, keys, now);
		return;
	}
	if (pipeline->new_style) {
		record_new_style(pipeline, event, keys, now);
		return;
	}
	if (keys == NULL || observe(pipeline, event, keys, now, &observed) != 0 || !bound_note(pipeline, &observed)) {
		pipeline_drop_unobserved(pipeline, event, keys, EVREC_CAUSE_MEMORY, now);
		return;
	}
	/*
	 * Counted after the correlator's callbacks have run, so that the equation of the stats holds inside them, too.
	 */
	pipeline->received++;
	if (observed.skip) {
		limit(pipeline, &observed, keys, now);
		return;
	}
	if (observed.due != 0) {
		submit(pipeline, &observed, keys, now);
		return;
	}
	draft = (struct write_draft){
		.note = observed.note,
		.note_changes = observed.why == EVREC_AGGREGATED,
		.last = observed.last,
		.count = observed.count,
		.sure = observed.sure,
		.get_event = get_event,
		.source = &observed,
		.keys = keys,
	};
	occurrence = (struct occurrence){
		.id = observed.handle,
		.verb = observed.patch ? VERB_PATCH : VERB_CREATE,
		.is_first = !observed.patch,
		.important = write_is_important(event),
		.now = clock_coarse(pipeline->clock),
		.receipt = pipeline->receipt,
		.again = pipeline->again && observed.name.data == event->name.data,
		.draft = &draft,
	};
	if (!outbox_submit(pipeline->outbox, &occurrence, &cause)) {
		refuse(pipeline, &observed, keys, cause, now);
	} else if (observed.why == EVREC_AGGREGATED) {
		pipeline_suppress(pipeline, EVREC_STAGE_AGGREGATED, EVREC_CAUSES, keys, &observed, now);
	}
}

bool pipeline_record_for(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now,
                         const struct receipt_id *receipt, const struct origin *origin, bool again)
{
	if (pipeline->phase != PIPELINE_RUNNING) {
		return false;
	}
	pipeline->receipt = receipt;
	pipeline->origin = origin;
	pipeline->again = again;
	pipeline_record(pipeline, event, keys, now);
	pipeline->receipt = NULL;
	pipeline->origin = NULL;
	pipeline->again = false;
	return true;
}

bool pipeline_has_spool(const struct pipeline *pipeline)
{
	return pipeline->sink->options.spool.len != 0;
}

const evrec_limits *pipeline_limits(const struct pipeline *pipeline)
{
	return &pipeline->sink->options.limits;
}

void pipeline_hide_secrets(const struct pipeline *pipeline, char *text)
{
	if (pipeline->sink->hide_secrets != NULL) {
		pipeline->sink->hide_secrets(pipeline->sink, text);
	}
}

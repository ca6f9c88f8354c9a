#include "recorder/pipeline_inner.h"

/* Polls of a pipeline whose sender has a thread, or nothing to do; and of one whose sender waits for polls. */
#define SLOW_POLL EVREC_SECOND
#define STEPPED_POLL (EVREC_SECOND / 10)

void pipeline_drop(struct pipeline *pipeline, const struct observed *o, struct keys *keys, enum evrec_cause cause,
                   int64_t now)
{
	evrec_fields event;

	pipeline_suppress(pipeline, EVREC_STAGE_DROPPED, cause, keys, o, now);
	if (pipeline->receipt == NULL) {
		observed_fields(o, &event);
		pipeline_tell_dropped(pipeline, &(struct pipeline_drop){ &event, cause, 1 });
	}
	pipeline_settle_now(pipeline, o->handle, SETTLED_DROPPED, cause);
}

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
	/* Not looking at the bytes of a clean one saves 100 of 2,345 instructions of a similar event. */
	if (o->note.data == o->event->note.data || (o->combined_note && o->note.len <= pipeline->max_note)) {
		return true;
	}
	buf_clear(&pipeline->note);
	o->note = text_clean(o->note, pipeline->max_note, &pipeline->note);
	return !pipeline->note.failed;
}

COLD void pipeline_drop_unobserved(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys,
                                   enum evrec_cause cause, int64_t now)
{
	struct observed observed;

	pipeline->received++;
	pipeline->dropped[cause]++;
	observed_init(&observed, event);
	observed.handle = 0;
	pipeline_drop(pipeline, &observed, keys, cause, now);
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

HOT static int observe(struct pipeline *pipeline, const evrec_fields *event, struct keys *keys, int64_t now,
                       struct observed *observed)
{
	const int code = observe_once(pipeline, event, keys, now, observed);
	const struct origin *origin = pipeline->origin;

	if (code == 0 && origin != NULL && origin->again && origin->unsure && !observed->repeated) {
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
	/* Exact: by a clock some ms behind, each occurrence of that time would be a heartbeat of its own. */
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
		/* Told before the drop, whose line then shows why. */
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
	/* Counted after the correlator's callbacks have run: the equation of the stats holds for them too. */
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

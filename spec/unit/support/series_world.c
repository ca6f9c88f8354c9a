#include "series_world.h"

static void copy_str(char *out, size_t size, evrec_str s)
{
	(void)snprintf(out, size, "%.*s", (int)s.len, s.data);
}

static void answer_event(struct series_world *w, const evrec_event *event, evrec_answer *answer)
{
	w->last = *evrec_event_fields(event);
	w->last_note_len = w->last.note.len;
	copy_str(w->name, sizeof(w->name), w->last.name);
	copy_str(w->state, sizeof(w->state), w->last.series_state);
	copy_str(w->action, sizeof(w->action), w->last.action);
	copy_str(w->instance, sizeof(w->instance), w->last.instance);
	if (strcmp(w->state, "Finished") == 0) {
		w->finished++;
		w->finished_count = w->last.series_count;
	}
	answer->status = w->first_status != 0 ? w->first_status : w->status;
	w->first_status = 0;
}

void series_world_create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct series_world *w = ctx;

	w->creates++;
	answer_event(w, event, answer);
}

static void patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	struct series_world *w = ctx;

	w->patches++;
	copy_str(w->patch, sizeof(w->patch), patch);
	answer_event(w, event, answer);
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct series_world *w = ctx;

	assert_true(evrec_event_fields(event)->reason.len > 0);
	w->drops++;
	copy_str(w->cause, sizeof(w->cause), str_from(why));
}

static evrec_sink *make_sink(struct series_world *w, const evrec_series_options *options)
{
	static const evrec_sink_ops ops = { .create = series_world_create, .patch = patch };
	evrec_sink_options common;
	evrec_sink *sink;

	evrec_sink_options_init(&common);
	common.api = EVREC_SINK_EVENTS_V1;
	common.correlate = w->correlate;
	if (w->max_pending != 0) {
		common.limits.max_pending = w->max_pending;
	}
	common.limits.max_tries = w->max_tries;
	if (options != NULL) {
		common.series = *options;
	}
	sink = evrec_sink_new(&ops, w, &common, NULL);
	assert_non_null(sink);
	return sink;
}

void series_world_start(struct series_world *w, const evrec_series_options *options)
{
	evrec_sink *sink = make_sink(w, options);

	w->watch = evrec_broadcaster_start_recording_to_sink(w->b, sink, NULL, NULL);
	assert_non_null(w->watch);
	evrec_sink_release(sink);
}

void series_world_open(struct series_world *w, const evrec_series_options *options)
{
	evrec_broadcaster_options broadcaster;

	*w = (struct series_world){ .correlate = w->correlate,
		                    .late = w->late,
		                    .max_pending = w->max_pending,
		                    .max_tries = w->max_tries,
		                    .real_clock = w->real_clock,
		                    .clock = w->real_clock ? evrec_clock_real() : evrec_clock_fake(T0),
		                    .now = T0,
		                    .status = 201 };
	evrec_broadcaster_options_init(&broadcaster);
	broadcaster.clock = w->clock;
	broadcaster.max_message_bytes = 4096;
	broadcaster.on_drop = on_drop;
	broadcaster.ctx = w;
	w->b = evrec_broadcaster_new(&broadcaster, NULL);
	w->r = evrec_recorder_new(w->b, &(evrec_recorder_options){ .component = EVREC_STR("kubelet") }, NULL);
	if (!w->late) {
		series_world_start(w, options);
	}
}

void series_world_close(struct series_world *w)
{
	evrec_watch_free(w->watch);
	evrec_broadcaster_free(w->b);
	evrec_recorder_free(w->r);
	evrec_clock_release(w->clock);
}

void series_world_record(struct series_world *w, const char *object, const char *note)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = str_from(object), .ns = EVREC_STR("shop") };
	const evrec_emit emit = { .regarding = &pod,
		                  .type = EVREC_STR("Warning"),
		                  .reason = EVREC_STR("BackOff"),
		                  .note = str_from(note),
		                  .timestamp = EVREC_UNSET };

	assert_int_equal(checked_emit(w->r, w->b, &emit), 0);
}

void series_world_advance(struct series_world *w, int64_t ns)
{
	w->now += ns;
	evrec_clock_set(w->clock, w->now);
}

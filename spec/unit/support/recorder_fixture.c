#include "recorder_fixture.h"

static void copy_str(char *out, size_t size, evrec_str s)
{
	(void)snprintf(out, size, "%.*s", (int)s.len, s.data);
}

static void answer_event(struct recorder_fixture *f, const evrec_event *event, evrec_answer *answer)
{
	const evrec_fields *fields = evrec_event_fields(event);

	f->last_count = fields->count;
	copy_str(f->last_note, sizeof(f->last_note), fields->note);
	copy_str(f->last_name, sizeof(f->last_name), fields->name);
	copy_str(f->last_version, sizeof(f->last_version), fields->resource_version);
	answer->status = f->status;
	answer->retry_after = f->retry_after;
	memcpy(answer->resource_version, "7", sizeof("7"));
}

static void sink_create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct recorder_fixture *f = ctx;

	f->creates++;
	answer_event(f, event, answer);
}

static void sink_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	struct recorder_fixture *f = ctx;

	f->patches++;
	copy_str(f->last_patch, sizeof(f->last_patch), patch);
	answer_event(f, event, answer);
}

const evrec_sink_ops recorder_fixture_sink_ops = { .create = sink_create, .patch = sink_patch };

static void on_error(void *ctx, const char *message, const char *name)
{
	struct recorder_fixture *f = ctx;

	(void)message;
	f->errors++;
	copy_str(f->last_error, sizeof(f->last_error), str_from(name));
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct recorder_fixture *f = ctx;

	assert_true(evrec_event_fields(event)->reason.len > 0);
	f->drops++;
	copy_str(f->last_why, sizeof(f->last_why), str_from(why));
}

int recorder_fixture_setup(void **state)
{
	struct recorder_fixture *f = calloc(1, sizeof(*f));
	evrec_broadcaster_options options;
	evrec_sink_options common;

	f->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	options.on_error = on_error;
	options.on_drop = on_drop;
	options.ctx = f;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(
		f->b, &(evrec_recorder_options){ .component = EVREC_STR("test"), .host = EVREC_STR("host") }, NULL);
	evrec_sink_options_init(&common);
	common.limits.max_pending = 3;
	f->sink = evrec_sink_new(&recorder_fixture_sink_ops, f, &common, NULL);
	f->status = 201;
	*state = f;
	return 0;
}

int recorder_fixture_teardown(void **state)
{
	struct recorder_fixture *f = *state;

	evrec_broadcaster_free(f->b);
	evrec_recorder_free(f->r);
	evrec_sink_release(f->sink);
	evrec_clock_release(f->clock);
	free(f);
	return 0;
}

int recorder_fixture_record(struct recorder_fixture *f, const char *object, const char *reason, const char *note)
{
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"),
		                            .name = str_from(object),
		                            .ns = EVREC_STR("shop") };
	const evrec_emit occurrence = { .regarding = &regarding,
		                        .type = EVREC_STR("Normal"),
		                        .reason = str_from(reason),
		                        .note = str_from(note),
		                        .timestamp = EVREC_UNSET };

	return checked_emit(f->r, f->b, &occurrence);
}

evrec_watch *recorder_fixture_start(struct recorder_fixture *f)
{
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(f->b, f->sink, NULL, NULL);

	assert_non_null(watch);
	return watch;
}

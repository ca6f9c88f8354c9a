/*
 * recording.h - a broadcaster under a fake clock, a recorder, and a sink that answers as it is told and remembers what
 * it got.
 */
#ifndef EVREC_RECORDING_H
#define EVREC_RECORDING_H

#include "books.h"

struct fixture {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_sink *sink;
	int status; /* of the sink's next answers */
	int64_t retry_after;
	unsigned creates, patches;
	int32_t last_count;
	char last_note[64], last_why[32], last_error[32], last_patch[128], last_version[16], last_name[64];
	unsigned drops, errors;
};

static inline void remember(char *out, size_t size, evrec_str s)
{
	(void)snprintf(out, size, "%.*s", (int)s.len, s.data);
}

static inline void answer_as_told(struct fixture *f, const evrec_event *event, evrec_answer *answer)
{
	const evrec_fields *fields = evrec_event_fields(event);

	f->last_count = fields->count;
	remember(f->last_note, sizeof(f->last_note), fields->note);
	remember(f->last_name, sizeof(f->last_name), fields->name);
	remember(f->last_version, sizeof(f->last_version), fields->resource_version);
	answer->status = f->status;
	answer->retry_after = f->retry_after;
	memcpy(answer->resource_version, "7", sizeof("7"));
}

static inline void sink_create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct fixture *f = ctx;

	f->creates++;
	answer_as_told(f, event, answer);
}

static inline void sink_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	struct fixture *f = ctx;

	f->patches++;
	remember(f->last_patch, sizeof(f->last_patch), patch);
	answer_as_told(f, event, answer);
}

static const evrec_sink_ops sink_ops = { .create = sink_create, .patch = sink_patch };

static inline void on_error(void *ctx, const char *message, const char *name)
{
	struct fixture *f = ctx;

	(void)message;
	f->errors++;
	remember(f->last_error, sizeof(f->last_error), str_from(name));
}

static inline void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct fixture *f = ctx;

	assert_true(evrec_event_fields(event)->reason.len > 0);
	f->drops++;
	remember(f->last_why, sizeof(f->last_why), str_from(why));
}

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	evrec_broadcaster_options options;
	evrec_limits limits;

	f->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	options.on_error = on_error;
	options.on_drop = on_drop;
	options.ctx = f;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(f->b, EVREC_STR("test"), EVREC_STR("host"), NULL);
	evrec_limits_init(&limits);
	limits.max_pending = 3;
	f->sink = evrec_sink_new(&sink_ops, f, &limits, NULL);
	f->status = 201;
	*state = f;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	evrec_broadcaster_free(f->b);
	evrec_recorder_free(f->r);
	evrec_sink_release(f->sink);
	evrec_clock_release(f->clock);
	free(f);
	return 0;
}

static inline int record(struct fixture *f, const char *object, const char *reason, const char *note)
{
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"),
		                            .name = str_from(object),
		                            .ns = EVREC_STR("shop") };
	const evrec_emit what = { .regarding = &regarding,
		                  .type = EVREC_STR("Normal"),
		                  .reason = str_from(reason),
		                  .note = str_from(note),
		                  .timestamp = EVREC_UNSET };

	return emit(f->r, f->b, &what);
}

static inline evrec_watch *start(struct fixture *f)
{
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(f->b, f->sink, NULL, NULL);

	assert_non_null(watch);
	return watch;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif

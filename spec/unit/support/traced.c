#include "traced.h"

#include "base/file.h"

static void on_error(void *ctx, const char *message, const char *name)
{
	struct traced *t = ctx;

	assert_string_equal(name, "trace");
	(void)snprintf(t->error, sizeof(t->error), "%s", message);
	t->errors++;
	if (t->told != NULL) {
		t->told(message);
	}
}

static void on_drop(void *ctx, const evrec_event *event, const char *cause)
{
	(void)event;
	(void)cause;
	((struct traced *)ctx)->drops++;
}

void traced_begin_driven(struct traced *t, const char *path, uint64_t max_bytes,
                         const evrec_correlator_options *correlator, enum evrec_drive drive)
{
	evrec_recorder_options source = { .component = EVREC_STR("test") };
	evrec_broadcaster_options options;

	*t = (struct traced){ .clock = evrec_clock_fake(T0) };
	evrec_broadcaster_options_init(&options);
	options.clock = t->clock;
	options.drive = drive;
	options.on_error = on_error;
	options.on_drop = on_drop;
	options.ctx = t;
	t->b = evrec_broadcaster_new(&options, NULL);
	t->r = evrec_recorder_new(t->b, &source, NULL);
	t->watch = evrec_broadcaster_start_trace(t->b, str_from(path), max_bytes, correlator, NULL);
	assert_non_null(t->watch);
}

void traced_begin(struct traced *t, const char *path, uint64_t max_bytes, const evrec_correlator_options *correlator)
{
	traced_begin_driven(t, path, max_bytes, correlator, EVREC_DRIVE_POLL);
}

void traced_end(struct traced *t)
{
	(void)evrec_broadcaster_shutdown(t->b, 0, NULL);
	evrec_watch_free(t->watch);
	evrec_recorder_free(t->r);
	evrec_broadcaster_free(t->b);
	evrec_clock_release(t->clock);
}

void traced_record(struct traced *t, uint64_t object, const char *reason, const char *note)
{
	evrec_reference pod = { .kind = EVREC_STR("Pod"), .ns = EVREC_STR("shop") };
	char name[32];
	evrec_emit emit;

	(void)snprintf(name, sizeof(name), "web-%llu", (unsigned long long)object);
	pod.name = str_from(name);
	evrec_emit_init(&emit);
	emit.regarding = &pod;
	emit.type = EVREC_STR("Normal");
	emit.reason = str_from(reason);
	emit.note = str_from(note);
	assert_int_equal(evrec_recorder_emit(t->r, &emit, NULL), 0);
}

void traced_replay(const char *path, const evrec_correlator_options *options, evrec_replayed_trace *trace,
                   evrec_replayed_variant *result)
{
	evrec_replay_variant variant;
	struct buf text = { 0 };
	evrec_replay *r;

	evrec_replay_variant_init(&variant);
	if (options != NULL) {
		variant.correlator = *options;
	}
	r = evrec_replay_new(&variant, 1, NULL);
	assert_non_null(r);
	assert_true(file_read(path, SIZE_MAX / 2, &text));
	/* Cut in the middle of a line. */
	assert_int_equal(evrec_replay_feed(r, (evrec_str){ text.data, text.len / 2 }, NULL), 0);
	assert_int_equal(evrec_replay_feed(r, (evrec_str){ text.data + text.len / 2, text.len - text.len / 2 }, NULL),
	                 0);
	assert_int_equal(evrec_replay_end(r, NULL), 0);
	evrec_replay_get_trace(r, trace);
	evrec_replay_get_variant(r, 0, result);
	evrec_replay_free(r);
	buf_free(&text);
}

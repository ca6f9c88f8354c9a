#include "state_life.h"

#include <sys/stat.h>

static void answer_event(struct state_life *life, const evrec_event *event, evrec_answer *answer)
{
	const evrec_fields *fields = evrec_event_fields(event);

	life->count = fields->series_count > fields->count ? fields->series_count : fields->count;
	(void)snprintf(life->name, sizeof(life->name), "%.*s", (int)fields->name.len, fields->name.data);
	answer->status = life->fails ? 503 : 200;
	if (life->written != NULL) {
		life->written(fields);
	}
}

static void sink_create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct state_life *life = ctx;

	life->creates++;
	answer_event(life, event, answer);
}

static void sink_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	struct state_life *life = ctx;

	assert_true(patch.len != 0);
	life->patches++;
	answer_event(life, event, answer);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct state_life *life = ctx;

	life->errors++;
	(void)snprintf(life->error, sizeof(life->error), "%s", message);
	(void)snprintf(life->error_name, sizeof(life->error_name), "%s", name);
}

static evrec_sink *make_sink_with(struct state_life *life, const char *path, enum evrec_correlate correlate)
{
	static const evrec_sink_ops ops = { .create = sink_create, .patch = sink_patch };
	evrec_sink_options options;
	evrec_sink *sink;

	evrec_sink_options_init(&options);
	options.state_file = str_from(path);
	options.correlate = correlate;
	sink = evrec_sink_new(&ops, life, &options, NULL);
	assert_non_null(sink);
	return sink;
}

static evrec_sink *make_sink(struct state_life *life, const char *path)
{
	return make_sink_with(life, path, EVREC_CORRELATE_BY_API);
}

static void start(struct state_life *life, evrec_sink *sink)
{
	evrec_correlator_options options;
	evrec_watch *watch;

	evrec_correlator_options_init(&options);
	options.burst_size = 1000000;
	watch = evrec_broadcaster_start_recording_to_sink(life->b, sink, &options, NULL);
	assert_non_null(watch);
	evrec_watch_free(watch);
	evrec_sink_release(sink);
}

static void start_under(struct state_life *life, evrec_sink *sink, evrec_clock *clock)
{
	const evrec_recorder_options source = { .component = EVREC_STR("test"), .host = EVREC_STR("host") };
	evrec_broadcaster_options options;

	life->clock = clock;
	evrec_broadcaster_options_init(&options);
	options.clock = life->clock;
	options.on_error = on_error;
	options.ctx = life;
	life->b = evrec_broadcaster_new(&options, NULL);
	life->r = evrec_recorder_new(life->b, &source, NULL);
	start(life, sink);
}

void state_life_begin_under(struct state_life *life, evrec_sink *sink, evrec_clock *clock)
{
	start_under(life, sink, clock);
	evrec_broadcaster_poll(life->b);
}

void state_life_begin_with(struct state_life *life, evrec_sink *sink, int64_t now)
{
	state_life_begin_under(life, sink, evrec_clock_fake(now));
}

void state_life_begin(struct state_life *life, const char *path, int64_t now)
{
	*life = (struct state_life){ 0 };
	state_life_begin_with(life, make_sink(life, path), now);
}

void state_life_begin_series(struct state_life *life, const char *path, int64_t now)
{
	*life = (struct state_life){ 0 };
	state_life_begin_with(life, make_sink_with(life, path, EVREC_CORRELATE_SERIES), now);
}

void state_life_start(struct state_life *life, const char *path, int64_t now)
{
	*life = (struct state_life){ 0 };
	start_under(life, make_sink(life, path), evrec_clock_fake(now));
}

void state_life_add_sink(struct state_life *life, const char *path)
{
	start(life, make_sink(life, path));
	evrec_broadcaster_poll(life->b);
}

void state_life_emit(struct state_life *life, const char *object)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = str_from(object), .ns = EVREC_STR("shop") };
	const evrec_emit emit = { .regarding = &pod,
		                  .type = EVREC_STR("Normal"),
		                  .reason = EVREC_STR("R"),
		                  .note = EVREC_STR("a note"),
		                  .timestamp = EVREC_UNSET };

	assert_int_equal(evrec_recorder_emit(life->r, &emit, NULL), 0);
}

void state_life_record(struct state_life *life, const char *object)
{
	state_life_emit(life, object);
	evrec_broadcaster_poll(life->b);
}

void state_life_advance(struct state_life *life, int64_t ns)
{
	evrec_clock_set(life->clock, evrec_clock_now(life->clock) + ns);
	evrec_broadcaster_poll(life->b);
}

void state_life_shutdown(struct state_life *life)
{
	assert_int_equal(evrec_broadcaster_shutdown(life->b, SOON, NULL), 0);
}

void state_life_free(struct state_life *life)
{
	evrec_recorder_free(life->r);
	evrec_broadcaster_free(life->b);
	evrec_clock_release(life->clock);
}

void state_life_end(struct state_life *life)
{
	state_life_shutdown(life);
	state_life_free(life);
}

void state_life_check_next(const char *path, int64_t now, int32_t count)
{
	struct state_life life;

	state_life_begin(&life, path, now);
	state_life_record(&life, "a");
	assert_int_equal(life.count, count);
	assert_int_equal(life.patches, count > 1 ? 1 : 0);
	state_life_end(&life);
}

void state_life_check_told(const struct state_life *life, const char *words)
{
	assert_int_equal(life->errors, 1);
	assert_string_equal(life->error_name, "state");
	unit_check_contains(life->error, words);
}

off_t state_life_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : -1;
}

void state_life_live_once(const char *path, int64_t now)
{
	struct state_life life;

	state_life_begin(&life, path, now);
	state_life_record(&life, "a");
	state_life_record(&life, "a");
	state_life_end(&life);
	assert_int_equal(life.errors, 0);
}

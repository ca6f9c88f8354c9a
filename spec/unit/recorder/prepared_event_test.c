/* A prepared event and a plain one with the same fields have the same results, whatever else is recorded. */
#include "stats_invariants.h"

#include "tmpdir.h"

#define RUNS 48
#define STEPS 300
#define EVENTS 6

/* Options of a run, each a bit of its number. */
enum { FUNCTIONS = 1, NAMED = 2, SERIES = 4, SMALL = 8, TRACED = 16 };

/* Two sides do the same, but for one of them with prepared events. */
struct side {
	bool prepares;
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_sink *sink;
	evrec_watch *recording, *watcher, *trace;
	evrec_prepared_event *events[EVENTS];
	int inner;      /* the event that the watcher records next; -1: none */
	char name[128]; /* of the last event that was seen */
	char *seen;
	size_t seen_len;
	FILE *log; /* writes `seen`: what sink and watcher were given, and the results of calls */
};

static unsigned below(uint64_t *seed, unsigned n)
{
	return (unsigned)(unit_random(seed) % n);
}

/* The fields of the event of that number. */
static evrec_emit emit_of(int number)
{
	static const evrec_reference pods[] = {
		{ .kind = { "Pod", 3 }, .ns = { "shop", 4 }, .name = { "web-0", 5 } },
		{ .kind = { "Node", 4 }, .name = { "node-1", 6 }, .uid = { "1", 1 } },
	};
	static const evrec_pair pairs[] = { { { "tier", 4 }, { "db", 2 } }, { { "zone", 4 }, { "a", 1 } } };
	static const char *const notes[] = { "it runs", "it \xff runs and runs on, and never ends", "" };

	return (evrec_emit){ .regarding = &pods[number % 2],
		             .related = number % 3 == 1 ? &pods[0] : NULL,
		             .type = number % 2 == 0 ? EVREC_STR("Normal") : EVREC_STR("Warning"),
		             .reason = number < 4 ? EVREC_STR("Started") : EVREC_STR("Failed"),
		             .action = number == 3 ? EVREC_STR("Start") : EVREC_STR(""),
		             .note = str_from(notes[number % 3]),
		             .annotations = { pairs, number == 2 ? 1 : 0 },
		             .labels = { pairs, number == 4 ? 2 : 0 },
		             .timestamp = EVREC_UNSET };
}

static evrec_prepared_event *prepare(evrec_recorder *r, int number)
{
	const evrec_emit emit = emit_of(number);
	evrec_prepared_event *event = evrec_prepared_event_new(r, &emit, NULL);

	assert_non_null(event);
	return event;
}

static int record(struct side *s, int number, const char *note)
{
	evrec_emit emit = emit_of(number);

	if (!s->prepares) {
		emit.note = note != NULL ? str_from(note) : emit.note;
		return evrec_recorder_emit(s->r, &emit, NULL);
	}
	if (note != NULL) {
		return evrec_prepared_event_record_note(s->events[number], str_from(note), NULL);
	}
	return evrec_prepared_event_record(s->events[number], NULL);
}

/* Names are unique in the process, so only whether it is that of the event before is compared. */
static void log_event(struct side *s, const char *what, const evrec_event *event)
{
	evrec_fields fields = *evrec_event_fields(event);
	const bool again = str_eq(fields.name, str_from(s->name));
	evrec_event *nameless;
	char *json;
	size_t len;

	(void)snprintf(s->name, sizeof(s->name), "%.*s", (int)fields.name.len, fields.name.data);
	fields.name = again ? EVREC_STR("again") : EVREC_STR("another");
	nameless = evrec_event_new(&fields);
	json = evrec_fields_json(evrec_event_fields(nameless), EVREC_CORE_V1, &len);
	(void)fprintf(s->log, "%s %s\n", what, json);
	evrec_free(json);
	evrec_event_release(nameless);
}

static void sink_create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	log_event(ctx, "create", event);
	answer->status = 201;
}

static void sink_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	(void)patch;
	log_event(ctx, "patch", event);
	answer->status = 200;
}

static void watch(void *ctx, evrec_event *event)
{
	struct side *s = ctx;
	const int inner = s->inner;

	log_event(s, "watch", event);
	if (inner >= 0) {
		s->inner = -1;
		(void)fprintf(s->log, "inner %d\n", record(s, inner, NULL));
	}
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct side *s = ctx;

	log_event(s, why, event);
}

static bool key_func(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	(void)ctx;
	*aggregate_key = event->reason;
	*local_key = event->regarding.name;
	return event->action.len == 0;
}

static bool message_func(void *ctx, const evrec_fields *event, evrec_str *message)
{
	(void)ctx;
	*message = event->type;
	return true;
}

static bool spam_key_func(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)ctx;
	*key = event->type;
	return true;
}

static void start(struct side *s, unsigned options, const char *name, const char *trace)
{
	static const evrec_pair label = { { "tier", 4 }, { "web", 3 } };
	static const evrec_sink_ops ops = { .create = sink_create, .patch = sink_patch };
	const evrec_recorder_options recorder = { .component = EVREC_STR("test"),
		                                  .host = EVREC_STR("host"),
		                                  .labels = { &label, (options & SMALL) != 0 ? 1 : 0 } };
	evrec_broadcaster_options broadcaster;
	evrec_correlator_options correlator;
	evrec_sink_options sink;

	s->log = open_memstream(&s->seen, &s->seen_len);
	s->clock = evrec_clock_fake(T0);
	s->inner = -1;
	evrec_broadcaster_options_init(&broadcaster);
	evrec_correlator_options_init(&correlator);
	evrec_sink_options_init(&sink);
	broadcaster.clock = s->clock;
	broadcaster.drive = EVREC_DRIVE_POLL;
	broadcaster.on_drop = on_drop;
	broadcaster.ctx = s;
	broadcaster.name = (options & NAMED) != 0 ? str_from(name) : EVREC_STR("");
	broadcaster.max_message_bytes = (options & SMALL) != 0 ? 16 : 1024;
	/* Each of the few entries of a small cache is evicted again and again. */
	correlator.lru_cache_size = (options & SMALL) != 0 ? 2 : 4096;
	correlator.qps = 0.1;
	correlator.max_events = 3;
	if ((options & FUNCTIONS) != 0) {
		correlator.key_func = key_func;
		correlator.message_func = message_func;
		correlator.spam_key_func = spam_key_func;
	}
	sink.correlate = (options & SERIES) != 0 ? EVREC_CORRELATE_SERIES : EVREC_CORRELATE_BY_API;
	s->b = evrec_broadcaster_new(&broadcaster, NULL);
	s->r = evrec_recorder_new(s->b, &recorder, NULL);
	s->sink = evrec_sink_new(&ops, s, &sink, NULL);
	s->recording = evrec_broadcaster_start_recording_to_sink(s->b, s->sink, &correlator, NULL);
	s->watcher = evrec_broadcaster_start_event_watcher(s->b, watch, s, NULL);
	assert_non_null(s->recording);
	assert_non_null(s->watcher);
	if ((options & TRACED) != 0) {
		s->trace = evrec_broadcaster_start_trace(s->b, str_from(trace), 1 << 20, &correlator, NULL);
		assert_non_null(s->trace);
	}
	for (int i = 0; i < EVENTS && s->prepares; i++) {
		s->events[i] = prepare(s->r, i);
	}
}

static void end(struct side *s)
{
	evrec_broadcaster_free(s->b);
	evrec_recorder_free(s->r);
	for (int i = 0; i < EVENTS; i++) {
		evrec_prepared_event_free(s->events[i]);
	}
	evrec_watch_free(s->recording);
	evrec_watch_free(s->watcher);
	evrec_watch_free(s->trace);
	evrec_sink_release(s->sink);
	evrec_clock_release(s->clock);
	(void)fclose(s->log);
	free(s->seen);
}

/* Makes an event again, often in the place in memory that the old one has left. */
static void prepare_again(struct side *s, int number)
{
	if (s->prepares) {
		evrec_prepared_event_free(s->events[number]);
		s->events[number] = prepare(s->r, number);
	}
}

static void step(struct side *s, uint64_t seed)
{
	static const char *const notes[] = { "it runs", "another", "\xff", "" };
	const int number = (int)below(&seed, EVENTS);

	switch (below(&seed, 10)) {
	case 0:
		evrec_clock_set(s->clock, evrec_clock_now(s->clock) + (int64_t)below(&seed, 1000) * EVREC_SECOND);
		break;
	case 1:
		evrec_broadcaster_poll(s->b);
		break;
	case 2:
		prepare_again(s, number);
		break;
	case 3:
		s->inner = (int)below(&seed, EVENTS);
		(void)fprintf(s->log, "outer %d\n", record(s, number, NULL));
		break;
	case 4:
		(void)fprintf(s->log, "code %d\n", record(s, number, notes[below(&seed, 4)]));
		break;
	case 5: {
		evrec_emit emit = emit_of(number);

		(void)fprintf(s->log, "plain %d\n", evrec_recorder_emit(s->r, &emit, NULL));
		break;
	}
	default:
		(void)fprintf(s->log, "code %d\n", record(s, number, NULL));
	}
}

static void assert_same(const struct side *a, const struct side *b)
{
	evrec_sink_stats sink[2];
	evrec_stats all[2];
	evrec_recorder_stats recorder[2];

	assert_int_equal(fflush(a->log), 0);
	assert_int_equal(fflush(b->log), 0);
	assert_string_equal(a->seen, b->seen);
	evrec_broadcaster_get_stats(a->b, &all[0]);
	evrec_broadcaster_get_stats(b->b, &all[1]);
	assert_memory_equal(&all[0], &all[1], sizeof(all[0]));
	assert_true(evrec_watch_get_sink_stats(a->recording, &sink[0]));
	assert_true(evrec_watch_get_sink_stats(b->recording, &sink[1]));
	assert_memory_equal(&sink[0], &sink[1], offsetof(evrec_sink_stats, throttle));
	assert_memory_equal(&sink[0].correlator, &sink[1].correlator, sizeof(sink[0].correlator));
	assert_memory_equal(&sink[0].series, &sink[1].series, sizeof(sink[0].series));
	evrec_recorder_get_stats(a->r, &recorder[0]);
	evrec_recorder_get_stats(b->r, &recorder[1]);
	assert_int_equal(recorder[0].reasons, recorder[1].reasons);
	assert_int_equal(recorder[0].actions, recorder[1].actions);
}

static char *read_file(const char *path)
{
	char *text = calloc(1, 1 << 20);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
	(void)fclose(file);
	return text;
}

/* The lines of a trace from the first event on: its header tells of the broadcaster. */
static void assert_same_files(const char *a, const char *b)
{
	char *texts[2] = { read_file(a), read_file(b) };
	const char *lines[2] = { strchr(texts[0], '\n'), strchr(texts[1], '\n') };

	assert_non_null(lines[0]);
	assert_non_null(lines[1]);
	assert_true(strlen(lines[0]) > 1);
	assert_string_equal(lines[0], lines[1]);
	free(texts[0]);
	free(texts[1]);
}

static void run(void **state, uint64_t *seed, unsigned options)
{
	char traces[2][256];
	struct side sides[2] = { { .prepares = true }, { .prepares = false } };

	for (int i = 0; i < 2; i++) {
		(void)snprintf(traces[i], sizeof(traces[i]), "%s", tmpdir_path(*state, i == 0 ? "a" : "b"));
		start(&sides[i], options, i == 0 ? "prepared" : "plain", traces[i]);
	}
	for (unsigned i = 0; i < STEPS; i++) {
		const uint64_t own = unit_random(seed);

		step(&sides[0], own);
		step(&sides[1], own);
		assert_same(&sides[0], &sides[1]);
	}
	for (int i = 0; i < 2; i++) {
		(void)evrec_broadcaster_shutdown(sides[i].b, SOON, NULL);
		assert_int_equal(record(&sides[i], 0, NULL), EVREC_ECLOSED);
		assert_int_equal(record(&sides[i], 0, "m"), EVREC_ECLOSED);
	}
	assert_same(&sides[0], &sides[1]);
	if ((options & TRACED) != 0) {
		assert_same_files(traces[0], traces[1]);
	}
	end(&sides[0]);
	end(&sides[1]);
}

static void test_prepared_and_plain_events_have_the_same_results(void **state)
{
	uint64_t seed = unit_seed();

	for (unsigned i = 0; i < RUNS; i++) {
		run(state, &seed, i % 32);
	}
}

static void test_wrong_fields_are_refused_by_name(void **state)
{
	struct side s = { .prepares = true };
	const evrec_reference kindless = { .name = EVREC_STR("web-0") };
	evrec_emit emit = emit_of(0);
	evrec_error err;

	(void)state;
	start(&s, 0, "", "");
	emit.regarding = NULL;
	assert_null(evrec_prepared_event_new(s.r, &emit, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	assert_string_equal(err.message, "regarding: missing");
	emit = emit_of(0);
	emit.related = &kindless;
	assert_null(evrec_prepared_event_new(s.r, &emit, &err));
	unit_check_contains(err.message, "related.kind: ");
	emit = emit_of(0);
	emit.type = EVREC_STR("Wrong");
	assert_null(evrec_prepared_event_new(s.r, &emit, &err));
	unit_check_contains(err.message, "type: ");
	emit = emit_of(0);
	emit.action = EVREC_STR("\xff");
	assert_null(evrec_prepared_event_new(s.r, &emit, &err));
	unit_check_contains(err.message, "action: ");
	(void)stats_check_equations(s.b);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_prepared_and_plain_events_have_the_same_results),
		cmocka_unit_test(test_wrong_fields_are_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * An occurrence that ends as a count makes no allocation: not in recorder, broadcaster, correlator, nor in the waiting
 * write that it folds into, or the rate limit that suppresses it.
 */
#include "unit.h"

struct no_alloc_fixture {
	struct unit_allocator memory;
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch;
	unsigned created, patched;
};

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct no_alloc_fixture *f = ctx;

	(void)event;
	f->created++;
	answer->status = 201;
}

static void patch(void *ctx, const evrec_event *event, evrec_str body, evrec_answer *answer)
{
	struct no_alloc_fixture *f = ctx;

	(void)event;
	(void)body;
	f->patched++;
	answer->status = 200;
}

static int set_up(void **state)
{
	static const evrec_sink_ops ops = { .create = create, .patch = patch };
	const evrec_pair pair = { EVREC_STR("key"), EVREC_STR("of all events") };
	struct no_alloc_fixture *f = calloc(1, sizeof(*f));
	evrec_broadcaster_options options;
	evrec_recorder_options of_recorder;
	evrec_sink *sink;

	evrec_set_allocator(unit_realloc, &f->memory);
	f->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	f->b = evrec_broadcaster_new(&options, NULL);
	sink = evrec_sink_new(&ops, f, NULL, NULL);
	f->watch = evrec_broadcaster_start_recording_to_sink(f->b, sink, NULL, NULL);
	evrec_sink_release(sink);
	evrec_recorder_options_init(&of_recorder);
	of_recorder.component = EVREC_STR("test");
	of_recorder.host = EVREC_STR("node-1");
	of_recorder.labels = of_recorder.annotations = (evrec_map){ &pair, 1 };
	f->r = evrec_recorder_new(f->b, &of_recorder, NULL);
	*state = f;
	return f->r == NULL;
}

static int tear_down(void **state)
{
	struct no_alloc_fixture *f = *state;

	evrec_watch_free(f->watch);
	evrec_recorder_free(f->r);
	evrec_broadcaster_free(f->b);
	evrec_clock_release(f->clock);
	evrec_set_allocator(NULL, NULL);
	free(f);
	return 0;
}

/* Records an occurrence 10 ms later. */
static void record(struct no_alloc_fixture *f, const evrec_prepared_ref *prepared, const evrec_reference *object,
                   const char *message)
{
	const evrec_emit emit = {
		.object = prepared,
		.regarding = object,
		.type = EVREC_STR("Normal"),
		.reason = EVREC_STR("Counted"),
		.note = str_from(message),
		.timestamp = EVREC_UNSET,
	};

	evrec_clock_set(f->clock, evrec_clock_now(f->clock) + EVREC_SECOND / 100);
	assert_int_equal(evrec_recorder_emit(f->r, &emit, NULL), 0);
}

static evrec_reference pod(void)
{
	return (evrec_reference){
		.kind = EVREC_STR("Pod"),
		.ns = EVREC_STR("shop"),
		.name = EVREC_STR("web-0"),
		.uid = EVREC_STR("4711"),
	};
}

static evrec_sink_stats stats_of(const struct no_alloc_fixture *f)
{
	evrec_sink_stats stats;

	assert_true(evrec_broadcaster_get_sink_stats(f->b, 1, &stats));
	return stats;
}

static void test_duplicates_allocate_nothing(void **state)
{
	struct no_alloc_fixture *f = *state;
	const evrec_reference object = pod();
	evrec_prepared_ref *prepared = evrec_prepared_ref_new(&object, NULL);
	size_t before;
	int i;

	record(f, NULL, &object, "m");
	before = f->memory.calls;
	for (i = 0; i < 10; i++) {
		record(f, NULL, &object, "m");
		record(f, prepared, NULL, "m");
	}
	assert_int_equal(f->memory.calls, before);
	assert_int_equal(stats_of(f).pending, 21);

	evrec_broadcaster_poll(f->b);
	assert_int_equal(f->created, 1);
	record(f, prepared, NULL, "m"); /* a new write, the PATCH */
	before = f->memory.calls;
	record(f, prepared, NULL, "m");
	record(f, NULL, &object, "m");
	assert_int_equal(f->memory.calls, before);
	evrec_broadcaster_poll(f->b);
	assert_int_equal(f->patched, 1);
	assert_int_equal(stats_of(f).coalesced, 22);
	evrec_prepared_ref_release(prepared);
}

/* Also if prepared events take turns. */
static void test_prepared_events_allocate_nothing(void **state)
{
	struct no_alloc_fixture *f = *state;
	const evrec_reference object = pod();
	evrec_emit emit = { .regarding = &object, .type = EVREC_STR("Normal"), .reason = EVREC_STR("Counted") };
	evrec_prepared_event *events[2];
	size_t before = 0;

	for (int i = 0; i < 2; i++) {
		emit.note = i == 0 ? EVREC_STR("bytes: \xff") : EVREC_STR("m");
		events[i] = evrec_prepared_event_new(f->r, &emit, NULL);
		assert_non_null(events[i]);
	}
	for (int i = 0; i < 10; i++) {
		if (i == 2) {
			before = f->memory.calls;
		}
		assert_int_equal(evrec_prepared_event_record(events[i % 2], NULL), 0);
	}
	assert_int_equal(f->memory.calls, before);
	assert_int_equal(stats_of(f).correlator.why[EVREC_DUPLICATE], 8);
	evrec_prepared_event_free(events[0]);
	evrec_prepared_event_free(events[1]);
}

/* A message that must be cleaned folds too, and so does one that is clean already. */
static void test_cleaned_messages_allocate_nothing(void **state)
{
	struct no_alloc_fixture *f = *state;
	const evrec_reference object = pod();
	size_t before;
	int i;

	record(f, NULL, &object, "bytes: \xff");
	before = f->memory.calls;
	for (i = 0; i < 5; i++) {
		record(f, NULL, &object, "bytes: \xff");
		record(f, NULL, &object, "bytes: \xef\xbf\xbd");
	}
	assert_int_equal(f->memory.calls, before);
	assert_int_equal(stats_of(f).pending, 11);
	assert_int_equal(stats_of(f).pending_writes, 1);
	assert_int_equal(stats_of(f).correlator.why[EVREC_DUPLICATE], 10);
	record(f, NULL, &object, "bytes: \xfe!");
	assert_int_equal(stats_of(f).pending_writes, 2);
}

static void test_aggregated_events_allocate_nothing(void **state)
{
	struct no_alloc_fixture *f = *state;
	const evrec_reference object = pod();
	char message[16];
	size_t before = 0;
	int i;

	for (i = 0; i < 24; i++) {
		if (i == 12) {
			before = f->memory.calls;
		}
		(void)snprintf(message, sizeof(message), "m%02d", i);
		record(f, NULL, &object, message);
	}
	assert_int_equal(f->memory.calls, before);
	assert_int_equal(stats_of(f).correlator.why[EVREC_AGGREGATED], 15);
}

static void test_rate_limited_events_allocate_nothing(void **state)
{
	struct no_alloc_fixture *f = *state;
	const evrec_reference object = pod();
	size_t before = 0;
	int i;

	for (i = 0; i < 100; i++) {
		if (i == 30) {
			before = f->memory.calls;
		}
		record(f, NULL, &object, "m");
	}
	assert_int_equal(f->memory.calls, before);
	assert_int_equal(stats_of(f).rate_limited, 75);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_duplicates_allocate_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_prepared_events_allocate_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cleaned_messages_allocate_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_aggregated_events_allocate_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rate_limited_events_allocate_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("no_alloc", tests, NULL, NULL);
}

#include "unit.h"

/*
 * An occurrence that ends as a count makes no allocation on its whole way: recorder, broadcaster, correlator, and the
 * waiting write that it folds into, or the rate limit that ends it.
 */
struct fixture {
	struct unit_memory memory;
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch;
	unsigned created, patched;
};

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct fixture *f = ctx;

	(void)event;
	f->created++;
	answer->status = 201;
}

static void patch(void *ctx, const evrec_event *event, evrec_str body, evrec_answer *answer)
{
	struct fixture *f = ctx;

	(void)event;
	(void)body;
	f->patched++;
	answer->status = 200;
}

static int set_up(void **state)
{
	static const evrec_sink_ops ops = { .create = create, .patch = patch };
	static struct fixture fixture;
	struct fixture *f = &fixture;
	evrec_broadcaster_options options;
	evrec_sink *sink;

	*f = (struct fixture){ 0 };
	evrec_set_allocator(unit_realloc, &f->memory);
	f->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	f->b = evrec_broadcaster_new(&options, NULL);
	sink = evrec_sink_new(&ops, f, NULL, NULL);
	f->watch = evrec_broadcaster_start_recording_to_sink(f->b, sink, NULL, NULL);
	evrec_sink_release(sink);
	f->r = evrec_recorder_new(f->b, EVREC_STR("test"), EVREC_STR("node-1"), NULL);
	*state = f;
	return f->r == NULL;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	evrec_watch_free(f->watch);
	evrec_recorder_free(f->r);
	evrec_broadcaster_free(f->b);
	evrec_clock_release(f->clock);
	evrec_set_allocator(NULL, NULL);
	return 0;
}

/* One more occurrence, a little later. */
static void record(struct fixture *f, const evrec_ref *prepared, const evrec_reference *object, const char *message)
{
	const evrec_emit what = {
		.object = prepared,
		.regarding = object,
		.type = EVREC_STR("Normal"),
		.reason = EVREC_STR("Counted"),
		.note = str_from(message),
		.timestamp = EVREC_UNSET,
	};

	evrec_clock_set(f->clock, evrec_clock_now(f->clock) + EVREC_SECOND / 100);
	assert_int_equal(evrec_recorder_emit(f->r, &what, NULL), 0);
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

static evrec_sink_stats stats_of(const struct fixture *f)
{
	evrec_sink_stats stats;

	assert_true(evrec_broadcaster_get_sink_stats(f->b, 0, &stats));
	return stats;
}

static void test_duplicates(void **state)
{
	struct fixture *f = *state;
	const evrec_reference object = pod();
	evrec_ref *prepared = evrec_ref_new(&object, NULL);
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
	record(f, prepared, NULL, "m"); /* a write again, the patch */
	before = f->memory.calls;
	record(f, prepared, NULL, "m");
	record(f, NULL, &object, "m");
	assert_int_equal(f->memory.calls, before);
	evrec_broadcaster_poll(f->b);
	assert_int_equal(f->patched, 1);
	assert_int_equal(stats_of(f).coalesced, 22);
	evrec_ref_release(prepared);
}

/* What had to be cleaned is a count too, and so is what comes clean already. */
static void test_cleaned(void **state)
{
	struct fixture *f = *state;
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

static void test_similar(void **state)
{
	struct fixture *f = *state;
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

static void test_rate_limited(void **state)
{
	struct fixture *f = *state;
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
		cmocka_unit_test_setup_teardown(test_duplicates, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cleaned, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_similar, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rate_limited, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("counting", tests, NULL, NULL);
}

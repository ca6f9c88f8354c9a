/* Memory is freed when it is no longer needed: that of stopped sinks, and of long messages. */
#include "counting_allocator.h"
#include "recorder/broadcaster.h"
#include "stats_invariants.h"

#include <unistd.h>

struct released_fixture {
	struct counting_allocator allocator;
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	int status; /* of every answer */
	unsigned writes, drops, freed, explained;
};

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct released_fixture *f = ctx;

	(void)event;
	f->writes++;
	answer->status = f->status;
}

static void sink_free(void *ctx)
{
	((struct released_fixture *)ctx)->freed++;
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	assert_true(event != NULL && why != NULL);
	((struct released_fixture *)ctx)->drops++;
}

static bool explain_one(void *ctx, const evrec_suppressed *suppressed)
{
	assert_non_null(suppressed);
	((struct released_fixture *)ctx)->explained++;
	return true;
}

static int set_up(void **state)
{
	static struct released_fixture fixture;
	struct released_fixture *f = &fixture;
	evrec_broadcaster_options options;

	*f = (struct released_fixture){ .status = 201 };
	evrec_set_allocator(counting_realloc, &f->allocator);
	f->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	options.on_drop = on_drop;
	options.ctx = f;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(
		f->b, &(evrec_recorder_options){ .component = EVREC_STR("test"), .host = EVREC_STR("node-1") }, NULL);
	*state = f;
	return f->r == NULL;
}

static int tear_down(void **state)
{
	struct released_fixture *f = *state;

	evrec_recorder_free(f->r);
	evrec_broadcaster_free(f->b);
	evrec_clock_release(f->clock);
	evrec_set_allocator(NULL, NULL);
	return f->allocator.live != 0;
}

static evrec_watch *start_with(struct released_fixture *f, const evrec_sink_options *options)
{
	static const evrec_sink_ops ops = { .create = create, .free = sink_free };
	evrec_sink *sink = evrec_sink_new(&ops, f, options, NULL);
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(f->b, sink, NULL, NULL);

	assert_non_null(watch);
	evrec_sink_release(sink);
	return watch;
}

static evrec_watch *start(struct released_fixture *f)
{
	return start_with(f, NULL);
}

static void record(struct released_fixture *f, unsigned n)
{
	char name[32];
	evrec_reference object = { .kind = EVREC_STR("Pod") };
	evrec_emit emit = { .regarding = &object, .note = EVREC_STR("m"), .timestamp = EVREC_UNSET };

	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("R");
	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "web-%u", i);
		object.name = str_from(name);
		assert_int_equal(checked_emit(f->r, f->b, &emit), 0);
	}
}

static evrec_sink_stats stats_of(const evrec_watch *watch)
{
	evrec_sink_stats stats;

	assert_true(evrec_watch_get_sink_stats(watch, &stats));
	stats_check_sink(&stats);
	return stats;
}

static evrec_stats stats_of_all(const evrec_broadcaster *b)
{
	evrec_stats stats;

	evrec_broadcaster_get_stats(b, &stats);
	return stats;
}

/* A watch keeps the last counters of its sink, and the broadcaster their sums. */
static void test_stopped_sinks_keep_only_counters(void **state)
{
	struct released_fixture *f = *state;
	size_t before = 0;

	for (unsigned i = 1; i <= 100; i++) {
		evrec_watch *watch = start(f);

		record(f, 1000);
		checked_poll(f->b);
		evrec_watch_stop(watch);
		checked_poll(f->b);
		assert_int_equal(f->freed, i);
		assert_int_equal(stats_of(watch).created, 1000);
		assert_int_equal(stats_of(watch).correlator.observed, 1000);
		assert_int_equal(stats_of(watch).number, i);
		assert_int_equal(stats_of_all(f->b).ended.created, 1000 * i);
		assert_int_equal(stats_of_all(f->b).ended.correlator.why[EVREC_NEW], 1000 * i);
		assert_int_equal(stats_of_all(f->b).ended.correlator.observed, 0);
		assert_int_equal(stats_of_all(f->b).sinks, 0);
		evrec_watch_free(watch);
		if (i == 1) {
			before = f->allocator.live;
		}
	}
	assert_int_equal(f->allocator.live, before);
	assert_int_equal(checked_shutdown(f->b, 0), 0);
	assert_int_equal(stats_of_all(f->b).ended.created, 100 * 1000);
}

/* Series leave nothing when they are finished, and their sinks nothing but counters. */
static void test_series_are_forgotten(void **state)
{
	struct released_fixture *f = *state;
	evrec_sink_options options;
	size_t before = 0;

	evrec_sink_options_init(&options);
	options.api = EVREC_SINK_EVENTS_V1;
	for (unsigned i = 1; i <= 20; i++) {
		evrec_watch *watch = start_with(f, &options);

		for (unsigned turn = 0; turn < 3; turn++) {
			record(f, 1000);
			checked_poll(f->b);
		}
		assert_int_equal(stats_of(watch).counted, 1000);
		evrec_clock_set(f->clock, evrec_clock_now(f->clock) + 720 * EVREC_SECOND);
		checked_poll(f->b);
		assert_int_equal(stats_of(watch).series.series, 0);
		assert_int_equal(stats_of(watch).series.finished, 1000);
		assert_int_equal(stats_of(watch).counted, 0);
		evrec_watch_stop(watch);
		checked_poll(f->b);
		checked_poll(f->b);
		assert_int_equal(stats_of_all(f->b).ended.series.finished, 1000 * i);
		assert_int_equal(stats_of_all(f->b).sinks, 0);
		evrec_watch_free(watch);
		if (i == 1) {
			before = f->allocator.live;
		}
	}
	assert_int_equal(f->allocator.live, before);
}

/* A stopped sink leaves only its part of the sums. */
static void test_sinks_one_after_the_other_take_constant_memory(void **state)
{
	struct released_fixture *f = *state;
	size_t before;

	record(f, 1);
	before = f->allocator.live;
	for (unsigned i = 1; i <= 1000; i++) {
		evrec_watch *watch = start(f);

		record(f, 1);
		evrec_watch_stop(watch);
		evrec_watch_free(watch);
		checked_poll(f->b);
		assert_int_equal(f->freed, i);
		assert_int_equal(f->b->hub->watches.len + f->b->hub->sinks.len, 0);
	}
	record(f, 1);
	assert_int_equal(f->allocator.live, before);
	assert_int_equal(f->writes, 1000);
}

/* Starts a thousand sinks and stops them while each has an event to write, which fails first. */
static void run_a_thousand_sinks(struct released_fixture *f)
{
	evrec_watch *watches[1000];

	f->status = 503;
	for (unsigned i = 0; i < 1000; i++) {
		watches[i] = start(f);
	}
	record(f, 1);
	checked_poll(f->b);
	for (unsigned i = 0; i < 1000; i++) {
		evrec_watch_stop(watches[i]);
	}
	record(f, 1);
	assert_int_equal(f->b->hub->watches.len, 0);
	assert_int_equal(f->b->hub->sinks.len, 1000);
	f->status = 201;
	evrec_clock_set(f->clock, evrec_clock_now(f->clock) + 100 * EVREC_SECOND);
	checked_poll(f->b);
	assert_int_equal(f->b->hub->sinks.len, 0);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(stats_of(watches[i]).received, 1);
		evrec_watch_free(watches[i]);
	}
}

/* A recording call visits no stopped sink, even if the sink still has something to write. */
static void test_stopped_sinks_are_not_visited(void **state)
{
	struct released_fixture *f = *state;
	size_t before;

	run_a_thousand_sinks(f);
	before = f->allocator.live;
	run_a_thousand_sinks(f);
	assert_int_equal(f->allocator.live, before);
	assert_int_equal(stats_of_all(f->b).ended.created, 2000);
	assert_int_equal(stats_of_all(f->b).ended.retries, 2000);
}

/* A sink keeps its number while others go, and no other sink ever gets the number of one that is gone. */
static void test_numbers_are_never_reused(void **state)
{
	struct released_fixture *f = *state;
	evrec_watch *one = start(f), *two = start(f), *three;
	size_t number = 1;
	evrec_sink_stats s;

	record(f, 1);
	evrec_watch_stop(one);
	checked_poll(f->b);
	assert_true(evrec_broadcaster_next_sink(f->b, &number));
	assert_int_equal(number, 2);
	assert_false(evrec_broadcaster_get_sink_stats(f->b, 1, &s));
	assert_true(evrec_broadcaster_get_sink_stats(f->b, 2, &s));
	assert_int_equal(s.created, 1);
	three = start(f);
	assert_int_equal(stats_of(three).number, 3);
	evrec_watch_stop(two);
	evrec_watch_stop(three);
	checked_poll(f->b);
	assert_false(evrec_broadcaster_next_sink(f->b, &number));
	assert_int_equal(number, 2);
	evrec_watch_free(one);
	evrec_watch_free(two);
	evrec_watch_free(three);
	one = start(f);
	assert_int_equal(stats_of(one).number, 4);
	evrec_watch_free(one);
}

/* The watch of a freed sink outlives the broadcaster, and keeps its counters. */
static void test_watch_of_a_freed_sink_keeps_counters(void **state)
{
	struct released_fixture *f = *state;
	evrec_watch *watch = start(f);

	record(f, 1);
	evrec_watch_stop(watch);
	checked_poll(f->b);
	evrec_watch_stop(watch);
	evrec_broadcaster_free(f->b);
	f->b = NULL;
	assert_int_equal(stats_of(watch).created, 1);
	evrec_watch_free(watch);
}

/* A stopped sink is freed once all its events are written or dropped. */
static void test_stopped_sink_writes_before_it_is_freed(void **state)
{
	struct released_fixture *f = *state;
	evrec_watch *watch = start(f), *other = start(f);

	f->status = 503;
	record(f, 3);
	checked_poll(f->b);
	evrec_watch_stop(watch);
	evrec_watch_stop(other);
	checked_poll(f->b);
	assert_int_equal(f->freed, 0);
	assert_int_equal(stats_of(watch).pending, 3);
	f->status = 422;
	evrec_clock_set(f->clock, T0 + 100 * EVREC_SECOND);
	checked_poll(f->b);
	assert_int_equal(f->drops, 6);
	assert_int_equal(f->freed, 2);
	assert_int_equal(stats_of(watch).dropped[EVREC_CAUSE_REJECTED], 3);
	evrec_broadcaster_explain(f->b, 1, NULL, explain_one, f);
	assert_int_equal(f->explained, 0);
	/* The freed sink receives no event any more. */
	record(f, 1);
	checked_poll(f->b);
	assert_int_equal(checked_flush(f->b, SOON), EVREC_ELOST);
	assert_int_equal(stats_of(watch).received, 3);
	assert_int_equal(checked_shutdown(f->b, SOON), 0);
	evrec_watch_free(watch);
	evrec_watch_free(other);
}

/* In a forked child the counters of the stopped sink are 0. */
static void test_child_has_no_counters_of_stopped_sinks(void **state)
{
	struct released_fixture *f = *state;
	evrec_watch *watch = start(f);
	evrec_sink_stats s = { .received = 1 };
	pid_t child;

	record(f, 1);
	checked_poll(f->b);
	evrec_watch_stop(watch);
	checked_poll(f->b);
	child = fork();
	if (child == 0) {
		bool zero = stats_of_all(f->b).ended.received == 0;

		evrec_broadcaster_poll(f->b);
		zero = zero && stats_of_all(f->b).ended.received == 0;
		_exit(zero && evrec_watch_get_sink_stats(watch, &s) && s.received == 0 && strcmp(s.name, "custom") == 0
		              ? 0
		              : 1);
	}
	assert_int_equal(unit_wait(child), 0);
	assert_int_equal(stats_of(watch).received, 1);
	assert_int_equal(stats_of_all(f->b).ended.received, 1);
	evrec_watch_free(watch);
}

/* The thread of a stopped sink ends before the broadcaster is freed. */
static void test_thread_of_a_stopped_sink_ends(void **state)
{
	const int64_t deadline = evrec_clock_now(evrec_clock_real()) + 20 * EVREC_SECOND;
	evrec_broadcaster *b = evrec_broadcaster_new(NULL, NULL);
	struct released_fixture f = {
		.b = b, .r = evrec_recorder_new(b, &(evrec_recorder_options){ .component = EVREC_STR("test") }, NULL)
	};

	(void)state;
	for (unsigned i = 1; i <= 20; i++) {
		evrec_sink *sink = evrec_sink_file(EVREC_STR("/dev/null"), NULL, NULL);
		evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, NULL);

		evrec_sink_release(sink);
		record(&f, 10);
		evrec_watch_stop(watch);
		while (stats_of(watch).pending != 0) {
			assert_true(evrec_clock_now(evrec_clock_real()) < deadline);
			checked_poll(b);
		}
		checked_poll(b);
		assert_int_equal(stats_of(watch).created, 10);
		evrec_watch_free(watch);
	}
	assert_int_equal(checked_shutdown(b, SOON), 0);
	evrec_recorder_free(f.r);
	evrec_broadcaster_free(b);
}

/* Ten messages of a kilobyte for each of a thousand objects, then short ones. */
static void test_memory_of_long_messages_is_freed(void **state)
{
	struct released_fixture *f = *state;
	char name[32], note[1000];
	evrec_correlator_options options;
	evrec_correlator *c;
	evrec_correlation result;
	evrec_fields event;
	size_t before, live[2] = { 0, 0 };

	memset(note, 'x', sizeof(note));
	evrec_correlator_options_init(&options);
	options.lru_cache_size = 1000;
	before = f->allocator.live;
	c = evrec_correlator_new(&options, NULL);
	for (unsigned i = 0; i < 20000; i++) {
		evrec_fields_init(&event);
		event.name = EVREC_STR("e");
		event.regarding.name =
			(evrec_str){ name, (size_t)snprintf(name, sizeof(name), "web-%u", i < 10000 ? i / 10 : i) };
		event.note = (evrec_str){ note, i < 10000 ? sizeof(note) : 20 };
		note[0] = (char)('0' + i % 10);
		assert_int_equal(evrec_correlator_correlate(c, &event, T0, &result), 0);
		live[i < 10000 ? 0 : 1] = f->allocator.live - before;
	}
	print_message("%zu bytes, and then %zu\n", live[0], live[1]);
	assert_true(live[0] > 10 * 1000 * 1000);
	assert_true(live[1] < 1000 * 1000);
	evrec_correlator_free(c);
}

#define RELEASED_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELEASED_TEST(test_stopped_sinks_keep_only_counters),
		RELEASED_TEST(test_series_are_forgotten),
		RELEASED_TEST(test_sinks_one_after_the_other_take_constant_memory),
		RELEASED_TEST(test_stopped_sinks_are_not_visited),
		RELEASED_TEST(test_numbers_are_never_reused),
		RELEASED_TEST(test_watch_of_a_freed_sink_keeps_counters),
		RELEASED_TEST(test_stopped_sink_writes_before_it_is_freed),
		RELEASED_TEST(test_child_has_no_counters_of_stopped_sinks),
		cmocka_unit_test(test_thread_of_a_stopped_sink_ends),
		RELEASED_TEST(test_memory_of_long_messages_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is given back as it is needed no more: a stopped sink's memory, and that of long messages. */
#include "account.h"
#include "books.h"

#include <unistd.h>

struct fixture {
	struct account account;
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_recorder *r;
	int status; /* of every answer */
	unsigned writes, drops, freed, explained;
};

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct fixture *f = ctx;

	(void)event;
	f->writes++;
	answer->status = f->status;
}

static void sink_free(void *ctx)
{
	((struct fixture *)ctx)->freed++;
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	assert_true(event != NULL && why != NULL);
	((struct fixture *)ctx)->drops++;
}

static bool explain_one(void *ctx, const evrec_suppressed *what)
{
	assert_non_null(what);
	((struct fixture *)ctx)->explained++;
	return true;
}

static int set_up(void **state)
{
	static struct fixture fixture;
	struct fixture *f = &fixture;
	evrec_broadcaster_options options;

	*f = (struct fixture){ .status = 201 };
	evrec_set_allocator(account_realloc, &f->account);
	f->clock = evrec_clock_fake(T0);
	evrec_broadcaster_options_init(&options);
	options.clock = f->clock;
	options.on_drop = on_drop;
	options.ctx = f;
	f->b = evrec_broadcaster_new(&options, NULL);
	f->r = evrec_recorder_new(f->b, EVREC_STR("test"), EVREC_STR("node-1"), NULL);
	*state = f;
	return f->r == NULL;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	evrec_recorder_free(f->r);
	evrec_broadcaster_free(f->b);
	evrec_clock_release(f->clock);
	evrec_set_allocator(NULL, NULL);
	return f->account.live != 0;
}

static evrec_watch *start(struct fixture *f)
{
	static const evrec_sink_ops ops = { .create = create, .free = sink_free };
	evrec_sink *sink = evrec_sink_new(&ops, f, NULL, NULL);
	evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(f->b, sink, NULL, NULL);

	assert_non_null(watch);
	evrec_sink_release(sink);
	return watch;
}

static void record(struct fixture *f, unsigned n)
{
	char name[32];
	evrec_reference object = { .kind = EVREC_STR("Pod") };
	evrec_emit what = { .regarding = &object, .note = EVREC_STR("m"), .timestamp = EVREC_UNSET };

	what.type = EVREC_STR("Normal");
	what.reason = EVREC_STR("R");
	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "web-%u", i);
		object.name = str_from(name);
		assert_int_equal(emit(f->r, f->b, &what), 0);
	}
}

static evrec_sink_stats stats_of(const evrec_watch *watch)
{
	evrec_sink_stats stats;

	assert_true(evrec_watch_get_sink_stats(watch, &stats));
	assert_sink_books(&stats);
	return stats;
}

/* Sinks that come and go: of each, its stats are left. */
static void test_stopped_sinks(void **state)
{
	struct fixture *f = *state;
	size_t before = 0;

	for (unsigned i = 1; i <= 100; i++) {
		evrec_watch *watch = start(f);

		record(f, 1000);
		poll_once(f->b);
		evrec_watch_stop(watch);
		poll_once(f->b);
		assert_int_equal(f->freed, i);
		assert_int_equal(stats_of(watch).created, 1000);
		assert_int_equal(stats_of(watch).correlator.observed, 1000);
		evrec_watch_free(watch);
		if (i == 1) {
			before = f->account.live;
		}
	}
	assert_true(f->account.live - before < 99 * 1500);
	assert_int_equal(evrec_broadcaster_shutdown(f->b, 0), 0);
	assert_int_equal(check_books(f->b).created, 1000);
}

/* Not before all is written, or dropped, and told. */
static void test_what_waits_is_written_first(void **state)
{
	struct fixture *f = *state;
	evrec_watch *watch = start(f), *other = start(f);

	f->status = 503;
	record(f, 3);
	poll_once(f->b);
	evrec_watch_stop(watch);
	evrec_watch_stop(other);
	poll_once(f->b);
	assert_int_equal(f->freed, 0);
	assert_int_equal(stats_of(watch).pending, 3);
	f->status = 422;
	evrec_clock_set(f->clock, T0 + 100 * EVREC_SECOND);
	poll_once(f->b);
	assert_int_equal(f->drops, 6);
	assert_int_equal(f->freed, 2);
	assert_int_equal(stats_of(watch).dropped[EVREC_CAUSE_REJECTED], 3);
	evrec_broadcaster_explain(f->b, 0, NULL, explain_one, f);
	assert_int_equal(f->explained, 0);
	/* It hears of nothing any more, and is of no harm. */
	record(f, 1);
	poll_once(f->b);
	assert_int_equal(flush(f->b, EVREC_SECOND), 0);
	assert_int_equal(stats_of(watch).received, 3);
	assert_int_equal(shut_down(f->b, EVREC_SECOND), 0);
	evrec_watch_free(watch);
	evrec_watch_free(other);
}

/* In a child that is forked afterwards it has not even stats. */
static void test_a_stopped_sink_and_a_fork(void **state)
{
	struct fixture *f = *state;
	evrec_watch *watch = start(f);
	evrec_sink_stats s = { .received = 1 };
	pid_t child;

	record(f, 1);
	poll_once(f->b);
	evrec_watch_stop(watch);
	poll_once(f->b);
	child = fork();
	if (child == 0) {
		evrec_broadcaster_poll(f->b);
		_exit(evrec_watch_get_sink_stats(watch, &s) && s.received == 0 && strcmp(s.name, "custom") == 0 ? 0
		                                                                                                : 1);
	}
	assert_int_equal(unit_wait(child), 0);
	assert_int_equal(stats_of(watch).received, 1);
	evrec_watch_free(watch);
}

/* One with a thread, which ends first: none is left when the broadcaster is gone. */
static void test_a_stopped_sink_with_a_thread(void **state)
{
	const int64_t deadline = evrec_clock_now(evrec_clock_real()) + 20 * EVREC_SECOND;
	evrec_broadcaster *b = evrec_broadcaster_new(NULL, NULL);
	struct fixture f = { .b = b, .r = evrec_recorder_new(b, EVREC_STR("test"), EVREC_STR(""), NULL) };

	(void)state;
	for (unsigned i = 1; i <= 20; i++) {
		evrec_sink *sink = evrec_sink_file(EVREC_STR("/dev/null"), NULL, NULL);
		evrec_watch *watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, NULL);

		evrec_sink_release(sink);
		record(&f, 10);
		evrec_watch_stop(watch);
		while (stats_of(watch).pending != 0) {
			assert_true(evrec_clock_now(evrec_clock_real()) < deadline);
			poll_once(b);
		}
		poll_once(b);
		assert_int_equal(stats_of(watch).created, 10);
		evrec_watch_free(watch);
	}
	assert_int_equal(shut_down(b, EVREC_SECOND), 0);
	evrec_recorder_free(f.r);
	evrec_broadcaster_free(b);
}

/* Ten messages of a kilobyte for each of a thousand objects, once; then short ones. */
static void test_long_messages(void **state)
{
	struct fixture *f = *state;
	char name[32], note[1000];
	evrec_correlator_options options;
	evrec_correlator *c;
	evrec_correlation result;
	evrec_fields event;
	size_t before, live[2] = { 0, 0 };

	memset(note, 'x', sizeof(note));
	evrec_correlator_options_init(&options);
	options.lru_cache_size = 1000;
	before = f->account.live;
	c = evrec_correlator_new(&options, NULL);
	for (unsigned i = 0; i < 20000; i++) {
		evrec_fields_init(&event);
		event.name = EVREC_STR("e");
		event.regarding.name =
			(evrec_str){ name, (size_t)snprintf(name, sizeof(name), "web-%u", i < 10000 ? i / 10 : i) };
		event.note = (evrec_str){ note, i < 10000 ? sizeof(note) : 20 };
		note[0] = (char)('0' + i % 10);
		assert_int_equal(evrec_correlator_correlate(c, &event, T0, &result), 0);
		live[i < 10000 ? 0 : 1] = f->account.live - before;
	}
	print_message("%zu bytes, and then %zu\n", live[0], live[1]);
	assert_true(live[0] > 10 * 1000 * 1000);
	assert_true(live[1] < 1000 * 1000);
	evrec_correlator_free(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_stopped_sinks),
		TEST(test_what_waits_is_written_first),
		TEST(test_a_stopped_sink_and_a_fork),
		cmocka_unit_test(test_a_stopped_sink_with_a_thread),
		TEST(test_long_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Property test of the counters: they are consistent after every step of a random run, with sinks that answer anything, full
 * outboxes, failing allocations, a clock that jumps, callbacks that record and stop watches, and shutdown.
 */
#include "stats_invariants.h"

#include "sink/sink.h"

#define SINKS 2

struct chaos {
	uint64_t random;
	evrec_clock *clock;
	int64_t now;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watches[SINKS];
	struct unit_allocator memory;
	uint64_t sums[4]; /* of all sinks at the last step: created, patched, received, dropped */
	bool restarts;    /* sinks are stopped and started, so that none receives all events */
	bool in_callback;
};

static void add_sums(uint64_t sums[4], const evrec_sink_stats *s)
{
	sums[0] += s->created;
	sums[1] += s->patched;
	sums[2] += s->received;
	sums[3] += stats_dropped(s->dropped);
}

/* Checks the equations, and that no sum decreases, also when a stopped sink is freed. */
static void check_stats(struct chaos *c)
{
	uint64_t sums[4] = { 0 };
	evrec_sink_stats s;
	evrec_stats all;

	(void)stats_check_equations(c->b);
	evrec_broadcaster_get_stats(c->b, &all);
	add_sums(sums, &all.ended);
	for (size_t number = 1; evrec_broadcaster_next_sink(c->b, &number); number++) {
		assert_true(evrec_broadcaster_get_sink_stats(c->b, number, &s));
		add_sums(sums, &s);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_true(sums[i] >= c->sums[i]);
		c->sums[i] = sums[i];
	}
}

static unsigned below(struct chaos *c, unsigned n)
{
	return (unsigned)(unit_random(&c->random) % n);
}

static bool one_in(struct chaos *c, unsigned n)
{
	return below(c, n) == 0;
}

static void record(struct chaos *c)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" }, *const reasons[] = { "Started", "Failed", "" };
	static const char *const types[] = { "Normal", "Normal", "Normal", "Warning", "Error" };
	char note[32];
	const evrec_reference object = { .kind = EVREC_STR("Pod"), .name = str_from(names[below(c, 5)]) };
	evrec_emit emit = { .regarding = one_in(c, 50) ? NULL : &object, .timestamp = EVREC_UNSET };

	emit.type = str_from(types[below(c, 5)]);
	emit.reason = str_from(reasons[below(c, 10) == 0 ? 2 : below(c, 2)]);
	(void)snprintf(note, sizeof(note), "%s%u", one_in(c, 5) ? "\xff" : "", below(c, one_in(c, 3) ? 1000 : 3));
	emit.note = str_from(note);
	c->memory.fail_at = one_in(c, 10) ? c->memory.calls + 1 + below(c, 6) : 0;
	if (one_in(c, 60)) {
		(void)evrec_recorder_refuse(c->r, "no", NULL);
	} else {
		(void)evrec_recorder_emit(c->r, &emit, NULL);
	}
	c->memory.fail_at = 0;
	check_stats(c);
}

/* All that a callback may do, at random. */
static void act_in_callback(struct chaos *c)
{
	if (c->in_callback) {
		return;
	}
	c->in_callback = true;
	check_stats(c);
	if (one_in(c, 4)) {
		record(c);
	}
	if (c->restarts && one_in(c, 20)) {
		evrec_watch_stop(c->watches[below(c, SINKS)]);
	}
	evrec_broadcaster_poll(c->b);
	assert_int_equal(evrec_broadcaster_flush(c->b, 0, NULL), EVREC_EINVALID);
	check_stats(c);
	c->in_callback = false;
}

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	static const int statuses[] = { 201, 201, 201, 0, 401, 403, 404, 409, 422, 429, 500, 503 };
	struct chaos *c = ctx;

	(void)event;
	act_in_callback(c);
	answer->status = statuses[below(c, sizeof(statuses) / sizeof(statuses[0]))];
	answer->unsent = answer->status == 0 && one_in(c, 2);
	answer->retry_after = one_in(c, 3) ? (int64_t)below(c, 10) * EVREC_SECOND : 0;
	if (answer->status == 201 && one_in(c, 4)) {
		(void)snprintf(answer->name, sizeof(answer->name), "called-%u", below(c, 100));
	}
}

static void patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	assert_true(patch.len > 0);
	create(ctx, event, answer);
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	assert_true(event != NULL && why != NULL);
	act_in_callback(ctx);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	assert_true(message != NULL && name != NULL);
	act_in_callback(ctx);
}

static void on_event(void *ctx, evrec_event *event)
{
	assert_non_null(event);
	act_in_callback(ctx);
}

/* Returns no key: the default is used. */
static bool no_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	assert_true(event != NULL && key != NULL);
	act_in_callback(ctx);
	return false;
}

/* Or at least writes in the new style. */
static void combine_by_series(struct chaos *c, evrec_sink_options *options)
{
	options->api = one_in(c, 4) ? EVREC_SINK_CORE_V1 : EVREC_SINK_EVENTS_V1;
	options->correlate = one_in(c, 4) ? EVREC_CORRELATE_RECORD : EVREC_CORRELATE_SERIES;
	options->series.max_series = 1 + below(c, 8);
	options->series.note_in_key = one_in(c, 3);
	options->series.rate_limit = one_in(c, 3);
	options->series.refresh_interval = (int64_t)(1 + below(c, 1800)) * EVREC_SECOND;
	options->series.finish_time = (int64_t)(1 + below(c, 360)) * EVREC_SECOND;
}

static void start_sink(struct chaos *c, int i)
{
	static const evrec_sink_ops ops = { .create = create, .patch = patch };
	evrec_correlator_options correlator;
	evrec_sink_options common;
	evrec_sink *sink;

	evrec_sink_options_init(&common);
	common.limits.max_pending = 1 + below(c, 8);
	common.limits.max_age = (int64_t)below(c, 100) * EVREC_SECOND;
	common.limits.max_tries = below(c, 4);
	common.limits.full = one_in(c, 2) ? EVREC_DROP_OLDEST : EVREC_DROP_NEWEST;
	if (one_in(c, 2)) {
		combine_by_series(c, &common);
	}
	sink = evrec_sink_new(&ops, c, &common, NULL);
	sink->min_interval = one_in(c, 3) ? (int64_t)(1 + below(c, 100)) * EVREC_SECOND : 0;
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1 + below(c, 30);
	correlator.qps = below(c, 3) / 10.0;
	correlator.max_events = 1 + below(c, 5);
	correlator.lru_cache_size = 1 + below(c, 8);
	correlator.spam_key_func = one_in(c, 3) ? no_key : NULL;
	correlator.ctx = c;
	c->watches[i] = evrec_broadcaster_start_recording_to_sink(c->b, sink, &correlator, NULL);
	assert_non_null(c->watches[i]);
	evrec_sink_release(sink);
}

static void restart_sink(struct chaos *c)
{
	const int i = (int)below(c, SINKS);

	evrec_watch_stop(c->watches[i]);
	evrec_watch_free(c->watches[i]);
	start_sink(c, i);
}

static void open_chaos(struct chaos *c, uint64_t seed)
{
	evrec_broadcaster_options options;

	*c = (struct chaos){ .random = seed, .clock = evrec_clock_fake(T0), .now = T0, .restarts = seed % 2 == 0 };
	evrec_set_allocator(unit_realloc, &c->memory);
	evrec_broadcaster_options_init(&options);
	options.clock = c->clock;
	options.on_drop = one_in(c, 2) ? on_drop : NULL;
	options.on_error = one_in(c, 2) ? on_error : NULL;
	options.ctx = c;
	c->b = evrec_broadcaster_new(&options, NULL);
	/* Without a name each event is unfit for the new style. */
	c->r = evrec_recorder_new(
		c->b,
		&(evrec_recorder_options){ .component = one_in(c, 8) ? (evrec_str){ NULL, 0 } : EVREC_STR("chaos") },
		NULL);
	for (int i = 0; i < SINKS; i++) {
		start_sink(c, i);
	}
	if (one_in(c, 2)) {
		evrec_watch_free(evrec_broadcaster_start_event_watcher(c->b, on_event, c, NULL));
	}
}

static void step(struct chaos *c)
{
	static const int64_t jumps[] = { 1, EVREC_SECOND, 60 * EVREC_SECOND, -3600 * EVREC_SECOND,
		                         7200 * EVREC_SECOND };

	if (c->restarts && one_in(c, 10)) {
		restart_sink(c);
	}
	switch (below(c, 10)) {
	case 0:
		c->now += jumps[below(c, 5)];
		evrec_clock_set(c->clock, c->now);
		break;
	case 1:
	case 2:
		evrec_broadcaster_poll(c->b);
		break;
	case 3:
		(void)evrec_broadcaster_flush(c->b, 0, NULL);
		break;
	default:
		record(c);
		break;
	}
}

static void close_chaos(struct chaos *c)
{
	evrec_broadcaster_free(c->b);
	evrec_recorder_free(c->r);
	for (int i = 0; i < SINKS; i++) {
		evrec_watch_free(c->watches[i]);
	}
	evrec_clock_release(c->clock);
	evrec_set_allocator(NULL, NULL);
}

static void test_counters_are_consistent_after_each_step(void **state)
{
	uint64_t seed = unit_seed();
	struct chaos c;
	evrec_sink_stats s;
	evrec_stats all;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		open_chaos(&c, seed + round);
		for (unsigned i = 0; i < 150; i++) {
			step(&c);
			check_stats(&c);
			if (!c.restarts) {
				stats_check_end_to_end(c.b);
			}
		}
		evrec_watch_stop(c.watches[0]);
		record(&c);
		(void)evrec_broadcaster_shutdown(c.b, 0, NULL);
		check_stats(&c);
		record(&c);
		/* After the shutdown no event is queued or pending. */
		evrec_broadcaster_get_stats(c.b, &all);
		assert_int_equal(all.queued, 0);
		for (size_t i = 1; evrec_broadcaster_next_sink(c.b, &i); i++) {
			assert_true(evrec_broadcaster_get_sink_stats(c.b, i, &s));
			assert_int_equal(s.pending + s.counted, 0);
		}
		close_chaos(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_counters_are_consistent_after_each_step) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

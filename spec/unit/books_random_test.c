/*
 * Whatever a broadcaster and its sinks go through, the books are right after every step: sinks that answer anything,
 * full outboxes, no memory, clocks that jump, callbacks that record and stop watches, the end.
 */
#include "books.h"

#define SINKS 2

struct chaos {
	uint64_t random;
	evrec_clock *clock;
	int64_t now;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watches[SINKS];
	struct unit_memory memory;
	bool inside; /* a callback */
};

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
	evrec_emit what = { .regarding = one_in(c, 50) ? NULL : &object, .timestamp = EVREC_UNSET };

	what.type = str_from(types[below(c, 5)]);
	what.reason = str_from(reasons[below(c, 10) == 0 ? 2 : below(c, 2)]);
	(void)snprintf(note, sizeof(note), "%s%u", one_in(c, 5) ? "\xff" : "", below(c, one_in(c, 3) ? 1000 : 3));
	what.note = str_from(note);
	c->memory.fail_at = one_in(c, 10) ? c->memory.calls + 1 + below(c, 6) : 0;
	if (one_in(c, 60)) {
		(void)evrec_recorder_refuse(c->r, "no", NULL);
	} else {
		(void)evrec_recorder_emit(c->r, &what, NULL);
	}
	c->memory.fail_at = 0;
	(void)check_books(c->b);
}

/* What a callback may do. */
static void meddle(struct chaos *c)
{
	if (c->inside) {
		return;
	}
	c->inside = true;
	(void)check_books(c->b);
	if (one_in(c, 4)) {
		record(c);
	}
	evrec_broadcaster_poll(c->b);
	assert_int_equal(evrec_broadcaster_flush(c->b, 0), EVREC_EINVALID);
	(void)check_books(c->b);
	c->inside = false;
}

static void write_it(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	static const int statuses[] = { 201, 201, 201, 0, 401, 403, 404, 409, 422, 429, 500, 503 };
	struct chaos *c = ctx;

	(void)event;
	meddle(c);
	answer->status = statuses[below(c, sizeof(statuses) / sizeof(statuses[0]))];
	answer->unsent = answer->status == 0 && one_in(c, 2);
	answer->retry_after = one_in(c, 3) ? (int64_t)below(c, 10) * EVREC_SECOND : 0;
	if (answer->status == 201 && one_in(c, 4)) {
		(void)snprintf(answer->name, sizeof(answer->name), "called-%u", below(c, 100));
	}
}

static void patch_it(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	assert_true(patch.len > 0);
	write_it(ctx, event, answer);
}

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	assert_true(event != NULL && why != NULL);
	meddle(ctx);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	assert_true(message != NULL && name != NULL);
	meddle(ctx);
}

static void see(void *ctx, evrec_event *event)
{
	assert_non_null(event);
	meddle(ctx);
}

/* The default takes its place. */
static bool no_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	assert_true(event != NULL && key != NULL);
	meddle(ctx);
	return false;
}

static void open_chaos(struct chaos *c, uint64_t seed)
{
	static const evrec_sink_ops ops = { .create = write_it, .patch = patch_it };
	evrec_correlator_options correlator;
	evrec_broadcaster_options options;
	evrec_limits limits;

	*c = (struct chaos){ .random = seed, .clock = evrec_clock_fake(T0), .now = T0 };
	evrec_set_allocator(unit_realloc, &c->memory);
	evrec_broadcaster_options_init(&options);
	options.clock = c->clock;
	options.on_drop = one_in(c, 2) ? on_drop : NULL;
	options.on_error = one_in(c, 2) ? on_error : NULL;
	options.ctx = c;
	c->b = evrec_broadcaster_new(&options, NULL);
	c->r = evrec_recorder_new(c->b, EVREC_STR("chaos"), EVREC_STR(""), NULL);
	for (int i = 0; i < SINKS; i++) {
		evrec_sink *sink;

		evrec_limits_init(&limits);
		limits.max_pending = 1 + below(c, 8);
		limits.max_age = (int64_t)below(c, 100) * EVREC_SECOND;
		limits.max_tries = below(c, 4);
		limits.full = one_in(c, 2) ? EVREC_DROP_OLDEST : EVREC_DROP_NEWEST;
		sink = evrec_sink_new(&ops, c, &limits, NULL);
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
	if (one_in(c, 2)) {
		evrec_watch_free(evrec_broadcaster_start_event_watcher(c->b, see, c, NULL));
	}
}

static void step(struct chaos *c)
{
	static const int64_t jumps[] = { 1, EVREC_SECOND, 60 * EVREC_SECOND, -3600 * EVREC_SECOND,
		                         7200 * EVREC_SECOND };

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
		(void)evrec_broadcaster_flush(c->b, 0);
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

static void test_whatever_happens(void **state)
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
			check_whole_way(c.b);
		}
		evrec_watch_stop(c.watches[0]);
		record(&c);
		(void)evrec_broadcaster_shutdown(c.b, 0);
		(void)check_books(c.b);
		record(&c);
		/* At the end all is in a place where it stays. */
		evrec_broadcaster_get_stats(c.b, &all);
		assert_int_equal(all.queued, 0);
		for (size_t i = 0; evrec_broadcaster_get_sink_stats(c.b, i, &s); i++) {
			assert_int_equal(s.pending, 0);
		}
		close_chaos(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_whatever_happens) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

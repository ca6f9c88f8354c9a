#include "correlations.h"

static void test_duplicates_are_counted(void **state)
{
	evrec_correlator *c = correlator_of(NULL);
	evrec_correlation r = correlate(c, "a", "Started", "m", T0);
	char name[64], *patch;

	(void)state;
	assert_int_equal(r.why, EVREC_NEW);
	assert_false(r.patch || r.skip);
	assert_int_equal(r.event.count, 1);
	(void)snprintf(name, sizeof(name), "%.*s", (int)r.event.name.len, r.event.name.data);
	r = correlate(c, "a", "Started", "m", T0 + 60 * EVREC_SECOND);
	assert_int_equal(r.why, EVREC_DUPLICATE);
	assert_true(r.patch);
	assert_int_equal(r.event.count, 2);
	assert_int_equal(r.event.first, T0);
	assert_true(str_eq(r.event.name, str_from(name)));
	patch = evrec_fields_patch(&r.event, NULL);
	assert_string_equal(patch, "{\"count\":2,\"lastTimestamp\":\"2023-11-14T22:14:20Z\",\"message\":\"m\"}");
	evrec_free(patch);
	r = correlate(c, "a", "Started", "other", T0);
	assert_int_equal(r.why, EVREC_NEW);
	evrec_correlator_free(c);
}

/* The 9th, 10th and 11th distinct message, and the one that was just forgotten. */
static void test_tenth_message_is_an_aggregate(void **state)
{
	evrec_correlator *c = correlator_of(NULL);
	evrec_correlation r;
	char message[16];
	int i;

	(void)state;
	for (i = 1; i <= 9; i++) {
		(void)snprintf(message, sizeof(message), "m%d", i);
		assert_int_equal(correlate(c, "a", "R", message, T0 + i).why, EVREC_NEW);
	}
	r = correlate(c, "a", "R", "m10", T0 + 10);
	assert_int_equal(r.why, EVREC_AGGREGATED);
	assert_false(r.patch);
	assert_str(r.event.note, "(combined from similar events): m10");
	assert_int_equal(r.event.count, 1);
	assert_int_equal(r.event.first, T0 + 10);
	assert_str(r.event.controller, "test");
	r = correlate(c, "a", "R", "m11", T0 + 11);
	assert_int_equal(r.why, EVREC_AGGREGATED);
	assert_true(r.patch);
	assert_int_equal(r.event.count, 2);
	assert_int_equal(r.event.first, T0 + 10);
	assert_int_equal(r.event.last, T0 + 11);
	assert_str(r.event.note, "(combined from similar events): m11");
	/* m11 is among the nine that are remembered, so it passes as itself; m1, the oldest, is not. */
	assert_int_equal(correlate(c, "a", "R", "m11", T0 + 12).why, EVREC_NEW);
	assert_int_equal(correlate(c, "a", "R", "m1", T0 + 13).why, EVREC_AGGREGATED);
	/* Another reason is not similar. */
	assert_int_equal(correlate(c, "a", "Q", "m12", T0 + 14).why, EVREC_NEW);
	evrec_correlator_free(c);
}

static void test_interval(void **state)
{
	int64_t waits[] = { 600 * EVREC_SECOND, 600 * EVREC_SECOND + 1, 601 * EVREC_SECOND };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		evrec_correlator *c = correlator_of(NULL);
		char message[16];
		int m;

		for (m = 1; m <= 9; m++) {
			(void)snprintf(message, sizeof(message), "m%d", m);
			(void)correlate(c, "a", "R", message, T0);
		}
		assert_int_equal(correlate(c, "a", "R", "m10", T0 + waits[i]).why,
		                 i == 0 ? EVREC_AGGREGATED : EVREC_NEW);
		evrec_correlator_free(c);
	}
}

/* The 25th, 26th and 27th event about one object, and the token that comes after 300 s. */
static void test_rate_limit(void **state)
{
	evrec_correlator *c = correlator_of(NULL);
	evrec_correlation r;
	int i;

	(void)state;
	for (i = 1; i <= 25; i++) {
		assert_false(correlate(c, "a", "R", "m", T0).skip);
	}
	for (; i <= 27; i++) {
		r = correlate(c, "a", "R", "m", T0);
		assert_true(r.skip);
		assert_false(r.patch);
		assert_int_equal(r.why, EVREC_RATE_LIMITED);
	}
	assert_false(correlate(c, "b", "R", "m", T0).skip); /* another object has its own */
	assert_true(correlate(c, "a", "R", "m", T0 + 299 * EVREC_SECOND).skip);
	r = correlate(c, "a", "R", "m", T0 + 300 * EVREC_SECOND);
	assert_false(r.skip);
	assert_int_equal(r.event.count, 29); /* the skipped ones were counted */
	assert_true(correlate(c, "a", "R", "m", T0 + 300 * EVREC_SECOND).skip);
	evrec_correlator_free(c);
}

/* The 4,096th key is still there, the 4,097th pushes the first out. */
static void test_cache_size(void **state)
{
	evrec_correlator_options options = unlimited();
	evrec_correlator *c = correlator_of(&options);
	evrec_correlator_stats stats;
	char object[16];
	int i;

	(void)state;
	for (i = 1; i <= 4096; i++) {
		(void)snprintf(object, sizeof(object), "o%d", i);
		assert_int_equal(correlate(c, object, "R", "m", T0).why, EVREC_NEW);
	}
	assert_int_equal(correlate(c, "o1", "R", "m", T0).why, EVREC_DUPLICATE); /* now o2 is the oldest */
	assert_int_equal(correlate(c, "o4097", "R", "m", T0).why, EVREC_NEW);
	assert_int_equal(correlate(c, "o1", "R", "m", T0).why, EVREC_DUPLICATE);
	assert_int_equal(correlate(c, "o2", "R", "m", T0).why, EVREC_NEW);
	evrec_correlator_get_stats(c, &stats);
	assert_int_equal(stats.observed, 4096);
	assert_int_equal(stats.aggregates, 4096);
	assert_int_equal(stats.rate_limits, 4096);
	assert_int_equal(stats.correlated, 4100);
	evrec_correlator_free(c);
}

static void test_eviction_gives_fresh_tokens(void **state)
{
	evrec_correlator_options options;
	evrec_correlator *c;

	(void)state;
	evrec_correlator_options_init(&options);
	options.lru_cache_size = 2;
	options.burst_size = 1;
	c = correlator_of(&options);
	assert_false(correlate(c, "a", "R", "m", T0).skip);
	assert_true(correlate(c, "a", "R", "m", T0).skip);
	(void)correlate(c, "b", "R", "m", T0);
	(void)correlate(c, "c", "R", "m", T0);
	assert_false(correlate(c, "a", "R", "m", T0).skip);
	evrec_correlator_free(c);
}

static void test_update_state(void **state)
{
	evrec_correlator *c = correlator_of(NULL);
	evrec_fields answer = event_of("a", "R", "m", T0);
	evrec_correlation r;

	(void)state;
	(void)correlate(c, "a", "R", "m", T0);
	(void)correlate(c, "a", "R", "m", T0);
	answer.name = EVREC_STR("renamed");
	answer.resource_version = EVREC_STR("42");
	assert_int_equal(evrec_correlator_update_state(c, &answer), 0);
	r = correlate(c, "a", "R", "m", T0);
	assert_str(r.event.name, "renamed");
	assert_str(r.event.resource_version, "42");
	assert_int_equal(r.event.count, 3); /* the late answer said 1 */
	evrec_correlator_answered(c, r.handle, EVREC_STR(""), EVREC_STR("43"));
	r = correlate(c, "a", "R", "m", T0);
	assert_str(r.event.name, "renamed");
	assert_str(r.event.resource_version, "43");
	evrec_correlator_free(c);
}

/* An aggregate's answer finds the aggregate, though its event key is another. */
static void test_update_state_of_an_aggregate(void **state)
{
	evrec_correlator_options options = unlimited();
	evrec_correlator_stats before, after;
	evrec_correlation r;
	evrec_correlator *c;
	evrec_event *answer;

	(void)state;
	options.max_events = 1;
	c = correlator_of(&options);
	r = correlate(c, "a", "R", "m1", T0);
	assert_int_equal(r.why, EVREC_AGGREGATED);
	r.event.resource_version = EVREC_STR("7");
	answer = evrec_event_new(&r.event);
	evrec_correlator_get_stats(c, &before);
	assert_int_equal(evrec_correlator_update_state(c, evrec_event_fields(answer)), 0);
	evrec_correlator_get_stats(c, &after);
	assert_int_equal(before.observed, after.observed);
	assert_str(correlate(c, "a", "R", "m2", T0).event.resource_version, "7");
	evrec_event_release(answer);
	evrec_correlator_free(c);
}

/* A message that looks like an aggregate's: the aggregate's answer is not taken for that event's. */
static void test_update_state_tells_names_apart(void **state)
{
	evrec_correlator_options options = unlimited();
	evrec_correlation r;
	evrec_correlator *c;
	evrec_event *answer;
	char name[64];

	(void)state;
	options.max_events = 2;
	c = correlator_of(&options);
	r = correlate(c, "a", "R", "(combined from similar events): m2", T0);
	(void)snprintf(name, sizeof(name), "%.*s", (int)r.event.name.len, r.event.name.data);
	r = correlate(c, "a", "R", "m2", T0);
	assert_int_equal(r.why, EVREC_AGGREGATED);
	answer = evrec_event_new(&r.event);
	assert_int_equal(evrec_correlator_update_state(c, evrec_event_fields(answer)), 0);
	evrec_event_release(answer);
	r = correlate(c, "a", "R", "(combined from similar events): m2", T0 + 700 * EVREC_SECOND);
	assert_true(r.patch);
	assert_true(str_eq(r.event.name, str_from(name)));
	evrec_correlator_free(c);
}

static void test_unknown_answers_are_filed(void **state)
{
	evrec_correlator *c = correlator_of(NULL);
	evrec_fields answer = event_of("a", "R", "m", T0);
	evrec_correlation r;

	(void)state;
	answer.name = EVREC_STR("from-before-a-restart");
	answer.count = 5;
	assert_int_equal(evrec_correlator_update_state(c, &answer), 0);
	r = correlate(c, "a", "R", "m", T0 + EVREC_SECOND);
	assert_true(r.patch);
	assert_int_equal(r.event.count, 6);
	assert_str(r.event.name, "from-before-a-restart");
	evrec_correlator_answered(c, r.handle + 1, EVREC_STR("x"), EVREC_STR("1")); /* no such entry */
	evrec_correlator_free(c);
}

static void run_some(evrec_correlator *c)
{
	evrec_correlation r;
	char message[16];
	int i;

	for (i = 0; i < 40; i++) {
		evrec_fields event = event_of(i % 3 == 0 ? "a" : "b", "R", message, T0 + i);

		(void)snprintf(message, sizeof(message), "m%d", i);
		event.note = str_from(message);
		(void)evrec_correlator_correlate(c, &event, T0 + i, &r);
		(void)evrec_correlator_update_state(c, &event);
	}
}

static void test_memory_runs_out(void **state)
{
	struct unit_memory memory = { 0 };
	evrec_correlator_options options = unlimited();
	size_t fail_at = 1, calls;

	(void)state;
	options.lru_cache_size = 8;
	evrec_set_allocator(unit_realloc, &memory);
	do {
		evrec_correlator *c;

		memory = (struct unit_memory){ .fail_at = fail_at++ };
		c = evrec_correlator_new(&options, NULL);
		if (c != NULL) {
			run_some(c);
		}
		evrec_correlator_free(c);
		calls = memory.calls;
	} while (calls >= memory.fail_at);
	assert_true(fail_at > 30);
	evrec_set_allocator(NULL, NULL);
}

/* An occurrence that ends as a count allocates nothing, be it a duplicate, one of many similar ones, or suppressed. */
static void test_counting_allocates_nothing(void **state)
{
	struct unit_memory memory = { 0 };
	char message[16];
	evrec_correlator *c;
	size_t before = 0;
	int i;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	c = correlator_of(NULL);
	for (i = 0; i < 1000; i++) {
		if (i == 100) {
			before = memory.calls;
		}
		(void)snprintf(message, sizeof(message), "m%04d", i);
		(void)correlate(c, "a", "Same", "m", T0 + i);
		(void)correlate(c, "b", "Similar", message, T0 + i);
	}
	assert_int_equal(memory.calls, before);
	evrec_correlator_free(c);
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_duplicates_are_counted),
		cmocka_unit_test(test_tenth_message_is_an_aggregate),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_rate_limit),
		cmocka_unit_test(test_cache_size),
		cmocka_unit_test(test_eviction_gives_fresh_tokens),
		cmocka_unit_test(test_update_state),
		cmocka_unit_test(test_update_state_of_an_aggregate),
		cmocka_unit_test(test_update_state_tells_names_apart),
		cmocka_unit_test(test_unknown_answers_are_filed),
		cmocka_unit_test(test_memory_runs_out),
		cmocka_unit_test(test_counting_allocates_nothing),
	};

	return cmocka_run_group_tests_name("correlator", tests, NULL, NULL);
}

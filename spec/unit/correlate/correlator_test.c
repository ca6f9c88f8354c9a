/* The correlator: counts, aggregates, rate limits, bounded caches, and answers; as in client-go's EventCorrelator. */
#include "correlations.h"

#include "correlate/correlator.h"

static void test_duplicates_are_counted(void **state)
{
	evrec_correlator *c = correlator_with(NULL);
	evrec_correlation r = correlate_pod_event(c, "a", "Started", "m", T0);
	char name[64], *patch;

	(void)state;
	assert_int_equal(r.why, EVREC_NEW);
	assert_false(r.patch || r.skip);
	assert_int_equal(r.event.count, 1);
	(void)snprintf(name, sizeof(name), "%.*s", (int)r.event.name.len, r.event.name.data);
	r = correlate_pod_event(c, "a", "Started", "m", T0 + 60 * EVREC_SECOND);
	assert_int_equal(r.why, EVREC_DUPLICATE);
	assert_true(r.patch);
	assert_int_equal(r.event.count, 2);
	assert_int_equal(r.event.first, T0);
	assert_true(str_eq(r.event.name, str_from(name)));
	patch = evrec_fields_patch(&r.event, NULL);
	assert_string_equal(patch, "{\"count\":2,\"lastTimestamp\":\"2023-11-14T22:14:20Z\",\"message\":\"m\"}");
	evrec_free(patch);
	r = correlate_pod_event(c, "a", "Started", "other", T0);
	assert_int_equal(r.why, EVREC_NEW);
	evrec_correlator_free(c);
}

/* An event that follows one with another message takes over parts of its keys. */
static void test_message_is_known_after_any_other(void **state)
{
	evrec_correlator *c = correlator_with(NULL);

	(void)state;
	assert_int_equal(correlate_pod_event(c, "a", "R", "m", T0).why, EVREC_NEW);
	assert_int_equal(correlate_pod_event(c, "a", "R", "n", T0).why, EVREC_NEW);
	assert_int_equal(correlate_pod_event(c, "b", "R", "n", T0).why, EVREC_NEW);
	assert_int_equal(correlate_pod_event(c, "a", "R", "n", T0).why, EVREC_DUPLICATE);
	assert_int_equal(correlate_pod_event(c, "a", "R", "m", T0).why, EVREC_DUPLICATE);
	evrec_correlator_free(c);
}

/* The 9th, 10th and 11th distinct message, and a message that was evicted. */
static void test_tenth_message_is_an_aggregate(void **state)
{
	evrec_correlator *c = correlator_with(NULL);
	evrec_correlation r;
	char message[16];
	int i;

	(void)state;
	for (i = 1; i <= 9; i++) {
		(void)snprintf(message, sizeof(message), "m%d", i);
		assert_int_equal(correlate_pod_event(c, "a", "R", message, T0 + i).why, EVREC_NEW);
	}
	r = correlate_pod_event(c, "a", "R", "m10", T0 + 10);
	assert_int_equal(r.why, EVREC_AGGREGATED);
	assert_false(r.patch);
	assert_str(r.event.note, "(combined from similar events): m10");
	assert_int_equal(r.event.count, 1);
	assert_int_equal(r.event.first, T0 + 10);
	assert_str(r.event.controller, "test");
	r = correlate_pod_event(c, "a", "R", "m11", T0 + 11);
	assert_int_equal(r.why, EVREC_AGGREGATED);
	assert_true(r.patch);
	assert_int_equal(r.event.count, 2);
	assert_int_equal(r.event.first, T0 + 10);
	assert_int_equal(r.event.last, T0 + 11);
	assert_str(r.event.note, "(combined from similar events): m11");
	/* The set of nine messages still has m11, which passes unchanged; m1, the oldest, was evicted. */
	assert_int_equal(correlate_pod_event(c, "a", "R", "m11", T0 + 12).why, EVREC_NEW);
	assert_int_equal(correlate_pod_event(c, "a", "R", "m1", T0 + 13).why, EVREC_AGGREGATED);
	/* An event with another reason is not similar. */
	assert_int_equal(correlate_pod_event(c, "a", "Q", "m12", T0 + 14).why, EVREC_NEW);
	evrec_correlator_free(c);
}

static void test_aggregation_ends_after_its_interval(void **state)
{
	int64_t waits[] = { 600 * EVREC_SECOND, 600 * EVREC_SECOND + 1, 601 * EVREC_SECOND };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		evrec_correlator *c = correlator_with(NULL);
		char message[16];
		int m;

		for (m = 1; m <= 9; m++) {
			(void)snprintf(message, sizeof(message), "m%d", m);
			(void)correlate_pod_event(c, "a", "R", message, T0);
		}
		assert_int_equal(correlate_pod_event(c, "a", "R", "m10", T0 + waits[i]).why,
		                 i == 0 ? EVREC_AGGREGATED : EVREC_NEW);
		evrec_correlator_free(c);
	}
}

/* The 25th, 26th and 27th event of one object, and the token after 300 s. */
static void test_26th_event_is_suppressed(void **state)
{
	evrec_correlator *c = correlator_with(NULL);
	evrec_correlation r;
	int i;

	(void)state;
	for (i = 1; i <= 25; i++) {
		assert_false(correlate_pod_event(c, "a", "R", "m", T0).skip);
	}
	for (; i <= 27; i++) {
		r = correlate_pod_event(c, "a", "R", "m", T0);
		assert_true(r.skip);
		assert_false(r.patch);
		assert_int_equal(r.why, EVREC_RATE_LIMITED);
	}
	assert_false(correlate_pod_event(c, "b", "R", "m", T0).skip); /* another object has its own bucket */
	assert_true(correlate_pod_event(c, "a", "R", "m", T0 + 299 * EVREC_SECOND).skip);
	r = correlate_pod_event(c, "a", "R", "m", T0 + 300 * EVREC_SECOND);
	assert_false(r.skip);
	assert_int_equal(r.event.count, 29); /* suppressed events are counted too */
	assert_true(correlate_pod_event(c, "a", "R", "m", T0 + 300 * EVREC_SECOND).skip);
	evrec_correlator_free(c);
}

/* An empty bucket, and a clock that is set back by an hour. */
static void test_clock_that_is_set_back(void **state)
{
	const int64_t back = T0 - 3600 * EVREC_SECOND;

	(void)state;
	for (int real = 0; real < 2; real++) {
		evrec_correlator_options options;
		evrec_correlator *c;

		evrec_correlator_options_init(&options);
		options.burst_size = 1;
		c = correlator_with(&options);
		if (real) {
			correlator_use_real_clock(c);
		}
		assert_false(correlate_pod_event(c, "a", "R", "m", T0).skip);
		/* By less than a minute: events of two threads in the wrong order, which gain no time. */
		assert_true(correlate_pod_event(c, "a", "R", "m", T0 - 60 * EVREC_SECOND).skip);
		assert_true(correlate_pod_event(c, "a", "R", "m", T0 + 299 * EVREC_SECOND).skip);
		assert_true(correlate_pod_event(c, "a", "R", "m", back).skip);
		assert_true(correlate_pod_event(c, "a", "R", "m", back + 299 * EVREC_SECOND).skip);
		assert_int_equal(correlate_pod_event(c, "a", "R", "m", back + 300 * EVREC_SECOND).skip, !real);
		evrec_correlator_free(c);
	}
}

/* client-go's rate is a float32. That of 0.1 is larger than 0.1: a token comes 149 ns before 10 s have passed. */
static void test_rate_is_a_float32(void **state)
{
	evrec_correlator_options options;
	evrec_correlator *c;

	(void)state;
	evrec_correlator_options_init(&options);
	options.burst_size = 1;
	options.qps = 0.1;
	c = correlator_with(&options);
	assert_false(correlate_pod_event(c, "a", "R", "m", T0).skip);
	assert_true(correlate_pod_event(c, "a", "R", "m", T0 + 10 * EVREC_SECOND - 160).skip);
	assert_false(correlate_pod_event(c, "a", "R", "m", T0 + 10 * EVREC_SECOND - 140).skip);
	evrec_correlator_free(c);
}

/* The cache has 4096 keys; the 4097th evicts the first. */
static void test_cache_has_4096_keys(void **state)
{
	evrec_correlator_options options = unlimited_options();
	evrec_correlator *c = correlator_with(&options);
	evrec_correlator_stats stats;
	char object[16];
	int i;

	(void)state;
	for (i = 1; i <= 4096; i++) {
		(void)snprintf(object, sizeof(object), "o%d", i);
		assert_int_equal(correlate_pod_event(c, object, "R", "m", T0).why, EVREC_NEW);
	}
	assert_int_equal(correlate_pod_event(c, "o1", "R", "m", T0).why, EVREC_DUPLICATE); /* now o2 is the oldest */
	assert_int_equal(correlate_pod_event(c, "o4097", "R", "m", T0).why, EVREC_NEW);
	assert_int_equal(correlate_pod_event(c, "o1", "R", "m", T0).why, EVREC_DUPLICATE);
	assert_int_equal(correlate_pod_event(c, "o2", "R", "m", T0).why, EVREC_NEW);
	evrec_correlator_get_stats(c, &stats);
	assert_int_equal(stats.observed, 4096);
	assert_int_equal(stats.aggregates, 4096);
	assert_int_equal(stats.buckets, 4096);
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
	c = correlator_with(&options);
	assert_false(correlate_pod_event(c, "a", "R", "m", T0).skip);
	assert_true(correlate_pod_event(c, "a", "R", "m", T0).skip);
	(void)correlate_pod_event(c, "b", "R", "m", T0);
	(void)correlate_pod_event(c, "c", "R", "m", T0);
	assert_false(correlate_pod_event(c, "a", "R", "m", T0).skip);
	evrec_correlator_free(c);
}

static void test_answer_updates_name_and_version(void **state)
{
	evrec_correlator *c = correlator_with(NULL);
	evrec_fields answer = pod_event("a", "R", "m", T0);
	evrec_correlation r;

	(void)state;
	(void)correlate_pod_event(c, "a", "R", "m", T0);
	(void)correlate_pod_event(c, "a", "R", "m", T0);
	answer.name = EVREC_STR("renamed");
	answer.resource_version = EVREC_STR("42");
	assert_int_equal(evrec_correlator_update_state(c, &answer), 0);
	r = correlate_pod_event(c, "a", "R", "m", T0);
	assert_str(r.event.name, "renamed");
	assert_str(r.event.resource_version, "42");
	assert_int_equal(r.event.count, 3); /* the late answer said 1 */
	evrec_correlator_answered(c, r.handle, EVREC_STR(""), EVREC_STR("43"));
	r = correlate_pod_event(c, "a", "R", "m", T0);
	assert_str(r.event.name, "renamed");
	assert_str(r.event.resource_version, "43");
	evrec_correlator_free(c);
}

/* The answer's name and resource version may point into the entry that they change. */
static void test_answer_may_point_into_its_entry(void **state)
{
	evrec_correlator *c = correlator_with(NULL);
	char longer[201], name[64];
	evrec_correlation r;

	(void)state;
	memset(longer, '7', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	(void)correlate_pod_event(c, "a", "R", "m", T0);
	r = correlate_pod_event(c, "a", "R", "m", T0);
	(void)snprintf(name, sizeof(name), "%.*s", (int)r.event.name.len, r.event.name.data);
	r.event.resource_version = str_from(longer);
	assert_int_equal(evrec_correlator_update_state(c, &r.event), 0);
	r = correlate_pod_event(c, "a", "R", "m", T0);
	assert_true(str_eq(r.event.name, str_from(name)));
	assert_true(str_eq(r.event.resource_version, str_from(longer)));
	r.event.name = EVREC_STR("a-name-that-takes-the-place-of-the-resource-version");
	assert_int_equal(evrec_correlator_update_state(c, &r.event), 0);
	r = correlate_pod_event(c, "a", "R", "m", T0);
	assert_str(r.event.name, "a-name-that-takes-the-place-of-the-resource-version");
	assert_true(str_eq(r.event.resource_version, str_from(longer)));
	evrec_correlator_free(c);

	c = correlator_with(NULL);
	(void)correlate_pod_event(c, "a", "R", "m", T0);
	r = correlate_pod_event(c, "a", "R", "m", T0);
	evrec_correlator_answered(c, r.handle, r.event.name, str_from(longer));
	r = correlate_pod_event(c, "a", "R", "m", T0);
	assert_true(str_eq(r.event.resource_version, str_from(longer)));
	evrec_correlator_free(c);
}

/* An answer to an aggregate finds the aggregate, although its event key differs. */
static void test_answer_to_an_aggregate_updates_it(void **state)
{
	evrec_correlator_options options = unlimited_options();
	evrec_correlator_stats before, after;
	evrec_correlation r;
	evrec_correlator *c;
	evrec_event *answer;

	(void)state;
	options.max_events = 1;
	c = correlator_with(&options);
	r = correlate_pod_event(c, "a", "R", "m1", T0);
	assert_int_equal(r.why, EVREC_AGGREGATED);
	r.event.resource_version = EVREC_STR("7");
	answer = evrec_event_new(&r.event);
	evrec_correlator_get_stats(c, &before);
	assert_int_equal(evrec_correlator_update_state(c, evrec_event_fields(answer)), 0);
	evrec_correlator_get_stats(c, &after);
	assert_int_equal(before.observed, after.observed);
	assert_str(correlate_pod_event(c, "a", "R", "m2", T0).event.resource_version, "7");
	evrec_event_release(answer);
	evrec_correlator_free(c);
}

/* An event whose message looks like an aggregate's does not get the answer to the aggregate. */
static void test_answer_to_an_aggregate_updates_no_other_event(void **state)
{
	evrec_correlator_options options = unlimited_options();
	evrec_correlation r;
	evrec_correlator *c;
	evrec_event *answer;
	char name[64];

	(void)state;
	options.max_events = 2;
	c = correlator_with(&options);
	r = correlate_pod_event(c, "a", "R", "(combined from similar events): m2", T0);
	(void)snprintf(name, sizeof(name), "%.*s", (int)r.event.name.len, r.event.name.data);
	r = correlate_pod_event(c, "a", "R", "m2", T0);
	assert_int_equal(r.why, EVREC_AGGREGATED);
	answer = evrec_event_new(&r.event);
	assert_int_equal(evrec_correlator_update_state(c, evrec_event_fields(answer)), 0);
	evrec_event_release(answer);
	r = correlate_pod_event(c, "a", "R", "(combined from similar events): m2", T0 + 700 * EVREC_SECOND);
	assert_true(r.patch);
	assert_true(str_eq(r.event.name, str_from(name)));
	evrec_correlator_free(c);
}

static void test_answer_without_an_entry_makes_one(void **state)
{
	evrec_correlator *c = correlator_with(NULL);
	evrec_fields answer = pod_event("a", "R", "m", T0);
	evrec_correlation r;

	(void)state;
	answer.name = EVREC_STR("from-before-a-restart");
	answer.count = 5;
	assert_int_equal(evrec_correlator_update_state(c, &answer), 0);
	r = correlate_pod_event(c, "a", "R", "m", T0 + EVREC_SECOND);
	assert_true(r.patch);
	assert_int_equal(r.event.count, 6);
	assert_str(r.event.name, "from-before-a-restart");
	evrec_correlator_answered(c, r.handle + 1, EVREC_STR("x"), EVREC_STR("1")); /* no entry has this handle */
	evrec_correlator_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_duplicates_are_counted),
		cmocka_unit_test(test_message_is_known_after_any_other),
		cmocka_unit_test(test_tenth_message_is_an_aggregate),
		cmocka_unit_test(test_aggregation_ends_after_its_interval),
		cmocka_unit_test(test_26th_event_is_suppressed),
		cmocka_unit_test(test_clock_that_is_set_back),
		cmocka_unit_test(test_rate_is_a_float32),
		cmocka_unit_test(test_cache_has_4096_keys),
		cmocka_unit_test(test_eviction_gives_fresh_tokens),
		cmocka_unit_test(test_answer_updates_name_and_version),
		cmocka_unit_test(test_answer_may_point_into_its_entry),
		cmocka_unit_test(test_answer_to_an_aggregate_updates_it),
		cmocka_unit_test(test_answer_to_an_aggregate_updates_no_other_event),
		cmocka_unit_test(test_answer_without_an_entry_makes_one),
	};

	return cmocka_run_group_tests_name("correlator", tests, NULL, NULL);
}

/* A correlator's options: callbacks for keys, limits of their values, and events without a count or a name. */
#include "correlations.h"

static evrec_str chosen_key, chosen_local, chosen_message, chosen_spam;
static evrec_correlator *reentered;

static bool choose_keys(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	(void)ctx;
	if (reentered != NULL) {
		evrec_correlation r;

		assert_int_equal(evrec_correlator_correlate(reentered, event, T0, &r), EVREC_EINVALID);
		assert_int_equal(evrec_correlator_update_state(reentered, event), EVREC_EINVALID);
	}
	*aggregate_key = chosen_key;
	*local_key = chosen_local;
	return chosen_key.data != NULL;
}

static bool choose_message(void *ctx, const evrec_fields *event, evrec_str *message)
{
	(void)ctx;
	(void)event;
	*message = chosen_message;
	return chosen_message.data != NULL;
}

static bool choose_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)ctx;
	(void)event;
	*key = chosen_spam;
	return chosen_spam.data != NULL;
}

static void test_callbacks_choose_the_keys(void **state)
{
	evrec_correlator_options options;
	evrec_correlator_stats stats;
	evrec_correlation r;
	evrec_correlator *c;

	(void)state;
	evrec_correlator_options_init(&options);
	options.max_events = 2;
	options.burst_size = 4;
	options.key_func = choose_keys;
	options.message_func = choose_message;
	options.spam_key_func = choose_spam_key;
	c = correlator_with(&options);
	chosen_key = EVREC_STR("all");
	chosen_local = EVREC_STR("1");
	chosen_message = EVREC_STR("together");
	chosen_spam = EVREC_STR("all");
	reentered = c;
	assert_int_equal(correlate_pod_event(c, "a", "R", "m", T0).why, EVREC_NEW);
	chosen_local = EVREC_STR("2");
	r = correlate_pod_event(c, "b", "Q", "n", T0);
	assert_int_equal(r.why, EVREC_AGGREGATED);
	assert_str(r.event.note, "together");
	/* A callback without an answer leads to the defaults. */
	chosen_key.data = chosen_message.data = NULL;
	reentered = NULL;
	assert_int_equal(correlate_pod_event(c, "c", "R", "m", T0).why, EVREC_NEW);
	assert_str(correlate_pod_event(c, "c", "R", "m2", T0).event.note, "(combined from similar events): m2");
	chosen_spam = EVREC_STR("all");
	assert_true(correlate_pod_event(c, "d", "R", "m", T0).skip);
	chosen_spam.data = NULL;
	assert_false(correlate_pod_event(c, "d", "R", "m", T0).skip);
	evrec_correlator_get_stats(c, &stats);
	assert_int_equal(stats.callback_errors, 6);
	evrec_correlator_free(c);
}

static void test_event_without_count_or_name_gets_both(void **state)
{
	evrec_correlator *c = correlator_with(NULL);
	evrec_fields event = pod_event("a", "R", "m", T0);
	evrec_correlation r;

	(void)state;
	event.count = 0;
	assert_int_equal(evrec_correlator_correlate(c, &event, T0, &r), 0);
	assert_int_equal(r.event.count, 1);
	assert_true(r.event.name.len > 0);
	assert_int_equal(evrec_correlator_correlate(c, &event, T0, &r), 0);
	assert_int_equal(r.event.count, 2);
	evrec_correlator_free(c);
}

static void check_refused(const evrec_correlator_options *options, const char *message)
{
	evrec_error err = { 0 };

	assert_null(evrec_correlator_new(options, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	assert_string_equal(err.message, message);
}

static void test_invalid_options_are_refused(void **state)
{
	evrec_correlator_options options;

	(void)state;
	evrec_correlator_options_init(&options);
	options.lru_cache_size = 0;
	check_refused(&options, "lru_cache_size: must be 1 to 16777216");
	evrec_correlator_options_init(&options);
	options.burst_size = 0;
	check_refused(&options, "burst_size: must be at least 1");
	evrec_correlator_options_init(&options);
	options.qps = -1;
	check_refused(&options, "qps: must be 0 to 1e9");
	evrec_correlator_options_init(&options);
	options.max_events = 0;
	check_refused(&options, "max_events: must be at least 1");
	evrec_correlator_options_init(&options);
	options.max_interval = -1;
	check_refused(&options, "max_interval_in_seconds: must not be negative");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callbacks_choose_the_keys),
		cmocka_unit_test(test_event_without_count_or_name_gets_both),
		cmocka_unit_test(test_invalid_options_are_refused),
	};

	return cmocka_run_group_tests_name("correlator options", tests, NULL, NULL);
}

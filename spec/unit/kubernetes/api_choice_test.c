/* The API that a sink writes by: when core/v1 takes the place of events.k8s.io/v1. */
#include "unit.h"

#include "kubernetes/api_choice.h"

static const struct api_choice automatic = { .api = EVREC_EVENTS_V1, .falls_back = true };

static void test_fixed_api_never_changes(void **state)
{
	static const enum api_news news[] = { API_NO_NEWS, API_SERVED, API_MISSING, API_FORBIDDEN };
	struct api_choice core = { .api = EVREC_CORE_V1 }, events = { .api = EVREC_EVENTS_V1 };

	(void)state;
	for (size_t i = 0; i < sizeof(news) / sizeof(news[0]); i++) {
		assert_false(api_choice_asks_core(&core, EVREC_CORE_V1, news[i]));
		assert_false(api_choice_asks_core(&events, EVREC_EVENTS_V1, news[i]));
		assert_false(api_choice_asks_core(&events, EVREC_CORE_V1, news[i]));
	}
	assert_int_equal(core.api, EVREC_CORE_V1);
	assert_int_equal(events.api, EVREC_EVENTS_V1);
}

/* A refusal is asked about, and the first answer of core/v1 that serves the write decides. */
static void test_core_is_used_once_it_serves(void **state)
{
	struct api_choice c = automatic;

	(void)state;
	assert_false(api_choice_asks_core(&c, EVREC_EVENTS_V1, API_NO_NEWS));
	assert_true(api_choice_asks_core(&c, EVREC_EVENTS_V1, API_FORBIDDEN));
	assert_true(api_choice_asks_core(&c, EVREC_EVENTS_V1, API_MISSING));
	assert_false(api_choice_heard_core(&c, API_FORBIDDEN));
	assert_false(api_choice_heard_core(&c, API_NO_NEWS));
	assert_int_equal(c.api, EVREC_EVENTS_V1);
	assert_true(api_choice_heard_core(&c, API_SERVED));
	assert_int_equal(c.api, EVREC_CORE_V1);
	assert_false(api_choice_heard_core(&c, API_SERVED)); /* told once */
	/* A request that was under way by the other API is asked about too; one by core/v1 is answered. */
	assert_true(api_choice_asks_core(&c, EVREC_EVENTS_V1, API_FORBIDDEN));
	assert_false(api_choice_asks_core(&c, EVREC_CORE_V1, API_FORBIDDEN));
}

/* An account that has used the API is forbidden a namespace, not the API; a server may still lose the API. */
static void test_served_write_settles_what_is_forbidden(void **state)
{
	struct api_choice c = automatic;

	(void)state;
	assert_false(api_choice_asks_core(&c, EVREC_CORE_V1, API_SERVED));
	assert_true(api_choice_asks_core(&c, EVREC_EVENTS_V1, API_FORBIDDEN));
	assert_false(api_choice_asks_core(&c, EVREC_EVENTS_V1, API_SERVED));
	assert_false(api_choice_asks_core(&c, EVREC_EVENTS_V1, API_FORBIDDEN));
	assert_true(api_choice_asks_core(&c, EVREC_EVENTS_V1, API_MISSING));
}

static void test_message_names_what_is_missing(void **state)
{
	(void)state;
	assert_string_equal(api_choice_message(API_MISSING, VERB_CREATE),
	                    "the server does not have events.k8s.io/v1; using core/v1");
	assert_string_equal(api_choice_message(API_FORBIDDEN, VERB_CREATE),
	                    "events.k8s.io/v1 is forbidden (create events.events.k8s.io); using core/v1");
	assert_string_equal(api_choice_message(API_FORBIDDEN, VERB_PATCH),
	                    "events.k8s.io/v1 is forbidden (patch events.events.k8s.io); using core/v1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixed_api_never_changes),
		cmocka_unit_test(test_core_is_used_once_it_serves),
		cmocka_unit_test(test_served_write_settles_what_is_forbidden),
		cmocka_unit_test(test_message_names_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

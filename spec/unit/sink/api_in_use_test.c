/* The stats of a sink show the API by which it writes. */
#include "resume_fixture.h"

/* Starts the sink with this option, and records an event. */
static void record_by(struct resume_fixture *f, enum evrec_sink_api api)
{
	f->options.resume = false;
	f->options.common.api = api;
	resume_start(f);
	resume_record(f, "web");
}

static void test_that_of_the_option(void **state)
{
	struct resume_fixture *f = *state;

	resume_reply(f, TURN_REPLY, CREATED);
	record_by(f, EVREC_SINK_CORE_V1);
	assert_int_equal(stats_check_equations(f->b).api, EVREC_CORE_V1);
	assert_int_equal(resume_flush(f).api, EVREC_CORE_V1);
}

static void test_core_takes_the_place_of_a_missing_one(void **state)
{
	struct resume_fixture *f = *state;

	resume_reply(f, TURN_REPLY, HTTP_NO_PAGE);
	resume_reply(f, TURN_REPLY, CREATED);
	record_by(f, EVREC_SINK_AUTO);
	assert_int_equal(stats_check_equations(f->b).api, EVREC_EVENTS_V1);
	assert_int_equal(resume_flush(f).api, EVREC_CORE_V1);
	assert_int_equal(http_server_requests(&f->server), 2);
}

static void test_it_stays_if_it_answers(void **state)
{
	struct resume_fixture *f = *state;

	resume_reply(f, TURN_REPLY, CREATED);
	record_by(f, EVREC_SINK_AUTO);
	assert_int_equal(resume_flush(f).api, EVREC_EVENTS_V1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_that_of_the_option, resume_setup, resume_teardown),
		cmocka_unit_test_setup_teardown(test_core_takes_the_place_of_a_missing_one, resume_setup,
		                                resume_teardown),
		cmocka_unit_test_setup_teardown(test_it_stays_if_it_answers, resume_setup, resume_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

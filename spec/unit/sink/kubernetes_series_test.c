/* A Kubernetes sink's series whose writes are dropped. */
#include "resume_fixture.h"

#define CONFLICT HTTP_REPLY("409 Conflict", "", "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}")
#define INVALID HTTP_REPLY("422 Invalid", "", "{\"kind\":\"Status\",\"message\":\"invalid\"}")

/*
 * A full queue drops the patch that waits for the create. Another client's event has the create's name, and the create under
 * the second name is refused. So the server has no event of the series.
 */
static void test_dropped_patch_behind_a_create_patches_no_other_event(void **state)
{
	struct resume_fixture *f = *state;

	f->clock = evrec_clock_fake(evrec_clock_now(evrec_clock_real()));
	f->options.resume = false;
	f->options.common.limits.max_pending = 2;
	f->options.common.limits.full = EVREC_DROP_OLDEST;
	resume_reply(f, TURN_REPLY, CONFLICT);
	resume_reply(f, TURN_REPLY, INVALID);
	resume_reply(f, TURN_REPLY, INVALID);
	resume_reply(f, TURN_REPLY, CONFLICT);
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	checked_poll(f->b);
	resume_record(f, "web");
	resume_record(f, "db");
	assert_int_equal(stats_check_equations(f->b).dropped[EVREC_CAUSE_QUEUE_FULL], 1);
	resume_poll_until_requests(f, 3);
	(void)evrec_broadcaster_flush(f->b, SOON, NULL);
	assert_int_equal(stats_check_equations(f->b).dropped[EVREC_CAUSE_REJECTED], 2);
	evrec_clock_set(f->clock, evrec_clock_now(f->clock) + 31 * EVREC_SECOND);
	resume_record(f, "web");
	(void)evrec_broadcaster_flush(f->b, SOON, NULL);
	assert_int_equal(http_server_requests(&f->server), 5);
	http_server_check_saw(&f->server, 3, POST);
	http_server_check_saw(&f->server, 4, POST);
}

/* The patch of an event that resume has adopted is dropped. The next create finds the event, and goes on from its count. */
static void test_dropped_patch_of_an_adopted_event_sets_no_count_back(void **state)
{
	struct resume_fixture *f = *state;

	f->clock = evrec_clock_fake(evrec_clock_now(evrec_clock_real()));
	f->options.common.limits.max_tries = 1;
	resume_item(f, "web.old", "me", 5, 0);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, HTTP_REPLY("500 Error", "", "oops"));
	resume_reply(f, TURN_REPLY, CONFLICT);
	resume_reply(f, TURN_REPLY, PATCHED);
	resume_start(f);
	resume_record(f, "web");
	resume_poll_until_requests(f, 2);
	(void)evrec_broadcaster_flush(f->b, SOON, NULL);
	assert_int_equal(stats_check_equations(f->b).dropped[EVREC_CAUSE_MAX_TRIES], 1);
	http_server_check_saw(&f->server, 1, PATCH("web.old"));
	evrec_clock_set(f->clock, evrec_clock_now(f->clock) + 31 * EVREC_SECOND);
	resume_record(f, "web");
	(void)evrec_broadcaster_flush(f->b, SOON, NULL);
	assert_int_equal(http_server_requests(&f->server), 4);
	http_server_check_saw(&f->server, 3, PATCH("web.old"));
	http_server_check_saw(&f->server, 3, "\"count\":7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_dropped_patch_of_an_adopted_event_sets_no_count_back, resume_setup,
		                                resume_teardown),
		cmocka_unit_test_setup_teardown(test_dropped_patch_behind_a_create_patches_no_other_event, resume_setup,
		                                resume_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The Kubernetes sink with `resume`: creates that are held until a listing is over, and when one begins. */
#define _GNU_SOURCE

#include "resume_fixture.h"

#include "tmpdir.h"

/* Each is a list and an event as well. */
#define ANY_ANSWER HTTP_REPLY("201 Created", "", "{\"kind\":\"Event\",\"metadata\":{\"name\":\"stored\"},\"items\":[]}")
#define MORE HTTP_REPLY("201 Created", "", "{\"metadata\":{\"name\":\"stored\",\"continue\":\"t\"},\"items\":[]}")

/* The clock runs no faster than the machine's. */
static void run_clock_until_requests(struct resume_fixture *f, size_t n)
{
	const int64_t start = evrec_clock_now(f->clock);

	while (http_server_requests(&f->server) < n) {
		checked_poll(f->b);
		(void)usleep(1000);
		evrec_clock_set(f->clock, evrec_clock_now(f->clock) + EVREC_SECOND / 1000);
		assert_true(evrec_clock_now(f->clock) < start + 10 * EVREC_SECOND);
	}
}

/* After 10 s without a list the creates go on in their order, which is told once. */
static void test_listing_is_given_up_after_10_s(void **state)
{
	struct resume_fixture *f = *state;

	f->clock = evrec_clock_fake(0);
	f->options.max_in_flight = 1;
	resume_reply(f, TURN_REPLY, HTTP_REPLY("500 Error", "Retry-After: 60\r\n", "oops"));
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	resume_record(f, "db");
	resume_poll_until_requests(f, 1);
	evrec_clock_set(f->clock, 10 * EVREC_SECOND - 1);
	for (int i = 0; i < 100; i++) {
		checked_poll(f->b);
	}
	assert_int_equal(http_server_requests(&f->server), 1);
	assert_int_equal(stats_check_equations(f->b).pending, 2);
	evrec_clock_set(f->clock, 10 * EVREC_SECOND);
	assert_int_equal(resume_flush(f).created, 2);
	http_server_check_saw(&f->server, 1, POST);
	http_server_check_saw(&f->server, 1, "\"name\":\"web\"");
	http_server_check_saw(&f->server, 2, "\"name\":\"db\"");
	resume_record(f, "another");
	assert_int_equal(resume_flush(f).created, 3);
	unit_check_contains(f->errors, "resume: kubernetes: resume: the events of ctl were not listed (");
	assert_string_equal(strchr(f->errors, '\n'), "\n");
}

/* A failure that a page has followed is not the reason. */
static void test_listing_of_many_pages_is_given_up_after_10_s(void **state)
{
	struct resume_fixture *f = *state;

	f->clock = evrec_clock_fake(0);
	resume_reply(f, TURN_REPLY, HTTP_REPLY("500 Error", "", "oops"));
	resume_reply(f, TURN_REPLY, MORE);
	resume_start(f);
	resume_record(f, "web");
	run_clock_until_requests(f, 3);
	evrec_clock_set(f->clock, 10 * EVREC_SECOND);
	assert_int_equal(resume_flush(f).created, 1);
	unit_check_contains(f->errors, "were not listed (it takes longer than 10 s); its series begin anew");
}

/* The server's count is the last one only once the writes of the spool were answered. */
static void test_spool_is_taken_up_before_the_list(void **state)
{
	struct resume_fixture *f = *state;
	void *dir = NULL;

	assert_int_equal(tmpdir_setup(&dir), 0);
	f->options.common.spool = str_from(tmpdir_path(dir, "spool"));
	resume_reply(f, TURN_REPLY, HTTP_REPLY("500 Error", "", "oops"));
	resume_reply(f, TURN_REPLY, CREATED);
	resume_item(f, "web.old", "me", 5, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, PATCHED);
	resume_leave_in_spool(f, "db");
	resume_start(f);
	resume_record(f, "web");
	assert_int_equal(resume_flush(f).created, 1);
	for (size_t i = 0; i < 2; i++) {
		http_server_check_saw(&f->server, i, POST);
		http_server_check_saw(&f->server, i, "\"name\":\"db\"");
	}
	http_server_check_saw(&f->server, 2, LIST);
	http_server_check_saw(&f->server, 3, PATCH("web.old"));
	assert_int_equal(tmpdir_teardown(&dir), 0);
}

static void record_as(struct resume_fixture *f, const char *instance)
{
	evrec_recorder *mine = f->r;
	evrec_recorder_options options;
	evrec_error err = { 0 };

	evrec_recorder_options_init(&options);
	options.component = EVREC_STR("ctl");
	options.instance = str_from(instance);
	f->r = evrec_recorder_new(f->b, &options, &err);
	assert_non_null(f->r);
	resume_record(f, "web");
	evrec_recorder_free(f->r);
	f->r = mine;
}

/* From the 17th pair of a controller and an instance on series begin anew, which is told once. */
static void test_16_pairs_are_listed(void **state)
{
	struct resume_fixture *f = *state;
	char instance[16];

	resume_reply(f, TURN_REPLY, ANY_ANSWER);
	resume_start(f);
	for (int i = 0; i < 18; i++) {
		(void)snprintf(instance, sizeof(instance), "i%d", i);
		record_as(f, instance);
	}
	assert_int_equal(resume_flush(f).created, 18);
	assert_int_equal(http_server_requests(&f->server), 16 + 18);
	assert_string_equal(f->errors, "resume: kubernetes: resume: more than 16 controllers and instances; "
	                               "the series of the others begin anew\n");
}

/* The end of a sender frees what is held. */
static void test_end_while_a_create_is_held(void **state)
{
	struct resume_fixture *f = *state;
	evrec_sink_stats s;

	resume_reply(f, TURN_MUTE, NULL);
	resume_start(f);
	resume_record(f, "web");
	resume_record(f, "db");
	while (http_server_requests(&f->server) == 0) {
		evrec_broadcaster_poll(f->b);
	}
	assert_int_equal(stats_check_equations(f->b).pending, 2);
	assert_int_not_equal(evrec_broadcaster_shutdown(f->b, EVREC_SECOND / 100, NULL), 0);
	s = stats_check_equations(f->b);
	assert_int_equal(s.dropped[EVREC_CAUSE_CLOSED], 2);
}

/* Creates that are held when the time of a shutdown is over are left in the spool. */
static void test_held_create_is_spooled(void **state)
{
	struct resume_fixture *f = *state;
	evrec_sink_stats s;
	void *dir = NULL;

	assert_int_equal(tmpdir_setup(&dir), 0);
	f->options.common.spool = str_from(tmpdir_path(dir, "spool"));
	resume_reply(f, TURN_MUTE, NULL);
	resume_start(f);
	resume_record(f, "web");
	resume_record(f, "db");
	resume_poll_until_requests(f, 1);
	assert_int_not_equal(evrec_broadcaster_shutdown(f->b, EVREC_SECOND / 100, NULL), 0);
	s = stats_check_equations(f->b);
	assert_int_equal(s.spooled, 2);
	assert_int_equal(s.pending, 0);
	assert_int_equal(tmpdir_teardown(&dir), 0);
}

/* A shutdown with enough time waits for the list, and sends what is held. */
static void test_shutdown_sends_what_is_held(void **state)
{
	struct resume_fixture *f = *state;

	resume_item(f, "web.old", "me", 5, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, PATCHED);
	resume_start(f);
	resume_record(f, "web");
	assert_int_equal(evrec_broadcaster_shutdown(f->b, SOON, NULL), 0);
	http_server_check_saw(&f->server, 1, PATCH("web.old"));
	http_server_check_saw(&f->server, 1, "{\"series\":{\"count\":6,");
}

/* A fake clock may reach the end of time: the list is still awaited, and a failure of it is still tried again. */
static void test_list_is_awaited_at_the_end_of_time(void **state)
{
	struct resume_fixture *f = *state;

	f->clock = evrec_clock_fake(INT64_MAX - EVREC_SECOND / 20);
	resume_reply(f, TURN_REPLY, HTTP_REPLY("500 Error", "", "oops"));
	resume_reply(f, TURN_REPLY, ANY_ANSWER);
	resume_start(f);
	resume_record(f, "web");
	resume_poll_until_requests(f, 1);
	http_server_check_saw(&f->server, 0, LIST);
	assert_string_equal(f->errors, "");
	evrec_clock_set(f->clock, INT64_MAX);
	assert_int_equal(resume_flush(f).created, 1);
}

/*
 * Replies of a server that has "web.old": to the patch of a first process, which leaves the event in its state file; to the
 * second one's list, whose second page fails at first; and to a patch between the pages.
 */
static void prepare_two_lives(struct resume_fixture *f, void **dir)
{
	assert_int_equal(tmpdir_setup(dir), 0);
	f->clock = evrec_clock_fake(evrec_clock_now(evrec_clock_real()));
	f->options.common.state_file = str_from(tmpdir_path(*dir, "state"));
	f->options.common.series.max_series = 2;
	resume_reply(f, TURN_REPLY, PATCHED);
	resume_reply(f, TURN_REPLY, MORE);
	resume_reply(f, TURN_REPLY, HTTP_REPLY("500 Error", "", "oops"));
	resume_reply(f, TURN_REPLY, PATCHED);
}

/* Afterwards the second process runs. */
static void live_first_life(struct resume_fixture *f)
{
	f->options.resume = false;
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	f->options.resume = true;
	resume_restart(f);
}

static void patch_between_pages(struct resume_fixture *f)
{
	resume_poll_until_requests(f, 3);
	resume_record(f, "web");
	resume_poll_until_requests(f, 4);
	http_server_check_saw(&f->server, 3, PATCH("web.old"));
}

/*
 * The state file has an event, which is patched while a list is under way. The list's pages show its count before that.
 * The event is evicted, and happens again: it is a new one, as its count on the server is unknown.
 */
static void test_event_that_is_patched_during_a_listing_is_not_adopted(void **state)
{
	struct resume_fixture *f = *state;
	void *dir = NULL;

	prepare_two_lives(f, &dir);
	resume_item(f, "web.old", "me", 1, 0);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	live_first_life(f);
	resume_record(f, "db");
	patch_between_pages(f);
	run_clock_until_requests(f, 5);
	http_server_check_saw(&f->server, 4, "GET /apis/events.k8s.io/v1/events?");
	resume_record(f, "x");
	resume_record(f, "y");
	(void)resume_flush(f);
	assert_int_equal(http_server_requests(&f->server), 8);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 8, POST);
	http_server_check_saw(&f->server, 8, "\"name\":\"web\"");
	assert_int_equal(tmpdir_teardown(&dir), 0);
}

/* The list that is under way is another controller's. The event's own list is made later, and shows its count. */
static void test_event_that_is_patched_before_its_listing_is_adopted(void **state)
{
	const evrec_recorder_options of_other = { .component = EVREC_STR("other"), .instance = EVREC_STR("me") };
	struct resume_fixture *f = *state;
	evrec_recorder *own, *other;
	void *dir = NULL;

	prepare_two_lives(f, &dir);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_item(f, "web.old", "me", 2, 0);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	live_first_life(f);
	own = f->r;
	other = evrec_recorder_new(f->b, &of_other, NULL);
	f->r = other;
	resume_record(f, "db");
	f->r = own;
	patch_between_pages(f);
	run_clock_until_requests(f, 6);
	resume_record(f, "x");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 6, LIST);
	resume_record(f, "y");
	(void)resume_flush(f);
	assert_int_equal(http_server_requests(&f->server), 9);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 9, PATCH("web.old"));
	http_server_check_saw(&f->server, 9, "\"count\":3");
	evrec_recorder_free(other);
	assert_int_equal(tmpdir_teardown(&dir), 0);
}

#define RESUME_TEST(name) cmocka_unit_test_setup_teardown(name, resume_setup, resume_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESUME_TEST(test_listing_is_given_up_after_10_s),
		RESUME_TEST(test_listing_of_many_pages_is_given_up_after_10_s),
		RESUME_TEST(test_spool_is_taken_up_before_the_list),
		RESUME_TEST(test_16_pairs_are_listed),
		RESUME_TEST(test_end_while_a_create_is_held),
		RESUME_TEST(test_held_create_is_spooled),
		RESUME_TEST(test_shutdown_sends_what_is_held),
		RESUME_TEST(test_list_is_awaited_at_the_end_of_time),
		RESUME_TEST(test_event_that_is_patched_during_a_listing_is_not_adopted),
		RESUME_TEST(test_event_that_is_patched_before_its_listing_is_adopted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

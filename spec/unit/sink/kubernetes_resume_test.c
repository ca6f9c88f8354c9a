/* The Kubernetes sink with `resume`: what is listed, what is adopted, and what becomes of creates meanwhile. */
#include "resume_fixture.h"

/* Three occurrences wait for the list: they are one patch of the event that is there. */
static void test_series_goes_on(void **state)
{
	struct resume_fixture *f = *state;
	evrec_sink_stats s;

	resume_item(f, "web.old", "me", 5, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, PATCHED);
	resume_start(f);
	resume_record(f, "web");
	resume_record(f, "web");
	resume_record(f, "web");
	s = resume_flush(f);
	assert_int_equal(http_server_requests(&f->server), 2);
	http_server_check_saw(&f->server, 0, LIST " HTTP/1.1\r\n");
	http_server_check_not_saw(&f->server, 0, "Content-Length");
	http_server_check_saw(&f->server, 1, PATCH("web.old"));
	http_server_check_saw(&f->server, 1, "{\"series\":{\"count\":8,");
	assert_int_equal(s.created, 0);
	assert_int_equal(s.patched, 1);
	assert_int_equal(s.retries, 0);
	/* The next one is counted on top. */
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
	http_server_check_saw(&f->server, 2, "{\"series\":{\"count\":9,");
	assert_string_equal(f->errors, "");
}

/* A process that records once in each life. */
static void test_single_event_becomes_a_series(void **state)
{
	struct resume_fixture *f = *state;

	resume_item(f, "web.old", "me", 1, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 1, PATCH("web.old"));
	http_server_check_saw(&f->server, 1, "{\"series\":{\"count\":2,");
}

/* The pipeline learns of events that no create waits for: they are patched from the first occurrence on. */
static void test_pipeline_takes_over_what_was_found(void **state)
{
	struct resume_fixture *f = *state;
	evrec_event *event;
	bool told = false;

	resume_item(f, "web.old", "me", 5, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "another");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 1, POST);
	assert_int_equal(stats_check_equations(f->b).series.ongoing, 1);
	while ((event = evrec_watch_next(f->events)) != NULL) {
		told = told || str_eq(evrec_event_fields(event)->series_state, EVREC_STR("Unknown"));
		evrec_event_release(event);
	}
	assert_true(told);
	resume_record(f, "web");
	assert_int_equal(resume_flush(f).created, 1);
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
	http_server_check_saw(&f->server, 2, "{\"series\":{\"count\":6,");
}

/* The count that was listed is not the one to go on from once an event was patched: a create would set it back. */
static void test_evicted_series_begins_anew(void **state)
{
	struct resume_fixture *f = *state;

	f->options.common.series.max_series = 2;
	resume_item(f, "web.old", "me", 5, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "another");
	(void)resume_flush(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
	resume_record(f, "db");
	resume_record(f, "cache");
	(void)resume_flush(f);
	resume_record(f, "web");
	assert_int_equal(resume_flush(f).created, 4);
	assert_int_equal(http_server_requests(&f->server), 6);
	http_server_check_saw(&f->server, 5, POST);
}

/* Of two with one key the latest goes on, wherever it is in the list. */
static void test_pages_are_read_to_the_last(void **state)
{
	struct resume_fixture *f = *state;

	resume_item(f, "web.older", "me", 5, 90);
	resume_page(f, "a/b=");
	resume_item(f, "web.old", "me", 7, 60);
	resume_item(f, "web.oldest", "me", 9, 120);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 1, LIST "&continue=a%2Fb%3D HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
	http_server_check_saw(&f->server, 2, "\"count\":8,");
}

static void test_expired_token_starts_over_once(void **state)
{
	struct resume_fixture *f = *state;

	resume_item(f, "web.old", "me", 7, 60);
	resume_page(f, "token");
	resume_reply(f, TURN_REPLY, EXPIRED);
	resume_item(f, "web.old", "me", 7, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 1, LIST "&continue=token HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 2, LIST " HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 3, PATCH("web.old"));
	assert_string_equal(f->errors, "");
}

static void test_second_expiry_is_told(void **state)
{
	struct resume_fixture *f = *state;

	resume_reply(f, TURN_REPLY, EXPIRED);
	resume_reply(f, TURN_REPLY, EXPIRED);
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 2, POST);
	unit_check_contains(f->errors, "resume: kubernetes: resume: the events of ctl were not listed (410: too old)");
}

/* Neither other instances, nor what is over, nor events in the old style. */
static void test_others_events_are_left_alone(void **state)
{
	struct resume_fixture *f = *state;

	resume_item(f, "web.other", "you", 5, 60);
	resume_item(f, "web.over", "me", 5, 1800 + 360 + 5);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	assert_int_equal(resume_flush(f).created, 1);
	http_server_check_saw(&f->server, 1, POST);
}

static void test_named_instances_are_taken_over(void **state)
{
	static const evrec_str instances[] = { { "host-1", 6 }, { "web-*", 5 } };
	struct resume_fixture *f = *state;

	f->options.resume_instances = instances;
	f->options.resume_instances_len = 2;
	resume_item(f, "web.a", "host-10", 50, 10);
	resume_item(f, "web.b", "host-1", 5, 70);
	resume_item(f, "web.c", "web-77", 6, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 1, PATCH("web.c"));
	http_server_check_saw(&f->server, 1, "\"count\":7,");
}

/* People hear of it once, and no further list is asked for. */
static void test_without_the_right_series_begin_anew(void **state)
{
	struct resume_fixture *f = *state;

	resume_reply(f, TURN_REPLY, FORBIDDEN);
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	resume_record(f, "db");
	assert_int_equal(resume_flush(f).created, 2);
	assert_int_equal(http_server_requests(&f->server), 3);
	assert_string_equal(f->errors, "forbidden: kubernetes: resume: listing events is forbidden "
	                               "(list events.events.k8s.io); series begin anew\n");
}

/* With "auto" core/v1 is listed if the other API is missing. */
static void test_core_is_listed_in_its_place(void **state)
{
	struct resume_fixture *f = *state;

	f->options.common.api = EVREC_SINK_AUTO;
	resume_reply(f, TURN_REPLY, HTTP_NO_PAGE);
	buf_printf(&f->items,
	           "{\"metadata\":{\"name\":\"web.old\",\"namespace\":\"shop\"},\"eventTime\":\"2200-01-01T00:00:00."
	           "000000Z\","
	           "\"reportingComponent\":\"ctl\",\"reportingInstance\":\"me\",\"action\":\"Run\",\"reason\":\"Run\","
	           "\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web\"},\"type\":\"Normal\","
	           "\"message\":\"old\"}");
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 0, LIST);
	http_server_check_saw(&f->server, 1,
	                      "GET /api/v1/events?limit=500&fieldSelector=reportingComponent%3Dctl HTTP");
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
}

static void test_failure_is_tried_again(void **state)
{
	struct resume_fixture *f = *state;

	resume_reply(f, TURN_REPLY, HTTP_REPLY("500 Error", "", "oops"));
	resume_item(f, "web.old", "me", 5, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 1, LIST " HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
	assert_string_equal(f->errors, "");
}

/* An answer that is no list ends it at once. */
static void test_answer_that_is_no_list_is_told(void **state)
{
	struct resume_fixture *f = *state;

	resume_reply(f, TURN_REPLY, HTTP_REPLY("200 OK", "", "<html>"));
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	assert_int_equal(resume_flush(f).created, 1);
	unit_check_contains(f->errors, "resume: kubernetes: resume: the events of ctl were not listed (no list");
}

static void test_long_message_is_cut_between_characters(void **state)
{
	struct resume_fixture *f = *state;
	struct buf *reply = &f->replies[0];

	buf_printf(reply, HTTP_REPLY("422 Invalid", "", "{\"kind\":\"Status\",\"message\":\""));
	for (int i = 0; i < 50; i++) {
		buf_printf(reply, "\xE2\x82\xAC");
	}
	buf_printf(reply, "\"}");
	resume_reply(f, TURN_REPLY, buf_cstr(reply));
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	unit_check_contains(f->errors, "\xE2\x82\xAC); its series begin anew");
}

/* A page as long as an API server's. */
static void test_long_page_is_read_whole(void **state)
{
	struct resume_fixture *f = *state;
	char name[32];

	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "web.%d", i);
		resume_item(f, name, i == 499 ? "me" : "you", 5, 60);
		f->items.len--;
		buf_printf(&f->items, ",\"pad\":\"%01500d\"}", 0);
	}
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 1, PATCH("web.499"));
}

/* An answer that is longer than the client takes. */
static void reply_too_long(struct resume_fixture *f)
{
	struct buf *text = &f->replies[f->turns_len];

	buf_printf(text, HTTP_REPLY("200 OK", "", "{\"kind\":\"EventList\",\"metadata\":{},\"items\":[\""));
	http_reply_pad(text, (size_t)5 * 1024 * 1024);
	buf_printf(text, "\"]}");
	resume_reply(f, TURN_REPLY, buf_cstr(text));
}

static void test_page_that_is_too_long_is_asked_for_in_parts(void **state)
{
	struct resume_fixture *f = *state;

	resume_item(f, "web.older", "me", 5, 90);
	resume_page(f, "token");
	reply_too_long(f);
	resume_item(f, "web.old", "me", 7, 60);
	resume_page(f, "");
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	(void)resume_flush(f);
	http_server_check_saw(&f->server, 1, LIST "&continue=token HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 2, "GET /apis/events.k8s.io/v1/events?limit=125&");
	http_server_check_saw(&f->server, 2, "&continue=token HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 3, PATCH("web.old"));
	assert_string_equal(f->errors, "");
}

static void test_event_that_is_too_long_ends_the_listing(void **state)
{
	struct resume_fixture *f = *state;

	for (int i = 0; i < 5; i++) {
		reply_too_long(f);
	}
	resume_reply(f, TURN_REPLY, CREATED);
	resume_start(f);
	resume_record(f, "web");
	assert_int_equal(resume_flush(f).created, 1);
	http_server_check_saw(&f->server, 4, "GET /apis/events.k8s.io/v1/events?limit=1&");
	http_server_check_saw(&f->server, 5, POST);
	unit_check_contains(f->errors, "the events of ctl were not listed (a page of 1 event is longer than 4 MiB)");
}

static void check_refused(evrec_kubernetes_options *options, const char *message)
{
	evrec_error err = { 0 };

	assert_null(evrec_sink_kubernetes(options, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, message);
}

static void test_options_are_checked(void **state)
{
	const evrec_str wrong[] = { EVREC_STR("a*b"), EVREC_STR("") };
	evrec_kubernetes_options options;

	(void)state;
	evrec_kubernetes_options_init(&options);
	options.server = EVREC_STR("https://s");
	options.resume = true;
	check_refused(&options, "resume: only with series");
	options.common.api = EVREC_SINK_AUTO;
	options.common.correlate = EVREC_CORRELATE_RECORD;
	check_refused(&options, "resume: only with series");
	options.common.correlate = EVREC_CORRELATE_BY_API;
	for (size_t i = 0; i < 2; i++) {
		options.resume_instances = &wrong[i];
		options.resume_instances_len = 1;
		check_refused(&options, "resume_instances: must have 1 to 128 bytes each, and a '*' at the end");
	}
	options.resume = false;
	check_refused(&options, "resume_instances: only together with resume");
}

#define RESUME_TEST(name) cmocka_unit_test_setup_teardown(name, resume_setup, resume_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESUME_TEST(test_series_goes_on),
		RESUME_TEST(test_single_event_becomes_a_series),
		RESUME_TEST(test_pipeline_takes_over_what_was_found),
		RESUME_TEST(test_evicted_series_begins_anew),
		RESUME_TEST(test_pages_are_read_to_the_last),
		RESUME_TEST(test_expired_token_starts_over_once),
		RESUME_TEST(test_second_expiry_is_told),
		RESUME_TEST(test_others_events_are_left_alone),
		RESUME_TEST(test_named_instances_are_taken_over),
		RESUME_TEST(test_without_the_right_series_begin_anew),
		RESUME_TEST(test_core_is_listed_in_its_place),
		RESUME_TEST(test_failure_is_tried_again),
		RESUME_TEST(test_answer_that_is_no_list_is_told),
		RESUME_TEST(test_long_message_is_cut_between_characters),
		RESUME_TEST(test_long_page_is_read_whole),
		RESUME_TEST(test_page_that_is_too_long_is_asked_for_in_parts),
		RESUME_TEST(test_event_that_is_too_long_ends_the_listing),
		cmocka_unit_test(test_options_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

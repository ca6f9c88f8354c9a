/* The Kubernetes sink with `resume`: what is listed, what is adopted, and what becomes of creates meanwhile. */
#include "http_server.h"
#include "stats_invariants.h"

#define LIST "GET /apis/events.k8s.io/v1/events?limit=500&fieldSelector=reportingController%3Dctl"
#define POST "POST /apis/events.k8s.io/v1/namespaces/shop/events HTTP/1.1\r\n"
#define PATCH(name) "PATCH /apis/events.k8s.io/v1/namespaces/shop/events/" name " HTTP/1.1\r\n"
#define CREATED HTTP_REPLY("201 Created", "", "{\"kind\":\"Event\",\"metadata\":{\"name\":\"stored\"}}")
#define PATCHED HTTP_REPLY("200 OK", "", "{\"kind\":\"Event\",\"metadata\":{\"name\":\"web.old\"}}")
#define FORBIDDEN HTTP_REPLY("403 Forbidden", "", "{\"kind\":\"Status\",\"message\":\"events is forbidden\"}")
#define EXPIRED HTTP_REPLY("410 Gone", "", "{\"kind\":\"Status\",\"message\":\"too old\"}")
#define NO_PAGE HTTP_REPLY("404 Not Found", "", "404 page not found\n")
#define MANY 6 /* replies of one test */

struct fixture {
	struct http_server server;
	struct http_turn turns[MANY];
	size_t turns_len;
	struct buf replies[MANY], items;
	evrec_kubernetes_options options;
	evrec_sink *sink;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch, *events;
	char errors[1024];
};

static void on_error(void *ctx, const char *message, const char *name)
{
	struct fixture *f = ctx;
	const size_t len = strlen(f->errors);

	(void)snprintf(f->errors + len, sizeof(f->errors) - len, "%s: %s\n", name, message);
}

/* The server's next turn. */
static void reply(struct fixture *f, enum turn_kind kind, const char *text)
{
	assert_true(f->turns_len < MANY);
	f->turns[f->turns_len++] = (struct http_turn){ kind, text };
}

/* An event of the pod shop/web, of the controller "ctl", last seen `age` seconds ago; a count below 2: no series. */
static void item(struct fixture *f, const char *name, const char *instance, int count, int age)
{
	char first[EVREC_RFC3339_SIZE], last[EVREC_RFC3339_SIZE];

	(void)evrec_rfc3339_format(evrec_clock_now(evrec_clock_real()) - 7200 * EVREC_SECOND, true, first);
	(void)evrec_rfc3339_format(evrec_clock_now(evrec_clock_real()) - age * EVREC_SECOND, true, last);
	buf_printf(&f->items,
	           "%s{\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\"},\"eventTime\":\"%s\","
	           "\"reportingController\":\"ctl\",\"reportingInstance\":\"%s\",\"action\":\"Run\",\"reason\":\"Run\","
	           "\"regarding\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web\"},\"type\":\"Normal\","
	           "\"note\":\"old\"",
	           f->items.len != 0 ? "," : "", name, count < 2 ? last : first, instance);
	if (count >= 2) {
		buf_printf(&f->items, ",\"series\":{\"count\":%d,\"lastObservedTime\":\"%s\"}", count, last);
	}
	buf_printf(&f->items, "}");
}

/* The next turn is a page of the items since the last one. */
static void page(struct fixture *f, const char *next)
{
	struct buf *text = &f->replies[f->turns_len];

	buf_printf(
		text,
		HTTP_REPLY("200 OK", "", "{\"kind\":\"EventList\",\"metadata\":{\"continue\":\"%s\"},\"items\":[%s]}"),
		next, buf_cstr(&f->items));
	buf_clear(&f->items);
	reply(f, TURN_REPLY, buf_cstr(text));
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	http_server_bind(&f->server, "");
	evrec_kubernetes_options_init(&f->options);
	f->options.server = str_from(f->server.url);
	f->options.common.threadless = true;
	f->options.common.api = EVREC_SINK_EVENTS_V1;
	f->options.resume = true;
	*state = f;
	return 0;
}

static void start(struct fixture *f)
{
	evrec_broadcaster_options options;
	evrec_recorder_options of_recorder;
	evrec_error err = { 0 };

	http_server_start(&f->server, f->turns, f->turns_len);
	evrec_broadcaster_options_init(&options);
	options.on_error = on_error;
	options.ctx = f;
	f->b = evrec_broadcaster_new(&options, &err);
	assert_non_null(f->b);
	f->sink = evrec_sink_kubernetes(&f->options, &err);
	assert_string_equal(err.message, "");
	f->watch = evrec_broadcaster_start_recording_to_sink(f->b, f->sink, NULL, &err);
	f->events = evrec_broadcaster_watch(f->b, 100, &err);
	evrec_recorder_options_init(&of_recorder);
	of_recorder.component = EVREC_STR("ctl");
	of_recorder.instance = EVREC_STR("me");
	f->r = evrec_recorder_new(f->b, &of_recorder, &err);
	assert_non_null(f->r);
}

static void record(struct fixture *f, const char *pod)
{
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"), .name = str_from(pod), .ns = EVREC_STR("shop") };
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &regarding;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("Run");
	emit.note = EVREC_STR("new");
	assert_int_equal(evrec_recorder_emit(f->r, &emit, NULL), 0);
}

static evrec_sink_stats flush(struct fixture *f)
{
	assert_int_equal(evrec_broadcaster_flush(f->b, SOON, NULL), 0);
	return stats_check_equations(f->b);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->b != NULL) {
		(void)evrec_broadcaster_shutdown(f->b, 0, NULL);
		evrec_watch_free(f->watch);
		evrec_watch_free(f->events);
		evrec_recorder_free(f->r);
		evrec_broadcaster_free(f->b);
		evrec_sink_release(f->sink);
		http_server_stop(&f->server);
	}
	for (size_t i = 0; i < MANY; i++) {
		buf_free(&f->replies[i]);
	}
	buf_free(&f->items);
	free(f);
	return 0;
}

/* Three occurrences wait for the list: they are one patch of the event that is there. */
static void test_series_goes_on(void **state)
{
	struct fixture *f = *state;
	evrec_sink_stats s;

	item(f, "web.old", "me", 5, 60);
	page(f, "");
	reply(f, TURN_REPLY, PATCHED);
	start(f);
	record(f, "web");
	record(f, "web");
	record(f, "web");
	s = flush(f);
	assert_int_equal(http_server_requests(&f->server), 2);
	http_server_check_saw(&f->server, 0, LIST " HTTP/1.1\r\n");
	http_server_check_not_saw(&f->server, 0, "Content-Length");
	http_server_check_saw(&f->server, 1, PATCH("web.old"));
	http_server_check_saw(&f->server, 1, "{\"series\":{\"count\":8,");
	assert_int_equal(s.created, 0);
	assert_int_equal(s.patched, 1);
	assert_int_equal(s.retries, 0);
	/* The next one is counted on top. */
	record(f, "web");
	(void)flush(f);
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
	http_server_check_saw(&f->server, 2, "{\"series\":{\"count\":9,");
	assert_string_equal(f->errors, "");
}

/* A process that records once in each life. */
static void test_single_event_becomes_a_series(void **state)
{
	struct fixture *f = *state;

	item(f, "web.old", "me", 1, 60);
	page(f, "");
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	(void)flush(f);
	http_server_check_saw(&f->server, 1, PATCH("web.old"));
	http_server_check_saw(&f->server, 1, "{\"series\":{\"count\":2,");
}

/* The pipeline learns of events that no create waits for: they are patched from the first occurrence on. */
static void test_pipeline_takes_over_what_was_found(void **state)
{
	struct fixture *f = *state;
	evrec_event *event;
	bool told = false;

	item(f, "web.old", "me", 5, 60);
	page(f, "");
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "another");
	(void)flush(f);
	http_server_check_saw(&f->server, 1, POST);
	assert_int_equal(stats_check_equations(f->b).series.ongoing, 1);
	while ((event = evrec_watch_next(f->events)) != NULL) {
		told = told || str_eq(evrec_event_fields(event)->series_state, EVREC_STR("Unknown"));
		evrec_event_release(event);
	}
	assert_true(told);
	record(f, "web");
	assert_int_equal(flush(f).created, 1);
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
	http_server_check_saw(&f->server, 2, "{\"series\":{\"count\":6,");
}

/* Of two with one key the latest goes on, wherever it is in the list. */
static void test_pages_are_read_to_the_last(void **state)
{
	struct fixture *f = *state;

	item(f, "web.older", "me", 5, 90);
	page(f, "a/b=");
	item(f, "web.old", "me", 7, 60);
	item(f, "web.oldest", "me", 9, 120);
	page(f, "");
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	(void)flush(f);
	http_server_check_saw(&f->server, 1, LIST "&continue=a%2Fb%3D HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
	http_server_check_saw(&f->server, 2, "\"count\":8,");
}

static void test_expired_token_starts_over_once(void **state)
{
	struct fixture *f = *state;

	item(f, "web.old", "me", 7, 60);
	page(f, "token");
	reply(f, TURN_REPLY, EXPIRED);
	item(f, "web.old", "me", 7, 60);
	page(f, "");
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	(void)flush(f);
	http_server_check_saw(&f->server, 1, LIST "&continue=token HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 2, LIST " HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 3, PATCH("web.old"));
	assert_string_equal(f->errors, "");
}

static void test_second_expiry_is_told(void **state)
{
	struct fixture *f = *state;

	reply(f, TURN_REPLY, EXPIRED);
	reply(f, TURN_REPLY, EXPIRED);
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	(void)flush(f);
	http_server_check_saw(&f->server, 2, POST);
	unit_check_contains(f->errors, "resume: kubernetes: resume: the events of ctl were not listed (410: too old)");
}

/* Neither other instances, nor what is over, nor events in the old style. */
static void test_others_events_are_left_alone(void **state)
{
	struct fixture *f = *state;

	item(f, "web.other", "you", 5, 60);
	item(f, "web.over", "me", 5, 1800 + 360 + 5);
	page(f, "");
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	assert_int_equal(flush(f).created, 1);
	http_server_check_saw(&f->server, 1, POST);
}

static void test_named_instances_are_taken_over(void **state)
{
	static const evrec_str instances[] = { { "host-1", 6 }, { "web-*", 5 } };
	struct fixture *f = *state;

	f->options.resume_instances = instances;
	f->options.resume_instances_len = 2;
	item(f, "web.a", "host-10", 50, 10);
	item(f, "web.b", "host-1", 5, 70);
	item(f, "web.c", "web-77", 6, 60);
	page(f, "");
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	(void)flush(f);
	http_server_check_saw(&f->server, 1, PATCH("web.c"));
	http_server_check_saw(&f->server, 1, "\"count\":7,");
}

/* People hear of it once, and no further list is asked for. */
static void test_without_the_right_series_begin_anew(void **state)
{
	struct fixture *f = *state;

	reply(f, TURN_REPLY, FORBIDDEN);
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	record(f, "db");
	assert_int_equal(flush(f).created, 2);
	assert_int_equal(http_server_requests(&f->server), 3);
	assert_string_equal(f->errors, "forbidden: kubernetes: resume: listing events is forbidden "
	                               "(list events.events.k8s.io); series begin anew\n");
}

/* With "auto" core/v1 is listed if the other API is missing. */
static void test_core_is_listed_in_its_place(void **state)
{
	struct fixture *f = *state;

	f->options.common.api = EVREC_SINK_AUTO;
	reply(f, TURN_REPLY, NO_PAGE);
	buf_printf(&f->items,
	           "{\"metadata\":{\"name\":\"web.old\",\"namespace\":\"shop\"},\"eventTime\":\"2200-01-01T00:00:00."
	           "000000Z\","
	           "\"reportingComponent\":\"ctl\",\"reportingInstance\":\"me\",\"action\":\"Run\",\"reason\":\"Run\","
	           "\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web\"},\"type\":\"Normal\","
	           "\"message\":\"old\"}");
	page(f, "");
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	(void)flush(f);
	http_server_check_saw(&f->server, 0, LIST);
	http_server_check_saw(&f->server, 1,
	                      "GET /api/v1/events?limit=500&fieldSelector=reportingComponent%3Dctl HTTP");
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
}

static void test_failure_is_tried_again(void **state)
{
	struct fixture *f = *state;

	reply(f, TURN_REPLY, HTTP_REPLY("500 Error", "", "oops"));
	item(f, "web.old", "me", 5, 60);
	page(f, "");
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	(void)flush(f);
	http_server_check_saw(&f->server, 1, LIST " HTTP/1.1\r\n");
	http_server_check_saw(&f->server, 2, PATCH("web.old"));
	assert_string_equal(f->errors, "");
}

/* An answer that is no list ends it at once. */
static void test_answer_that_is_no_list_is_told(void **state)
{
	struct fixture *f = *state;

	reply(f, TURN_REPLY, HTTP_REPLY("200 OK", "", "<html>"));
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	assert_int_equal(flush(f).created, 1);
	unit_check_contains(f->errors, "resume: kubernetes: resume: the events of ctl were not listed (no list");
}

/* The end of a sender frees what is held. */
static void test_end_while_a_create_is_held(void **state)
{
	struct fixture *f = *state;
	evrec_sink_stats s;

	reply(f, TURN_MUTE, NULL);
	start(f);
	record(f, "web");
	record(f, "db");
	while (http_server_requests(&f->server) == 0) {
		evrec_broadcaster_poll(f->b);
	}
	assert_int_equal(stats_check_equations(f->b).pending, 2);
	assert_int_not_equal(evrec_broadcaster_shutdown(f->b, EVREC_SECOND / 100, NULL), 0);
	s = stats_check_equations(f->b);
	assert_int_equal(s.dropped[EVREC_CAUSE_CLOSED], 2);
}

/* A page as long as an API server's. */
static void test_long_page_is_read_whole(void **state)
{
	struct fixture *f = *state;
	char name[32];

	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "web.%d", i);
		item(f, name, i == 499 ? "me" : "you", 5, 60);
		f->items.len--;
		buf_printf(&f->items, ",\"pad\":\"%01500d\"}", 0);
	}
	page(f, "");
	reply(f, TURN_REPLY, CREATED);
	start(f);
	record(f, "web");
	(void)flush(f);
	http_server_check_saw(&f->server, 1, PATCH("web.499"));
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

#define RESUME_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESUME_TEST(test_series_goes_on),
		RESUME_TEST(test_single_event_becomes_a_series),
		RESUME_TEST(test_pipeline_takes_over_what_was_found),
		RESUME_TEST(test_pages_are_read_to_the_last),
		RESUME_TEST(test_expired_token_starts_over_once),
		RESUME_TEST(test_second_expiry_is_told),
		RESUME_TEST(test_others_events_are_left_alone),
		RESUME_TEST(test_named_instances_are_taken_over),
		RESUME_TEST(test_without_the_right_series_begin_anew),
		RESUME_TEST(test_core_is_listed_in_its_place),
		RESUME_TEST(test_failure_is_tried_again),
		RESUME_TEST(test_answer_that_is_no_list_is_told),
		RESUME_TEST(test_end_while_a_create_is_held),
		RESUME_TEST(test_long_page_is_read_whole),
		cmocka_unit_test(test_options_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The Kubernetes sink and the two APIs: paths, and core/v1 in place of events.k8s.io/v1. */
#include "kubernetes_fixture.h"

#define CORE "/api/v1/namespaces/shop/events"
#define EVENTS "/apis/events.k8s.io/v1/namespaces/shop/events"
#define FORBIDDEN(group)                                                                                               \
	HTTP_REPLY("403 Forbidden", "",                                                                                \
	           "{\"kind\":\"Status\",\"message\":\"" group                                                         \
	           " is forbidden: User \\\"u\\\" cannot create resource\"}")
#define FORBIDDEN_CORE FORBIDDEN("events")
#define FORBIDDEN_EVENTS FORBIDDEN("events.events.k8s.io")
#define NO_NAMESPACE                                                                                                   \
	HTTP_REPLY("404 Not Found", "",                                                                                \
	           "{\"kind\":\"Status\",\"message\":\"namespaces \\\"shop\\\" not found\","                           \
	           "\"details\":{\"name\":\"shop\",\"kind\":\"namespaces\"}}")
#define NO_EVENT                                                                                                       \
	HTTP_REPLY("404 Not Found", "",                                                                                \
	           "{\"kind\":\"Status\",\"message\":\"events \\\"n1\\\" not found\","                                 \
	           "\"details\":{\"name\":\"n1\",\"kind\":\"events\"}}")

static void open_with(struct kubernetes_fixture *f, enum evrec_sink_api api, const struct http_turn *turns, size_t n)
{
	kubernetes_fixture_prepare(f, "");
	f->options.common.api = api;
	http_server_start(&f->server, turns, n);
	kubernetes_fixture_open_sender(f, true);
}

static void check_no_message(struct kubernetes_fixture *f)
{
	struct outbox_message message;

	assert_false(outbox_next_message(f->ob, &message));
}

/* The old style goes by core/v1 whatever the option is. */
static void test_api_is_that_of_the_option(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	open_with(&f, EVREC_SINK_EVENTS_V1, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 0, "POST " EVENTS " HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 0, "\r\nContent-Type: application/json\r\n");
	fake_write_submit(f.ob, 1, 2);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 1, "PATCH " EVENTS "/stored HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 1, "\r\nContent-Type: application/strategic-merge-patch+json\r\n");
	kubernetes_fixture_submit(&f, 2, VERB_CREATE, "old-1");
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 2, "POST " CORE " HTTP/1.1\r\n");
	check_no_message(&f);
	kubernetes_fixture_close(&f);
}

/* The write is sent again at once, and so are those that wait; people hear of it once. */
static void test_forbidden_api_is_left_for_core(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	open_with(&f, EVREC_SINK_AUTO, TURNS({ TURN_REPLY, FORBIDDEN_EVENTS }, { TURN_REPLY, CREATED(EVENT) }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 0, "POST " EVENTS " HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 1, "POST " CORE " HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 1, "{\"name\":\"n1\"");
	fake_write_submit(f.ob, 1, 2);
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 4);
	http_server_check_saw(&f.server, 2, CORE);
	http_server_check_saw(&f.server, 3, CORE);
	assert_int_equal(kubernetes_fixture_stats(&f).created, 2);
	assert_int_equal(kubernetes_fixture_stats(&f).patched, 1);
	assert_int_equal(kubernetes_fixture_stats(&f).retries, 0);
	kubernetes_fixture_check_message(&f, "forbidden",
	                                 "events.k8s.io/v1 is forbidden (create events.events.k8s.io); using core/v1");
	check_no_message(&f);
	kubernetes_fixture_close(&f);
}

/* Also in the middle of its life, and for a patch, which stays a patch. */
static void test_missing_api_is_left_for_core(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	open_with(&f, EVREC_SINK_AUTO,
	          TURNS({ TURN_REPLY, CREATED(EVENT) }, { TURN_REPLY, HTTP_NO_PAGE }, { TURN_REPLY, CREATED(EVENT) }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	fake_write_submit(f.ob, 1, 2);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 1, "PATCH " EVENTS "/stored HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 2, "PATCH " CORE "/stored HTTP/1.1\r\n");
	assert_int_equal(kubernetes_fixture_stats(&f).patched, 1);
	kubernetes_fixture_check_message(&f, "not_found", "the server does not have events.k8s.io/v1; using core/v1");
	check_no_message(&f);
	kubernetes_fixture_close(&f);
}

/* All requests that are under way meanwhile are sent again too, perhaps before the server has seen the last of them. */
static void test_requests_under_way_are_sent_again(void **state)
{
	enum { N = 4 }; /* requests at once */
	const struct http_turn turn = { TURN_REPLY, CREATED(EVENT) };
	struct kubernetes_fixture f;

	(void)state;
	kubernetes_fixture_prepare(&f, "");
	f.options.common.api = EVREC_SINK_AUTO;
	f.options.max_in_flight = N;
	f.server.missing = EVENTS;
	http_server_start(&f.server, &turn, 1);
	kubernetes_fixture_open_sender(&f, true);
	for (unsigned i = 1; i <= N; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(kubernetes_fixture_stats(&f).created, N);
	assert_int_equal(kubernetes_fixture_stats(&f).retries, 0);
	kubernetes_fixture_check_message(&f, "not_found", "using core/v1");
	check_no_message(&f);
	kubernetes_fixture_close(&f);
}

/* An account without any right stays with events.k8s.io/v1, whose permission the message names; later it asks again. */
static void test_account_without_rights_asks_again(void **state)
{
	struct kubernetes_fixture f;
	const int64_t later = 60 * EVREC_SECOND; /* than the namespace is blocked */

	(void)state;
	open_with(&f, EVREC_SINK_AUTO,
	          TURNS({ TURN_REPLY, FORBIDDEN_EVENTS }, { TURN_REPLY, FORBIDDEN_CORE },
	                { TURN_REPLY, CREATED(EVENT) }, { TURN_REPLY, FORBIDDEN_EVENTS }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 2);
	assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_FORBIDDEN], 1);
	kubernetes_fixture_check_message(&f, "forbidden", "POST: 403: events.events.k8s.io is forbidden: User ");
	check_no_message(&f);
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, later);
	http_server_check_saw(&f.server, 2, "POST " EVENTS " HTTP/1.1\r\n");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
	/* It has been served: what is forbidden now is a namespace. */
	fake_write_submit(f.ob, 3, 1);
	kubernetes_fixture_exchange(&f, later);
	assert_int_equal(http_server_requests(&f.server), 4);
	assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_FORBIDDEN], 2);
	kubernetes_fixture_close(&f);
}

/* A namespace that is missing is missing in both APIs. */
static void test_missing_namespace_is_no_missing_api(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	open_with(&f, EVREC_SINK_AUTO, TURNS({ TURN_REPLY, NO_NAMESPACE }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 1);
	assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_NOT_FOUND], 1);
	kubernetes_fixture_check_message(&f, "not_found", "namespaces \"shop\" not found");
	check_no_message(&f);
	kubernetes_fixture_close(&f);
}

/* A patch whose event is gone is created by the API that said so. */
static void test_missing_event_is_created(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	open_with(&f, EVREC_SINK_AUTO,
	          TURNS({ TURN_REPLY, HTTP_NO_PAGE }, { TURN_REPLY, NO_EVENT }, { TURN_REPLY, CREATED(EVENT) }));
	fake_write_submit(f.ob, 1, 2);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 1, "PATCH " CORE "/n1 HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 2, "POST " CORE " HTTP/1.1\r\n");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
	kubernetes_fixture_close(&f);
}

/* The second request fails: the write backs off, and both APIs are asked again. */
static void test_core_that_fails_decides_nothing(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	open_with(&f, EVREC_SINK_AUTO,
	          TURNS({ TURN_REPLY, FORBIDDEN_EVENTS }, { TURN_REPLY, HTTP_REPLY("500 Error", "", "oops") },
	                { TURN_REPLY, FORBIDDEN_EVENTS }, { TURN_REPLY, CREATED(EVENT) }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_check_message(&f, "server", "POST: 500: oops");
	assert_int_equal(kubernetes_fixture_stats(&f).pending, 1);
	kubernetes_fixture_exchange(&f, 2 * EVREC_SECOND);
	http_server_check_saw(&f.server, 2, "POST " EVENTS " HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 3, "POST " CORE " HTTP/1.1\r\n");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
	kubernetes_fixture_check_message(&f, "forbidden", "using core/v1");
	kubernetes_fixture_close(&f);
}

/* A write in the old style has been asked of core/v1 alone, which is all that there is to ask. */
static void test_refusal_of_the_old_style_is_no_news(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	open_with(&f, EVREC_SINK_AUTO, TURNS({ TURN_REPLY, FORBIDDEN_CORE }, { TURN_REPLY, CREATED(EVENT) }));
	kubernetes_fixture_submit(&f, 1, VERB_CREATE, "old-1");
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 1);
	assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_FORBIDDEN], 1);
	kubernetes_fixture_close(&f);
}

/* Without "auto" nothing falls back, and the message says what is wrong. */
static void test_fixed_api_does_not_fall_back(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	open_with(&f, EVREC_SINK_EVENTS_V1, TURNS({ TURN_REPLY, HTTP_NO_PAGE }, { TURN_REPLY, FORBIDDEN_EVENTS }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_NOT_FOUND], 1);
	kubernetes_fixture_check_message(&f, "not_found", "POST: 404: the server does not have events.k8s.io/v1");
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_FORBIDDEN], 1);
	assert_int_equal(http_server_requests(&f.server), 2);
	kubernetes_fixture_close(&f);
}

/* A sender that ends while a write is to be sent again frees it. */
static void test_end_while_a_write_is_asked_about(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	open_with(&f, EVREC_SINK_AUTO, TURNS({ TURN_REPLY, FORBIDDEN_EVENTS }, { TURN_MUTE, NULL }));
	fake_write_submit(f.ob, 1, 1);
	while (http_server_requests(&f.server) < 2) {
		sender_step(f.sender);
	}
	assert_int_equal(kubernetes_fixture_stats(&f).in_flight, 1);
	kubernetes_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_api_is_that_of_the_option),
		cmocka_unit_test(test_forbidden_api_is_left_for_core),
		cmocka_unit_test(test_missing_api_is_left_for_core),
		cmocka_unit_test(test_requests_under_way_are_sent_again),
		cmocka_unit_test(test_account_without_rights_asks_again),
		cmocka_unit_test(test_missing_namespace_is_no_missing_api),
		cmocka_unit_test(test_missing_event_is_created),
		cmocka_unit_test(test_core_that_fails_decides_nothing),
		cmocka_unit_test(test_refusal_of_the_old_style_is_no_news),
		cmocka_unit_test(test_fixed_api_does_not_fall_back),
		cmocka_unit_test(test_end_while_a_write_is_asked_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The writes of a batch are written, dropped or sent again, by each answer of a receiver. */
#include "otlp_fixture.h"

#define S EVREC_SECOND

static void test_a_batch_is_written_by_one_request(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 1);
	otlp_fixture_check_names(&f, 0, "n1:1 n2:1 n3:1 n4:1");
	http_server_check_saw(&f.server, 0, "POST /v1/logs HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 0, "\r\nContent-Type: application/json\r\n");
	http_server_check_not_saw(&f.server, 0, "Content-Encoding");
	OTLP_WRITTEN(&f, 1, 2, 3, 4);
	assert_int_equal(otlp_fixture_stats(&f).created, 4);
	otlp_fixture_check_silent(&f);
	otlp_fixture_close(&f);
}

/* Not of another event: those go meanwhile. */
static void test_an_event_in_flight_is_not_sent_again_before_its_answer(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	sender_step(f.sender);
	assert_int_equal(otlp_fixture_stats(&f).in_flight, 4);
	assert_true(fake_write_submit(f.ob, 1, 2));
	assert_true(fake_write_submit(f.ob, 1, 3));
	outbox_release_all(f.ob, 0);
	assert_null(outbox_take(f.ob, 0));
	otlp_fixture_flush(&f, 0);
	otlp_fixture_flush(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 2);
	otlp_fixture_check_names(&f, 1, "n1:3");
	assert_int_equal(otlp_fixture_stats(&f).patched, 1);
	otlp_fixture_close(&f);
}

static void test_rejected_records_are_dropped_and_told_once(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_REPLY, OTLP_REJECTED(3, "too old") }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	OTLP_WRITTEN(&f, 1);
	OTLP_DROPPED(&f, 2, 3, 4);
	assert_int_equal(otlp_fixture_count_dropped(&f, EVREC_CAUSE_REJECTED), 3);
	otlp_fixture_check_message(&f, "rejected", "rejected 3 of 4 records: too old");
	otlp_fixture_check_silent(&f);
	otlp_fixture_exchange(&f, 3600 * S);
	assert_int_equal(http_server_requests(&f.server), 1);
	otlp_fixture_close(&f);
}

static void test_more_rejected_records_than_were_sent_are_the_batch(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_REPLY, OTLP_REJECTED(9, "") }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(otlp_fixture_count_dropped(&f, EVREC_CAUSE_REJECTED), 4);
	otlp_fixture_close(&f);
}

/* A receiver may give a reason for each record. */
static void test_a_long_answer_is_read_to_its_end(void **state)
{
	struct otlp_fixture f;
	struct buf reply = { 0 };

	(void)state;
	buf_put_str(&reply, EVREC_STR("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
	                              "{\"partialSuccess\":{\"errorMessage\":\""));
	http_reply_pad(&reply, 300 * 1024);
	buf_put_str(&reply, EVREC_STR("\",\"rejectedLogRecords\":\"3\"}}"));
	otlp_fixture_open(&f, TURNS({ TURN_REPLY, buf_cstr(&reply) }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(otlp_fixture_count_dropped(&f, EVREC_CAUSE_REJECTED), 3);
	otlp_fixture_close(&f);
	buf_free(&reply);
}

static void test_an_answer_that_forbids_a_retry_drops_the_batch(void **state)
{
	static const struct {
		const char *answer, *name;
		enum evrec_cause cause;
	} cases[] = {
		{ OTLP_ANSWER("400 Bad Request", "no"), "rejected", EVREC_CAUSE_REJECTED },
		{ OTLP_ANSWER("401 Unauthorized", "no"), "forbidden", EVREC_CAUSE_FORBIDDEN },
		{ OTLP_ANSWER("403 Forbidden", "no"), "forbidden", EVREC_CAUSE_FORBIDDEN },
		{ OTLP_ANSWER("404 Not Found", "no"), "rejected", EVREC_CAUSE_REJECTED },
		{ OTLP_ANSWER("408 Request Timeout", "no"), "rejected", EVREC_CAUSE_REJECTED },
		{ OTLP_ANSWER("415 Unsupported", "no"), "rejected", EVREC_CAUSE_REJECTED },
		{ OTLP_ANSWER("500 Internal", "no"), "rejected", EVREC_CAUSE_REJECTED },
		{ HTTP_REDIRECT, "rejected", EVREC_CAUSE_REJECTED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct otlp_fixture f;

		otlp_fixture_open(&f, TURNS({ TURN_REPLY, cases[i].answer }));
		otlp_fixture_submit(&f, 1, 4);
		otlp_fixture_exchange(&f, 0);
		assert_int_equal(otlp_fixture_count_dropped(&f, cases[i].cause), 4);
		assert_int_equal(http_server_requests(&f.server), 1);
		otlp_fixture_check_message(&f, cases[i].name, "POST: ");
		otlp_fixture_check_silent(&f);
		otlp_fixture_close(&f);
	}
}

/* The writes of the batch come back as one, whatever else they meet. */
static void check_retried(const char *answer, enum turn_kind kind, const char *name, int64_t pause)
{
	struct otlp_fixture f;
	int64_t due;

	otlp_fixture_open(&f, TURNS({ kind, answer }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 1);
	otlp_fixture_check_message(&f, name, "POST: ");
	otlp_fixture_check_silent(&f);
	due = pause != 0 ? pause : outbox_next_due(f.ob, 0);
	otlp_fixture_exchange(&f, due > 0 ? due - 1 : 0);
	assert_int_equal(http_server_requests(&f.server), 1);
	otlp_fixture_exchange(&f, due);
	assert_int_equal(http_server_requests(&f.server), 2);
	assert_int_equal(otlp_fixture_stats(&f).created, 4);
	assert_int_equal(otlp_fixture_stats(&f).retries, 4);
	otlp_fixture_close(&f);
}

static void test_a_failed_batch_comes_back_as_one(void **state)
{
	(void)state;
	check_retried(HTTP_RETRY_AFTER_7, TURN_REPLY, "throttled", 7 * S);
	check_retried(HTTP_REPLY("503 Unavailable", "Retry-After: 9\r\n", ""), TURN_REPLY, "server", 9 * S);
	check_retried(OTLP_ANSWER("502 Bad Gateway", "no"), TURN_REPLY, "server", 0);
	check_retried(OTLP_ANSWER("504 Gateway Timeout", "no"), TURN_REPLY, "server", 0);
	check_retried(NULL, TURN_RESET, "transport", 0);
}

/* `path` behind the server's address. True: the message of a 404 asks for /v1/logs. */
static bool asks_for_path(const char *path)
{
	struct outbox_message message;
	struct otlp_fixture f;

	otlp_fixture_prepare(&f);
	(void)snprintf(f.endpoint, sizeof(f.endpoint), "%s%s", f.server.url, path);
	f.options.endpoint = str_from(f.endpoint);
	http_server_start(&f.server, TURNS({ TURN_REPLY, OTLP_ANSWER("404 Not Found", "404 page not found") }));
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	assert_true(outbox_next_message(f.ob, &message));
	assert_non_null(strstr(message.message, "POST: 404: 404 page not found"));
	OTLP_DROPPED(&f, 1, 2, 3, 4);
	otlp_fixture_close(&f);
	return strstr(message.message, "not found (the endpoint is used as it is: is /v1/logs missing?)") != NULL;
}

static void test_a_404_without_a_path_asks_for_the_path(void **state)
{
	(void)state;
	assert_true(asks_for_path(""));
	assert_true(asks_for_path("/"));
	assert_false(asks_for_path("/v1/logs"));
	assert_false(asks_for_path("/otlp/"));
}

static void test_an_answer_that_is_no_http_asks_for_the_port(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_REPLY, "SETTINGS of HTTP/2" }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	otlp_fixture_check_message(&f, "transport",
	                           "(is this a port for gRPC? evrec needs the one for HTTP, usually 4318)");
	assert_int_equal(otlp_fixture_stats(&f).pending, 4);
	otlp_fixture_close(&f);
}

#define CUT(status, type, body) "HTTP/1.1 " status "\r\nContent-Length: 100\r\nContent-Type: " type "\r\n\r\n" body

/* A receiver may break the connection rather than read a body to its end. */
static void test_an_answer_that_is_cut_may_say_too_large(void **state)
{
	static const char *const answers[] = {
		CUT("413 Too Large", "text/plain", ""),
		CUT("400 Bad Request", "text/plain", "http: request body too large"),
		CUT("400 Bad Request", "application/json", "{\"code\":3,\"message\":\"http: request body too large"),
		CUT("400 Bad Request", "application/x-protobuf", "\010\003\022\060http: request body too large"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct otlp_fixture f;

		otlp_fixture_open(&f, TURNS({ TURN_REPLY, answers[i] }, { TURN_KEEP, OTLP_TAKEN }));
		otlp_fixture_submit(&f, 1, 4);
		otlp_fixture_exchange(&f, 0);
		otlp_fixture_check_names(&f, 1, "n1:1 n2:1");
		otlp_fixture_check_names(&f, 2, "n3:1 n4:1");
		OTLP_WRITTEN(&f, 1, 2, 3, 4);
		assert_int_equal(otlp_fixture_stats(&f).retries, 0);
		otlp_fixture_check_silent(&f);
		otlp_fixture_close(&f);
	}
	check_retried(CUT("400 Bad Request", "text/plain", "no"), TURN_REPLY, "transport", 0);
	check_retried(CUT("200 OK", "text/plain", "too large"), TURN_REPLY, "transport", 0);
}

/* The head of a refusal is enough. */
static void test_a_refusal_that_is_cut_slows_the_sink_down(void **state)
{
	(void)state;
	check_retried("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\nno", TURN_REPLY, "throttled",
	              7 * S);
	check_retried("HTTP/1.1 503 Away\r\nRetry-After: 9\r\nContent-Length: 100\r\n\r\n", TURN_REPLY, "server",
	              9 * S);
}

/* As a server does that knows nothing of OTLP. */
static void test_a_web_page_is_told_once(void **state)
{
	static const char page[] =
		"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 6\r\n\r\n<html>";
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_KEEP, page }, { TURN_KEEP, OTLP_TAKEN }, { TURN_KEEP, page }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	OTLP_WRITTEN(&f, 1, 2, 3, 4);
	otlp_fixture_check_message(&f, "warning", "POST: 200 with a web page (text/html)");
	/* Another message in between would let an equal one pass. */
	outbox_report(f.ob, "test", "another");
	otlp_fixture_check_message(&f, "test", "another");
	for (unsigned batch = 1; batch <= 2; batch++) {
		otlp_fixture_submit(&f, 4 * batch + 1, 4 * batch + 4);
		otlp_fixture_exchange(&f, 0);
	}
	assert_int_equal(http_server_requests(&f.server), 3);
	assert_int_equal(otlp_fixture_stats(&f).created, 12);
	otlp_fixture_check_silent(&f);
	otlp_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_batch_is_written_by_one_request),
		cmocka_unit_test(test_an_event_in_flight_is_not_sent_again_before_its_answer),
		cmocka_unit_test(test_rejected_records_are_dropped_and_told_once),
		cmocka_unit_test(test_more_rejected_records_than_were_sent_are_the_batch),
		cmocka_unit_test(test_a_long_answer_is_read_to_its_end),
		cmocka_unit_test(test_an_answer_that_forbids_a_retry_drops_the_batch),
		cmocka_unit_test(test_a_failed_batch_comes_back_as_one),
		cmocka_unit_test(test_a_404_without_a_path_asks_for_the_path),
		cmocka_unit_test(test_an_answer_that_is_no_http_asks_for_the_port),
		cmocka_unit_test(test_an_answer_that_is_cut_may_say_too_large),
		cmocka_unit_test(test_a_refusal_that_is_cut_slows_the_sink_down),
		cmocka_unit_test(test_a_web_page_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

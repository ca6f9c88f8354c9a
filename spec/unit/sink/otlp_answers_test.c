/* What becomes of the writes of a batch: by each answer of a receiver, and in parts if the batch is too large. */
#include "otlp_fixture.h"

#define S EVREC_SECOND

static unsigned count_dropped(struct otlp_fixture *f, enum evrec_cause cause)
{
	return (unsigned)otlp_fixture_stats(f).dropped[cause];
}

static void check_names(struct otlp_fixture *f, size_t request, const char *names)
{
	assert_string_equal(otlp_fixture_names(f, request), names);
}

/* The next written or dropped writes are those of these ids, 0 ends them. */
static void check_collected(struct otlp_fixture *f, bool dropped, const unsigned *ids)
{
	struct entry *entry;

	for (; *ids != 0; ids++) {
		entry = outbox_collect(f->ob, 1);
		assert_non_null(entry);
		assert_int_equal(entry->id, *ids);
		assert_int_equal(entry->dropped, dropped);
		outbox_recycle(f->ob, entry);
	}
}

#define WRITTEN(...) check_collected(&f, false, (const unsigned[]){ __VA_ARGS__, 0 })
#define DROPPED(...) check_collected(&f, true, (const unsigned[]){ __VA_ARGS__, 0 })

static void test_a_batch_is_written_by_one_request(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 1);
	check_names(&f, 0, "n1:1 n2:1 n3:1 n4:1");
	http_server_check_saw(&f.server, 0, "POST /v1/logs HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 0, "\r\nContent-Type: application/json\r\n");
	http_server_check_not_saw(&f.server, 0, "Content-Encoding");
	WRITTEN(1, 2, 3, 4);
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
	check_names(&f, 1, "n1:3");
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
	WRITTEN(1);
	DROPPED(2, 3, 4);
	assert_int_equal(count_dropped(&f, EVREC_CAUSE_REJECTED), 3);
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
	assert_int_equal(count_dropped(&f, EVREC_CAUSE_REJECTED), 4);
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
	assert_int_equal(count_dropped(&f, EVREC_CAUSE_REJECTED), 3);
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
		assert_int_equal(count_dropped(&f, cases[i].cause), 4);
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
	DROPPED(1, 2, 3, 4);
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

static void test_a_batch_that_is_too_large_is_sent_in_halves(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_REPLY, OTLP_ANSWER("413 Too Large", "") }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 3);
	check_names(&f, 1, "n1:1 n2:1");
	check_names(&f, 2, "n3:1 n4:1");
	WRITTEN(1, 2, 3, 4);
	assert_int_equal(otlp_fixture_stats(&f).retries, 0);
	otlp_fixture_check_silent(&f);
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
		check_names(&f, 1, "n1:1 n2:1");
		check_names(&f, 2, "n3:1 n4:1");
		WRITTEN(1, 2, 3, 4);
		assert_int_equal(otlp_fixture_stats(&f).retries, 0);
		otlp_fixture_check_silent(&f);
		otlp_fixture_close(&f);
	}
	check_retried(CUT("400 Bad Request", "text/plain", "no"), TURN_REPLY, "transport", 0);
	check_retried(CUT("200 OK", "text/plain", "too large"), TURN_REPLY, "transport", 0);
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
	WRITTEN(1, 2, 3, 4);
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

static void test_a_single_record_that_is_too_large_is_dropped(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_REPLY, OTLP_ANSWER("413 Too Large", "") },
	                            { TURN_REPLY, OTLP_ANSWER("413 Too Large", "") },
	                            { TURN_REPLY, OTLP_ANSWER("413 Too Large", "") }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	DROPPED(1);
	WRITTEN(2, 3, 4);
	assert_int_equal(count_dropped(&f, EVREC_CAUSE_REJECTED), 1);
	otlp_fixture_check_message(&f, "rejected", "413");
	otlp_fixture_check_silent(&f);
	otlp_fixture_close(&f);
}

/* The first half is written. The part that was refused costs a try; the part behind it, which was not sent, does not. */
static void test_a_part_that_is_refused_ends_its_batch(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 8;
	http_server_start(&f.server, TURNS({ TURN_REPLY, OTLP_ANSWER("413 Too Large", "") }, { TURN_KEEP, OTLP_TAKEN },
	                                   { TURN_REPLY, OTLP_ANSWER("413 Too Large", "") },
	                                   { TURN_REPLY, HTTP_RETRY_AFTER_7 }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 8);
	otlp_fixture_exchange(&f, 0);
	WRITTEN(1, 2, 3, 4);
	check_names(&f, 3, "n5:1 n6:1");
	assert_int_equal(http_server_requests(&f.server), 4);
	otlp_fixture_exchange(&f, 7 * S);
	assert_int_equal(otlp_fixture_stats(&f).created, 8);
	assert_int_equal(otlp_fixture_stats(&f).retries, 2);
	otlp_fixture_close(&f);
}

/* Else each batch would be sent twice. */
static void test_later_batches_are_not_as_large_as_one_that_was_too_large(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 20;
	http_server_start(&f.server,
	                  TURNS({ TURN_REPLY, OTLP_ANSWER("413 Too Large", "") }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 20);
	otlp_fixture_exchange(&f, 0);
	assert_in_range(http_server_requests(&f.server), 3, 5);
	otlp_fixture_submit(&f, 21, 40);
	otlp_fixture_exchange(&f, 0);
	for (size_t i = 1; i < http_server_requests(&f.server); i++) {
		assert_true(strlen(f.server.requests[i]) < strlen(f.server.requests[0]) * 3 / 4);
	}
	assert_int_equal(otlp_fixture_stats(&f).created, 40);
	otlp_fixture_close(&f);
}

#define TOO_LARGE                                                                                                      \
	{                                                                                                              \
		TURN_REPLY, OTLP_ANSWER("400 Bad Request", "the log is too large")                                     \
	}

/* The receiver refuses each body with the first record in it. Then the record is dropped, and later batches are as before. */
static void test_one_record_that_is_refused_costs_later_batches_little(void **state)
{
	struct otlp_fixture f;
	size_t before;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 512;
	http_server_start(&f.server, TURNS(TOO_LARGE, TOO_LARGE, TOO_LARGE, TOO_LARGE, TOO_LARGE, TOO_LARGE, TOO_LARGE,
	                                   TOO_LARGE, TOO_LARGE, TOO_LARGE, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 512);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(count_dropped(&f, EVREC_CAUSE_REJECTED), 1);
	assert_int_equal(otlp_fixture_stats(&f).created, 511);
	before = http_server_requests(&f.server);
	assert_int_equal(before, 10 + 9);
	for (unsigned burst = 1; burst <= 2; burst++) {
		otlp_fixture_submit(&f, burst * 512 + 1, (burst + 1) * 512);
		otlp_fixture_exchange(&f, 0);
	}
	assert_int_equal(otlp_fixture_stats(&f).created, 511 + 2 * 512);
	assert_in_range(http_server_requests(&f.server) - before, 2, 5);
	otlp_fixture_close(&f);
}

/* The first record is refused in a batch of two. The parts of the next batch grow. */
static void test_the_size_of_parts_grows_within_a_batch(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 512;
	http_server_start(&f.server, TURNS(TOO_LARGE, TOO_LARGE, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 2);
	otlp_fixture_flush(&f, 0);
	DROPPED(1);
	WRITTEN(2);
	assert_int_equal(http_server_requests(&f.server), 3);
	otlp_fixture_submit(&f, 3, 500);
	otlp_fixture_flush(&f, 0);
	assert_int_equal(otlp_fixture_stats(&f).created, 499);
	assert_in_range(http_server_requests(&f.server), 3 + 5, 3 + 12);
	otlp_fixture_close(&f);
}

static void test_a_batch_ends_at_its_bytes(void **state)
{
	struct fake_write draft = { .count = 1 };
	struct otlp_fixture f;
	enum evrec_cause cause;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 8;
	f.options.batch_bytes = 5000;
	http_server_start(&f.server, TURNS({ TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	for (unsigned id = 1; id <= 8; id++) {
		const struct occurrence occurrence = { .id = id, .verb = VERB_CREATE, .draft = &draft };

		/* The 5th fits into no body. */
		draft.size = id == 5 ? 6000 : 1500;
		(void)snprintf(draft.name, sizeof(draft.name), "n%u", id);
		assert_true(outbox_submit(f.ob, &occurrence, &cause));
	}
	otlp_fixture_exchange(&f, 0);
	check_names(&f, 0, "n1:1 n2:1");
	check_names(&f, 1, "n3:1 n4:1");
	check_names(&f, 2, "n5:1");
	check_names(&f, 3, "n6:1 n7:1");
	check_names(&f, 4, "n8:1");
	for (size_t i = 0; i < 5; i++) {
		assert_true(strlen(strstr(f.server.requests[i], "\r\n\r\n") + 4) <= 5000 || i == 2);
	}
	assert_int_equal(http_server_requests(&f.server), 5);
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
		cmocka_unit_test(test_a_batch_that_is_too_large_is_sent_in_halves),
		cmocka_unit_test(test_an_answer_that_is_cut_may_say_too_large),
		cmocka_unit_test(test_a_web_page_is_told_once),
		cmocka_unit_test(test_a_single_record_that_is_too_large_is_dropped),
		cmocka_unit_test(test_a_part_that_is_refused_ends_its_batch),
		cmocka_unit_test(test_later_batches_are_not_as_large_as_one_that_was_too_large),
		cmocka_unit_test(test_one_record_that_is_refused_costs_later_batches_little),
		cmocka_unit_test(test_the_size_of_parts_grows_within_a_batch),
		cmocka_unit_test(test_a_batch_ends_at_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

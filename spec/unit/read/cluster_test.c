/* A cluster before a server that answers by a script: pages, failures, and watches that are resumed. */
#include "http_server.h"

#include "evrec_read.h"

#define SHORT (EVREC_SECOND / 20)

/* An event of a list, with this name, resource version and second of its last occurrence. */
#define ITEM(name, version, second)                                                                                    \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\",\"resourceVersion\":\"" version                   \
	"\",\"uid\":\"u\"},\"lastTimestamp\":\"2023-11-14T22:13:" second "Z\"}"
#define PAGE(version, token, items)                                                                                    \
	HTTP_REPLY("200 OK", "",                                                                                       \
	           "{\"kind\":\"EventList\",\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" token   \
	           "\"},\"items\":[" items "]}")
#define CHANGE(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define STREAM(changes) HTTP_REPLY("200 OK", "", changes)
#define GONE "{\"kind\":\"Status\",\"code\":410,\"message\":\"too old\"}"
#define KEPT(line, len, body) "HTTP/1.1 " line "\r\nContent-Length: " len "\r\n\r\n" body
#define STATUS(line, code) HTTP_REPLY(line, "", "{\"kind\":\"Status\",\"code\":" code ",\"message\":\"told why\"}")

struct world {
	int64_t timeout; /* of a request; 0: the default */
	struct http_server server;
	evrec_source *source;
	evrec_reader *reader;
};

static void open_source(struct world *w, const struct http_turn *turns, size_t turns_len)
{
	evrec_kubernetes_options options;
	evrec_sink *sink;

	http_server_bind(&w->server, "");
	http_server_start(&w->server, turns, turns_len);
	evrec_kubernetes_options_init(&options);
	options.server = str_from(w->server.url);
	options.timeout = w->timeout != 0 ? w->timeout : options.timeout;
	sink = evrec_sink_kubernetes(&options, NULL);
	w->source = evrec_source_cluster(sink, NULL);
	assert_non_null(w->source);
	evrec_sink_release(sink);
}

static void open_query(struct world *w, const struct http_turn *turns, size_t turns_len)
{
	evrec_query query;

	open_source(w, turns, turns_len);
	evrec_query_init(&query);
	query.ns = EVREC_STR("shop");
	w->reader = evrec_source_query(w->source, &query, NULL);
	assert_non_null(w->reader);
}

static void open_watch(struct world *w, const struct http_turn *turns, size_t turns_len)
{
	evrec_query query;

	open_source(w, turns, turns_len);
	evrec_query_init(&query);
	query.field_selector = EVREC_STR("metadata.name!=hidden");
	w->reader = evrec_source_watch(w->source, &query, NULL);
	assert_non_null(w->reader);
	assert_int_equal(evrec_reader_begin(w->reader, SOON, NULL), 0);
}

static void close_world(struct world *w)
{
	evrec_reader_free(w->reader);
	evrec_source_release(w->source);
	http_server_stop(&w->server);
}

static void check_next(struct world *w, const char *name)
{
	evrec_found found;
	evrec_error err;
	int result = evrec_reader_next(w->reader, SOON, &found, &err);

	if (result < 0) {
		fail_msg("%s", err.message);
	}
	assert_int_equal(result, EVREC_READ_EVENT);
	assert_true(str_eq(evrec_event_fields(found.event)->name, str_from(name)));
	unit_check_contains(found.json.data, "{\"kind\":\"Event\",\"apiVersion\":\"v1\",");
	unit_check_contains(found.json.data, "\"uid\":\"u\"");
	assert_int_equal(strlen(found.json.data), found.json.len);
}

static void check_result(struct world *w, int64_t timeout, int expected)
{
	evrec_found found;

	assert_int_equal(evrec_reader_next(w->reader, timeout, &found, NULL), expected);
}

static void check_error(struct world *w, const char *why)
{
	evrec_error err;

	assert_int_equal(evrec_reader_begin(w->reader, SOON, &err), EVREC_ESYSTEM);
	unit_check_contains(err.message, why);
	assert_int_equal(evrec_reader_begin(w->reader, SOON, &err), EVREC_ESYSTEM);
}

static void test_a_query_reads_all_pages(void **state)
{
	struct world w = { 0 };

	(void)state;
	open_query(&w, TURNS({ TURN_REPLY, PAGE("9", "t/1", ITEM("a", "1", "01") "," ITEM("b", "2", "03")) },
	                     { TURN_REPLY, PAGE("9", "", ITEM("c", "3", "02")) }));
	check_next(&w, "b");
	check_next(&w, "c");
	check_next(&w, "a");
	check_result(&w, SOON, EVREC_READ_END);
	http_server_check_saw(&w.server, 0, "GET /api/v1/namespaces/shop/events?limit=500 HTTP");
	http_server_check_saw(&w.server, 1, "GET /api/v1/namespaces/shop/events?limit=500&continue=t%2F1 HTTP");
	close_world(&w);
}

/* A server lists by name, so the last write of a second may be anywhere in the list. */
static void test_events_of_one_second_are_ordered_by_their_writes(void **state)
{
	evrec_query query;
	struct world w = { 0 };

	(void)state;
	evrec_query_init(&query);
	query.limit = 1;
	open_source(&w, TURNS({ TURN_REPLY, PAGE("99", "", ITEM("a", "9", "01") "," ITEM("b", "12", "01")) }));
	w.reader = evrec_source_query(w.source, &query, NULL);
	check_next(&w, "b");
	check_result(&w, SOON, EVREC_READ_END);
	close_world(&w);
}

static void test_a_token_that_expires_begins_the_list_anew(void **state)
{
	struct world w = { 0 };

	(void)state;
	open_query(&w, TURNS({ TURN_REPLY, PAGE("9", "t1", ITEM("a", "1", "01")) },
	                     { TURN_REPLY, STATUS("410 Gone", "410") },
	                     { TURN_REPLY, PAGE("9", "t2", ITEM("a", "1", "01")) },
	                     { TURN_REPLY, PAGE("9", "", ITEM("b", "2", "02")) }));
	check_next(&w, "b");
	check_next(&w, "a");
	check_result(&w, SOON, EVREC_READ_END);
	http_server_check_not_saw(&w.server, 2, "continue");
	http_server_check_saw(&w.server, 3, "continue=t2");
	close_world(&w);
}

static void test_a_busy_server_is_asked_again(void **state)
{
	struct world w = { 0 };

	(void)state;
	open_query(&w, TURNS({ TURN_REPLY, STATUS("503 Unavailable", "503") }, { TURN_RESET, NULL },
	                     { TURN_REPLY, PAGE("9", "", ITEM("a", "1", "01")) }));
	check_next(&w, "a");
	check_result(&w, SOON, EVREC_READ_END);
	close_world(&w);
}

static void test_a_refusal_is_told(void **state)
{
	struct world w = { 0 };

	(void)state;
	open_query(&w, TURNS({ TURN_REPLY, STATUS("403 Forbidden", "403") }));
	check_error(&w, "403: told why");
	assert_int_equal(http_server_requests(&w.server), 1);
	close_world(&w);
}

static void test_a_server_that_stays_busy_is_given_up(void **state)
{
	struct world w = { 0 };

	(void)state;
	open_query(&w, TURNS({ TURN_REPLY, STATUS("500 Error", "500") }));
	check_error(&w, "500: told why");
	assert_int_equal(http_server_requests(&w.server), 4);
	close_world(&w);
	open_query(&w, TURNS({ TURN_REPLY, "HTTP/1.1 429 Slow\r\nContent-Length: 1000\r\n\r\nslow" }));
	check_error(&w, "429: slow");
	close_world(&w);
}

/* The server closes a kept connection when the next request comes, and libcurl sends it again by itself. */
static void test_a_refusal_of_a_second_sending_is_told(void **state)
{
	const struct http_turn lost = { TURN_REPLY, NULL }, slow = { TURN_KEEP, KEPT("429 Slow", "4", "slow") };
	struct world w = { 0 };

	(void)state;
	open_query(&w, TURNS({ TURN_KEEP, KEPT("200 OK", "40", "{\"metadata\":{\"continue\":\"t\"},\"items\":[]}") },
	                     lost, slow, lost, slow, lost, slow, lost, slow));
	check_error(&w, "the API server answered 429: slow");
	close_world(&w);
}

static void test_credentials_are_tried_twice(void **state)
{
	struct world w = { 0 };

	(void)state;
	open_query(&w, TURNS({ TURN_REPLY, STATUS("401 Unauthorized", "401") },
	                     { TURN_REPLY, PAGE("9", "", ITEM("a", "1", "01")) }));
	check_next(&w, "a");
	close_world(&w);
	open_query(&w, TURNS({ TURN_REPLY, STATUS("401 Unauthorized", "401") }));
	check_error(&w, "401: told why");
	assert_int_equal(http_server_requests(&w.server), 2);
	close_world(&w);
}

static void test_an_answer_that_is_no_list_is_an_error(void **state)
{
	struct world w = { 0 };

	(void)state;
	open_query(&w, TURNS({ TURN_REPLY, HTTP_REPLY("200 OK", "", "<html>") }));
	check_error(&w, "no list of events");
	close_world(&w);
}

/* A proxy that asks for a login answers so, often without a text. */
static void test_a_redirect_without_a_text_is_told_by_its_number(void **state)
{
	struct world w = { 0 };
	evrec_error err;

	(void)state;
	open_query(&w, TURNS({ TURN_REPLY, HTTP_REPLY("302 Found", "Location: /login\r\n", "") }));
	assert_int_equal(evrec_reader_begin(w.reader, SOON, &err), EVREC_ESYSTEM);
	assert_string_equal(err.message, "the API server answered 302");
	close_world(&w);
}

static void test_a_page_that_is_too_long_is_halved(void **state)
{
	struct world w = { 0 };

	(void)state;
	open_query(&w, TURNS({ TURN_FLOOD, HTTP_REPLY("200 OK", "", "{") },
	                     { TURN_REPLY, PAGE("9", "", ITEM("a", "1", "01")) }));
	check_next(&w, "a");
	http_server_check_saw(&w.server, 1, "limit=250 HTTP");
	close_world(&w);
}

/* A page of 500 events takes longer than the timeout if the network is slow. */
static void test_a_page_that_comes_too_slowly_is_halved(void **state)
{
	struct world w = { .timeout = SHORT };

	(void)state;
	open_query(&w, TURNS({ TURN_MUTE, NULL }, { TURN_MUTE, KEPT("200 OK", "100", "{\"kind\":") },
	                     { TURN_REPLY, PAGE("9", "", ITEM("a", "1", "01")) }));
	check_next(&w, "a");
	http_server_check_saw(&w.server, 1, "limit=500 HTTP");
	http_server_check_saw(&w.server, 2, "limit=250 HTTP");
	close_world(&w);
}

static void test_a_silent_server_does_not_hold_up_the_caller(void **state)
{
	struct world w = { 0 };
	evrec_error err;

	(void)state;
	open_query(&w, TURNS({ TURN_MUTE, NULL }));
	assert_int_equal(evrec_reader_begin(w.reader, SHORT, &err), EVREC_ETIMEOUT);
	check_result(&w, SHORT, EVREC_READ_WAIT);
	close_world(&w);
}

static void test_a_watch_is_resumed_behind_what_it_has_seen(void **state)
{
	struct world w = { 0 };

	(void)state;
	open_watch(&w,
	           TURNS({ TURN_REPLY, PAGE("5", "t", ITEM("before", "4", "01")) },
	                 { TURN_REPLY,
	                   STREAM(CHANGE("ADDED", ITEM("a", "6", "01")) CHANGE("MODIFIED", ITEM("hidden", "7", "01"))
	                                  CHANGE("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"9\"}}")) },
	                 { TURN_RESET, STREAM(CHANGE("MODIFIED", ITEM("a", "10", "01")) "{\"type\":\"ADD") },
	                 { TURN_REPLY, STATUS("503 Unavailable", "503") },
	                 { TURN_MUTE, STREAM(CHANGE("ADDED", ITEM("b", "11", "01"))) }));
	http_server_check_saw(&w.server, 0, "GET /api/v1/events?limit=1&fieldSelector=metadata.name%21%3Dhidden HTTP");
	check_next(&w, "a");
	check_next(&w, "a");
	check_next(&w, "b");
	check_result(&w, SHORT, EVREC_READ_WAIT);
	http_server_check_saw(&w.server, 1,
	                      "&watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=300");
	http_server_check_saw(&w.server, 2, "resourceVersion=9&");
	http_server_check_saw(&w.server, 3, "resourceVersion=10&");
	http_server_check_saw(&w.server, 4, "resourceVersion=10&");
	close_world(&w);
}

static void check_behind_gone(const struct http_turn *turns, size_t turns_len)
{
	struct world w = { 0 };

	open_watch(&w, turns, turns_len);
	check_next(&w, "a");
	check_next(&w, "b");
	check_next(&w, "c");
	check_next(&w, "d");
	check_result(&w, SHORT, EVREC_READ_WAIT);
	http_server_check_saw(&w.server, 3, "limit=500");
	http_server_check_saw(&w.server, 5, "resourceVersion=20&");
	close_world(&w);
}

#define FIRST_PAGE                                                                                                     \
	{                                                                                                              \
		TURN_REPLY, PAGE("20", "t", ITEM("c", "12", "01") "," ITEM("old", "6", "09"))                          \
	}
#define LAST_PAGE                                                                                                      \
	{                                                                                                              \
		TURN_REPLY, PAGE("20", "", ITEM("b", "11", "09") "," ITEM("hidden", "13", "01"))                       \
	}

static void test_what_came_before_a_410_is_listed_and_told_once(void **state)
{
	(void)state;
	check_behind_gone(TURNS({ TURN_REPLY, PAGE("5", "", "") },
	                        { TURN_REPLY, STREAM(CHANGE("ADDED", ITEM("a", "6", "01"))) },
	                        { TURN_REPLY, STREAM(CHANGE("ERROR", GONE)) }, FIRST_PAGE, LAST_PAGE,
	                        { TURN_MUTE, STREAM(CHANGE("ADDED", ITEM("d", "21", "01"))) }));
	check_behind_gone(TURNS({ TURN_REPLY, PAGE("5", "", "") },
	                        { TURN_REPLY, STREAM(CHANGE("ADDED", ITEM("a", "6", "01"))) },
	                        { TURN_REPLY, STATUS("410 Gone", "410") }, FIRST_PAGE, LAST_PAGE,
	                        { TURN_MUTE, STREAM(CHANGE("ADDED", ITEM("d", "21", "01"))) }));
}

static void test_a_deleted_event_is_told_as_such(void **state)
{
	struct world w = { 0 };
	evrec_found found;

	(void)state;
	open_watch(&w, TURNS({ TURN_REPLY, PAGE("5", "", "") },
	                     { TURN_MUTE, STREAM(CHANGE("DELETED", ITEM("a", "6", "01"))) }));
	assert_int_equal(evrec_reader_next(w.reader, SOON, &found, NULL), EVREC_READ_EVENT);
	assert_true(found.deleted);
	close_world(&w);
}

static void test_a_change_that_cannot_be_read_ends_the_watch(void **state)
{
	struct world w = { 0 };
	evrec_found found;
	evrec_error err;

	(void)state;
	open_watch(&w, TURNS({ TURN_REPLY, PAGE("5", "", "") }, { TURN_MUTE, STREAM("hello\n") }));
	assert_int_equal(evrec_reader_next(w.reader, SOON, &found, &err), EVREC_ESYSTEM);
	unit_check_contains(err.message, "cannot be read");
	close_world(&w);
}

static void test_other_documents(void **state)
{
	struct world w = { .reader = NULL };
	evrec_error err;
	char *text;

	(void)state;
	open_source(&w, TURNS({ TURN_REPLY, HTTP_REPLY("200 OK", "", "{}") }, { TURN_REPLY, STATUS("404 Not", "404") },
	                      { TURN_MUTE, NULL }));
	text = evrec_cluster_get(w.source, EVREC_STR("/apis"), SOON, &err);
	assert_string_equal(text, "{}");
	evrec_free(text);
	http_server_check_saw(&w.server, 0, "GET /apis HTTP");
	assert_null(evrec_cluster_get(w.source, EVREC_STR("/none"), SOON, &err));
	assert_int_equal(err.code, EVREC_ESYSTEM);
	assert_null(evrec_cluster_get(w.source, EVREC_STR("/slow"), SHORT, &err));
	assert_int_equal(err.code, EVREC_ETIMEOUT);
	assert_null(evrec_cluster_get(w.source, EVREC_STR("apis"), SOON, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	close_world(&w);
}

static void test_misuse_is_refused(void **state)
{
	struct world w = { .reader = NULL };
	evrec_sink *file = evrec_sink_file(EVREC_STR("-"), NULL, NULL);
	evrec_query query;
	evrec_error err;

	(void)state;
	assert_null(evrec_source_cluster(file, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	evrec_sink_release(file);
	open_source(&w, TURNS({ TURN_REPLY, NULL }));
	evrec_query_init(&query);
	query.ns = EVREC_STR("../secrets");
	assert_null(evrec_source_query(w.source, &query, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, "namespace: ");
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_query_reads_all_pages),
		cmocka_unit_test(test_events_of_one_second_are_ordered_by_their_writes),
		cmocka_unit_test(test_a_token_that_expires_begins_the_list_anew),
		cmocka_unit_test(test_a_busy_server_is_asked_again),
		cmocka_unit_test(test_a_refusal_is_told),
		cmocka_unit_test(test_a_server_that_stays_busy_is_given_up),
		cmocka_unit_test(test_a_refusal_of_a_second_sending_is_told),
		cmocka_unit_test(test_credentials_are_tried_twice),
		cmocka_unit_test(test_an_answer_that_is_no_list_is_an_error),
		cmocka_unit_test(test_a_redirect_without_a_text_is_told_by_its_number),
		cmocka_unit_test(test_a_page_that_is_too_long_is_halved),
		cmocka_unit_test(test_a_page_that_comes_too_slowly_is_halved),
		cmocka_unit_test(test_a_silent_server_does_not_hold_up_the_caller),
		cmocka_unit_test(test_a_watch_is_resumed_behind_what_it_has_seen),
		cmocka_unit_test(test_what_came_before_a_410_is_listed_and_told_once),
		cmocka_unit_test(test_a_deleted_event_is_told_as_such),
		cmocka_unit_test(test_a_change_that_cannot_be_read_ends_the_watch),
		cmocka_unit_test(test_other_documents),
		cmocka_unit_test(test_misuse_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

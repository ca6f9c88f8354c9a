/* The HTTP client before HTTP/2 servers that fail or attack it. */
#define _GNU_SOURCE

#include "http2_server.h"
#include "http_fixture.h"

#include "http/http_client_inner.h"
#include "http/openssl.h"

/* A client, and an HTTP/2 server in place of the fixture's. */
struct http2_fixture {
	struct http_fixture http;
	struct http2_server server;
	size_t flooded;   /* bytes of endless frames that the server has sent */
	unsigned refused; /* the one of three requests that the server answers by 401 */
};

static void open_http2(struct http2_fixture *f, http2_serve *serve)
{
	f->http = (struct http_fixture){ 0 };
	http2_server_start(&f->server, serve, f);
	f->http.options = (struct http_options){ .server = str_from(f->server.url),
		                                 .ca = EVREC_STR(PEM_CERTIFICATE),
		                                 .max_in_flight = 32,
		                                 .timeout = SOON };
	http_fixture_open_client(&f->http);
}

static void close_http2(struct http2_fixture *f)
{
	http_client_free(f->http.client);
	http2_server_stop(&f->server);
}

/* Waits for so many nanoseconds before each answer. */
static void answer_each(SSL *connection, long delay)
{
	const struct timespec moment = { 0, delay };
	uint32_t stream;

	while ((stream = h2_next_request(connection)) != 0) {
		struct buf frames = { 0 };

		(void)nanosleep(&moment, NULL);
		h2_put_response(&frames, stream, 200, "good");
		(void)h2_send(connection, &frames);
		buf_free(&frames);
	}
}

static void answer_all(SSL *connection, unsigned n, void *ctx)
{
	(void)n;
	(void)ctx;
	answer_each(connection, 0);
}

#define ANSWER_DELAY (EVREC_SECOND / 50)

static void answer_all_late(SSL *connection, unsigned n, void *ctx)
{
	(void)n;
	(void)ctx;
	answer_each(connection, ANSWER_DELAY);
}

/* The time that an answer takes, by which others gather, does not end when the request begins. */
static void test_time_of_an_answer_ends_with_it(void **state)
{
	struct http2_fixture f = { 0 };

	(void)state;
	open_http2(&f, answer_all_late);
	assert_true(http_fixture_send(&f.http, "POST", "/"));
	http_fixture_run_until(&f.http, 1);
	/* The average begins with 0, and each time is an eighth of it. */
	assert_true(f.http.client->answer_time >= ANSWER_DELAY / 8);
	close_http2(&f);
}

static void test_many_requests_share_one_connection(void **state)
{
	struct http2_fixture f = { 0 };

	(void)state;
	open_http2(&f, answer_all);
	for (unsigned i = 0; i < 32; i++) {
		assert_true(http_fixture_send(&f.http, "POST", "/"));
	}
	http_fixture_run_until(&f.http, 32);
	assert_false(f.http.client->http1); /* so the handles are used again */
	for (unsigned i = 0; i < 32; i++) {
		assert_true(http_client_has_room(f.http.client));
		assert_true(http_fixture_send(&f.http, "POST", "/"));
	}
	http_fixture_run_until(&f.http, 64);
	assert_string_equal(f.http.response.message, "");
	assert_int_equal(f.http.response.status, 200);
	assert_string_equal(f.http.body, "good");
	close_http2(&f);
}

#define FLOOD_MAX ((size_t)64 * 1024 * 1024)

/* Begins an answer and goes on with empty frames; answers on a second connection. */
static void flood(SSL *connection, unsigned n, void *ctx)
{
	struct http2_fixture *f = ctx;
	struct buf frames = { 0 };
	uint32_t stream;

	if (n != 0) {
		answer_all(connection, n, ctx);
		return;
	}
	stream = h2_next_request(connection);
	h2_put_response(&frames, stream, 200, NULL);
	(void)h2_send(connection, &frames);
	buf_clear(&frames);
	while (frames.len < 16384 - H2_FRAME_HEAD) {
		h2_put(&frames, H2_DATA, 0, stream, NULL, 0);
	}
	for (f->flooded = 0; f->flooded < FLOOD_MAX && h2_send(connection, &frames); f->flooded += frames.len) {
	}
	buf_free(&frames);
}

/* libcurl would read on for as long as frames come, without a look at the timeout. */
static void check_endless_empty_frames_are_cut_off(void)
{
	struct http2_fixture f = { 0 };

	open_http2(&f, flood);
	http_fixture_exchange(&f.http);
	assert_int_equal(f.http.response.status, 0);
	assert_false(f.http.response.unsent);
	http_fixture_check_message(&f.http, "endless stream of empty frames");
	http_fixture_exchange(&f.http);
	assert_int_equal(f.http.response.status, 200);
	close_http2(&f);
	assert_true(f.flooded < FLOOD_MAX);
}

static void test_endless_empty_frames_are_cut_off(void **state)
{
	(void)state;
	check_endless_empty_frames_are_cut_off();
}

/* The same if OpenSSL's functions are not found, and libcurl's trace tells of the records. */
static void test_endless_empty_frames_are_cut_off_by_libcurls_trace(void **state)
{
	const struct openssl_functions kept = openssl_functions;

	(void)state;
	openssl_functions = (struct openssl_functions){ 0 };
	check_endless_empty_frames_are_cut_off();
	openssl_functions = kept;
}

/* If OpenSSL were not found where libcurl uses it, the two tests before would test the same. */
static void test_openssl_is_found(void **state)
{
	const bool is_used = strncmp(curl_version_info(CURLVERSION_NOW)->ssl_version, "OpenSSL/", 8) == 0;

	(void)state;
	assert_int_equal(curl_uses_openssl(), is_used);
	assert_true(openssl_versions_agree("OpenSSL/3.0.19", "OpenSSL 3.0.19 27 Jan 2026"));
	assert_true(openssl_versions_agree("OpenSSL/1.1.1w (Schannel)", "OpenSSL 1.1.1w  11 Sep 2023"));
	assert_false(openssl_versions_agree("OpenSSL/3.0.1", "OpenSSL 3.0.19 27 Jan 2026"));
	assert_false(openssl_versions_agree("OpenSSL/3.0.19", "OpenSSL 3.0.1 14 Dec 2021"));
	assert_false(openssl_versions_agree("GnuTLS/3.7.9", "OpenSSL 3.0.19 27 Jan 2026"));
	assert_false(openssl_versions_agree("OpenSSL/3.0.19", "LibreSSL 3.0.19"));
}

/* Answers one request over HTTP/2, and on later connections over HTTP/1. */
static void change_to_http1_with(SSL *connection, unsigned n, const char *answer)
{
	struct buf frames = { 0 };
	char request[4096];

	if (n == 0) {
		h2_put_response(&frames, h2_next_request(connection), 200, "good");
		(void)h2_send(connection, &frames);
		buf_free(&frames);
	} else if (SSL_read(connection, request, sizeof(request)) > 0) {
		(void)SSL_write(connection, answer, (int)strlen(answer));
	}
}

static void change_to_http1(SSL *connection, unsigned n, void *ctx)
{
	(void)ctx;
	change_to_http1_with(connection, n, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nbetter");
}

static void change_to_http1_folded(SSL *connection, unsigned n, void *ctx)
{
	(void)ctx;
	change_to_http1_with(connection, n, "HTTP/1.1 200 OK\r\n folded: yes\r\nContent-Length: 0\r\n\r\n");
}

/* libcurl reads this status line on a connection of HTTP/1, too. */
static void change_to_http1_in_secret(SSL *connection, unsigned n, void *ctx)
{
	(void)ctx;
	change_to_http1_with(connection, n, "HTTP/2 200\r\n folded: yes\r\nContent-Length: 0\r\n\r\n");
}

static void exchange_with_changing_server(struct http2_fixture *f, http2_serve *serve)
{
	open_http2(f, serve);
	f->server.http1_from = 1;
	http_fixture_exchange(&f->http);
	assert_string_equal(f->http.body, "good");
	http_fixture_exchange(&f->http);
}

/* The request begins again with another handle; nobody is told. */
static void test_server_may_change_to_http1(void **state)
{
	struct http2_fixture f = { 0 };

	(void)state;
	exchange_with_changing_server(&f, change_to_http1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f.http.response.status, 200);
		assert_false(f.http.response.sent_again);
		assert_string_equal(f.http.body, "better");
		http_fixture_exchange(&f.http);
	}
	close_http2(&f);
}

/* libcurl 7.88 would append the folded line to a header of the first answer, which it has freed. */
static void test_folded_first_header_after_http2_is_harmless(void **state)
{
	struct http2_fixture f = { 0 };

	(void)state;
	exchange_with_changing_server(&f, change_to_http1_folded);
	close_http2(&f);
	exchange_with_changing_server(&f, change_to_http1_in_secret);
	close_http2(&f);
}

/* Reads requests and answers none; answers on a second connection. */
static void keep_silent(SSL *connection, unsigned n, void *ctx)
{
	if (n != 0) {
		answer_all(connection, n, ctx);
	}
	while (h2_next_request(connection) != 0) {
	}
}

static void test_silent_connection_is_replaced(void **state)
{
	struct http2_fixture f = { 0 };

	(void)state;
	open_http2(&f, keep_silent);
	/* On a slow machine, before the end of the TLS handshake. */
	f.http.timeout = EVREC_SECOND / 5;
	http_fixture_exchange(&f.http);
	assert_true(f.http.response.timed_out);
	f.http.timeout = 0;
	http_fixture_exchange(&f.http);
	assert_int_equal(f.http.response.status, 200);
	close_http2(&f);
}

/* Reads three requests, answers one by 401 and closes the connection; answers on a second connection. */
static void refuse_one(SSL *connection, unsigned n, void *ctx)
{
	const struct http2_fixture *f = ctx;
	uint32_t streams[3] = { 0 };
	struct buf frames = { 0 };

	if (n != 0) {
		answer_all(connection, n, ctx);
		return;
	}
	for (size_t i = 0; i < 3; i++) {
		streams[i] = h2_next_request(connection);
	}
	h2_put_response(&frames, streams[f->refused], 401, "who are you?");
	h2_put_goaway(&frames, streams[2]);
	(void)h2_send(connection, &frames);
	buf_free(&frames);
}

/* Three requests, of which one is answered by 401 before the connection ends. True: all three are told of the 401. */
static bool all_are_told_of_401(unsigned refused)
{
	struct http2_fixture f = { .refused = refused };
	struct ended_request all[3] = { 0 };
	bool told = true;

	open_http2(&f, refuse_one);
	f.http.all = all;
	for (unsigned i = 0; i < 3; i++) {
		assert_true(http_fixture_send(&f.http, "POST", "/"));
	}
	http_fixture_run_until(&f.http, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_false(all[i].response.unsent);
		told = told && (all[i].response.status == 401 || all[i].response.unauthorized) &&
		       strcmp(all[i].body, "who are you?") == 0;
	}
	f.http.all = NULL;
	http_fixture_exchange(&f.http);
	assert_int_equal(f.http.response.status, 200);
	close_http2(&f);
	return told;
}

/*
 * All three get the reason for the end of the connection, whichever request libcurl looks at first. If libcurl (7.88)
 * reads the 401 and the end in one call, which depends on the kernel, it drops the 401: then the same is tried again.
 */
static void test_requests_cut_off_by_a_401_have_its_reason(void **state)
{
	(void)state;
	for (unsigned refused = 0; refused < 3; refused++) {
		bool told = false;

		for (int tries = 0; tries < 10 && !told; tries++) {
			told = all_are_told_of_401(refused);
		}
		assert_true(told);
	}
}

/* Answers by 401 and resets the stream, as Go's server does if it has not read the body. */
static void refuse_and_reset(SSL *connection, unsigned n, void *ctx)
{
	const unsigned char no_error[4] = { 0 };
	uint32_t stream = h2_next_request(connection);
	struct buf frames = { 0 };

	(void)n;
	(void)ctx;
	/* The head gets a TLS record of its own: libcurl drops a head that comes together with a reset. */
	h2_put_response(&frames, stream, 401, NULL);
	(void)h2_send(connection, &frames);
	buf_clear(&frames);
	h2_put(&frames, H2_RST_STREAM, 0, stream, no_error, sizeof(no_error));
	h2_put_goaway(&frames, stream);
	(void)h2_send(connection, &frames);
	buf_free(&frames);
}

static void test_401_is_kept_if_its_stream_is_reset(void **state)
{
	struct http2_fixture f = { 0 };

	(void)state;
	open_http2(&f, refuse_and_reset);
	http_fixture_exchange(&f.http);
	assert_int_equal(f.http.response.status, 401);
	assert_string_equal(f.http.body, "");
	close_http2(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_requests_share_one_connection),
		cmocka_unit_test(test_time_of_an_answer_ends_with_it),
		cmocka_unit_test(test_endless_empty_frames_are_cut_off),
		cmocka_unit_test(test_endless_empty_frames_are_cut_off_by_libcurls_trace),
		cmocka_unit_test(test_openssl_is_found),
		cmocka_unit_test(test_server_may_change_to_http1),
		cmocka_unit_test(test_folded_first_header_after_http2_is_harmless),
		cmocka_unit_test(test_silent_connection_is_replaced),
		cmocka_unit_test(test_requests_cut_off_by_a_401_have_its_reason),
		cmocka_unit_test(test_401_is_kept_if_its_stream_is_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

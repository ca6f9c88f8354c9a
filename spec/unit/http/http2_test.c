/* The HTTP client before HTTP/2 servers that fail or attack it. */
#define _GNU_SOURCE

#include "http2_server.h"
#include "http_fixture.h"

#include "http/http_client_inner.h"

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
	http_fixture_check_message(&f.http, "frames without end");
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

/* The same if libcurl uses another TLS library than OpenSSL. */
static void test_endless_empty_frames_are_cut_off_without_openssl(void **state)
{
	const struct openssl_functions kept = openssl_functions;

	(void)state;
	openssl_functions = (struct openssl_functions){ 0 };
	check_endless_empty_frames_are_cut_off();
	openssl_functions = kept;
}

/* Answers one request by HTTP/2, one on a second connection by HTTP/1.1 with a folded first header, then by HTTP/1.1. */
static void change_to_http1(SSL *connection, unsigned n, void *ctx)
{
	static const char folded[] = "HTTP/1.1 200 OK\r\n folded: yes\r\nContent-Length: 0\r\n\r\n";
	static const char plain[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";
	struct buf frames = { 0 };
	char request[4096];

	(void)ctx;
	if (n == 0) {
		h2_put_response(&frames, h2_next_request(connection), 200, "good");
		(void)h2_send(connection, &frames);
		buf_free(&frames);
		return;
	}
	(void)SSL_read(connection, request, sizeof(request));
	(void)SSL_write(connection, n == 1 ? folded : plain, (int)strlen(n == 1 ? folded : plain));
}

/* libcurl 7.88 would append the folded line to a header of the first answer, which it has freed. */
static void test_folded_first_header_after_http2_is_harmless(void **state)
{
	struct http2_fixture f = { 0 };

	(void)state;
	open_http2(&f, change_to_http1);
	f.server.http1_from = 1;
	http_fixture_exchange(&f.http);
	assert_int_equal(f.http.response.status, 200);
	http_fixture_exchange(&f.http);
	if (loaded_curl_version() < 0x080101) {
		assert_int_equal(f.http.response.cut_status, 200);
		http_fixture_check_message(&f.http, "changed from HTTP/2 to HTTP/1");
	}
	http_fixture_exchange(&f.http);
	assert_int_equal(f.http.response.status, 200);
	assert_string_equal(f.http.body, "good");
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
		cmocka_unit_test(test_endless_empty_frames_are_cut_off_without_openssl),
		cmocka_unit_test(test_folded_first_header_after_http2_is_harmless),
		cmocka_unit_test(test_silent_connection_is_replaced),
		cmocka_unit_test(test_requests_cut_off_by_a_401_have_its_reason),
		cmocka_unit_test(test_401_is_kept_if_its_stream_is_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

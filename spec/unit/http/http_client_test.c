/* Requests as a server receives them, and its responses. spec/e2e tests TLS and HTTP/2 against a real server. */
#define _GNU_SOURCE

#include "http_fixture.h"
#include "tmpdir.h"

#include "http/http_client_inner.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>

static void test_request_and_response(void **state)
{
	int mark;
	struct http_fixture f;

	(void)state;
	http_fixture_prepare(&f, "");
	f.options.token = EVREC_STR("secret");
	f.options.accept = "application/json";
	http_server_start(&f.server, TURNS({ TURN_REPLY, "HTTP/1.1 418 Teapot\r\nConnection: close\r\n\r\nshort" }));
	http_fixture_open_client(&f);
	assert_true(http_fixture_send_sized(&f, "PATCH", "/a%20b/c", 3, &mark));
	http_fixture_run_until(&f, 1);
	http_server_check_saw(&f.server, 0, "PATCH /a%20b/c HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 0, "\r\nContent-Type: text/plain\r\n");
	http_server_check_saw(&f.server, 0, "\r\nAccept: application/json\r\n");
	http_server_check_saw(&f.server, 0, "\r\nUser-Agent: evrec/" EVREC_VERSION "\r\n");
	http_server_check_saw(&f.server, 0, "\r\nAuthorization: Bearer secret\r\n");
	http_server_check_saw(&f.server, 0, "\r\n\r\nxxx");
	assert_ptr_equal(f.ctx, &mark);
	assert_int_equal(f.response.status, 418);
	assert_string_equal(f.body, "short");
	assert_false(f.response.body_cut);
	assert_false(f.response.sent_again);
	assert_int_equal(f.response.retry_after, 0);
	assert_string_equal(f.response.message, "");
	/* A handle that sent one method can send another. */
	assert_true(http_fixture_send(&f, "POST", "/other"));
	http_fixture_run_until(&f, 2);
	http_server_check_saw(&f.server, 1, "POST /other HTTP/1.1\r\n");
	http_fixture_close(&f);
}

static void test_content_type_is_that_of_each_request(void **state)
{
	static const char *const types[] = { "text/plain", "text/plain", "application/json", "text/plain" };
	struct http_fixture f;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_REPLY, OK("") }));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct http_request request = {
			.method = "POST", .path = "/", .content_type = types[i], .body = mem_zalloc(1), .body_len = 1
		};
		char header[64];

		assert_true(http_client_send(f.client, &request, &f.response));
		http_fixture_run_until(&f, f.done + 1);
		snprintf(header, sizeof(header), "\r\nContent-Type: %s\r\n", types[i]);
		http_server_check_saw(&f.server, i, header);
	}
	http_fixture_close(&f);
}

static void test_large_request_is_sent_at_once(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_REPLY, OK("") }));
	/* By default libcurl would send "Expect: 100-continue" before such a large body, and wait. */
	assert_true(http_fixture_send_sized(&f, "POST", "/", 1200 * 1024, NULL));
	http_fixture_run_until(&f, 1);
	http_server_check_not_saw(&f.server, 0, "Expect");
	http_server_check_saw(&f.server, 0, "Content-Length: 1228800\r\n");
	http_fixture_close(&f);
}

static void test_no_token_sends_no_authorization(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_REPLY, OK("") }));
	http_fixture_exchange(&f);
	http_server_check_not_saw(&f.server, 0, "Authorization");
	http_fixture_close(&f);
}

static void test_path_of_the_server_url_is_a_prefix(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_prepare(&f, "/k8s/clusters/c-1//");
	http_server_start(&f.server, TURNS({ TURN_REPLY, OK("") }));
	http_fixture_open_client(&f);
	assert_true(http_fixture_send(&f, "POST", "/api/../x"));
	http_fixture_run_until(&f, 1);
	http_server_check_saw(&f.server, 0, "POST /k8s/clusters/c-1/api/../x HTTP/1.1\r\n");
	http_fixture_close(&f);
}

static void test_retry_after_is_read(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_REPLY, HTTP_RETRY_AFTER_7 }));
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 429);
	assert_int_equal(f.response.retry_after, 7 * EVREC_SECOND);
	http_fixture_close(&f);
}

static void test_redirects_are_not_followed(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_REPLY, HTTP_REDIRECT }));
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 307);
	assert_int_equal(http_server_requests(&f.server), 1);
	http_fixture_close(&f);
}

static void test_long_response_is_cut(void **state)
{
	struct buf reply = { 0 };
	struct http_fixture f;
	struct http_turn turn;

	(void)state;
	buf_put_str(&reply, EVREC_STR(OK("")));
	http_reply_pad(&reply, 300 * 1024);
	turn = (struct http_turn){ TURN_REPLY, buf_cstr(&reply) };
	http_fixture_open(&f, &turn, 1);
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 200);
	assert_int_equal(f.response.body.len, 256 * 1024);
	assert_true(f.response.body_cut);
	http_fixture_close(&f);
	buf_free(&reply);
}

static void test_token_file_is_read_again(void **state)
{
	const char *path = tmpdir_path(*state, "token");
	struct http_fixture f;

	tmpdir_write_file(path, " first\n");
	http_fixture_prepare(&f, "");
	f.options.token_file = str_from(path);
	http_server_start(&f.server, TURNS({ TURN_REPLY, OK("") }));
	http_fixture_open_client(&f);
	http_fixture_exchange(&f);
	http_server_check_saw(&f.server, 0, "Bearer first\r\n");
	/* A file without a valid token does not replace the last token. */
	tmpdir_write_file(path, "two\nlines\n");
	http_client_reload_credentials(f.client);
	http_fixture_exchange(&f);
	http_server_check_saw(&f.server, 1, "Bearer first\r\n");
	assert_int_equal(f.warnings, 1);
	assert_non_null(strstr(f.warning, "does not hold a token"));
	tmpdir_write_file(path, "second\n");
	http_client_reload_credentials(f.client);
	http_fixture_exchange(&f);
	http_server_check_saw(&f.server, 2, "Bearer second\r\n");
	http_fixture_close(&f);
}

static void test_missing_token_file_sends_nothing(void **state)
{
	struct http_fixture f;

	http_fixture_prepare(&f, "");
	f.options.token_file = str_from(tmpdir_path(*state, "missing"));
	http_server_start(&f.server, TURNS({ TURN_REPLY, OK("") }));
	http_fixture_open_client(&f);
	assert_false(http_fixture_send(&f, "POST", "/"));
	assert_int_equal(f.response.status, 0);
	assert_true(f.response.unsent);
	http_fixture_check_message(&f, "token_file: ");
	assert_int_equal(f.done, 0);
	http_client_free(f.client);
	/* The token that was configured is used instead. */
	f.options.token = EVREC_STR("configured");
	http_fixture_open_client(&f);
	http_fixture_exchange(&f);
	http_server_check_saw(&f.server, 0, "Bearer configured\r\n");
	http_fixture_close(&f);
}

static void test_proxies_of_the_environment_are_ignored(void **state)
{
	struct http_fixture f;

	(void)state;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("no_proxy", "", 1);
	http_fixture_open(&f, TURNS({ TURN_REPLY, OK("") }));
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 200);
	http_fixture_close(&f);
	unsetenv("http_proxy");
	unsetenv("no_proxy");
}

static void test_sockets_are_not_inherited(void **state)
{
	struct http_fixture f;
	int64_t deadline = unit_mono() + SOON;
	unsigned found = 0;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_MUTE, NULL }));
	assert_true(http_fixture_send(&f, "POST", "/"));
	while (http_server_requests(&f.server) == 0) {
		assert_true(unit_mono() < deadline);
		(void)http_client_step(f.client);
	}
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_in peer;
		socklen_t len = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET) {
			assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
			found++;
		}
	}
	assert_true(found >= 1);
	/* The close aborts a request in flight. */
	http_fixture_close(&f);
	assert_int_equal(f.done, 0);
}

static void *wake_client(void *client)
{
	http_client_wake(client);
	return NULL;
}

/* A wake ends the wait that runs or the next one, also if the client has no connection yet. */
static void test_wake_ends_a_wait(void **state)
{
	int64_t start = unit_mono();
	struct http_fixture f;
	pthread_t thread;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_REPLY, OK("") }));
	http_client_wake(f.client);
	http_client_wait(f.client, 3600 * EVREC_SECOND);
	http_client_wake(f.client);
	assert_false(http_client_step(f.client));
	http_client_wait(f.client, 3600 * EVREC_SECOND);
	assert_int_equal(pthread_create(&thread, NULL, wake_client, f.client), 0);
	http_client_wait(f.client, 3600 * EVREC_SECOND);
	pthread_join(thread, NULL);
	assert_true(unit_mono() - start < SOON);
	http_fixture_close(&f);
}

/* ---- what is sent is held back during a step, and no longer ---- */

struct watched {
	struct http_client *client;
	unsigned chunks, done;
};

static int corked(const struct http_client *client)
{
	socklen_t len = sizeof(int);
	int on = -1;

	assert_int_equal(client->sockets.len, 1);
	assert_int_equal(getsockopt(client->sockets.of[0].fd, IPPROTO_TCP, TCP_CORK, &on, &len), 0);
	return on;
}

static bool watched_chunk(void *owner, void *ctx, evrec_str bytes)
{
	struct watched *w = owner;

	(void)ctx;
	(void)bytes;
	/* The first request's answer may come in the step that opens the connection. */
	if (w->done != 0) {
		assert_int_equal(corked(w->client), 1);
		w->chunks++;
	}
	return true;
}

static void watched_done(void *owner, void *ctx, const struct http_response *response)
{
	struct watched *w = owner;

	(void)ctx;
	assert_int_equal(response->status, 200);
	w->done++;
}

static void test_connection_is_corked_during_a_step(void **state)
{
	const struct http_events events = { .done = watched_done, .chunk = watched_chunk };
	const struct http_request request = { .method = "GET", .path = "/", .content_type = "", .streamed = true };
	struct http_response refusal;
	struct http_fixture f;
	struct watched w = { .done = 0 };
	evrec_error err;

	(void)state;
	http_fixture_prepare(&f, "");
	http_server_start(&f.server, TURNS({ TURN_REPLY, OK_KEEP_ALIVE }));
	f.client = w.client = http_client_new(&f.options, &events, &w, &err);
	assert_non_null(w.client);
	for (unsigned n = 1; n <= 2; n++) {
		assert_true(http_client_send(w.client, &request, &refusal));
		while (w.done < n) {
			(void)http_client_step(w.client);
			assert_int_equal(corked(w.client), 0);
			http_client_wait(w.client, EVREC_SECOND / 10);
		}
	}
	assert_true(w.chunks != 0);
	http_fixture_close(&f);
}

static void test_many_requests_at_once_are_all_answered(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_REPLY, OK("") }));
	for (unsigned i = 0; i < 50; i++) {
		assert_true(http_fixture_send(&f, "POST", "/"));
	}
	http_fixture_run_until(&f, 50);
	assert_int_equal(http_server_requests(&f.server), 50);
	http_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_and_response),
		cmocka_unit_test(test_content_type_is_that_of_each_request),
		cmocka_unit_test(test_large_request_is_sent_at_once),
		cmocka_unit_test(test_no_token_sends_no_authorization),
		cmocka_unit_test(test_path_of_the_server_url_is_a_prefix),
		cmocka_unit_test(test_retry_after_is_read),
		cmocka_unit_test(test_redirects_are_not_followed),
		cmocka_unit_test(test_long_response_is_cut),
		TMPDIR_TEST(test_token_file_is_read_again),
		TMPDIR_TEST(test_missing_token_file_sends_nothing),
		cmocka_unit_test(test_proxies_of_the_environment_are_ignored),
		cmocka_unit_test(test_sockets_are_not_inherited),
		cmocka_unit_test(test_connection_is_corked_during_a_step),
		cmocka_unit_test(test_wake_ends_a_wait),
		cmocka_unit_test(test_many_requests_at_once_are_all_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

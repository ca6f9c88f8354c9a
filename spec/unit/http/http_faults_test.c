/* Servers and connections that fail, and the response that the client makes of it. */
#define _GNU_SOURCE

#include "http_fixture.h"

#include "http/sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The request was sent, and the server may have received it. */
static void check_failure(const struct http_fixture *f, bool timed_out)
{
	assert_int_equal(f->response.status, 0);
	assert_false(f->response.unsent);
	assert_false(f->response.unauthorized);
	assert_int_equal(f->response.timed_out, timed_out);
}

static void fail_with(enum turn_kind kind, const char *reply, const char *message)
{
	const struct http_turn turn = { kind, reply };
	struct http_fixture f;

	http_fixture_open(&f, &turn, 1);
	http_fixture_exchange(&f);
	check_failure(&f, false);
	assert_int_equal(f.response.too_long, kind == TURN_FLOOD);
	http_fixture_check_message(&f, message);
	http_fixture_close(&f);
}

static void time_out_after(const char *reply)
{
	const struct http_turn turn = { TURN_MUTE, reply };
	struct http_fixture f;
	char message[64];
	int64_t timeout;

	http_fixture_open(&f, &turn, 1);
	timeout = http_fixture_exchange_in_vain(&f);
	check_failure(&f, true);
	(void)snprintf(message, sizeof(message), "no answer within %.3g s", (double)timeout / (double)EVREC_SECOND);
	http_fixture_check_message(&f, message);
	http_fixture_close(&f);
}

static void test_incomplete_answer_is_none(void **state)
{
	(void)state;
	fail_with(TURN_REPLY, NULL, "Empty reply from server");
	fail_with(TURN_REPLY, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort", "");
	fail_with(TURN_REPLY, "nonsense\r\n\r\n", "");
	fail_with(TURN_RESET, NULL, "");
	fail_with(TURN_FLOOD, OK(""), "longer than 4 MiB");
	time_out_after(NULL);
	time_out_after("HTTP/1.1 200 OK\r\n");
}

static void check_cut(enum turn_kind kind, const char *reply, size_t len, int status, bool early)
{
	const struct http_turn turn = { kind, reply };
	struct http_fixture f;

	http_fixture_open(&f, &turn, 1);
	assert_true(http_fixture_send_sized(&f, "POST", "/", len, NULL));
	http_fixture_run_until(&f, 1);
	check_failure(&f, false);
	assert_int_equal(f.response.cut_status, status);
	assert_int_equal(f.response.cut_early, early);
	assert_string_equal(f.body, status == 0 ? "" : "short");
	http_fixture_close(&f);
}

#define CUT "HTTP/1.1 400 Bad Request\r\nContent-Length: 1000\r\n\r\nshort"
#define LARGE ((size_t)32 * 1024 * 1024) /* more than the system takes of a body that nobody reads */

static void test_what_has_come_of_an_answer_is_told(void **state)
{
	(void)state;
	check_cut(TURN_REPLY, CUT, 5, 400, false);
	check_cut(TURN_EARLY, CUT, LARGE, 400, true);
	check_cut(TURN_REPLY, NULL, 5, 0, false);
}

/* A server that refuses a request may close the connection before the answer's body has gone out. */
static void test_retry_after_of_a_cut_answer_is_told(void **state)
{
	const struct http_turn turns[] = {
		{ TURN_REPLY, "HTTP/1.1 503 Unavailable\r\nRetry-After: 7\r\nContent-Length: 1000\r\n\r\nshort" },
		{ TURN_REPLY, CUT },
		{ TURN_REPLY, NULL },
	};
	struct http_fixture f;

	(void)state;
	http_fixture_open(&f, turns, 3);
	http_fixture_exchange(&f);
	check_failure(&f, false);
	assert_int_equal(f.response.cut_status, 503);
	assert_int_equal(f.response.retry_after, 7 * EVREC_SECOND);
	for (int i = 0; i < 2; i++) {
		http_fixture_exchange(&f);
		assert_int_equal(f.response.retry_after, 0);
	}
	http_fixture_close(&f);
}

static void test_refused_connection_means_unsent(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_prepare(&f, "");
	http_fixture_open_client(&f);
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 0);
	assert_true(f.response.unsent);
	assert_false(f.response.timed_out);
	http_fixture_check_message(&f, "Failed to connect to 127.0.0.1");
	http_server_start(&f.server, TURNS({ TURN_REPLY, OK("") }));
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 200);
	http_fixture_close(&f);
}

/* Listens, and takes no further connection as long as the descriptor that is returned is open: the system drops the packets. */
static int listen_in_vain(struct http_server *server)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
		                             .sin_port = htons((uint16_t)server->port),
		                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(listen(server->listener, 0), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* libcurl 7.88 closes a socket that is not connected yet without its function for that. */
static void test_connections_that_time_out_are_forgotten(void **state)
{
	struct http_fixture f;
	int fd;

	(void)state;
	http_fixture_prepare(&f, "");
	http_fixture_open_client(&f);
	fd = listen_in_vain(&f.server);
	f.timeout = EVREC_SECOND / 50;
	for (unsigned i = 0; i <= SOCKETS_MAX; i++) {
		http_fixture_exchange(&f);
		http_fixture_check_message(&f, "no connection within 0.02 s");
	}
	(void)close(fd);
	http_server_start(&f.server, TURNS({ TURN_REPLY, OK("") }));
	f.timeout = 0;
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 200);
	http_fixture_close(&f);
}

/* A connection may take no longer than the client's timeout, or 5 s, also if its request may. */
static void test_a_connection_in_vain_is_told_with_its_own_timeout(void **state)
{
	struct http_fixture f;
	int fd;

	(void)state;
	http_fixture_prepare(&f, "");
	f.options.timeout = EVREC_SECOND / 50;
	http_fixture_open_client(&f);
	fd = listen_in_vain(&f.server);
	f.timeout = SOON;
	http_fixture_exchange(&f);
	assert_true(f.response.timed_out && f.response.unsent);
	http_fixture_check_message(&f, "no connection within 0.02 s");
	(void)close(fd);
	http_server_start(&f.server, TURNS({ TURN_REPLY, OK("") }));
	http_fixture_close(&f);
}

/*
 * Exchanges a request, or with a client that has not begun tries to, while the process may open no descriptor. The server
 * may not run, as it could accept no connection.
 */
static void run_without_descriptors(struct http_fixture *f, bool exchange)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit before, none;

	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)fd;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	if (exchange) {
		http_fixture_exchange(f);
	} else {
		assert_false(http_client_step(f->client));
		assert_false(http_fixture_send(f, "POST", "/"));
		http_fixture_check_message(f, "no memory for the request, or no file descriptors");
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void test_want_of_a_descriptor_is_told(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_prepare(&f, "");
	http_fixture_open_client(&f);
	http_fixture_exchange(&f);
	run_without_descriptors(&f, true);
	assert_true(f.response.unsent);
	http_fixture_check_message(&f, "no socket: Too many open files");
	/* A server that refuses connections is told as such again. */
	http_fixture_exchange(&f);
	http_fixture_check_message(&f, "Failed to connect to 127.0.0.1");
	http_server_start(&f.server, TURNS({ TURN_REPLY, OK("") }));
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 200);
	http_fixture_close(&f);
}

/* libcurl makes a multi handle also if it has no descriptors for a wake. */
static void test_wake_ends_a_wait_although_descriptors_were_wanting_before(void **state)
{
	struct http_fixture f;
	int64_t start;

	(void)state;
	(void)http_global_init();
	http_fixture_prepare(&f, "");
	http_fixture_open_client(&f);
	run_without_descriptors(&f, false);
	http_server_start(&f.server, TURNS({ TURN_REPLY, OK("") }));
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 200);
	for (int i = 0; i < 2; i++) { /* the first wait may end by a wake of before */
		http_client_wake(f.client);
		start = unit_mono();
		http_client_wait(f.client, 5 * EVREC_SECOND);
		assert_true(unit_mono() - start < 4 * EVREC_SECOND);
	}
	http_fixture_close(&f);
}

static void test_second_sending_by_libcurl_is_marked(void **state)
{
	struct http_fixture f;

	(void)state;
	/* The server reads the second request and closes the connection: libcurl sends it again by itself. */
	http_fixture_open(&f, TURNS({ TURN_KEEP, OK_KEEP_ALIVE }, { TURN_REPLY, NULL }, { TURN_REPLY, OK("") }));
	http_fixture_exchange(&f);
	assert_false(f.response.sent_again);
	http_fixture_exchange(&f);
	assert_int_equal(http_server_requests(&f.server), 3);
	assert_int_equal(f.response.status, 200);
	assert_true(f.response.sent_again);
	http_fixture_exchange(&f);
	assert_false(f.response.sent_again);
	http_fixture_close(&f);
}

/* libcurl 7.88 appended the folded line to a header of the handle's previous response, which it had freed. */
static void test_folded_first_header_is_harmless(void **state)
{
	struct http_fixture f;

	(void)state;
	http_fixture_open(&f, TURNS({ TURN_REPLY, OK("") }, { TURN_REPLY, "HTTP/1.1 200 OK\r\n folded: yes\r\n\r\n" },
	                            { TURN_REPLY, OK("") }));
	http_fixture_exchange(&f);
	http_fixture_exchange(&f);
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 200);
	http_fixture_close(&f);
	/* libcurl reads this status line on a connection of HTTP/1, too. */
	http_fixture_open(&f, TURNS({ TURN_REPLY, "HTTP/2 200\r\nA: b\r\nContent-Length: 0\r\n\r\n" },
	                            { TURN_REPLY, "HTTP/2 200\r\n folded: yes\r\n\r\n" }, { TURN_REPLY, OK("") }));
	http_fixture_exchange(&f);
	http_fixture_exchange(&f);
	http_fixture_exchange(&f);
	assert_int_equal(f.response.status, 200);
	http_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_incomplete_answer_is_none),
		cmocka_unit_test(test_what_has_come_of_an_answer_is_told),
		cmocka_unit_test(test_retry_after_of_a_cut_answer_is_told),
		cmocka_unit_test(test_refused_connection_means_unsent),
		cmocka_unit_test(test_connections_that_time_out_are_forgotten),
		cmocka_unit_test(test_a_connection_in_vain_is_told_with_its_own_timeout),
		cmocka_unit_test(test_want_of_a_descriptor_is_told),
		cmocka_unit_test(test_wake_ends_a_wait_although_descriptors_were_wanting_before),
		cmocka_unit_test(test_second_sending_by_libcurl_is_marked),
		cmocka_unit_test(test_folded_first_header_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

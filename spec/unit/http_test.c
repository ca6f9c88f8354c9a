/* Requests as an API server sees them; TLS and HTTP/2 are tested against a real one, in spec/e2e. */
#define _GNU_SOURCE

#include "http_fixture.h"

static void test_post_and_patch(void **state)
{
	struct fixture f;
	struct entry *entry;

	(void)state;
	prepare(&f, "");
	f.options.token = EVREC_STR("secret");
	server_start(&f.server, TURNS({ TURN_REPLY, OK(EVENT) }));
	open_sender(&f, true);
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_saw(&f, 0, "POST /api/v1/namespaces/shop/events HTTP/1.1\r\n");
	assert_saw(&f, 0, "\r\nContent-Type: application/json\r\n");
	assert_saw(&f, 0, "\r\nAccept: application/json\r\n");
	assert_saw(&f, 0, "\r\nUser-Agent: evrec/" EVREC_VERSION "\r\n");
	assert_saw(&f, 0, "\r\nAuthorization: Bearer secret\r\n");
	assert_saw(&f, 0, "\r\n\r\n{\"name\":\"n1\",\"count\":1}");
	assert_saw_not(&f, 0, "Expect");
	entry = outbox_collect(f.ob);
	assert_string_equal(entry->name, "stored");
	assert_string_equal(entry->resource_version, "7");
	outbox_recycle(f.ob, entry);
	item_submit(f.ob, 1, 2);
	exchange_at(&f, 0);
	assert_saw(&f, 1, "PATCH /api/v1/namespaces/shop/events/n1 HTTP/1.1\r\n");
	assert_saw(&f, 1, "\r\nContent-Type: application/strategic-merge-patch+json\r\n");
	assert_saw(&f, 1, "\r\nAuthorization: Bearer secret\r\n");
	assert_saw(&f, 1, "\r\n\r\n{\"name\":\"n1\",\"count\":2}");
	/* And a handle that patched can post again. */
	item_submit(f.ob, 2, 1);
	exchange_at(&f, 0);
	assert_saw(&f, 2, "POST /api/v1/namespaces/shop/events HTTP/1.1\r\n");
	assert_saw(&f, 2, "\r\nContent-Type: application/json\r\n");
	assert_int_equal(stats_of(&f).created, 2);
	assert_int_equal(stats_of(&f).patched, 1);
	close_fixture(&f);
}

static void test_large_body_is_sent_at_once(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, TURNS({ TURN_REPLY, OK(EVENT) }));
	submit_named(&f, 1, VERB_CREATE, "large");
	exchange_at(&f, 0);
	assert_saw_not(&f, 0, "Expect");
	assert_saw(&f, 0, "Content-Length: 1228800\r\n");
	close_fixture(&f);
}

static void test_no_token(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, TURNS({ TURN_REPLY, OK(EVENT) }));
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_saw_not(&f, 0, "Authorization");
	close_fixture(&f);
}

static void test_prefix(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f, "/k8s/clusters/c-1//");
	server_start(&f.server, TURNS({ TURN_REPLY, OK(EVENT) }));
	open_sender(&f, true);
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_saw(&f, 0, "POST /k8s/clusters/c-1/api/v1/namespaces/shop/events HTTP/1.1\r\n");
	close_fixture(&f);
}

static void test_names_reach_no_other_url(void **state)
{
	static const struct {
		const char *name, *path;
	} sent[] = {
		{ "a b|fe80::1", "PATCH /api/v1/namespaces/a%20b/events/fe80%3A%3A1 HTTP/1.1\r\n" },
		{ "ns|x?y#z&u=v;w", "PATCH /api/v1/namespaces/ns/events/x%3Fy%23z%26u%3Dv%3Bw HTTP/1.1\r\n" },
		{ "ns|\xc3\xa4\n\\", "PATCH /api/v1/namespaces/ns/events/%C3%A4%0A%5C HTTP/1.1\r\n" },
		{ "ns|...", "PATCH /api/v1/namespaces/ns/events/... HTTP/1.1\r\n" },
	};
	static const char *refused[] = { "|x",       "ns|",       "..|x",
		                         ".|x",      "ns|..",     "ns|.",
		                         "a/b|x",    "ns|a/b",    "ns|../../secrets/x",
		                         "%2e%2e|x", "ns|%2e%2e", "ns|a%2fb" };
	size_t n = sizeof(sent) / sizeof(sent[0]);
	struct fixture f;

	(void)state;
	open_fixture(&f, TURNS({ TURN_REPLY, OK(EVENT) }));
	for (size_t i = 0; i < n; i++) {
		submit_named(&f, 1000 + i, VERB_PATCH, sent[i].name);
		exchange_at(&f, 0);
		assert_saw(&f, i, sent[i].path);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		submit_named(&f, i, VERB_PATCH, refused[i]);
		exchange_at(&f, 0);
		assert_int_equal(stats_of(&f).dropped[EVREC_CAUSE_REJECTED], i + 1);
	}
	assert_report(&f, "rejected", "PATCH: 400: not sent: ");
	assert_int_equal(server_requests(&f.server), n);
	close_fixture(&f);
}

static void test_retry_after(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, TURNS({ TURN_REPLY,
	                         "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nConnection: close\r\n\r\nslow" },
	                       { TURN_REPLY, OK(EVENT) }));
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_report(&f, "throttled", "POST: 429: slow");
	assert_int_equal(outbox_next_due(f.ob, 0), 7 * EVREC_SECOND);
	exchange_at(&f, 7 * EVREC_SECOND);
	assert_int_equal(stats_of(&f).created, 1);
	close_fixture(&f);
}

static void test_redirects_are_not_followed(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(
		&f, TURNS({ TURN_REPLY, "HTTP/1.1 307 Temporary\r\nLocation: /elsewhere\r\nConnection: close\r\n\r\n" },
	                  { TURN_REPLY, OK(EVENT) }));
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_report(&f, "rejected", "POST: 307");
	assert_int_equal(server_requests(&f.server), 1);
	assert_int_equal(stats_of(&f).dropped[EVREC_CAUSE_REJECTED], 1);
	close_fixture(&f);
}

static void test_long_event(void **state)
{
	struct buf reply = { 0 };
	struct fixture f;
	struct turn turn;

	(void)state;
	buf_put_str(&reply, EVREC_STR(OK("{\"kind\":\"Event\",\"metadata\":{\"annotations\":{\"a\":\"")));
	for (int i = 0; i < 300 * 1024; i++) {
		buf_put(&reply, "a", 1);
	}
	buf_put_str(&reply, EVREC_STR("\"}}}"));
	turn = (struct turn){ TURN_REPLY, buf_cstr(&reply) };
	open_fixture(&f, &turn, 1);
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_int_equal(stats_of(&f).created, 1);
	close_fixture(&f);
	buf_free(&reply);
}

static void test_token_file(void **state)
{
	char path[] = P_tmpdir "/evrec-token-XXXXXX";
	struct fixture f;

	(void)state;
	close(mkstemp(path));
	write_token(path, " first\n");
	prepare(&f, "");
	f.options.token_file = str_from(path);
	server_start(&f.server,
	             TURNS({ TURN_REPLY, "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\nUnauthorized" },
	                   { TURN_REPLY, "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\nUnauthorized" },
	                   { TURN_REPLY, OK(EVENT) }));
	open_sender(&f, true);
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_saw(&f, 0, "Bearer first\r\n");
	assert_report(&f, "unauthorized", "POST: 401: Unauthorized");
	/* What is no token does not take the place of one. */
	write_token(path, "two\nlines\n");
	exchange_at(&f, EVREC_SECOND);
	assert_report(&f, "unauthorized", "does not hold a token");
	assert_saw(&f, 1, "Bearer first\r\n");
	write_token(path, "second\n");
	exchange_at(&f, 3 * EVREC_SECOND);
	assert_saw(&f, 2, "Bearer second\r\n");
	assert_int_equal(stats_of(&f).created, 1);
	unlink(path);
	close_fixture(&f);
}

static void test_token_file_that_is_gone(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f, "");
	f.options.token_file = EVREC_STR(P_tmpdir "/evrec-no-such-token");
	server_start(&f.server, TURNS({ TURN_REPLY, OK(EVENT) }));
	open_sender(&f, true);
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_report(&f, "transport", "token_file: ");
	assert_int_equal(server_requests(&f.server), 0);
	(void)sender_join(f.sender, 0);
	sender_release(f.sender);
	/* With what it held when it was configured. */
	f.options.token = EVREC_STR("configured");
	open_sender(&f, true);
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_saw(&f, 0, "Bearer configured\r\n");
	close_fixture(&f);
}

static void test_proxies_of_the_environment(void **state)
{
	struct fixture f;

	(void)state;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("no_proxy", "", 1);
	open_fixture(&f, TURNS({ TURN_REPLY, OK(EVENT) }));
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_int_equal(stats_of(&f).created, 1);
	close_fixture(&f);
	unsetenv("http_proxy");
	unsetenv("no_proxy");
}

static void test_sockets_are_not_inherited(void **state)
{
	struct fixture f;
	int64_t deadline = clock_monotonic(evrec_clock_real()) + SOON;
	unsigned found = 0;

	(void)state;
	open_fixture(&f, TURNS({ TURN_MUTE, NULL }));
	item_submit(f.ob, 1, 1);
	while (server_requests(&f.server) == 0) {
		assert_true(clock_monotonic(evrec_clock_real()) < deadline);
		sender_step(f.sender);
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
	/* Closed with a request under way. */
	close_fixture(&f);
}

static void test_many_at_once_from_a_thread(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f, "");
	evrec_clock_release(f.clock);
	f.clock = evrec_clock_real();
	server_start(&f.server, TURNS({ TURN_REPLY, OK(EVENT) }));
	open_sender(&f, false);
	for (unsigned i = 1; i <= 200; i++) {
		item_submit(f.ob, i, 1);
		if (i % 50 == 0) {
			usleep(20000); /* so that it falls asleep in between */
		}
	}
	assert_true(sender_join(f.sender, clock_monotonic(evrec_clock_real()) + SOON));
	assert_int_equal(stats_of(&f).created, 200);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_post_and_patch),
		cmocka_unit_test(test_large_body_is_sent_at_once),
		cmocka_unit_test(test_no_token),
		cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_names_reach_no_other_url),
		cmocka_unit_test(test_retry_after),
		cmocka_unit_test(test_redirects_are_not_followed),
		cmocka_unit_test(test_long_event),
		cmocka_unit_test(test_token_file),
		cmocka_unit_test(test_token_file_that_is_gone),
		cmocka_unit_test(test_proxies_of_the_environment),
		cmocka_unit_test(test_sockets_are_not_inherited),
		cmocka_unit_test(test_many_at_once_from_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

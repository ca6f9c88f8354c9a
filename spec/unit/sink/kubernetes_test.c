/* The Kubernetes sink: requests as an API server receives them, and the outcome of its answers. */
#define _GNU_SOURCE

#include "kubernetes_fixture.h"
#include "pem_data.h"
#include "tmpdir.h"

#include "http/credentials.h"

#include <sys/stat.h>

static void test_create_posts_and_count_patches(void **state)
{
	struct kubernetes_fixture f;
	struct entry *entry;

	(void)state;
	kubernetes_fixture_prepare(&f, "");
	f.options.token = EVREC_STR("secret");
	http_server_start(&f.server, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 0, "POST /api/v1/namespaces/shop/events HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 0, "\r\nContent-Type: application/json\r\n");
	http_server_check_saw(&f.server, 0, "\r\nAccept: application/json\r\n");
	http_server_check_saw(&f.server, 0, "\r\nUser-Agent: evrec/" EVREC_VERSION "\r\n");
	http_server_check_saw(&f.server, 0, "\r\nAuthorization: Bearer secret\r\n");
	http_server_check_saw(&f.server, 0, "\r\n\r\n{\"name\":\"n1\",\"count\":1}");
	http_server_check_not_saw(&f.server, 0, "Expect");
	entry = outbox_collect(f.ob, 1);
	assert_string_equal(entry_name(entry), "stored");
	assert_string_equal(entry_resource_version(entry), "7");
	outbox_recycle(f.ob, entry);
	fake_write_submit(f.ob, 1, 2);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 1, "PATCH /api/v1/namespaces/shop/events/n1 HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 1, "\r\nContent-Type: application/strategic-merge-patch+json\r\n");
	http_server_check_saw(&f.server, 1, "\r\nAuthorization: Bearer secret\r\n");
	http_server_check_saw(&f.server, 1, "\r\n\r\n{\"name\":\"n1\",\"count\":2}");
	/* A handle that sent a PATCH can send a POST again. */
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 2, "POST /api/v1/namespaces/shop/events HTTP/1.1\r\n");
	http_server_check_saw(&f.server, 2, "\r\nContent-Type: application/json\r\n");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 2);
	assert_int_equal(kubernetes_fixture_stats(&f).patched, 1);
	kubernetes_fixture_close(&f);
}

static void test_names_cannot_leave_the_url(void **state)
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
	struct kubernetes_fixture f;

	(void)state;
	kubernetes_fixture_open(&f, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	for (size_t i = 0; i < n; i++) {
		kubernetes_fixture_submit(&f, 1000 + i, VERB_PATCH, sent[i].name);
		kubernetes_fixture_exchange(&f, 0);
		http_server_check_saw(&f.server, i, sent[i].path);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		kubernetes_fixture_submit(&f, i, VERB_PATCH, refused[i]);
		kubernetes_fixture_exchange(&f, 0);
		assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_REJECTED], i + 1);
	}
	kubernetes_fixture_check_message(&f, "rejected", "PATCH: 400: not sent: ");
	assert_int_equal(http_server_requests(&f.server), n);
	kubernetes_fixture_close(&f);
}

static void test_retry_after_delays_the_next_try(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	kubernetes_fixture_open(&f, TURNS({ TURN_REPLY, HTTP_RETRY_AFTER_7 }, { TURN_REPLY, CREATED(EVENT) }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_check_message(&f, "throttled", "POST: 429: slow");
	kubernetes_fixture_exchange(&f, 7 * EVREC_SECOND - 1);
	assert_int_equal(http_server_requests(&f.server), 1);
	kubernetes_fixture_exchange(&f, 7 * EVREC_SECOND);
	assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
	kubernetes_fixture_close(&f);
}

static void test_redirects_are_not_followed(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	kubernetes_fixture_open(&f, TURNS({ TURN_REPLY, HTTP_REDIRECT }, { TURN_REPLY, CREATED(EVENT) }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_check_message(&f, "rejected", "POST: 307");
	assert_int_equal(http_server_requests(&f.server), 1);
	assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_REJECTED], 1);
	kubernetes_fixture_close(&f);
}

static void test_long_answer_is_an_event(void **state)
{
	struct buf reply = { 0 };
	struct kubernetes_fixture f;
	struct http_turn turn;

	(void)state;
	buf_put_str(&reply, EVREC_STR(CREATED("{\"kind\":\"Event\",\"metadata\":{\"annotations\":{\"a\":\"")));
	http_reply_pad(&reply, 300 * 1024);
	buf_put_str(&reply, EVREC_STR("\"}}}"));
	turn = (struct http_turn){ TURN_REPLY, buf_cstr(&reply) };
	kubernetes_fixture_open(&f, &turn, 1);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
	kubernetes_fixture_close(&f);
	buf_free(&reply);
}

static void test_token_file_is_read_again_after_401(void **state)
{
	const char *path = tmpdir_path(*state, "token");
	struct kubernetes_fixture f;

	tmpdir_write_file(path, " first\n");
	kubernetes_fixture_prepare(&f, "");
	f.options.token_file = str_from(path);
	http_server_start(&f.server, TURNS({ TURN_REPLY, HTTP_REPLY("401 Unauthorized", "", "Unauthorized") },
	                                   { TURN_REPLY, HTTP_REPLY("401 Unauthorized", "", "Unauthorized") },
	                                   { TURN_REPLY, CREATED(EVENT) }));
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 0, "Bearer first\r\n");
	kubernetes_fixture_check_message(&f, "unauthorized", "POST: 401: Unauthorized");
	/* A file without a valid token does not replace the last token. */
	tmpdir_write_file(path, "two\nlines\n");
	kubernetes_fixture_exchange(&f, EVREC_SECOND);
	kubernetes_fixture_check_message(&f, "unauthorized", "does not hold a token");
	http_server_check_saw(&f.server, 1, "Bearer first\r\n");
	tmpdir_write_file(path, "second\n");
	kubernetes_fixture_exchange(&f, 3 * EVREC_SECOND);
	http_server_check_saw(&f.server, 2, "Bearer second\r\n");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
	kubernetes_fixture_close(&f);
}

/* The number of descriptors that this process has of a folder. */
static int descriptors_of(const char *folder)
{
	char path[32], target[4096], real[4096];
	ssize_t length;
	int fd, n = 0;

	assert_non_null(realpath(folder, real));
	for (fd = 0; fd < 1024; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, target, sizeof(target));
		n += length == (ssize_t)strlen(real) && memcmp(target, real, (size_t)length) == 0;
	}
	return n;
}

/* http/credentials_test.c reads a token by the descriptor. */
static void test_sink_and_its_client_keep_the_token_folder(void **state)
{
	const char *folder = tmpdir_path(*state, ".");
	evrec_kubernetes_options options;
	struct protocol *p;
	evrec_sink *sink;
	evrec_error err;

	tmpdir_write_file(tmpdir_path(*state, "token"), "a-token");
	evrec_kubernetes_options_init(&options);
	options.server = EVREC_STR("https://10.0.0.1");
	options.token_file = str_from(tmpdir_path(*state, "token"));
	sink = evrec_sink_kubernetes(&options, &err);
	assert_non_null(sink);
	assert_int_equal(descriptors_of(folder), 1);
	p = sink->open(sink, &err);
	assert_non_null(p);
	assert_int_equal(descriptors_of(folder), 2);
	p->ops->free(p);
	evrec_sink_release(sink);
	assert_int_equal(descriptors_of(folder), 0);
}

static void test_sink_reads_the_files_of_its_certificate(void **state)
{
	evrec_kubernetes_options options;
	char certificate[512], key[512];
	evrec_sink *sink;
	evrec_error err;

	(void)snprintf(certificate, sizeof(certificate), "%s", tmpdir_path(*state, "tls.crt"));
	(void)snprintf(key, sizeof(key), "%s", tmpdir_path(*state, "tls.key"));
	evrec_kubernetes_options_init(&options);
	options.server = EVREC_STR("https://10.0.0.1");
	options.client_certificate_file = str_from(certificate);
	options.client_key_file = str_from(key);
	assert_null(evrec_sink_kubernetes(&options, &err));
	unit_check_contains(err.message, "client_certificate_file: ");
	unit_check_contains(err.message, "/tls.crt: No such file");
	assert_null(evrec_sink_kubernetes(&options, NULL));
	tmpdir_write_file(certificate, PEM_CERTIFICATE);
	tmpdir_write_file(key, PEM_KEY_ENCRYPTED);
	assert_null(evrec_sink_kubernetes(&options, &err));
	unit_check_contains(err.message, "client_key_file: ");
	unit_check_contains(err.message, "is encrypted");
	tmpdir_write_file(key, PEM_KEY);
	sink = evrec_sink_kubernetes(&options, &err);
	assert_non_null(sink);
	assert_true(str_eq(kubernetes_sink_options(sink)->client_certificate, EVREC_STR(PEM_CERTIFICATE)));
	assert_true(str_eq(kubernetes_sink_options(sink)->client_key, EVREC_STR(PEM_KEY)));
	evrec_sink_release(sink);
}

/* They are read again while the sink lives, and the new folder may have files of the same names. */
static void test_a_chdir_changes_no_file(void **state)
{
	const char *const names[] = { "token", "tls.crt", "tls.key" };
	const char *const texts[] = { "a-token", PEM_CERTIFICATE, PEM_KEY };
	char *folder = get_current_dir_name(), *token;
	const evrec_kubernetes_options *own;
	evrec_kubernetes_options options;
	evrec_error err = { 0 };
	struct key_pair pair;
	evrec_sink *sink;

	assert_int_equal(mkdir(tmpdir_path(*state, "other"), 0700), 0);
	tmpdir_write_file(tmpdir_path(*state, "other/token"), "another");
	for (size_t i = 0; i < 3; i++) {
		tmpdir_write_file(tmpdir_path(*state, names[i]), texts[i]);
	}
	evrec_kubernetes_options_init(&options);
	options.server = EVREC_STR("https://10.0.0.1");
	options.token_file = str_from(names[0]);
	options.client_certificate_file = str_from(names[1]);
	options.client_key_file = str_from(names[2]);
	assert_int_equal(chdir(tmpdir_path(*state, "")), 0);
	sink = evrec_sink_kubernetes(&options, &err);
	assert_string_equal(err.message, "");
	assert_int_equal(chdir("other"), 0);
	own = kubernetes_sink_options(sink);
	token = token_file_read(own->token_file.data, &err);
	(void)key_pair_read(own->client_certificate_file.data, own->client_key_file.data, &pair, &err);
	assert_int_equal(chdir(folder), 0);
	assert_string_equal(token, "a-token");
	assert_string_equal(err.message, "");
	mem_free(token);
	key_pair_free(&pair);
	evrec_sink_release(sink);
	free(folder);
}

static void test_missing_token_file_sends_nothing(void **state)
{
	struct kubernetes_fixture f;

	kubernetes_fixture_prepare(&f, "");
	f.options.token_file = str_from(tmpdir_path(*state, "missing"));
	http_server_start(&f.server, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_check_message(&f, "transport", "token_file: ");
	assert_int_equal(http_server_requests(&f.server), 0);
	(void)sender_join(f.sender, 0);
	sender_release(f.sender);
	/* The token that was configured is used instead. */
	f.options.token = EVREC_STR("configured");
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 0, "Bearer configured\r\n");
	kubernetes_fixture_close(&f);
}

static void test_thread_writes_all_events(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	kubernetes_fixture_prepare(&f, "");
	evrec_clock_release(f.clock);
	f.clock = evrec_clock_real();
	http_server_start(&f.server, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	kubernetes_fixture_open_sender(&f, false);
	for (unsigned i = 1; i <= 200; i++) {
		fake_write_submit(f.ob, i, 1);
		if (i % 50 == 0) {
			usleep(20000); /* the thread falls asleep in between */
		}
	}
	assert_true(sender_join(f.sender, unit_mono() + SOON));
	assert_int_equal(kubernetes_fixture_stats(&f).created, 200);
	kubernetes_fixture_close(&f);
}

/* There are 4 connections. A request that waits for one would use up its timeout, though the server answers each. */
static void test_writes_wait_for_a_connection_without_http2(void **state)
{
	struct kubernetes_fixture f;
	struct outbox_stats stats;

	(void)state;
	kubernetes_fixture_open(&f, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	for (unsigned i = 1; i <= 100; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	do {
		sender_step(f.sender);
		stats = kubernetes_fixture_stats(&f);
		assert_in_range(stats.in_flight, 0, 4);
	} while (stats.pending != 0);
	assert_int_equal(stats.created, 100);
	assert_int_equal(stats.retries, 0);
	kubernetes_fixture_close(&f);
}

/* A forked child opens the sink once more, long after the caller's strings are gone. */
static void test_sink_copies_its_callers_strings(void **state)
{
	char server[] = "http://127.0.0.1:1", token[] = "secret", name[] = "cluster", spool[] = "/nonexistent/spool";
	evrec_broadcaster_options of_broadcaster;
	evrec_kubernetes_options options;
	evrec_sink_stats stats;
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_sink *sink;
	evrec_error err;

	(void)state;
	evrec_kubernetes_options_init(&options);
	options.server = evrec_string(server);
	options.token = evrec_string(token);
	options.common.name = evrec_string(name);
	options.common.spool = evrec_string(spool);
	evrec_broadcaster_options_init(&of_broadcaster);
	of_broadcaster.drive = EVREC_DRIVE_POLL;
	b = evrec_broadcaster_new(&of_broadcaster, NULL);
	sink = evrec_sink_kubernetes(&options, &err);
	assert_non_null(sink);
	memset(server, 0, sizeof(server));
	memset(token, 0, sizeof(token));
	memset(name, 0, sizeof(name));
	memset(spool, 0, sizeof(spool));
	watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, &err);
	assert_non_null(watch);
	assert_true(evrec_watch_get_sink_stats(watch, &stats));
	assert_string_equal(stats.name, "cluster");
	evrec_watch_free(watch);
	evrec_broadcaster_free(b);
	evrec_sink_release(sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_posts_and_count_patches),
		cmocka_unit_test(test_names_cannot_leave_the_url),
		cmocka_unit_test(test_retry_after_delays_the_next_try),
		cmocka_unit_test(test_redirects_are_not_followed),
		cmocka_unit_test(test_long_answer_is_an_event),
		TMPDIR_TEST(test_token_file_is_read_again_after_401),
		TMPDIR_TEST(test_sink_and_its_client_keep_the_token_folder),
		TMPDIR_TEST(test_sink_reads_the_files_of_its_certificate),
		TMPDIR_TEST(test_a_chdir_changes_no_file),
		TMPDIR_TEST(test_missing_token_file_sends_nothing),
		cmocka_unit_test(test_thread_writes_all_events),
		cmocka_unit_test(test_writes_wait_for_a_connection_without_http2),
		cmocka_unit_test(test_sink_copies_its_callers_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The requests of an OTLP sink, when they are sent, and that the values of its headers are never told. */
#include "otlp_fixture.h"

#include "base/clock.h"

#include <zlib.h>

#define S EVREC_SECOND
#define SECRET "s3cret-of-the-header"

static void start(struct otlp_fixture *f, const struct http_turn *turns, size_t turns_len)
{
	http_server_start(&f->server, turns, turns_len);
	otlp_fixture_open_sender(f, true);
}

static void test_the_endpoint_is_used_as_it_is(void **state)
{
	static const struct {
		const char *path, *target;
	} cases[] = {
		{ "", "POST / HTTP" },
		{ "/", "POST / HTTP" },
		{ "/otlp/v1/logs/", "POST /otlp/v1/logs/ HTTP" },
		{ "/a%20b/../logs?x=/y", "POST /a%20b/../logs?x=/y HTTP" },
		{ "?x", "POST /?x HTTP" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct otlp_fixture f;

		otlp_fixture_prepare(&f);
		(void)snprintf(f.endpoint, sizeof(f.endpoint), "%s%s", f.server.url, cases[i].path);
		f.options.endpoint = str_from(f.endpoint);
		start(&f, TURNS({ TURN_KEEP, OTLP_TAKEN }));
		otlp_fixture_submit(&f, 1, 4);
		otlp_fixture_exchange(&f, 0);
		http_server_check_saw(&f.server, 0, cases[i].target);
		otlp_fixture_close(&f);
	}
}

/* The body of request 0, decompressed by zlib; returns its length. */
static size_t read_gzip(struct http_server *server, unsigned char *out, size_t size)
{
	char *request = server->requests[0];
	z_stream z = { .next_out = out, .avail_out = (unsigned)size };

	z.next_in = (unsigned char *)strstr(request, "\r\n\r\n") + 4;
	z.avail_in = (unsigned)strtoul(strstr(request, "Content-Length: ") + 16, NULL, 10);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	assert_int_equal(inflateEnd(&z), Z_OK);
	return z.total_out;
}

static bool holds(const unsigned char *bytes, size_t len, const char *text)
{
	for (size_t i = 0; i + strlen(text) <= len; i++) {
		if (memcmp(bytes + i, text, strlen(text)) == 0) {
			return true;
		}
	}
	return false;
}

static void test_bodies_are_protobuf_and_gzip_unless_told_otherwise(void **state)
{
	const evrec_pair service = { EVREC_STR("service.name"), EVREC_STR("my-operator") };
	unsigned char body[8192];
	struct otlp_fixture f;
	size_t len;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.encoding = EVREC_OTLP_PROTOBUF;
	f.options.compression = EVREC_OTLP_GZIP;
	f.options.resource = (evrec_map){ &service, 1 };
	start(&f, TURNS({ TURN_REPLY, HTTP_REPLY("200 OK", "Content-Type: application/x-protobuf\r\n", "") }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	http_server_check_saw(&f.server, 0, "\r\nContent-Type: application/x-protobuf\r\n");
	http_server_check_saw(&f.server, 0, "\r\nContent-Encoding: gzip\r\n");
	len = read_gzip(&f.server, body, sizeof(body));
	assert_true(holds(body, len, "n1") && holds(body, len, "n4") && holds(body, len, "my-operator"));
	assert_int_equal(otlp_fixture_stats(&f).created, 4);
	otlp_fixture_close(&f);
}

static void test_headers_are_sent_and_never_told(void **state)
{
	static const struct http_turn turns[] = {
		{ TURN_REPLY, OTLP_ANSWER("400 Bad Request", "no such key: " SECRET) },
		{ TURN_REPLY, OTLP_REJECTED(1, "of Bearer " SECRET) },
		{ TURN_REPLY, "HTTP/1.1 " SECRET "\r\n\r\n" },
	};
	const evrec_pair pairs[] = { { EVREC_STR("Authorization"), EVREC_STR("Bearer " SECRET) },
		                     { EVREC_STR("X-Scope"), EVREC_STR("shop") } };
	struct outbox_message message;
	struct otlp_fixture f;
	unsigned told = 0;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.headers = (evrec_map){ pairs, 2 };
	start(&f, turns, 3);
	for (unsigned i = 0; i < 3; i++) {
		otlp_fixture_submit(&f, 4 * i + 1, 4 * i + 4);
		otlp_fixture_exchange(&f, 0);
		http_server_check_saw(&f.server, i, "\r\nAuthorization: Bearer " SECRET "\r\n");
		http_server_check_saw(&f.server, i, "\r\nX-Scope: shop\r\n");
	}
	while (outbox_next_message(f.ob, &message)) {
		assert_null(strstr(message.message, SECRET));
		told++;
	}
	assert_int_equal(told, 3);
	otlp_fixture_close(&f);
}

static void test_a_batch_waits_for_its_delay_or_to_be_full(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_delay = 5 * S;
	start(&f, TURNS({ TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 3);
	otlp_fixture_exchange(&f, 5 * S - 1);
	assert_int_equal(http_server_requests(&f.server), 0);
	/* The next step is due when the delay is over. */
	assert_int_equal(outbox_next_due(f.ob, 5 * S - 1), 5 * S);
	otlp_fixture_exchange(&f, 5 * S);
	assert_int_equal(http_server_requests(&f.server), 1);
	otlp_fixture_submit(&f, 4, 7);
	otlp_fixture_exchange(&f, 5 * S);
	assert_int_equal(http_server_requests(&f.server), 2);
	otlp_fixture_close(&f);
}

static void test_no_batch_is_larger_than_its_maximum(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 10);
	otlp_fixture_exchange(&f, 0);
	/* The rest waits for two more. */
	assert_int_equal(http_server_requests(&f.server), 2);
	assert_int_equal(otlp_fixture_stats(&f).pending, 2);
	otlp_fixture_flush(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 3);
	assert_string_equal(otlp_fixture_names(&f, 2), "n9:1 n10:1");
	otlp_fixture_close(&f);
}

static void test_without_a_delay_each_write_goes_at_once(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_delay = 0;
	start(&f, TURNS({ TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 1);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 1);
	otlp_fixture_close(&f);
}

/* The sender's end does not wait for the delay, with a thread or without. */
static void test_the_end_sends_what_waits(void **state)
{
	(void)state;
	for (int threadless = 0; threadless <= 1; threadless++) {
		struct otlp_fixture f;

		otlp_fixture_prepare(&f);
		f.options.batch_delay = 3600 * S;
		http_server_start(&f.server, TURNS({ TURN_KEEP, OTLP_TAKEN }));
		otlp_fixture_open_sender(&f, threadless);
		otlp_fixture_submit(&f, 1, 3);
		assert_true(sender_join(f.sender, unit_mono() + SOON));
		assert_int_equal(otlp_fixture_stats(&f).created, 3);
		assert_int_equal(http_server_requests(&f.server), 1);
		otlp_fixture_close(&f);
	}
}

static void test_a_thread_sends_after_the_delay(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_delay = 5 * S;
	http_server_start(&f.server, TURNS({ TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, false);
	otlp_fixture_submit(&f, 1, 3);
	evrec_clock_set(f.clock, 5 * S);
	assert_true(outbox_wait(f.ob, unit_mono() + SOON));
	assert_int_equal(otlp_fixture_stats(&f).created, 3);
	assert_int_equal(http_server_requests(&f.server), 1);
	otlp_fixture_close(&f);
}

static void test_answers_of_a_hung_receiver_are_not_waited_for(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.timeout = S / 10;
	start(&f, TURNS({ TURN_MUTE, NULL }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	otlp_fixture_check_message(&f, "transport", "no answer within 0.1 s");
	otlp_fixture_exchange(&f, 3600 * S);
	assert_int_equal(otlp_fixture_stats(&f).created, 4);
	otlp_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_endpoint_is_used_as_it_is),
		cmocka_unit_test(test_bodies_are_protobuf_and_gzip_unless_told_otherwise),
		cmocka_unit_test(test_headers_are_sent_and_never_told),
		cmocka_unit_test(test_a_batch_waits_for_its_delay_or_to_be_full),
		cmocka_unit_test(test_no_batch_is_larger_than_its_maximum),
		cmocka_unit_test(test_without_a_delay_each_write_goes_at_once),
		cmocka_unit_test(test_the_end_sends_what_waits),
		cmocka_unit_test(test_a_thread_sends_after_the_delay),
		cmocka_unit_test(test_answers_of_a_hung_receiver_are_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The Kubernetes sink before servers and connections that fail: is an event stored, not stored, or in doubt? */
#define _GNU_SOURCE

#include "http2_server.h"
#include "kubernetes_fixture.h"

/*
 * A server whose first turn fails. The sink's timeout is short if the first turn is to be waited for in vain; then each of
 * the functions below returns false if the machine was too slow for it, so that nothing is proved.
 */
static void open_failing(struct kubernetes_fixture *f, const struct http_turn *turns, int64_t timeout)
{
	kubernetes_fixture_prepare(f, "");
	f->options.timeout = timeout;
	http_server_start(&f->server, turns, 2);
	kubernetes_fixture_open_sender(f, true);
}

static bool is_answered_in_time(struct kubernetes_fixture *f, int64_t now)
{
	const int64_t begun = unit_mono();

	kubernetes_fixture_exchange(f, now);
	return unit_mono() - begun < f->options.timeout;
}

/* The first turn fails in a way that may have stored the event: a conflict then means success. */
static bool fail_then_conflict(enum turn_kind kind, const char *reply, int64_t timeout, const char *message)
{
	const struct http_turn turns[] = { { kind, reply }, { TURN_REPLY, CONFLICT } };
	struct kubernetes_fixture f;
	bool in_time;

	open_failing(&f, turns, timeout);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	in_time = http_server_requests(&f.server) == 1;
	if (in_time) {
		kubernetes_fixture_check_message(&f, "transport", message);
		assert_int_equal(kubernetes_fixture_stats(&f).pending, 1);
		in_time = is_answered_in_time(&f, EVREC_SECOND);
	}
	if (in_time) {
		assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
		assert_int_equal(http_server_requests(&f.server), 2);
	}
	kubernetes_fixture_close(&f);
	return in_time;
}

static void time_out_then_conflict(const char *reply)
{
	int64_t timeout = EVREC_SECOND / 10;
	char message[64];

	do {
		timeout *= 2;
		assert_true(timeout < SOON);
		(void)snprintf(message, sizeof(message), "no answer within %.3g s",
		               (double)timeout / (double)EVREC_SECOND);
	} while (!fail_then_conflict(TURN_MUTE, reply, timeout, message));
}

static void test_conflict_after_a_fault_in_doubt_is_success(void **state)
{
	static const struct {
		struct http_turn turn;
		const char *message;
	} faults[] = {
		{ { TURN_REPLY, NULL }, "POST: Empty reply from server" },
		{ { TURN_REPLY, CREATED("<html>\n<title>hello") }, "not an API server's answer: <html>" },
		{ { TURN_REPLY, CREATED("") }, "not an API server's answer" },
		{ { TURN_REPLY, "HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n{\"kind\":" }, "POST: " },
		{ { TURN_REPLY, "nonsense\r\n\r\n" }, "POST: " },
		{ { TURN_RESET, NULL }, "POST: " },
		{ { TURN_FLOOD, CREATED("{\"kind\":\"Event\",\"metadata\":{\"name\":\"") }, "longer than 4 MiB" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		assert_true(fail_then_conflict(faults[i].turn.kind, faults[i].turn.reply, SOON, faults[i].message));
	}
	time_out_then_conflict(NULL);
	time_out_then_conflict("HTTP/1.1 201 Created\r\n");
}

static void test_conflict_after_a_refused_connection_renames(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	kubernetes_fixture_prepare(&f, "");
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_check_message(&f, "transport", "Failed to connect to 127.0.0.1");
	/* A conflict is with another client's event: the write gets another name. */
	http_server_start(&f.server, TURNS({ TURN_REPLY, CONFLICT }, { TURN_REPLY, CREATED(EVENT) }));
	kubernetes_fixture_exchange(&f, EVREC_SECOND);
	http_server_check_saw(&f.server, 0, "{\"name\":\"n1\"");
	http_server_check_saw(&f.server, 1, "{\"name\":\"renamed-");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
	kubernetes_fixture_close(&f);
}

static void test_conflict_with_a_second_sending_is_in_doubt(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	/*
	 * The server reads the second request and closes the connection. libcurl sends it again by itself, and conflicts
	 * with its own event.
	 */
	kubernetes_fixture_open(
		&f, TURNS({ TURN_KEEP, CREATED_KEEP_ALIVE }, { TURN_REPLY, NULL }, { TURN_REPLY, CONFLICT }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 3);
	kubernetes_fixture_check_message(&f, "transport", "the connection was lost");
	kubernetes_fixture_exchange(&f, EVREC_SECOND);
	http_server_check_saw(&f.server, 3, "{\"name\":\"n2\"");
	assert_int_equal(kubernetes_fixture_stats(&f).created, 2);
	kubernetes_fixture_close(&f);
}

/* libcurl 7.88 appended the folded line to a header of the handle's previous response, which it had freed. */
static void test_folded_first_header_is_harmless(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	kubernetes_fixture_open(&f, TURNS({ TURN_REPLY, CREATED(EVENT) },
	                                  { TURN_REPLY, "HTTP/1.1 201 Created\r\n folded: yes\r\n\r\n" EVENT },
	                                  { TURN_REPLY, CREATED(EVENT) }));
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_exchange(&f, EVREC_SECOND);
	assert_int_equal(kubernetes_fixture_stats(&f).created, 2);
	kubernetes_fixture_close(&f);
}

static void test_doubt_outlasts_a_refusal(void **state)
{
	static const char *const refusals[] = {
		HTTP_REPLY("429 Too Many Requests", "Retry-After: 1\r\n", "later"),
		HTTP_REPLY("401 Unauthorized", "", "who?"),
	};

	(void)state;
	/* The second sending is refused first, and conflicts with its own event one try later. */
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct http_turn turns[] = {
			{ TURN_KEEP, CREATED_KEEP_ALIVE },
			{ TURN_REPLY, NULL },
			{ TURN_REPLY, refusals[i] },
			{ TURN_REPLY, CONFLICT },
		};
		struct kubernetes_fixture f;

		kubernetes_fixture_open(&f, turns, 4);
		fake_write_submit(f.ob, 1, 1);
		kubernetes_fixture_exchange(&f, 0);
		fake_write_submit(f.ob, 2, 1);
		kubernetes_fixture_exchange(&f, 0);
		kubernetes_fixture_exchange(&f, EVREC_SECOND);
		assert_int_equal(http_server_requests(&f.server), 4);
		assert_int_equal(kubernetes_fixture_stats(&f).created, 2);
		assert_int_equal(kubernetes_fixture_stats(&f).pending, 0);
		kubernetes_fixture_close(&f);
	}
}

/* After a fault the server may have just started, and forbids all that it is asked: until it takes a write. */
static void test_a_403_is_doubted_until_a_write_is_taken(void **state)
{
	static const char forbidden[] =
		HTTP_REPLY("403 Forbidden", "", "{\"kind\":\"Status\",\"message\":\"events is forbidden: User\"}");
	const struct http_turn turns[] = {
		{ TURN_REPLY, NULL },
		{ TURN_REPLY, forbidden },
		{ TURN_REPLY, CREATED(EVENT) },
		{ TURN_REPLY, forbidden },
	};
	struct kubernetes_fixture f;

	(void)state;
	kubernetes_fixture_open(&f, turns, 4);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_exchange(&f, EVREC_SECOND);
	assert_int_equal(http_server_requests(&f.server), 2);
	assert_int_equal(kubernetes_fixture_stats(&f).pending, 1);
	kubernetes_fixture_exchange(&f, 10 * EVREC_SECOND);
	assert_int_equal(kubernetes_fixture_stats(&f).created, 1);
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, 10 * EVREC_SECOND);
	assert_int_equal(http_server_requests(&f.server), 4);
	assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_FORBIDDEN], 1);
	kubernetes_fixture_close(&f);
}

/* A PATCH fails, then succeeds. It is repeated once more if the server may still carry out the first one. */
static bool fail_then_patch(enum turn_kind kind, const char *reply, int64_t timeout, bool maybe_late)
{
	const struct http_turn turns[] = { { kind, reply }, { TURN_REPLY, CREATED(EVENT) } };
	struct kubernetes_fixture f;
	bool in_time;

	open_failing(&f, turns, timeout);
	kubernetes_fixture_submit(&f, 1, VERB_PATCH, "n1");
	kubernetes_fixture_exchange(&f, 0);
	in_time = http_server_requests(&f.server) == 1 && is_answered_in_time(&f, EVREC_SECOND);
	if (in_time) {
		assert_int_equal(http_server_requests(&f.server), 2);
		assert_int_equal(kubernetes_fixture_stats(&f).pending, maybe_late);
		in_time = is_answered_in_time(&f, 3 * EVREC_SECOND);
	}
	if (in_time) {
		assert_int_equal(http_server_requests(&f.server), maybe_late ? 3 : 2);
		assert_int_equal(kubernetes_fixture_stats(&f).patched, 1);
	}
	kubernetes_fixture_close(&f);
	return in_time;
}

static void time_out_then_patch(const char *reply)
{
	int64_t timeout = EVREC_SECOND / 10;

	do {
		timeout *= 2;
		assert_true(timeout < SOON);
	} while (!fail_then_patch(TURN_MUTE, reply, timeout, true));
}

#define STATUS(line) HTTP_REPLY(line, "", "{\"kind\":\"Status\"}")

static void test_patch_is_repeated_if_it_may_be_late(void **state)
{
	static const struct {
		struct http_turn turn;
		bool maybe_late;
	} faults[] = {
		{ { TURN_REPLY, NULL }, true },
		{ { TURN_RESET, NULL }, true },
		{ { TURN_REPLY, STATUS("502 Bad Gateway") }, true },
		{ { TURN_REPLY, STATUS("504 Gateway Timeout") }, true },
		{ { TURN_REPLY, STATUS("409 Conflict") }, false },
		{ { TURN_REPLY, STATUS("429 Too Many Requests") }, false },
		{ { TURN_REPLY, STATUS("500 Internal Server Error") }, false },
		{ { TURN_REPLY, STATUS("503 Service Unavailable") }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		assert_true(fail_then_patch(faults[i].turn.kind, faults[i].turn.reply, SOON, faults[i].maybe_late));
	}
	time_out_then_patch(NULL);
	time_out_then_patch("HTTP/1.1 200 OK\r\n");
}

static void test_patch_is_not_repeated_if_it_was_not_sent(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	kubernetes_fixture_prepare(&f, "");
	kubernetes_fixture_open_sender(&f, true);
	kubernetes_fixture_submit(&f, 1, VERB_PATCH, "n1");
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_check_message(&f, "transport", "Failed to connect to 127.0.0.1");
	http_server_start(&f.server, TURNS({ TURN_REPLY, CREATED(EVENT) }));
	kubernetes_fixture_exchange(&f, EVREC_SECOND);
	assert_int_equal(kubernetes_fixture_stats(&f).patched, 1);
	kubernetes_fixture_submit(&f, 1, VERB_PATCH, "n1");
	kubernetes_fixture_exchange(&f, EVREC_SECOND);
	assert_int_equal(kubernetes_fixture_stats(&f).patched, 2);
	assert_int_equal(http_server_requests(&f.server), 2);
	kubernetes_fixture_close(&f);
}

static void test_second_sending_of_a_patch_is_repeated(void **state)
{
	struct kubernetes_fixture f;

	(void)state;
	/* libcurl sends the second PATCH again by itself; the server may carry out the first sending later. */
	kubernetes_fixture_open(
		&f, TURNS({ TURN_KEEP, CREATED_KEEP_ALIVE }, { TURN_REPLY, NULL }, { TURN_REPLY, CREATED(EVENT) }));
	kubernetes_fixture_submit(&f, 1, VERB_PATCH, "n1");
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_submit(&f, 2, VERB_PATCH, "n2");
	kubernetes_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 3);
	assert_int_equal(kubernetes_fixture_stats(&f).patched, 1);
	assert_int_equal(kubernetes_fixture_stats(&f).pending, 1);
	kubernetes_fixture_exchange(&f, 2 * EVREC_SECOND);
	http_server_check_saw(&f.server, 3, "{\"name\":\"n2\"");
	assert_int_equal(kubernetes_fixture_stats(&f).patched, 2);
	kubernetes_fixture_close(&f);
}

/* Refuses one of two requests and closes the connection; both names exist on the second connection. */
static void refuse_and_close(SSL *connection, unsigned n, void *ctx)
{
	unsigned *answered_second = ctx; /* on the second connection */
	struct buf frames = { 0 };
	uint32_t streams[2];

	streams[0] = h2_next_request(connection);
	if (n == 0) {
		streams[1] = h2_next_request(connection);
		h2_put_response(&frames, streams[1], 401, "who are you?");
		h2_put_goaway(&frames, streams[1]);
		(void)h2_send(connection, &frames);
	}
	for (; n != 0 && streams[0] != 0; streams[0] = h2_next_request(connection)) {
		buf_clear(&frames);
		h2_put_response(&frames, streams[0], *answered_second < 2 ? 409 : 201, "{}");
		++*answered_second;
		(void)h2_send(connection, &frames);
	}
	buf_free(&frames);
}

/* The 401 is reported once. The other request may have been stored before the connection was closed. */
static void test_request_cut_off_by_a_401_is_in_doubt(void **state)
{
	struct http2_server h2;
	struct kubernetes_fixture f = { .clock = evrec_clock_fake(0) };
	struct outbox_message message;
	unsigned answered_second = 0;

	(void)state;
	http2_server_start(&h2, refuse_and_close, &answered_second);
	kubernetes_fixture_options(&f.options, h2.url);
	f.options.ca = EVREC_STR(PEM_CERTIFICATE);
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	fake_write_submit(f.ob, 2, 1);
	kubernetes_fixture_exchange(&f, 0);
	kubernetes_fixture_check_message(&f, "unauthorized", "POST: 401: who are you?");
	assert_false(outbox_next_message(f.ob, &message));
	assert_int_equal(kubernetes_fixture_stats(&f).pending, 2);
	kubernetes_fixture_exchange(&f, EVREC_SECOND);
	assert_int_equal(kubernetes_fixture_stats(&f).created, 2);
	/* The refused one conflicted with another client's event and was renamed, the other one with its own. */
	(void)sender_join(f.sender, 0);
	sender_release(f.sender);
	http2_server_stop(&h2);
	assert_int_equal(answered_second, 3);
	evrec_clock_release(f.clock);
	assert_int_equal(fake_writes.alive, 0);
}

static void test_silence_ends_with_the_deadline(void **state)
{
	struct kubernetes_fixture f;
	int64_t start;

	(void)state;
	kubernetes_fixture_prepare(&f, "");
	evrec_clock_release(f.clock);
	f.clock = evrec_clock_real();
	http_server_start(&f.server, TURNS({ TURN_MUTE, NULL }));
	kubernetes_fixture_open_sender(&f, false);
	fake_write_submit(f.ob, 1, 1);
	start = unit_mono();
	assert_false(sender_join(f.sender, start + EVREC_SECOND / 10));
	assert_true(unit_mono() - start < SOON / 4);
	assert_int_equal(kubernetes_fixture_stats(&f).dropped[EVREC_CAUSE_CLOSED], 1);
	kubernetes_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conflict_after_a_fault_in_doubt_is_success),
		cmocka_unit_test(test_conflict_after_a_refused_connection_renames),
		cmocka_unit_test(test_conflict_with_a_second_sending_is_in_doubt),
		cmocka_unit_test(test_folded_first_header_is_harmless),
		cmocka_unit_test(test_doubt_outlasts_a_refusal),
		cmocka_unit_test(test_a_403_is_doubted_until_a_write_is_taken),
		cmocka_unit_test(test_patch_is_repeated_if_it_may_be_late),
		cmocka_unit_test(test_patch_is_not_repeated_if_it_was_not_sent),
		cmocka_unit_test(test_second_sending_of_a_patch_is_repeated),
		cmocka_unit_test(test_request_cut_off_by_a_401_is_in_doubt),
		cmocka_unit_test(test_silence_ends_with_the_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

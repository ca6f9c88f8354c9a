/* The Kubernetes sink before a server that refuses a write, and whose answer's body does not come to its end. */
#define _GNU_SOURCE

#include "kubernetes_fixture.h"

#include "sender/sender.h"

#define CUT(line) "HTTP/1.1 " line "\r\nRetry-After: 60\r\nContent-Length: 1000\r\n\r\nslow"

/* False, with nothing checked: the machine was so slow that not even the head of the answer came within the timeout. */
static bool has_been_refused(struct kubernetes_fixture *f, const char *name, const char *text)
{
	struct outbox_message message;

	assert_true(outbox_next_message(f->ob, &message));
	if (strstr(message.message, "no answer within") != NULL && f->options.timeout < SOON / 2) {
		return false;
	}
	assert_string_equal(message.name, name);
	unit_check_contains(message.message, text);
	return true;
}

static void check_paused(const struct kubernetes_fixture *f)
{
	evrec_throttle_stats throttle;

	sender_get_throttle(f->sender, &throttle);
	assert_int_equal(throttle.refused, 1);
	assert_int_equal(throttle.paused_for, 60 * EVREC_SECOND);
}

/* The sink waits for as long as the server says. */
static bool refuse_then_create(enum turn_kind kind, const char *reply, int64_t timeout, const char *name,
                               const char *text)
{
	const struct http_turn turns[] = { { kind, reply }, { TURN_REPLY, CREATED(EVENT) } };
	struct kubernetes_fixture f;
	bool refused;

	kubernetes_fixture_prepare(&f, "");
	f.options.timeout = timeout;
	http_server_start(&f.server, turns, 2);
	kubernetes_fixture_open_sender(&f, true);
	fake_write_submit(f.ob, 1, 1);
	kubernetes_fixture_exchange(&f, 0);
	refused = has_been_refused(&f, name, text);
	if (refused) {
		check_paused(&f);
		kubernetes_fixture_exchange(&f, 60 * EVREC_SECOND - 1);
		assert_int_equal(http_server_requests(&f.server), 1);
		kubernetes_fixture_exchange(&f, 60 * EVREC_SECOND);
		assert_true(timeout < SOON || kubernetes_fixture_stats(&f).created == 1);
	}
	kubernetes_fixture_close(&f);
	return refused;
}

static void test_closed_connection(void **state)
{
	(void)state;
	assert_true(refuse_then_create(TURN_REPLY, CUT("429 Too Many Requests"), SOON, "throttled", "POST: 429: slow"));
	assert_true(refuse_then_create(TURN_REPLY, CUT("503 Unavailable"), SOON, "server", "POST: 503: slow"));
}

/* The request times out, but what the server says counts. */
static void test_silence_behind_the_head(void **state)
{
	int64_t timeout = EVREC_SECOND / 10;

	(void)state;
	do {
		timeout *= 2;
		assert_true(timeout < SOON);
	} while (!refuse_then_create(TURN_MUTE, CUT("429 Too Many Requests"), timeout, "throttled", "POST: 429: slow"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closed_connection),
		cmocka_unit_test(test_silence_behind_the_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

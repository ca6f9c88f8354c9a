/* Servers and connections that fail, and what is known of the event then. */
#define _GNU_SOURCE

#include "http_fixture.h"

/* The first turn fails, in a way that may have stored the event: a conflict then means that it is there. */
static void fail_then_conflict(enum turn_kind kind, const char *reply, int64_t timeout, const char *message)
{
	const struct turn turns[] = { { kind, reply }, { TURN_REPLY, CONFLICT } };
	struct fixture f;

	prepare(&f, "");
	f.options.timeout = timeout;
	server_start(&f.server, turns, 2);
	open_sender(&f, true);
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_report(&f, "transport", message);
	assert_int_equal(stats_of(&f).pending, 1);
	exchange_at(&f, EVREC_SECOND);
	assert_int_equal(stats_of(&f).created, 1);
	assert_int_equal(server_requests(&f.server), 2);
	close_fixture(&f);
}

static void test_faults_that_leave_doubt(void **state)
{
	(void)state;
	fail_then_conflict(TURN_REPLY, NULL, SOON, "POST: Empty reply from server");
	fail_then_conflict(TURN_REPLY, OK("<html>\n<title>hello"), SOON, "not an API server's answer: <html>");
	fail_then_conflict(TURN_REPLY, OK(""), SOON, "not an API server's answer");
	fail_then_conflict(TURN_REPLY, "HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n{\"kind\":", SOON,
	                   "POST: ");
	fail_then_conflict(TURN_REPLY, "nonsense\r\n\r\n", SOON, "POST: ");
	fail_then_conflict(TURN_RESET, NULL, SOON, "POST: ");
	fail_then_conflict(TURN_FLOOD, OK("{\"kind\":\"Event\",\"metadata\":{\"name\":\""), SOON, "longer than 4 MiB");
	fail_then_conflict(TURN_MUTE, NULL, EVREC_SECOND / 5, "no answer within 0.2 s");
	fail_then_conflict(TURN_MUTE, "HTTP/1.1 201 Created\r\n", EVREC_SECOND / 5, "no answer within 0.2 s");
}

static void test_refused_connection_leaves_no_doubt(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f, "");
	open_sender(&f, true);
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	assert_report(&f, "transport", "Failed to connect to 127.0.0.1");
	/* So a conflict is with somebody else's event. */
	server_start(&f.server, TURNS({ TURN_REPLY, CONFLICT }, { TURN_REPLY, OK(EVENT) }));
	exchange_at(&f, EVREC_SECOND);
	assert_saw(&f, 0, "{\"name\":\"n1\"");
	assert_saw(&f, 1, "{\"name\":\"renamed-");
	assert_int_equal(stats_of(&f).created, 1);
	close_fixture(&f);
}

static void test_kept_connection_that_breaks(void **state)
{
	struct fixture f;

	(void)state;
	/* The second request is taken, its connection closed: libcurl sends it again by itself, and meets its own. */
	open_fixture(&f, TURNS({ TURN_KEEP, KEPT }, { TURN_REPLY, NULL }, { TURN_REPLY, CONFLICT }));
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	item_submit(f.ob, 2, 1);
	exchange_at(&f, 0);
	assert_int_equal(server_requests(&f.server), 3);
	assert_report(&f, "transport", "the connection was lost");
	exchange_at(&f, EVREC_SECOND);
	assert_saw(&f, 3, "{\"name\":\"n2\"");
	assert_int_equal(stats_of(&f).created, 2);
	close_fixture(&f);
}

/* libcurl 7.88 appended such a line to a header of the handle's answer before, in memory that it had freed. */
static void test_answer_that_begins_with_a_folded_header(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, TURNS({ TURN_REPLY, OK(EVENT) },
	                       { TURN_REPLY, "HTTP/1.1 201 Created\r\n folded: yes\r\n\r\n" EVENT },
	                       { TURN_REPLY, OK(EVENT) }));
	item_submit(f.ob, 1, 1);
	exchange_at(&f, 0);
	item_submit(f.ob, 2, 1);
	exchange_at(&f, 0);
	exchange_at(&f, EVREC_SECOND);
	assert_int_equal(stats_of(&f).created, 2);
	close_fixture(&f);
}

static void test_kept_connection_that_breaks_and_then_a_refusal(void **state)
{
	static const char *const refusals[] = {
		"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\n\r\nlater",
		"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\nwho?",
	};

	(void)state;
	/* As above, but it takes one more time to meet its own. */
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct turn turns[] = {
			{ TURN_KEEP, KEPT },
			{ TURN_REPLY, NULL },
			{ TURN_REPLY, refusals[i] },
			{ TURN_REPLY, CONFLICT },
		};
		struct fixture f;

		open_fixture(&f, turns, 4);
		item_submit(f.ob, 1, 1);
		exchange_at(&f, 0);
		item_submit(f.ob, 2, 1);
		exchange_at(&f, 0);
		exchange_at(&f, EVREC_SECOND);
		assert_int_equal(server_requests(&f.server), 4);
		assert_int_equal(stats_of(&f).created, 2);
		assert_int_equal(stats_of(&f).pending, 0);
		close_fixture(&f);
	}
}

/* A PATCH that fails, and then meets with success: is it told once more, as the first may be carried out after that? */
static void fail_then_patch(enum turn_kind kind, const char *reply, int64_t timeout, bool lingers)
{
	const struct turn turns[] = { { kind, reply }, { TURN_REPLY, OK(EVENT) } };
	struct fixture f;

	prepare(&f, "");
	f.options.timeout = timeout;
	server_start(&f.server, turns, 2);
	open_sender(&f, true);
	submit_named(&f, 1, VERB_PATCH, "n1");
	exchange_at(&f, 0);
	exchange_at(&f, EVREC_SECOND);
	assert_int_equal(server_requests(&f.server), 2);
	assert_int_equal(stats_of(&f).pending, lingers);
	exchange_at(&f, 3 * EVREC_SECOND);
	assert_int_equal(server_requests(&f.server), lingers ? 3 : 2);
	assert_int_equal(stats_of(&f).patched, 1);
	close_fixture(&f);
}

#define STATUS(line) "HTTP/1.1 " line "\r\nConnection: close\r\n\r\n{\"kind\":\"Status\"}"

static void test_what_may_be_carried_out_late(void **state)
{
	(void)state;
	fail_then_patch(TURN_REPLY, NULL, SOON, true);
	fail_then_patch(TURN_RESET, NULL, SOON, true);
	fail_then_patch(TURN_MUTE, NULL, EVREC_SECOND / 5, true);
	fail_then_patch(TURN_MUTE, "HTTP/1.1 200 OK\r\n", EVREC_SECOND / 5, true);
	fail_then_patch(TURN_REPLY, STATUS("502 Bad Gateway"), SOON, true);
	fail_then_patch(TURN_REPLY, STATUS("504 Gateway Timeout"), SOON, true);
	fail_then_patch(TURN_REPLY, STATUS("409 Conflict"), SOON, false);
	fail_then_patch(TURN_REPLY, STATUS("429 Too Many Requests"), SOON, false);
	fail_then_patch(TURN_REPLY, STATUS("500 Internal Server Error"), SOON, false);
	fail_then_patch(TURN_REPLY, STATUS("503 Service Unavailable"), SOON, false);
}

static void test_what_is_surely_over(void **state)
{
	struct fixture f;

	(void)state;
	prepare(&f, "");
	open_sender(&f, true);
	submit_named(&f, 1, VERB_PATCH, "n1");
	exchange_at(&f, 0);
	assert_report(&f, "transport", "Failed to connect to 127.0.0.1");
	server_start(&f.server, TURNS({ TURN_REPLY, OK(EVENT) }));
	exchange_at(&f, EVREC_SECOND);
	assert_int_equal(stats_of(&f).patched, 1);
	submit_named(&f, 1, VERB_PATCH, "n1");
	exchange_at(&f, EVREC_SECOND);
	assert_int_equal(stats_of(&f).patched, 2);
	assert_int_equal(server_requests(&f.server), 2);
	close_fixture(&f);
}

static void test_kept_connection_that_breaks_under_a_patch(void **state)
{
	struct fixture f;

	(void)state;
	/* libcurl sends it again by itself: answered, and perhaps carried out once more by whoever had it first. */
	open_fixture(&f, TURNS({ TURN_KEEP, KEPT }, { TURN_REPLY, NULL }, { TURN_REPLY, OK(EVENT) }));
	submit_named(&f, 1, VERB_PATCH, "n1");
	exchange_at(&f, 0);
	submit_named(&f, 2, VERB_PATCH, "n2");
	exchange_at(&f, 0);
	assert_int_equal(server_requests(&f.server), 3);
	assert_int_equal(stats_of(&f).patched, 1);
	assert_int_equal(stats_of(&f).pending, 1);
	exchange_at(&f, 2 * EVREC_SECOND);
	assert_saw(&f, 3, "{\"name\":\"n2\"");
	assert_int_equal(stats_of(&f).patched, 2);
	close_fixture(&f);
}

static void test_silence_ends_with_the_deadline(void **state)
{
	struct fixture f;
	int64_t start;

	(void)state;
	prepare(&f, "");
	evrec_clock_release(f.clock);
	f.clock = evrec_clock_real();
	server_start(&f.server, TURNS({ TURN_MUTE, NULL }));
	open_sender(&f, false);
	item_submit(f.ob, 1, 1);
	start = clock_monotonic(evrec_clock_real());
	assert_false(sender_join(f.sender, start + EVREC_SECOND / 10));
	assert_true(clock_monotonic(evrec_clock_real()) - start < SOON / 4);
	assert_int_equal(stats_of(&f).dropped[EVREC_CAUSE_CLOSED], 1);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults_that_leave_doubt),
		cmocka_unit_test(test_refused_connection_leaves_no_doubt),
		cmocka_unit_test(test_kept_connection_that_breaks),
		cmocka_unit_test(test_answer_that_begins_with_a_folded_header),
		cmocka_unit_test(test_kept_connection_that_breaks_and_then_a_refusal),
		cmocka_unit_test(test_what_may_be_carried_out_late),
		cmocka_unit_test(test_what_is_surely_over),
		cmocka_unit_test(test_kept_connection_that_breaks_under_a_patch),
		cmocka_unit_test(test_silence_ends_with_the_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A batch that is too large is sent in parts, and later batches are smaller; a batch ends at its bytes. */
#include "otlp_fixture.h"

#define S EVREC_SECOND

static void test_a_batch_that_is_too_large_is_sent_in_halves(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_REPLY, OTLP_ANSWER("413 Too Large", "") }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(http_server_requests(&f.server), 3);
	otlp_fixture_check_names(&f, 1, "n1:1 n2:1");
	otlp_fixture_check_names(&f, 2, "n3:1 n4:1");
	OTLP_WRITTEN(&f, 1, 2, 3, 4);
	assert_int_equal(otlp_fixture_stats(&f).retries, 0);
	otlp_fixture_check_silent(&f);
	otlp_fixture_close(&f);
}

/* A header's value may be the beginning of the word at the end of the receiver's text. */
static void test_a_hidden_value_of_a_header_hides_not_that_a_body_is_too_large(void **state)
{
	static const struct http_turn turns[] = {
		{ TURN_REPLY, OTLP_ANSWER("400 Bad Request", "http: request body too large") },
		{ TURN_KEEP, OTLP_TAKEN },
	};
	const evrec_pair header = { EVREC_STR("X-Scope-OrgID"), EVREC_STR("large-shop") };
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.headers = (evrec_map){ &header, 1 };
	http_server_start(&f.server, turns, 2);
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	OTLP_WRITTEN(&f, 1, 2, 3, 4);
	otlp_fixture_check_silent(&f);
	otlp_fixture_close(&f);
}

static void test_a_single_record_that_is_too_large_is_dropped(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_open(&f, TURNS({ TURN_REPLY, OTLP_ANSWER("413 Too Large", "") },
	                            { TURN_REPLY, OTLP_ANSWER("413 Too Large", "") },
	                            { TURN_REPLY, OTLP_ANSWER("413 Too Large", "") }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_submit(&f, 1, 4);
	otlp_fixture_exchange(&f, 0);
	OTLP_DROPPED(&f, 1);
	OTLP_WRITTEN(&f, 2, 3, 4);
	assert_int_equal(otlp_fixture_count_dropped(&f, EVREC_CAUSE_REJECTED), 1);
	otlp_fixture_check_message(&f, "rejected", "413");
	otlp_fixture_check_silent(&f);
	otlp_fixture_close(&f);
}

/* The first half is written. The part that was refused costs a try; the part behind it, which was not sent, does not. */
static void test_a_part_that_is_refused_ends_its_batch(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 8;
	http_server_start(&f.server, TURNS({ TURN_REPLY, OTLP_ANSWER("413 Too Large", "") }, { TURN_KEEP, OTLP_TAKEN },
	                                   { TURN_REPLY, OTLP_ANSWER("413 Too Large", "") },
	                                   { TURN_REPLY, HTTP_RETRY_AFTER_7 }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 8);
	otlp_fixture_exchange(&f, 0);
	OTLP_WRITTEN(&f, 1, 2, 3, 4);
	otlp_fixture_check_names(&f, 3, "n5:1 n6:1");
	assert_int_equal(http_server_requests(&f.server), 4);
	otlp_fixture_exchange(&f, 7 * S);
	assert_int_equal(otlp_fixture_stats(&f).created, 8);
	assert_int_equal(otlp_fixture_stats(&f).retries, 2);
	otlp_fixture_close(&f);
}

/* Else each batch would be sent twice. */
static void test_later_batches_are_not_as_large_as_one_that_was_too_large(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 20;
	http_server_start(&f.server,
	                  TURNS({ TURN_REPLY, OTLP_ANSWER("413 Too Large", "") }, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 20);
	otlp_fixture_exchange(&f, 0);
	assert_in_range(http_server_requests(&f.server), 3, 5);
	otlp_fixture_submit(&f, 21, 40);
	otlp_fixture_exchange(&f, 0);
	for (size_t i = 1; i < http_server_requests(&f.server); i++) {
		assert_true(strlen(f.server.requests[i]) < strlen(f.server.requests[0]) * 3 / 4);
	}
	assert_int_equal(otlp_fixture_stats(&f).created, 40);
	otlp_fixture_close(&f);
}

#define TOO_LARGE                                                                                                      \
	{                                                                                                              \
		TURN_REPLY, OTLP_ANSWER("400 Bad Request", "the log is too large")                                     \
	}

/* The receiver refuses each body with the first record in it. Then the record is dropped, and later batches are as before. */
static void test_one_record_that_is_refused_costs_later_batches_little(void **state)
{
	struct otlp_fixture f;
	size_t before;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 512;
	http_server_start(&f.server, TURNS(TOO_LARGE, TOO_LARGE, TOO_LARGE, TOO_LARGE, TOO_LARGE, TOO_LARGE, TOO_LARGE,
	                                   TOO_LARGE, TOO_LARGE, TOO_LARGE, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 512);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(otlp_fixture_count_dropped(&f, EVREC_CAUSE_REJECTED), 1);
	assert_int_equal(otlp_fixture_stats(&f).created, 511);
	before = http_server_requests(&f.server);
	assert_int_equal(before, 10 + 9);
	for (unsigned burst = 1; burst <= 2; burst++) {
		otlp_fixture_submit(&f, burst * 512 + 1, (burst + 1) * 512);
		otlp_fixture_exchange(&f, 0);
	}
	assert_int_equal(otlp_fixture_stats(&f).created, 511 + 2 * 512);
	assert_in_range(http_server_requests(&f.server) - before, 2, 5);
	otlp_fixture_close(&f);
}

/* The first record is refused in a batch of two. After some parts of 1 KiB those of the next batch grow. */
static void test_the_size_of_parts_grows_within_a_batch(void **state)
{
	struct otlp_fixture f;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 512;
	http_server_start(&f.server, TURNS(TOO_LARGE, TOO_LARGE, { TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	otlp_fixture_submit(&f, 1, 2);
	otlp_fixture_flush(&f, 0);
	OTLP_DROPPED(&f, 1);
	OTLP_WRITTEN(&f, 2);
	assert_int_equal(http_server_requests(&f.server), 3);
	otlp_fixture_submit(&f, 3, 500);
	otlp_fixture_flush(&f, 0);
	assert_int_equal(otlp_fixture_stats(&f).created, 499);
	assert_in_range(http_server_requests(&f.server), 3 + 5, 3 + 12);
	otlp_fixture_close(&f);
}

/* The option is 16 KiB, and the receiver takes up to 10 KiB. */
static void open_sender_of_a_receiver_with_a_limit(struct otlp_fixture *f)
{
	static const struct http_turn taken = { TURN_KEEP, OTLP_TAKEN };

	otlp_fixture_prepare(f);
	f->options.batch_max = 500;
	f->options.batch_bytes = 16 * 1024;
	f->server.longest = 10 * 1024;
	http_server_start(&f->server, &taken, 1);
	otlp_fixture_open_sender(f, true);
}

static void test_the_rest_of_a_batch_has_smaller_parts_at_once(void **state)
{
	struct otlp_fixture f;

	(void)state;
	open_sender_of_a_receiver_with_a_limit(&f);
	otlp_fixture_submit(&f, 1, 500);
	otlp_fixture_exchange(&f, 0);
	assert_int_equal(otlp_fixture_stats(&f).created, 500);
	/* The first part and probes; about 25 parts are taken. */
	assert_in_range(f.server.too_long, 1, 4);
	otlp_fixture_close(&f);
}

/* Else many bytes are sent twice, for ever. */
static void test_a_size_that_was_refused_is_tried_seldom(void **state)
{
	struct otlp_fixture f;
	size_t sent;

	(void)state;
	open_sender_of_a_receiver_with_a_limit(&f);
	for (unsigned i = 0; i < 20; i++) {
		otlp_fixture_submit(&f, 500 * i + 1, 500 * i + 500);
		otlp_fixture_exchange(&f, 0);
	}
	assert_int_equal(otlp_fixture_stats(&f).created, 10000);
	assert_in_range(f.server.too_long, 1, 8);
	sent = f.server.body_bytes;
	assert_true(f.server.too_long * f.options.batch_bytes < sent / 20);
	otlp_fixture_close(&f);
}

static void test_a_batch_ends_at_its_bytes(void **state)
{
	struct fake_write draft = { .count = 1 };
	struct otlp_fixture f;
	enum evrec_cause cause;

	(void)state;
	otlp_fixture_prepare(&f);
	f.options.batch_max = 8;
	f.options.batch_bytes = 5000;
	http_server_start(&f.server, TURNS({ TURN_KEEP, OTLP_TAKEN }));
	otlp_fixture_open_sender(&f, true);
	for (unsigned id = 1; id <= 8; id++) {
		const struct occurrence occurrence = { .id = id, .verb = VERB_CREATE, .draft = &draft };

		/* The 5th fits into no body. */
		draft.size = id == 5 ? 6000 : 1500;
		(void)snprintf(draft.name, sizeof(draft.name), "n%u", id);
		assert_true(outbox_submit(f.ob, &occurrence, &cause));
	}
	otlp_fixture_exchange(&f, 0);
	otlp_fixture_check_names(&f, 0, "n1:1 n2:1");
	otlp_fixture_check_names(&f, 1, "n3:1 n4:1");
	otlp_fixture_check_names(&f, 2, "n5:1");
	otlp_fixture_check_names(&f, 3, "n6:1 n7:1");
	otlp_fixture_check_names(&f, 4, "n8:1");
	for (size_t i = 0; i < 5; i++) {
		assert_true(strlen(strstr(f.server.requests[i], "\r\n\r\n") + 4) <= 5000 || i == 2);
	}
	assert_int_equal(http_server_requests(&f.server), 5);
	otlp_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_batch_that_is_too_large_is_sent_in_halves),
		cmocka_unit_test(test_a_hidden_value_of_a_header_hides_not_that_a_body_is_too_large),
		cmocka_unit_test(test_a_single_record_that_is_too_large_is_dropped),
		cmocka_unit_test(test_a_part_that_is_refused_ends_its_batch),
		cmocka_unit_test(test_later_batches_are_not_as_large_as_one_that_was_too_large),
		cmocka_unit_test(test_one_record_that_is_refused_costs_later_batches_little),
		cmocka_unit_test(test_the_size_of_parts_grows_within_a_batch),
		cmocka_unit_test(test_the_rest_of_a_batch_has_smaller_parts_at_once),
		cmocka_unit_test(test_a_size_that_was_refused_is_tried_seldom),
		cmocka_unit_test(test_a_batch_ends_at_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The outbox at its limits: max_pending, memory, close, drop, cut-off; and its messages. */
#include "checked_outbox.h"

static void test_max_pending_counts_follow_ups(void **state)
{
	struct outbox *ob = checked_outbox(3);
	struct fake_write draft = { .count = 1, .name = "x" };
	const struct occurrence occurrence = {
		.id = 3, .verb = VERB_CREATE, .important = false, .now = 0, .draft = &draft
	};
	enum evrec_cause cause = EVREC_CAUSES;
	struct outbox_stats stats;

	(void)state;
	checked_submit(ob, 1, 1);
	checked_submit(ob, 2, 1);
	checked_take(ob, 0);
	assert_true(checked_submit(ob, 1, 2)); /* a follow-up: the third write */
	assert_true(checked_submit(ob, 1, 3));
	assert_true(checked_submit(ob, 2, 2));
	assert_false(outbox_submit(ob, &occurrence, &cause));
	assert_int_equal(cause, EVREC_CAUSE_QUEUE_FULL);
	checked_take(ob, 0);
	assert_false(checked_submit(ob, 2, 3));
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.writes, 3);
	assert_int_equal(stats.dropped[EVREC_CAUSE_QUEUE_FULL], 2);
	assert_int_equal(stats.pending, 5);
	checked_outbox_free(ob);
}

static void test_writes_without_memory_are_dropped_or_retried(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *post;

	(void)state;
	checked_submit(ob, 1, 1);
	fake_writes.no_memory = true;
	assert_false(checked_submit(ob, 1, 2));
	assert_false(checked_submit(ob, 2, 1));
	fake_writes.no_memory = false;
	assert_message(ob, "memory", "no memory: an event was dropped");
	post = take_expected(ob, 0, 1, VERB_CREATE, 1);
	checked_submit(ob, 1, 3);
	/* A follow-up that cannot be merged stays a write of its own, and later occurrences fold into it. */
	fake_writes.no_memory = true;
	checked_answer(ob, post, ANSWER_LOST, 0);
	fake_writes.no_memory = false;
	checked_submit(ob, 1, 4);
	post = take_expected(ob, S, 1, VERB_CREATE, 1);
	fake_writes.no_memory = true;
	checked_answer(ob, post, ANSWER_CREATED, S);
	fake_writes.no_memory = false;
	checked_answer(ob, take_expected(ob, S, 1, VERB_PATCH, 4), answer_with(200), S);
	/* Without memory for a new name, the write is retried. */
	checked_submit(ob, 5, 1);
	fake_writes.no_memory = true;
	checked_answer(ob, checked_take(ob, S), answer_with(409), S);
	fake_writes.no_memory = false;
	checked_answer(ob, checked_take(ob, 2 * S), answer_with(409), 2 * S);
	checked_answer(ob, checked_take(ob, 2 * S), ANSWER_CREATED, 2 * S);
	checked_outbox_free(ob);
}

static void test_make_due_now_moves_unanswered_writes(void **state)
{
	struct outbox *ob = checked_outbox(100);
	evrec_answer throttled = { .status = 500, .retry_after = 100 * S }, lost = ANSWER_LOST;
	struct entry *entry;

	(void)state;
	lost.retry_after = 200 * S;
	for (unsigned i = 1; i <= 20; i++) {
		checked_submit(ob, i, 1);
		checked_answer(ob, checked_take(ob, 0), i % 2 == 0 ? lost : throttled, 0);
	}
	outbox_make_due_now(ob);
	assert_true(outbox_next_due(ob, S) <= S);
	for (unsigned i = 1; i <= 9; i++) {
		assert_int_equal(checked_take(ob, S)->id % 2, 0);
	}
	/* An entry that is lost again backs off again, until the next call. */
	entry = checked_take(ob, S);
	checked_answer(ob, entry, lost, S);
	assert_null(checked_take(ob, 99 * S));
	assert_int_equal(outbox_next_due(ob, S), 100 * S);
	outbox_make_due_now(ob);
	assert_ptr_equal(checked_take(ob, S), entry);
	assert_null(checked_take(ob, 99 * S));
	checked_outbox_free(ob);
}

static void test_close_tries_each_write_once_more(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct fake_write draft = { .count = 1, .name = "x" };
	const struct occurrence occurrence = {
		.id = 3, .verb = VERB_CREATE, .important = false, .now = 0, .draft = &draft
	};
	enum evrec_cause cause = EVREC_CAUSES;
	struct entry *in_flight;

	(void)state;
	for (unsigned i = 1; i <= 4; i++) {
		checked_submit(ob, i, 1);
	}
	in_flight = checked_take(ob, 0);
	checked_submit(ob, 1, 2);
	checked_answer(ob, checked_take(ob, 0), (evrec_answer){ .status = 500, .retry_after = 100 * S }, 0);
	outbox_close(ob);
	assert_false(outbox_submit(ob, &occurrence, &cause));
	assert_int_equal(cause, EVREC_CAUSE_CLOSED);
	/* Writes that back off are tried once more, at once; a failed write is not retried. */
	assert_int_equal(outbox_next_due(ob, 1), 1);
	checked_answer(ob, take_expected(ob, 1, 2, VERB_CREATE, 1), answer_with(500), 1);
	collect_dropped(ob, 2, EVREC_CAUSE_CLOSED, 1);
	checked_answer(ob, in_flight, ANSWER_LOST, 1);
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 1);
	checked_answer(ob, take_expected(ob, 1, 3, VERB_CREATE, 1), ANSWER_CREATED, 1);
	checked_answer(ob, take_expected(ob, 1, 4, VERB_CREATE, 1), answer_with(401), 1);
	checked_answer(ob, take_expected(ob, 1, 1, VERB_PATCH, 2), answer_with(404), 1);
	checked_answer(ob, take_expected(ob, 1, 1, VERB_CREATE, 2), ANSWER_CREATED, 1);
	assert_true(outbox_empty(ob));
	assert_int_equal(outbox_next_due(ob, 1), INT64_MAX);
	checked_outbox_free(ob);
}

static void test_dropped_writes_in_flight_are_collected_after_cut_off(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *one, *two;
	struct outbox_stats stats;

	(void)state;
	for (unsigned i = 1; i <= 4; i++) {
		checked_submit(ob, i, 1);
	}
	one = checked_take(ob, 0);
	two = checked_take(ob, 0);
	(void)two;
	checked_answer(ob, checked_take(ob, 0), ANSWER_LOST, 0);
	checked_submit(ob, 1, 2);
	outbox_close(ob);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	outbox_check_equation(ob);
	assert_true(outbox_empty(ob));
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 5);
	assert_int_equal(stats.in_flight, 2);
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 2);
	/* A success after the drop changes nothing. */
	checked_answer(ob, one, ANSWER_CREATED, 0);
	assert_counts(ob, 0, 0, 0, 0);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	outbox_cut_off(ob);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 5);
	assert_int_equal(stats.in_flight, 0);
	collect_dropped(ob, 4, EVREC_CAUSE_CLOSED, 1);
	collect_dropped(ob, 3, EVREC_CAUSE_CLOSED, 1);
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 1);
	collect_dropped(ob, 2, EVREC_CAUSE_CLOSED, 1);
	assert_null(outbox_collect(ob, 1));
	checked_outbox_free(ob);
}

static void test_cut_off_drops_writes_in_flight(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 1);
	checked_take(ob, 0);
	checked_submit(ob, 1, 2);
	outbox_cut_off(ob);
	outbox_check_equation(ob);
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 1);
	take_expected(ob, 0, 1, VERB_PATCH, 2);
	checked_outbox_free(ob);
}

static void count_wake(void *ctx)
{
	(*(unsigned *)ctx)++;
}

static void test_wakes_only_if_nothing_waited(void **state)
{
	struct outbox *ob = checked_outbox(2);
	unsigned wakes = 0;

	(void)state;
	outbox_on_work(ob, count_wake, &wakes);
	checked_submit(ob, 1, 1);
	checked_submit(ob, 1, 2);
	checked_submit(ob, 2, 1);
	assert_int_equal(wakes, 1);
	checked_submit(ob, 3, 1); /* full */
	assert_int_equal(wakes, 1);
	checked_take(ob, 0);
	checked_take(ob, 0);
	checked_submit(ob, 3, 1); /* full */
	assert_int_equal(wakes, 1);
	outbox_cut_off(ob);
	checked_submit(ob, 3, 1);
	assert_int_equal(wakes, 2);
	checked_outbox_free(ob);
}

static void fail_with(struct outbox *ob, int code, const char *message, int64_t now)
{
	evrec_answer a = { .status = code };

	snprintf(a.message, sizeof(a.message), "%s", message);
	checked_submit(ob, 99, 1);
	checked_answer(ob, checked_take(ob, now), a, now);
	if (code != 401 && code != 429 && code != 0 && code < 500) {
		return;
	}
	/* The write backs off: drop it, so that the next call begins with a new one. */
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
}

static void test_messages_are_deduplicated(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct outbox_stats stats;

	(void)state;
	fail_with(ob, 0, "Failed to connect after 12 ms", S);
	fail_with(ob, 0, "Failed to connect after 3 ms", 2 * S);
	assert_message(ob, "transport", "POST: Failed to connect after 12 ms");
	assert_no_message(ob);
	/* A lasting outage is reported once; after 10 minutes without a failure it is reported again. */
	fail_with(ob, 0, "Failed to connect after 3 ms", 500 * S);
	fail_with(ob, 0, "Failed to connect after 3 ms", 1000 * S);
	assert_no_message(ob);
	fail_with(ob, 0, "Failed to connect after 4 ms", 1700 * S);
	assert_message(ob, "transport", "POST: Failed to connect after 4 ms");
	fail_with(ob, 503, "", 1700 * S);
	fail_with(ob, 401, "who are you", 1700 * S);
	fail_with(ob, 429, "slowly", 1700 * S);
	fail_with(ob, 404, "no such namespace", 1700 * S);
	assert_message(ob, "server", "POST: 503");
	assert_message(ob, "unauthorized", "POST: 401: who are you");
	assert_message(ob, "throttled", "POST: 429: slowly");
	assert_message(ob, "not_found", "POST: 404: no such namespace");
	/* A missing right is reported once for all events of a namespace. */
	fail_with(ob, 403, "events \"a.17\" is forbidden: User \"u\" cannot create in \"shop\"", 1800 * S);
	fail_with(ob, 403, "events \"b.18\" is forbidden: User \"u\" cannot create in \"shop\"", 1900 * S);
	fail_with(ob, 403, "events \"b.18\" is forbidden: User \"u\" cannot create in \"other\"", 2000 * S);
	fail_with(ob, 403, "events \"c.19\" is forbidden: User \"u\" cannot create in \"shop\"", 2100 * S);
	assert_message(ob, "forbidden",
	               "POST: 403: events \"a.17\" is forbidden: User \"u\" cannot create in \"shop\"");
	assert_message(ob, "forbidden",
	               "POST: 403: events \"b.18\" is forbidden: User \"u\" cannot create in \"other\"");
	assert_no_message(ob);
	for (unsigned i = 0; i < 20; i++) {
		char message[8] = { (char)('a' + i) };

		fail_with(ob, 422, message, 2200 * S);
	}
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.messages_lost, 4);
	assert_message(ob, "rejected", "POST: 422: a");
	checked_outbox_free(ob);
}

static void test_terminating_namespace_has_no_message(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 1);
	checked_answer(ob, checked_take(ob, 0),
	               (evrec_answer){ .status = 403, .terminating = true, .message = "terminating" }, 0);
	collect_dropped(ob, 1, EVREC_CAUSE_TERMINATING, 1);
	assert_no_message(ob);
	checked_outbox_free(ob);
}

static void test_wait_ends_when_nothing_is_pending(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	assert_true(outbox_wait(ob, 0));
	checked_submit(ob, 1, 1);
	assert_false(outbox_wait(ob, 0));
	checked_answer(ob, checked_take(ob, 0), answer_with(422), 0);
	assert_true(outbox_wait(ob, INT64_MAX));
	checked_submit(ob, 2, 1);
	assert_false(outbox_wait(ob, 0));
	checked_outbox_free(ob);
}

/* Submits, sends and collects, whichever allocation fails; the counters stay balanced. */
static void use_outbox(struct unit_allocator *memory)
{
	struct outbox *ob = fake_write_outbox(200);
	struct entry *entry;
	int64_t now = 0;

	if (ob == NULL) {
		assert_true(memory->fail_at <= memory->calls);
		return;
	}
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 1; i <= 70; i++) {
			(void)checked_submit(ob, i, round + 1);
		}
		for (unsigned i = 1; i <= 50 && (entry = checked_take(ob, now)) != NULL; i++) {
			const int codes[] = { 201, 503, 409, 404, 0, 422 };

			(void)checked_submit(ob, entry->id, round + 2);
			checked_answer(ob, entry, answer_with(codes[(entry->id + round) % 6]), now);
			now += S / 10;
		}
		while ((entry = outbox_collect(ob, 1)) != NULL) {
			outbox_recycle(ob, entry);
		}
	}
	checked_outbox_free(ob);
}

static void test_every_allocation_may_fail(void **state)
{
	struct unit_allocator memory = { 0 };
	size_t calls;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	use_outbox(&memory);
	calls = memory.calls;
	assert_true(calls > 5);
	for (size_t i = 1; i <= calls; i++) {
		memory = (struct unit_allocator){ .fail_at = i };
		use_outbox(&memory);
	}
	evrec_set_allocator(NULL, NULL);
}

static void test_retries_cost_no_memory(void **state)
{
	struct unit_allocator memory = { 0 };
	struct outbox *ob;
	size_t calls;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	ob = checked_outbox(100);
	for (unsigned i = 1; i <= 100; i++) {
		checked_submit(ob, i, 1);
	}
	calls = memory.calls;
	for (unsigned i = 1; i <= 100; i++) {
		checked_answer(ob, checked_take(ob, 0), ANSWER_LOST, 0);
		checked_submit(ob, i, 2);
	}
	for (unsigned i = 1; i <= 100; i++) {
		checked_answer(ob, checked_take(ob, S), ANSWER_CREATED, S);
	}
	assert_int_equal(memory.calls, calls);
	assert_counts(ob, 100, 0, 100, 0);
	checked_outbox_free(ob);
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_max_pending_counts_follow_ups),
		cmocka_unit_test(test_writes_without_memory_are_dropped_or_retried),
		cmocka_unit_test(test_make_due_now_moves_unanswered_writes),
		cmocka_unit_test(test_close_tries_each_write_once_more),
		cmocka_unit_test(test_dropped_writes_in_flight_are_collected_after_cut_off),
		cmocka_unit_test(test_cut_off_drops_writes_in_flight),
		cmocka_unit_test(test_wakes_only_if_nothing_waited),
		cmocka_unit_test(test_messages_are_deduplicated),
		cmocka_unit_test(test_terminating_namespace_has_no_message),
		cmocka_unit_test(test_wait_ends_when_nothing_is_pending),
		cmocka_unit_test(test_every_allocation_may_fail),
		cmocka_unit_test(test_retries_cost_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

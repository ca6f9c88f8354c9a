/* The outbox at its limits: bounds, memory, closing, dropping; and what it reports. */
#include "outbox_hand.h"

static void test_bounds(void **state)
{
	struct outbox *ob = new_outbox(3);
	struct item draft = { .count = 1, .name = "x" };
	const struct occurrence occurrence = { 3, VERB_CREATE, false, 0, &draft };
	enum evrec_cause cause = EVREC_CAUSES;
	struct outbox_stats stats;

	(void)state;
	submit(ob, 1, 1);
	submit(ob, 2, 1);
	take(ob, 0);
	assert_true(submit(ob, 1, 2)); /* a follow-up: the third write */
	assert_true(submit(ob, 1, 3));
	assert_true(submit(ob, 2, 2));
	assert_false(outbox_submit(ob, &occurrence, &cause));
	assert_int_equal(cause, EVREC_CAUSE_QUEUE_FULL);
	take(ob, 0);
	assert_false(submit(ob, 2, 3));
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.writes, 3);
	assert_int_equal(stats.dropped[EVREC_CAUSE_QUEUE_FULL], 2);
	assert_int_equal(stats.pending, 5);
	end_outbox(ob);
}

static void test_items_without_memory(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *post;

	(void)state;
	submit(ob, 1, 1);
	items_fail = true;
	assert_false(submit(ob, 1, 2));
	assert_false(submit(ob, 2, 1));
	items_fail = false;
	assert_report(ob, "memory", "no memory: an event was dropped");
	post = take_this(ob, 0, 1, VERB_CREATE, 1);
	submit(ob, 1, 3);
	/* What cannot be merged follows by itself, and goes on folding. */
	items_fail = true;
	answer(ob, post, LOST, 0);
	items_fail = false;
	submit(ob, 1, 4);
	post = take_this(ob, S, 1, VERB_CREATE, 1);
	items_fail = true;
	answer(ob, post, CREATED, S);
	items_fail = false;
	answer(ob, take_this(ob, S, 1, VERB_PATCH, 4), status(200), S);
	/* No memory for another name: tried again, until there is. */
	submit(ob, 5, 1);
	items_fail = true;
	answer(ob, take(ob, S), status(409), S);
	items_fail = false;
	answer(ob, take(ob, 2 * S), status(409), 2 * S);
	answer(ob, take(ob, 2 * S), CREATED, 2 * S);
	end_outbox(ob);
}

static void test_hasten(void **state)
{
	struct outbox *ob = new_outbox(100);
	evrec_answer throttled = { .status = 429, .retry_after = 100 * S }, lost = LOST;
	struct entry *entry;

	(void)state;
	lost.retry_after = 200 * S;
	for (unsigned i = 1; i <= 20; i++) {
		submit(ob, i, 1);
		answer(ob, take(ob, 0), i % 2 == 0 ? lost : throttled, 0);
	}
	outbox_hasten(ob);
	assert_true(outbox_next_due(ob, S) <= S);
	for (unsigned i = 1; i <= 9; i++) {
		assert_int_equal(take(ob, S)->id % 2, 0);
	}
	/* One that is lost again waits again, and longer than it takes the server to come back once more. */
	entry = take(ob, S);
	answer(ob, entry, lost, S);
	assert_null(take(ob, 99 * S));
	assert_int_equal(outbox_next_due(ob, S), 100 * S);
	outbox_hasten(ob);
	assert_ptr_equal(take(ob, S), entry);
	assert_null(take(ob, 99 * S));
	end_outbox(ob);
}

static void test_close(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct item draft = { .count = 1, .name = "x" };
	const struct occurrence occurrence = { 3, VERB_CREATE, false, 0, &draft };
	enum evrec_cause cause = EVREC_CAUSES;
	struct entry *flying;

	(void)state;
	for (unsigned i = 1; i <= 4; i++) {
		submit(ob, i, 1);
	}
	flying = take(ob, 0);
	submit(ob, 1, 2);
	answer(ob, take(ob, 0), (evrec_answer){ .status = 429, .retry_after = 100 * S }, 0);
	outbox_close(ob);
	assert_false(outbox_submit(ob, &occurrence, &cause));
	assert_int_equal(cause, EVREC_CAUSE_CLOSED);
	/* What backs off is tried once more, at once; what fails is not tried again. */
	assert_int_equal(outbox_next_due(ob, 1), 1);
	answer(ob, take_this(ob, 1, 2, VERB_CREATE, 1), status(429), 1);
	collect_dropped(ob, 2, EVREC_CAUSE_CLOSED, 1);
	answer(ob, flying, LOST, 1);
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 1);
	answer(ob, take_this(ob, 1, 3, VERB_CREATE, 1), CREATED, 1);
	answer(ob, take_this(ob, 1, 4, VERB_CREATE, 1), status(401), 1);
	answer(ob, take_this(ob, 1, 1, VERB_PATCH, 2), status(404), 1);
	answer(ob, take_this(ob, 1, 1, VERB_CREATE, 2), CREATED, 1);
	assert_true(outbox_empty(ob));
	assert_int_equal(outbox_next_due(ob, 1), INT64_MAX);
	end_outbox(ob);
}

static void test_drop_all_and_cut_off(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *one, *two;
	struct outbox_stats stats;

	(void)state;
	for (unsigned i = 1; i <= 4; i++) {
		submit(ob, i, 1);
	}
	one = take(ob, 0);
	two = take(ob, 0);
	(void)two;
	answer(ob, take(ob, 0), LOST, 0);
	submit(ob, 1, 2);
	outbox_close(ob);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	assert_equation(ob);
	assert_true(outbox_empty(ob));
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 5);
	assert_int_equal(stats.in_flight, 2);
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 2);
	/* A late success changes nothing. */
	answer(ob, one, CREATED, 0);
	assert_stats(ob, 0, 0, 0, 0);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	outbox_cut_off(ob);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 5);
	assert_int_equal(stats.in_flight, 0);
	collect_dropped(ob, 4, EVREC_CAUSE_CLOSED, 1);
	collect_dropped(ob, 3, EVREC_CAUSE_CLOSED, 1);
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 1);
	collect_dropped(ob, 2, EVREC_CAUSE_CLOSED, 1);
	assert_null(outbox_collect(ob));
	end_outbox(ob);
}

static void test_cut_off_alone(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	submit(ob, 1, 1);
	take(ob, 0);
	submit(ob, 1, 2);
	outbox_cut_off(ob);
	assert_equation(ob);
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 1);
	take_this(ob, 0, 1, VERB_PATCH, 2);
	end_outbox(ob);
}

static void count_wake(void *ctx)
{
	(*(unsigned *)ctx)++;
}

static void test_wakes_only_where_nothing_waited(void **state)
{
	struct outbox *ob = new_outbox(2);
	unsigned wakes = 0;

	(void)state;
	outbox_on_work(ob, count_wake, &wakes);
	submit(ob, 1, 1);
	submit(ob, 1, 2);
	submit(ob, 2, 1);
	assert_int_equal(wakes, 1);
	submit(ob, 3, 1); /* full */
	assert_int_equal(wakes, 1);
	take(ob, 0);
	take(ob, 0);
	submit(ob, 3, 1); /* full */
	assert_int_equal(wakes, 1);
	outbox_cut_off(ob);
	submit(ob, 3, 1);
	assert_int_equal(wakes, 2);
	end_outbox(ob);
}

static void fail_with(struct outbox *ob, int code, const char *message, int64_t now)
{
	evrec_answer a = { .status = code };

	snprintf(a.message, sizeof(a.message), "%s", message);
	submit(ob, 99, 1);
	answer(ob, take(ob, now), a, now);
	if (code != 401 && code != 429 && code != 0 && code < 500) {
		return;
	}
	/* It backs off: away with it, so that the next one is fresh. */
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
}

static void test_reports(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct outbox_stats stats;

	(void)state;
	fail_with(ob, 0, "Failed to connect after 12 ms", S);
	fail_with(ob, 0, "Failed to connect after 3 ms", 2 * S);
	assert_report(ob, "transport", "POST: Failed to connect after 12 ms");
	assert_no_report(ob);
	/* An outage that lasts is told once; one that comes after quiet is another. */
	fail_with(ob, 0, "Failed to connect after 3 ms", 500 * S);
	fail_with(ob, 0, "Failed to connect after 3 ms", 1000 * S);
	assert_no_report(ob);
	fail_with(ob, 0, "Failed to connect after 4 ms", 1700 * S);
	assert_report(ob, "transport", "POST: Failed to connect after 4 ms");
	fail_with(ob, 503, "", 1700 * S);
	fail_with(ob, 401, "who are you", 1700 * S);
	fail_with(ob, 429, "slowly", 1700 * S);
	fail_with(ob, 404, "no such namespace", 1700 * S);
	assert_report(ob, "server", "POST: 503");
	assert_report(ob, "unauthorized", "POST: 401: who are you");
	assert_report(ob, "throttled", "POST: 429: slowly");
	assert_report(ob, "not_found", "POST: 404: no such namespace");
	/* The same right, missing for other events, each the probe of its time. */
	fail_with(ob, 403, "events \"a.17\" is forbidden: User \"u\" cannot create in \"shop\"", 1800 * S);
	fail_with(ob, 403, "events \"b.18\" is forbidden: User \"u\" cannot create in \"shop\"", 1900 * S);
	fail_with(ob, 403, "events \"b.18\" is forbidden: User \"u\" cannot create in \"other\"", 2000 * S);
	fail_with(ob, 403, "events \"c.19\" is forbidden: User \"u\" cannot create in \"shop\"", 2100 * S);
	assert_report(ob, "forbidden", "POST: 403: events \"a.17\" is forbidden: User \"u\" cannot create in \"shop\"");
	assert_report(ob, "forbidden",
	              "POST: 403: events \"b.18\" is forbidden: User \"u\" cannot create in \"other\"");
	assert_no_report(ob);
	for (unsigned i = 0; i < 20; i++) {
		char message[8] = { (char)('a' + i) };

		fail_with(ob, 422, message, 2200 * S);
	}
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.reports_lost, 4);
	assert_report(ob, "rejected", "POST: 422: a");
	end_outbox(ob);
}

static void test_quiet_drop(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	submit(ob, 1, 1);
	answer(ob, take(ob, 0), (evrec_answer){ .status = 403, .terminating = true, .message = "terminating" }, 0);
	collect_dropped(ob, 1, EVREC_CAUSE_TERMINATING, 1);
	assert_no_report(ob);
	end_outbox(ob);
}

static void test_credentials_are_asked_for(void **state)
{
	struct outbox *ob = new_outbox(10);
	evrec_answer a = { .status = 401 };

	(void)state;
	submit(ob, 1, 1);
	assert_true(outbox_answer(ob, take(ob, 0), &a, 0));
	a.status = 503;
	assert_false(outbox_answer(ob, take(ob, S), &a, S));
	end_outbox(ob);
}

static void test_wait(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	assert_true(outbox_wait(ob, 0));
	submit(ob, 1, 1);
	assert_false(outbox_wait(ob, 0));
	answer(ob, take(ob, 0), status(422), 0);
	assert_true(outbox_wait(ob, INT64_MAX));
	submit(ob, 2, 1);
	assert_false(outbox_wait(ob, 0));
	end_outbox(ob);
}

/* A life with everything in it, whatever the memory does; its end is the same, its books balance. */
static void live(struct unit_memory *memory)
{
	struct outbox *ob = items_outbox(200);
	struct entry *entry;
	int64_t now = 0;

	if (ob == NULL) {
		assert_true(memory->fail_at <= memory->calls);
		return;
	}
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 1; i <= 70; i++) {
			(void)submit(ob, i, round + 1);
		}
		for (unsigned i = 1; i <= 50 && (entry = take(ob, now)) != NULL; i++) {
			const int codes[] = { 201, 503, 409, 404, 0, 422 };

			(void)submit(ob, entry->id, round + 2);
			answer(ob, entry, status(codes[(entry->id + round) % 6]), now);
			now += S / 10;
		}
		while ((entry = outbox_collect(ob)) != NULL) {
			outbox_recycle(ob, entry);
		}
	}
	end_outbox(ob);
}

static void test_every_allocation_may_fail(void **state)
{
	struct unit_memory memory = { 0 };
	size_t calls;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	live(&memory);
	calls = memory.calls;
	assert_true(calls > 100);
	for (size_t i = 1; i <= calls; i++) {
		memory = (struct unit_memory){ .fail_at = i };
		live(&memory);
	}
	evrec_set_allocator(NULL, NULL);
}

static void test_retries_cost_no_memory(void **state)
{
	struct unit_memory memory = { 0 };
	struct outbox *ob;
	size_t calls;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	ob = new_outbox(100);
	for (unsigned i = 1; i <= 100; i++) {
		submit(ob, i, 1);
	}
	calls = memory.calls;
	for (unsigned i = 1; i <= 100; i++) {
		answer(ob, take(ob, 0), LOST, 0);
		submit(ob, i, 2);
	}
	for (unsigned i = 1; i <= 100; i++) {
		answer(ob, take(ob, S), CREATED, S);
	}
	assert_int_equal(memory.calls, calls);
	assert_stats(ob, 100, 0, 100, 0);
	end_outbox(ob);
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_items_without_memory),
		cmocka_unit_test(test_hasten),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_drop_all_and_cut_off),
		cmocka_unit_test(test_cut_off_alone),
		cmocka_unit_test(test_wakes_only_where_nothing_waited),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_quiet_drop),
		cmocka_unit_test(test_credentials_are_asked_for),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_every_allocation_may_fail),
		cmocka_unit_test(test_retries_cost_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Writes that wait for a batch: when it is due, and which writes wait for none. */
#include "checked_outbox.h"

#define BATCH 4
#define DELAY (2 * S)

static struct outbox *gathering_outbox(size_t max_pending)
{
	struct outbox *ob = checked_outbox(max_pending);

	outbox_gather(ob, BATCH, DELAY);
	return ob;
}

static void submit_at(struct outbox *ob, uint64_t id, unsigned count, int64_t now)
{
	assert_true(checked_submit_due(ob, id, count, now, 0));
}

static void count_wake(void *ctx)
{
	++*(unsigned *)ctx;
}

static void test_few_writes_are_due_once_the_first_has_waited(void **state)
{
	struct outbox *ob = gathering_outbox(100);

	(void)state;
	assert_int_equal(outbox_next_due(ob, 0), INT64_MAX);
	submit_at(ob, 1, 1, S);
	submit_at(ob, 2, 1, 2 * S);
	assert_int_equal(outbox_next_due(ob, 2 * S), S + DELAY);
	/* A duplicate puts nothing off. */
	submit_at(ob, 1, 2, S + DELAY - 1);
	assert_int_equal(outbox_next_due(ob, S + DELAY - 1), S + DELAY);
	assert_true(outbox_next_due(ob, S + DELAY) <= S + DELAY);
	take_expected(ob, S + DELAY, 1, VERB_CREATE, 2);
	/* The second one, if it does not go with the first, waits since its own time. */
	assert_int_equal(outbox_next_due(ob, S + DELAY), 2 * S + DELAY);
	checked_outbox_free(ob);
}

static void test_a_full_batch_is_due_at_once(void **state)
{
	struct outbox *ob = gathering_outbox(100);

	(void)state;
	for (unsigned i = 1; i < BATCH; i++) {
		submit_at(ob, i, 1, i);
	}
	assert_int_equal(outbox_next_due(ob, 10), 1 + DELAY);
	submit_at(ob, BATCH, 1, 10);
	assert_int_equal(outbox_next_due(ob, 10), 10);
	(void)checked_take(ob, 10);
	assert_int_equal(outbox_next_due(ob, 10), 2 + DELAY);
	checked_outbox_free(ob);
}

static void test_wakes_the_driver_for_the_first_write_and_for_a_full_batch(void **state)
{
	struct outbox *ob = gathering_outbox(100);
	unsigned wakes = 0;

	(void)state;
	outbox_on_work(ob, count_wake, &wakes);
	for (unsigned i = 1; i < BATCH; i++) {
		submit_at(ob, i, 1, 0);
		assert_int_equal(wakes, 1);
	}
	submit_at(ob, BATCH, 1, 0);
	assert_int_equal(wakes, 2);
	submit_at(ob, BATCH + 1, 1, 0);
	assert_int_equal(wakes, 2);
	checked_outbox_free(ob);
}

static void test_half_of_a_limit_is_due_at_once(void **state)
{
	evrec_limits limits = limits_without_age(4);
	struct outbox *ob;

	(void)state;
	ob = checked_outbox_limited(&limits);
	outbox_gather(ob, 100, DELAY);
	submit_at(ob, 1, 1, 0);
	assert_int_equal(outbox_next_due(ob, 0), DELAY);
	submit_at(ob, 2, 1, 0);
	assert_int_equal(outbox_next_due(ob, 0), 0);
	checked_outbox_free(ob);
	limits = limits_without_age(1000);
	limits.max_pending_bytes = 4 * outbox_entry_bytes();
	ob = checked_outbox_limited(&limits);
	outbox_gather(ob, 100, DELAY);
	submit_at(ob, 1, 1, 0);
	assert_int_equal(outbox_next_due(ob, 0), DELAY);
	submit_at(ob, 2, 1, 0);
	assert_int_equal(outbox_next_due(ob, 0), 0);
	checked_outbox_free(ob);
}

static void test_no_write_gets_too_old_while_it_gathers(void **state)
{
	evrec_limits limits = limits_without_age(100);
	struct outbox *ob;

	(void)state;
	limits.max_age = DELAY;
	ob = checked_outbox_limited(&limits);
	outbox_gather(ob, BATCH, DELAY);
	submit_at(ob, 1, 1, S);
	assert_int_equal(outbox_next_due(ob, S), S + DELAY / 2);
	checked_outbox_free(ob);
}

static void test_a_release_ends_the_gathering_of_what_waits(void **state)
{
	struct outbox *ob = gathering_outbox(100);
	unsigned wakes = 0;

	(void)state;
	outbox_release_all(ob, 0); /* nothing waits: later writes gather */
	submit_at(ob, 1, 1, 0);
	submit_at(ob, 2, 1, 0);
	assert_int_equal(outbox_next_due(ob, 0), DELAY);
	outbox_on_work(ob, count_wake, &wakes);
	outbox_release_all(ob, 0);
	assert_int_equal(wakes, 1);
	assert_int_equal(outbox_next_due(ob, 0), 0);
	take_expected(ob, 0, 1, VERB_CREATE, 1);
	assert_int_equal(outbox_next_due(ob, 0), 0);
	take_expected(ob, 0, 2, VERB_CREATE, 1);
	submit_at(ob, 3, 1, S);
	assert_int_equal(outbox_next_due(ob, S), S + DELAY);
	checked_outbox_free(ob);
}

static void test_a_closed_outbox_gathers_no_more(void **state)
{
	struct outbox *ob = gathering_outbox(100);

	(void)state;
	submit_at(ob, 1, 1, 0);
	outbox_close(ob);
	assert_int_equal(outbox_next_due(ob, 0), 0);
	checked_outbox_free(ob);
}

static void test_a_deferred_write_gathers_from_its_time_on(void **state)
{
	struct outbox *ob = gathering_outbox(100);

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, 0, 10 * S));
	assert_true(checked_submit_due(ob, 2, 2, 0, 11 * S));
	assert_int_equal(outbox_next_due(ob, 0), 10 * S + DELAY);
	take_expected(ob, 10 * S + DELAY, 1, VERB_PATCH, 2);
	take_expected(ob, 10 * S + DELAY, 2, VERB_PATCH, 2);
	checked_outbox_free(ob);
}

static void test_dropped_writes_do_not_count(void **state)
{
	evrec_limits limits = limits_without_age(100);
	struct outbox *ob;

	(void)state;
	limits.max_age = 2 * DELAY;
	ob = checked_outbox_limited(&limits);
	outbox_gather(ob, BATCH, DELAY);
	for (unsigned i = 1; i < BATCH; i++) {
		submit_at(ob, i, 1, 0);
	}
	(void)outbox_expire(ob, 2 * DELAY + 1);
	submit_at(ob, 9, 1, 2 * DELAY + 1);
	assert_int_equal(outbox_next_due(ob, 2 * DELAY + 1), 3 * DELAY + 1);
	checked_outbox_free(ob);
}

static void test_a_follow_up_gathers_from_the_answer_on(void **state)
{
	struct outbox *ob = gathering_outbox(100);
	struct entry *create;

	(void)state;
	submit_at(ob, 1, 1, 0);
	create = take_expected(ob, DELAY, 1, VERB_CREATE, 1);
	submit_at(ob, 1, 2, DELAY);
	checked_answer(ob, create, ANSWER_CREATED, 3 * S);
	assert_int_equal(outbox_next_due(ob, 3 * S), 3 * S + DELAY);
	checked_outbox_free(ob);
}

static void test_a_refused_write_waits_for_no_others(void **state)
{
	struct outbox *ob = gathering_outbox(100);

	(void)state;
	submit_at(ob, 1, 1, 0);
	checked_answer(ob, checked_take(ob, DELAY), answer_with(429), DELAY);
	assert_true(outbox_next_due(ob, DELAY) <= DELAY);
	checked_outbox_free(ob);
}

static void test_a_refused_write_takes_those_along_that_came_meanwhile(void **state)
{
	struct outbox *ob = gathering_outbox(100);
	struct entry *create;

	(void)state;
	submit_at(ob, 1, 1, 0);
	create = checked_take(ob, DELAY);
	submit_at(ob, 2, 1, DELAY);
	checked_answer(ob, create, answer_with(429), DELAY);
	assert_true(outbox_next_due(ob, DELAY) <= DELAY);
	take_expected(ob, DELAY, 2, VERB_CREATE, 1);
	assert_true(outbox_next_due(ob, DELAY) <= DELAY);
	take_expected(ob, DELAY, 1, VERB_CREATE, 1);
	submit_at(ob, 3, 1, DELAY);
	assert_int_equal(outbox_next_due(ob, DELAY), 2 * DELAY);
	checked_outbox_free(ob);
}

static void test_a_release_ends_the_gathering_of_follow_ups(void **state)
{
	struct outbox *ob = gathering_outbox(100);
	struct entry *first, *second;

	(void)state;
	submit_at(ob, 1, 1, 0);
	submit_at(ob, 2, 1, 0);
	first = take_expected(ob, DELAY, 1, VERB_CREATE, 1);
	second = take_expected(ob, DELAY, 2, VERB_CREATE, 1);
	submit_at(ob, 1, 2, DELAY);
	assert_true(checked_submit_due(ob, 2, 2, DELAY, 100 * S));
	outbox_release_all(ob, DELAY);
	checked_answer(ob, first, ANSWER_CREATED, 3 * S);
	assert_int_equal(outbox_next_due(ob, 3 * S), 3 * S);
	first = take_expected(ob, 3 * S, 1, VERB_PATCH, 2);
	checked_answer(ob, second, ANSWER_CREATED, 3 * S);
	assert_int_equal(outbox_next_due(ob, 3 * S), 3 * S);
	second = take_expected(ob, 3 * S, 2, VERB_PATCH, 2);
	/* Made after the release. */
	submit_at(ob, 1, 3, 4 * S);
	checked_answer(ob, first, ANSWER_CREATED, 5 * S);
	assert_int_equal(outbox_next_due(ob, 5 * S), 5 * S + DELAY);
	checked_answer(ob, second, ANSWER_CREATED, 5 * S);
	checked_outbox_free(ob);
}

/* Takes all that can be taken, and answers it with a retry as one request; returns how many there were. */
static unsigned fail_together(struct outbox *ob, uint64_t request, int64_t now)
{
	const struct outcome failed = { .verdict = VERDICT_RETRY, .request = request };
	struct entry *taken[100];
	unsigned n = 0;

	while ((taken[n] = checked_take(ob, now)) != NULL) {
		n++;
	}
	for (unsigned i = 0; i < n; i++) {
		outbox_answer(ob, taken[i], &failed, now + i);
		outbox_check_equation(ob);
	}
	return n;
}

static void test_writes_of_one_request_back_off_as_one(void **state)
{
	struct outbox *ob = gathering_outbox(1000);
	int64_t due, now = 0;

	(void)state;
	for (unsigned try = 1; try <= 8; try++) {
		/* With each try comes a write that has failed less often than the others. */
		for (unsigned i = 0; i < 5; i++) {
			submit_at(ob, 10 * try + i, 1, now);
		}
		outbox_release_all(ob, now);
		assert_int_equal(fail_together(ob, try, now), 5 * try);
		now += 100; /* behind all the answers */
		due = outbox_next_due(ob, now);
		now = due > now ? due : now;
	}
	assert_int_equal(fail_together(ob, 9, now), 40);
	checked_outbox_free(ob);
}

static void test_writes_of_different_requests_back_off_apart(void **state)
{
	struct outbox *ob = gathering_outbox(1000);
	unsigned first;

	(void)state;
	for (unsigned i = 1; i <= 50; i++) {
		submit_at(ob, i, 1, 0);
	}
	outbox_release_all(ob, 0);
	assert_int_equal(fail_together(ob, 0, 0), 50);
	first = fail_together(ob, 0, outbox_next_due(ob, 1000));
	assert_true(first < 10);
	checked_outbox_free(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_writes_are_due_once_the_first_has_waited),
		cmocka_unit_test(test_a_full_batch_is_due_at_once),
		cmocka_unit_test(test_wakes_the_driver_for_the_first_write_and_for_a_full_batch),
		cmocka_unit_test(test_half_of_a_limit_is_due_at_once),
		cmocka_unit_test(test_no_write_gets_too_old_while_it_gathers),
		cmocka_unit_test(test_a_release_ends_the_gathering_of_what_waits),
		cmocka_unit_test(test_a_closed_outbox_gathers_no_more),
		cmocka_unit_test(test_a_deferred_write_gathers_from_its_time_on),
		cmocka_unit_test(test_dropped_writes_do_not_count),
		cmocka_unit_test(test_a_follow_up_gathers_from_the_answer_on),
		cmocka_unit_test(test_a_refused_write_waits_for_no_others),
		cmocka_unit_test(test_a_refused_write_takes_those_along_that_came_meanwhile),
		cmocka_unit_test(test_a_release_ends_the_gathering_of_follow_ups),
		cmocka_unit_test(test_writes_of_one_request_back_off_as_one),
		cmocka_unit_test(test_writes_of_different_requests_back_off_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

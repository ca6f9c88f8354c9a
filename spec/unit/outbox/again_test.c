/* A write that the protocol held back, and that waits again (VERDICT_AGAIN). */
#include "checked_outbox.h"

static void answer_again(struct outbox *ob, struct entry *entry, int64_t now)
{
	const struct outcome outcome = { .verdict = VERDICT_AGAIN };

	outbox_answer(ob, entry, &outcome, now);
	outbox_check_equation(ob);
}

/* Neither a retry, nor one of the tries that max_tries allows; it does not wait for a backoff. */
static void test_it_costs_no_try(void **state)
{
	evrec_limits limits = limits_without_age(10);
	struct outbox_stats stats;
	struct outbox *ob;
	struct entry *entry;

	(void)state;
	limits.max_tries = 1;
	ob = checked_outbox_limited(&limits);
	checked_submit(ob, 1, 1);
	for (int i = 0; i < 3; i++) {
		answer_again(ob, checked_take(ob, 0), 0);
	}
	entry = take_expected(ob, 0, 1, VERB_CREATE, 1);
	assert_int_equal(entry->maybe_received, 0);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.retries, 0);
	checked_answer(ob, entry, ANSWER_CREATED, 0);
	assert_counts(ob, 1, 0, 0, 0);
	checked_outbox_free(ob);
}

static void test_order_is_kept(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *held[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		checked_submit(ob, i + 1, 1);
	}
	for (unsigned i = 0; i < 3; i++) {
		held[i] = take_expected(ob, 0, i + 1, VERB_CREATE, 1);
	}
	for (unsigned i = 0; i < 3; i++) {
		answer_again(ob, held[i], 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		checked_answer(ob, take_expected(ob, 0, i + 1, VERB_CREATE, 1), ANSWER_CREATED, 0);
	}
	checked_outbox_free(ob);
}

/* Occurrences that came while it was held are part of the create. */
static void test_follow_up_is_absorbed(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	entry = checked_take(ob, 0);
	checked_submit(ob, 1, 2);
	answer_again(ob, entry, 0);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 2), ANSWER_CREATED, 0);
	assert_counts(ob, 1, 0, 1, 0);
	checked_outbox_free(ob);
}

/* A closed outbox has each write tried once more: this one was not tried yet. */
static void test_closed_outbox_has_it_sent(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	entry = checked_take(ob, 0);
	outbox_close(ob);
	answer_again(ob, entry, 0);
	assert_false(outbox_empty(ob));
	assert_true(outbox_next_due(ob, 0) <= 0);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 1), ANSWER_CREATED, 0);
	assert_counts(ob, 1, 0, 0, 0);
	assert_true(outbox_empty(ob));
	checked_outbox_free(ob);
}

/* A write that is held when there is no driver any more is kept for the spool. */
static void test_held_write_is_kept_for_the_spool(void **state)
{
	struct outbox *ob = checked_outbox(10);
	const struct entry *kept;

	(void)state;
	outbox_expect(ob, true);
	checked_submit(ob, 1, 1);
	checked_submit(ob, 2, 1);
	(void)checked_take(ob, 0);
	answer_again(ob, checked_take(ob, 0), 0);
	outbox_keep_all_for_spool(ob);
	kept = outbox_next_kept(ob, NULL);
	assert_non_null(kept);
	assert_non_null(outbox_next_kept(ob, kept));
	assert_counts(ob, 0, 0, 0, 2);
	checked_outbox_free(ob);
}

/* It was counted as dropped while it was held. */
static void test_answer_after_the_drop_is_the_end(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	entry = checked_take(ob, 0);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	answer_again(ob, entry, 0);
	assert_null(outbox_take(ob, 0));
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 1);
	checked_outbox_free(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_costs_no_try),
		cmocka_unit_test(test_order_is_kept),
		cmocka_unit_test(test_follow_up_is_absorbed),
		cmocka_unit_test(test_closed_outbox_has_it_sent),
		cmocka_unit_test(test_held_write_is_kept_for_the_spool),
		cmocka_unit_test(test_answer_after_the_drop_is_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

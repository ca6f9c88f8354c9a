/* A write that was taken and not sent, and is to be taken again (outbox_untake). */
#include "checked_outbox.h"

static void untake(struct outbox *ob, struct entry *entry)
{
	outbox_untake(ob, entry);
	outbox_check_equation(ob);
}

static void test_it_is_taken_next(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *taken[2];

	(void)state;
	for (unsigned i = 1; i <= 3; i++) {
		checked_submit(ob, i, 1);
	}
	taken[0] = take_expected(ob, 0, 1, VERB_CREATE, 1);
	taken[1] = take_expected(ob, 0, 2, VERB_CREATE, 1);
	untake(ob, taken[1]);
	untake(ob, taken[0]);
	for (unsigned i = 1; i <= 3; i++) {
		checked_answer(ob, take_expected(ob, 0, i, VERB_CREATE, 1), ANSWER_CREATED, 0);
	}
	checked_outbox_free(ob);
}

static void test_no_retry_is_counted(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct outbox_stats stats;
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	entry = checked_take(ob, 0);
	checked_answer(ob, entry, ANSWER_UNSENT, 0);
	for (unsigned i = 0; i < 5; i++) {
		untake(ob, checked_take(ob, entry->due));
	}
	checked_answer(ob, checked_take(ob, entry->due), ANSWER_CREATED, 0);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.retries, 1);
	checked_outbox_free(ob);
}

static void test_what_came_meanwhile_is_part_of_it(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	entry = checked_take(ob, 0);
	checked_submit(ob, 1, 2);
	untake(ob, entry);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 2), ANSWER_CREATED, 0);
	assert_counts(ob, 1, 0, 1, 0);
	checked_outbox_free(ob);
}

/* Its namespace refuses writes, and the next one that is taken probes it again: the others are still held. */
static void test_probe_is_taken_again(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 1);
	checked_answer(ob, checked_take(ob, 0), answer_with(403), 0);
	collect_dropped(ob, 1, EVREC_CAUSE_FORBIDDEN, 1);
	checked_submit_due(ob, 2, 1, 30 * S, 0);
	checked_submit_due(ob, 3, 1, 30 * S, 0);
	untake(ob, take_expected(ob, 30 * S, 2, VERB_CREATE, 1));
	(void)take_expected(ob, 30 * S, 2, VERB_CREATE, 1);
	assert_null(checked_take(ob, 30 * S));
	outbox_free(ob);
}

/* It was counted as dropped while it was taken. */
static void test_one_that_was_dropped_meanwhile_is_over(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	entry = checked_take(ob, 0);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	untake(ob, entry);
	assert_null(outbox_take(ob, 0));
	collect_dropped(ob, 1, EVREC_CAUSE_CLOSED, 1);
	checked_outbox_free(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_taken_next),
		cmocka_unit_test(test_no_retry_is_counted),
		cmocka_unit_test(test_what_came_meanwhile_is_part_of_it),
		cmocka_unit_test(test_probe_is_taken_again),
		cmocka_unit_test(test_one_that_was_dropped_meanwhile_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Deferred writes have rows in a spool, before their time comes and after it. */
#include "checked_outbox.h"

#define DUE (100 * S)
#define AFTER S

static unsigned wakes;

static void count_wake(void *ctx)
{
	(void)ctx;
	wakes++;
}

static struct outbox *outbox_with_rows(void)
{
	struct outbox *ob = checked_outbox(10);

	outbox_write_rows_after(ob, AFTER);
	outbox_on_work(ob, count_wake, NULL);
	wakes = 0;
	return ob;
}

static void expect_row(struct outbox *ob, int64_t now, int64_t number, int64_t row_number, unsigned occurrences,
                       unsigned count)
{
	struct outbox_row row;

	assert_int_equal(outbox_next_row(ob, now, number, &row), OUTBOX_ROW);
	assert_int_equal(row.row, row_number);
	assert_int_equal(row.count, occurrences);
	assert_int_equal(row.verb, VERB_PATCH);
	assert_int_equal(((struct fake_write *)row.item)->count, count);
	outbox_discard(ob, row.item);
	assert_int_equal(outbox_next_row(ob, now, number + 1, &row), OUTBOX_NO_ROW);
	outbox_rows_written(ob, true);
}

/* Whoever drives the outbox is woken if it has to look sooner: it sleeps until the first is due, or a row. */
static void test_has_a_row(void **state)
{
	struct outbox *ob = outbox_with_rows();
	struct outbox_row row;

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, 0, DUE));
	assert_int_equal(wakes, 1);
	assert_int_equal(outbox_rows_due(ob, 0), AFTER);
	assert_true(checked_submit_due(ob, 1, 3, 0, DUE));
	assert_true(checked_submit_due(ob, 2, 2, S / 2, DUE));
	assert_int_equal(wakes, 1);
	assert_int_equal(outbox_next_row(ob, AFTER - 1, 1, &row), OUTBOX_NO_ROW);
	expect_row(ob, AFTER, 1, -1, 2, 3);
	expect_row(ob, 2 * AFTER, 2, -2, 1, 2);
	/* Nothing to do: no look is needed. */
	assert_int_equal(outbox_rows_due(ob, 2 * AFTER), INT64_MAX);
	assert_true(checked_submit_due(ob, 1, 4, 3 * S, DUE));
	assert_int_equal(wakes, 2);
	assert_true(checked_submit_due(ob, 1, 5, 3 * S, DUE));
	assert_int_equal(wakes, 2);
	assert_int_equal(outbox_rows_due(ob, 3 * S), 3 * S + S / 4);
	expect_row(ob, 4 * S, 3, -1, 4, 5);
	outbox_rows_lost(ob, true);
	assert_true(outbox_rows_due(ob, 4 * S) <= 4 * S);
	checked_outbox_free(ob);

	ob = outbox_with_rows();
	assert_true(checked_submit_due(ob, 1, 2, 0, S / 2));
	assert_true(checked_submit_due(ob, 2, 2, 0, S / 4));
	assert_int_equal(wakes, 2);
	checked_outbox_free(ob);
}

static void test_lost_rows_are_written_again(void **state)
{
	struct outbox *ob = outbox_with_rows();

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, 0, DUE));
	expect_row(ob, AFTER, 1, -1, 1, 2);
	outbox_rows_lost(ob, true);
	expect_row(ob, AFTER, 2, -1, 1, 2);
	checked_outbox_free(ob);
}

/* The row of an entry in flight tells of its deferred follow-up, and becomes that's own. */
static void test_row_passes_to_the_follow_up(void **state)
{
	struct outbox *ob = outbox_with_rows();
	struct outbox_rows rows;
	struct entry *entry;

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, 0, 0));
	entry = checked_take(ob, 0);
	expect_row(ob, AFTER, 1, -1, 1, 2);
	assert_true(checked_submit_due(ob, 1, 3, AFTER, DUE));
	expect_row(ob, 2 * AFTER, 2, -1, 2, 3);
	checked_answer(ob, entry, answer_with(200), 3 * S);
	expect_row(ob, 4 * S, 2, -1, 1, 3);
	checked_write(ob, DUE, 3);
	outbox_get_rows(ob, &rows);
	assert_int_equal(rows.answered, 1);
	assert_int_equal(rows.own, 0);
	checked_outbox_free(ob);
}

/* An item whose time has come is written to its row again. */
static void test_time_changes_the_row(void **state)
{
	struct outbox *ob = outbox_with_rows();

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, 0, DUE));
	expect_row(ob, AFTER, 1, -1, 1, 2);
	assert_non_null(checked_take(ob, DUE));
	expect_row(ob, DUE + S, 2, -1, 1, 2);
	checked_outbox_free(ob);
}

static void test_release_wakes(void **state)
{
	struct outbox *ob = outbox_with_rows();

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, 0, DUE));
	assert_true(checked_submit_due(ob, 2, 2, 0, DUE));
	outbox_release(ob, 1, 0);
	assert_int_equal(wakes, 2);
	outbox_release_all(ob, 0);
	assert_int_equal(wakes, 2);
	(void)checked_take(ob, 0);
	(void)checked_take(ob, 0);
	outbox_release_all(ob, 0);
	assert_int_equal(wakes, 2);
	checked_outbox_free(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_has_a_row),
		cmocka_unit_test(test_lost_rows_are_written_again),
		cmocka_unit_test(test_row_passes_to_the_follow_up),
		cmocka_unit_test(test_time_changes_the_row),
		cmocka_unit_test(test_release_wakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

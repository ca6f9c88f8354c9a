/* Deferred writes meet limits, the end of the process, the spool, and a lack of memory. */
#include "checked_outbox.h"

#include "alloc_failure.h"

#define DUE (100 * S)
#define AFTER S

static void assert_dropped_count(struct outbox *ob, enum evrec_cause cause, unsigned n)
{
	struct outbox_stats s;

	outbox_get_stats(ob, &s);
	assert_int_equal(s.dropped[cause], n);
}

static void write_taken(struct outbox *ob, int64_t now, unsigned count)
{
	struct entry *entry = checked_take(ob, now);

	assert_non_null(entry);
	assert_int_equal(((struct fake_write *)entry->item)->count, count);
	checked_answer(ob, entry, answer_with(200), now);
}

/* Neither takes room, nor is refused for want of room, nor is dropped for others, until it is pending. */
static void test_takes_no_room(void **state)
{
	evrec_limits limits = limits_without_age(1);
	struct outbox *ob;

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	ob = checked_outbox_limited(&limits);
	for (unsigned id = 1; id <= 3; id++) {
		assert_true(checked_submit_due(ob, id, 2, S, DUE));
	}
	assert_true(checked_submit_due(ob, 4, 2, S, 0));
	assert_true(checked_submit_due(ob, 5, 2, S, DUE));
	assert_true(checked_submit_due(ob, 6, 2, S, 0));
	assert_dropped_count(ob, EVREC_CAUSE_QUEUE_FULL, 1);
	assert_counted(ob, 4, 1);
	outbox_release_all(ob, S);
	assert_counted(ob, 0, 5);
	checked_outbox_free(ob);
}

/* Submits one more write, and checks how many are pending then. */
static void submit_one_more(struct outbox *ob, unsigned id, unsigned pending)
{
	assert_true(checked_submit_due(ob, id, 2, 2 * S, 0));
	assert_counted(ob, 0, pending);
}

/* Released writes exceed the limits. A new one drops two of them, not all; so the limits soon hold again. */
static void test_new_writes_push_released_ones_out(void **state)
{
	evrec_limits limits = limits_without_age(2);
	struct outbox *ob;

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	ob = checked_outbox_limited(&limits);
	for (unsigned id = 1; id <= 5; id++) {
		assert_true(checked_submit_due(ob, id, 2, S, DUE));
	}
	outbox_release_all(ob, S);
	assert_counted(ob, 0, 5);
	submit_one_more(ob, 6, 4);
	submit_one_more(ob, 7, 3);
	submit_one_more(ob, 8, 2);
	submit_one_more(ob, 9, 2);
	assert_dropped_count(ob, EVREC_CAUSE_QUEUE_FULL, 7);
	checked_outbox_free(ob);
}

/* With drop_newest a Warning takes the place of one released write. */
static void test_a_new_warning_takes_one_place(void **state)
{
	const evrec_limits limits = limits_without_age(1);
	struct outbox *ob = checked_outbox_limited(&limits);
	struct fake_write draft = { .count = 2, .name = "n9" };
	const struct occurrence warning = { .id = 9, .verb = VERB_PATCH, .important = true, .now = S, .draft = &draft };
	enum evrec_cause cause;

	(void)state;
	for (unsigned id = 1; id <= 3; id++) {
		assert_true(checked_submit_due(ob, id, 2, S, DUE));
	}
	outbox_release_all(ob, S);
	assert_true(outbox_submit(ob, &warning, &cause));
	assert_counted(ob, 0, 3);
	assert_dropped_count(ob, EVREC_CAUSE_QUEUE_FULL, 1);
	checked_outbox_free(ob);
}

static void test_age_counts_from_the_release(void **state)
{
	evrec_limits limits = limits_without_age(10);
	struct outbox *ob;

	(void)state;
	limits.max_age = 5 * S;
	ob = checked_outbox_limited(&limits);
	for (unsigned id = 1; id <= 3; id++) {
		assert_true(checked_submit_due(ob, id, 2, S, DUE));
	}
	assert_int_equal(outbox_expire(ob, 90 * S), INT64_MAX);
	assert_counted(ob, 3, 0);
	outbox_release(ob, 1, 90 * S);
	assert_int_equal(outbox_expire(ob, 90 * S), 95 * S + 1);
	outbox_release_all(ob, 92 * S);
	assert_int_equal(outbox_expire(ob, 96 * S), 97 * S + 1);
	assert_dropped_count(ob, EVREC_CAUSE_EXPIRED, 1);
	assert_true(checked_submit_due(ob, 4, 2, 92 * S, DUE));
	(void)outbox_expire(ob, DUE);
	write_taken(ob, DUE, 2);
	assert_dropped_count(ob, EVREC_CAUSE_EXPIRED, 3);
	/* An outbox that was told no later time takes that of the last occurrence. */
	assert_true(checked_submit_due(ob, 5, 2, DUE + 50 * S, DUE + 60 * S));
	outbox_close(ob);
	write_taken(ob, DUE + 51 * S, 2);
	checked_outbox_free(ob);
}

/* One that is due goes before those that came to wait later, and not before the others. */
static void test_is_taken_by_its_time(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, 0, 3 * S));
	assert_true(checked_submit_due(ob, 2, 3, 2 * S, 0));
	assert_true(checked_submit_due(ob, 3, 4, 4 * S, 0));
	(void)take_expected(ob, 5 * S, 2, VERB_PATCH, 3);
	(void)take_expected(ob, 5 * S, 1, VERB_PATCH, 2);
	(void)take_expected(ob, 5 * S, 3, VERB_PATCH, 4);
	checked_outbox_free(ob);
}

/* A deferred entry, and one in flight with a deferred follow-up. */
static struct outbox *outbox_with_both(struct entry **in_flight)
{
	struct outbox *ob = checked_outbox(10);

	assert_true(checked_submit_due(ob, 2, 1, S, 0));
	*in_flight = checked_take(ob, S);
	assert_true(checked_submit_due(ob, 2, 2, S, DUE));
	assert_true(checked_submit_due(ob, 1, 5, S, DUE));
	assert_counted(ob, 2, 1);
	return ob;
}

static void test_close_releases_all(void **state)
{
	struct entry *entry;
	struct outbox *ob = outbox_with_both(&entry);

	(void)state;
	outbox_close(ob);
	assert_counted(ob, 0, 3);
	assert_false(checked_submit_due(ob, 3, 2, S, DUE));
	assert_dropped_count(ob, EVREC_CAUSE_CLOSED, 1);
	checked_answer(ob, entry, ANSWER_CREATED, S);
	write_taken(ob, S, 5);
	write_taken(ob, S, 2);
	assert_true(outbox_empty(ob));
	checked_outbox_free(ob);
}

static void test_drop_all_and_cut_off(void **state)
{
	struct entry *entry;
	struct outbox *ob = outbox_with_both(&entry);

	(void)state;
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	assert_counted(ob, 0, 0);
	assert_dropped_count(ob, EVREC_CAUSE_CLOSED, 3);
	outbox_cut_off(ob);
	assert_dropped_count(ob, EVREC_CAUSE_CLOSED, 3);
	checked_outbox_free(ob);

	/* The follow-up of an entry that is cut off is deferred, as after any answer. */
	ob = outbox_with_both(&entry);
	outbox_cut_off(ob);
	assert_counted(ob, 2, 0);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	assert_dropped_count(ob, EVREC_CAUSE_CLOSED, 3);
	checked_outbox_free(ob);
}

static void test_outbox_is_freed(void **state)
{
	struct entry *entry;

	(void)state;
	checked_outbox_free(outbox_with_both(&entry));
}

static void test_all_is_kept_for_the_spool(void **state)
{
	struct entry *entry;
	struct outbox *ob = outbox_with_both(&entry);
	const struct entry *kept;
	struct outbox_stats stats;

	(void)state;
	outbox_expect(ob, true);
	outbox_expect(ob, false);
	outbox_keep_all_for_spool(ob);
	kept = outbox_next_kept(ob, NULL);
	assert_int_equal(kept->count, 2);
	assert_int_equal(kept->id, 2);
	assert_int_equal(outbox_next_kept(ob, kept)->id, 1);
	outbox_spooled(ob, NULL);
	outbox_check_equation(ob);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.spooled, 3);
	checked_outbox_free(ob);
}

/* ---- rows ---- */

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
	outbox_own_rows_lost(ob);
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
	outbox_own_rows_lost(ob);
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
	write_taken(ob, DUE, 3);
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

/* ---- memory ---- */

static void test_without_memory_occurrences_are_dropped(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, S, DUE));
	fake_writes.no_memory = true;
	assert_false(checked_submit_due(ob, 1, 3, S, 2 * DUE));
	assert_false(checked_submit_due(ob, 2, 2, S, DUE));
	fake_writes.no_memory = false;
	assert_dropped_count(ob, EVREC_CAUSE_MEMORY, 2);
	assert_int_equal(outbox_next_due(ob, S), DUE);

	/* A follow-up that cannot be merged stays deferred. */
	entry = take_expected(ob, DUE, 1, VERB_PATCH, 2);
	assert_true(checked_submit_due(ob, 1, 4, DUE, 2 * DUE));
	fake_writes.no_memory = true;
	checked_answer(ob, entry, answer_with(503), DUE);
	fake_writes.no_memory = false;
	assert_counted(ob, 1, 1);
	assert_true(checked_submit_due(ob, 1, 5, DUE, 3 * DUE));
	write_taken(ob, DUE + 40 * S, 2);
	assert_counted(ob, 2, 0);
	write_taken(ob, 3 * DUE, 5);
	checked_outbox_free(ob);
}

/* Deferred writes, some of which follow others, are accepted or counted as dropped; those accepted are all released. */
static void submit_many(void)
{
	struct outbox *ob = checked_outbox(100);
	unsigned accepted = 0;

	for (unsigned id = 1; id <= 20; id++) {
		assert_true(checked_submit_due(ob, id, 1, S, 0));
		(void)checked_take(ob, S);
	}
	alloc_failure_arm();
	for (unsigned id = 1; id <= 40; id++) {
		const bool ok = checked_submit_due(ob, id, 2, S, DUE);

		alloc_failure_check(ok);
		accepted += ok;
	}
	alloc_failure_disarm();
	assert_dropped_count(ob, EVREC_CAUSE_MEMORY, 40 - accepted);
	assert_counted(ob, accepted, 20);
	outbox_cut_off(ob);
	assert_counted(ob, accepted, 0);
	outbox_release_all(ob, S);
	assert_counted(ob, 0, accepted);
	while (checked_take(ob, S) != NULL) {
	}
	checked_outbox_free(ob);
}

static void test_each_allocation_may_fail(void **state)
{
	(void)state;
	alloc_failure_run(submit_many, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes_no_room),
		cmocka_unit_test(test_new_writes_push_released_ones_out),
		cmocka_unit_test(test_a_new_warning_takes_one_place),
		cmocka_unit_test(test_age_counts_from_the_release),
		cmocka_unit_test(test_is_taken_by_its_time),
		cmocka_unit_test(test_close_releases_all),
		cmocka_unit_test(test_drop_all_and_cut_off),
		cmocka_unit_test(test_outbox_is_freed),
		cmocka_unit_test(test_all_is_kept_for_the_spool),
		cmocka_unit_test(test_has_a_row),
		cmocka_unit_test(test_lost_rows_are_written_again),
		cmocka_unit_test(test_row_passes_to_the_follow_up),
		cmocka_unit_test(test_time_changes_the_row),
		cmocka_unit_test(test_release_wakes),
		cmocka_unit_test(test_without_memory_occurrences_are_dropped),
		cmocka_unit_test(test_each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

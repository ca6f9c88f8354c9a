/* Deferred writes meet limits, the end of the process, the spool, and a lack of memory. */
#include "checked_outbox.h"

#include "alloc_failure.h"

#define DUE (100 * S)

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
	assert_dropped(ob, EVREC_CAUSE_QUEUE_FULL, 1);
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
	assert_dropped(ob, EVREC_CAUSE_QUEUE_FULL, 7);
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
	assert_dropped(ob, EVREC_CAUSE_QUEUE_FULL, 1);
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
	assert_dropped(ob, EVREC_CAUSE_EXPIRED, 1);
	assert_true(checked_submit_due(ob, 4, 2, 92 * S, DUE));
	(void)outbox_expire(ob, DUE);
	checked_write(ob, DUE, 2);
	assert_dropped(ob, EVREC_CAUSE_EXPIRED, 3);
	/* An outbox that was told no later time takes that of the last occurrence. */
	assert_true(checked_submit_due(ob, 5, 2, DUE + 50 * S, DUE + 60 * S));
	outbox_close(ob);
	checked_write(ob, DUE + 51 * S, 2);
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
	assert_dropped(ob, EVREC_CAUSE_CLOSED, 1);
	checked_answer(ob, entry, ANSWER_CREATED, S);
	checked_write(ob, S, 5);
	checked_write(ob, S, 2);
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
	assert_dropped(ob, EVREC_CAUSE_CLOSED, 3);
	outbox_cut_off(ob);
	assert_dropped(ob, EVREC_CAUSE_CLOSED, 3);
	checked_outbox_free(ob);

	/* The follow-up of an entry that is cut off is deferred, as after any answer. */
	ob = outbox_with_both(&entry);
	outbox_cut_off(ob);
	assert_counted(ob, 2, 0);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	assert_dropped(ob, EVREC_CAUSE_CLOSED, 3);
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
	assert_dropped(ob, EVREC_CAUSE_MEMORY, 2);
	assert_int_equal(outbox_next_due(ob, S), DUE);

	/* A follow-up that cannot be merged stays deferred. */
	entry = take_expected(ob, DUE, 1, VERB_PATCH, 2);
	assert_true(checked_submit_due(ob, 1, 4, DUE, 2 * DUE));
	fake_writes.no_memory = true;
	checked_answer(ob, entry, answer_with(503), DUE);
	fake_writes.no_memory = false;
	assert_counted(ob, 1, 1);
	assert_true(checked_submit_due(ob, 1, 5, DUE, 3 * DUE));
	checked_write(ob, DUE + 40 * S, 2);
	assert_counted(ob, 2, 0);
	checked_write(ob, 3 * DUE, 5);
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
	assert_dropped(ob, EVREC_CAUSE_MEMORY, 40 - accepted);
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
		cmocka_unit_test(test_without_memory_occurrences_are_dropped),
		cmocka_unit_test(test_each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

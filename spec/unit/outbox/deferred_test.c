/* Deferred writes: those whose time is to come, which are counted, and not pending, until then. */
#include "checked_outbox.h"

#define DUE (100 * S)

static void write_now(struct outbox *ob, int64_t now, uint64_t id, enum verb verb, unsigned count)
{
	checked_answer(ob, take_expected(ob, now, id, verb, count), answer_with(verb == VERB_CREATE ? 201 : 200), now);
	collect_written(ob, id, "");
}

static void test_is_counted_until_its_time(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct outbox_stats stats;
	struct entry *entry;

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, S, DUE));
	assert_counted(ob, 1, 0);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.writes + stats.bytes, 0);
	assert_true(outbox_empty(ob));
	assert_true(outbox_wait(ob, 0));
	assert_int_equal(outbox_next_due(ob, S), DUE);
	assert_null(checked_take(ob, DUE - 1));
	entry = take_expected(ob, DUE, 1, VERB_PATCH, 2);
	assert_counted(ob, 0, 1);
	assert_int_equal(((struct fake_write *)entry->item)->on_time, 1);
	checked_answer(ob, entry, answer_with(200), DUE);
	assert_counts(ob, 0, 1, 0, 0);
	assert_int_equal(outbox_next_due(ob, DUE), INT64_MAX);
	checked_outbox_free(ob);
}

static void test_occurrences_fold_and_set_the_time_anew(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, S, DUE));
	assert_true(checked_submit_due(ob, 2, 2, S, DUE + 1));
	assert_true(checked_submit_due(ob, 1, 3, 2 * S, DUE + 2));
	assert_counted(ob, 3, 0);
	assert_int_equal(outbox_next_due(ob, S), DUE + 1);
	assert_true(checked_submit_due(ob, 1, 4, 2 * S, DUE - 1));
	write_now(ob, DUE - 1, 1, VERB_PATCH, 4);
	assert_counts(ob, 0, 1, 2, 0);
	assert_null(checked_take(ob, DUE));
	write_now(ob, DUE + 1, 2, VERB_PATCH, 2);
	checked_outbox_free(ob);
}

static void test_occurrence_without_a_time_makes_it_pending(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	assert_true(checked_submit_due(ob, 1, 2, S, DUE));
	assert_true(checked_submit_due(ob, 1, 3, 2 * S, 0));
	assert_counted(ob, 0, 2);
	assert_false(outbox_empty(ob));
	/* And it stays so. */
	assert_true(checked_submit_due(ob, 1, 4, 2 * S, DUE));
	assert_counted(ob, 0, 3);
	entry = take_expected(ob, 2 * S, 1, VERB_PATCH, 4);
	assert_int_equal(((struct fake_write *)entry->item)->on_time, 0);
	checked_answer(ob, entry, answer_with(200), 2 * S);
	checked_outbox_free(ob);
}

/* The driver may be late. If occurrences came faster than it looks, the write would else never be sent. */
static void test_time_that_has_come_is_not_put_off(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	for (int64_t late = 0; late <= 1; late++) {
		assert_true(checked_submit_due(ob, 1, 2, S, DUE));
		assert_true(checked_submit_due(ob, 1, 3, DUE - 1, DUE));
		assert_counted(ob, 2, 0);
		assert_true(checked_submit_due(ob, 1, 4, DUE + late, 2 * DUE));
		assert_counted(ob, 0, 3);
		entry = take_expected(ob, DUE + late, 1, VERB_PATCH, 4);
		assert_int_equal(((struct fake_write *)entry->item)->on_time, 0);
		assert_true(checked_submit_due(ob, 1, 5, DUE + late, 2 * DUE));
		assert_counted(ob, 1, 3);
		assert_true(checked_submit_due(ob, 1, 6, 2 * DUE + late, 3 * DUE));
		assert_counted(ob, 0, 5);
		checked_answer(ob, entry, answer_with(200), 2 * DUE + late);
		collect_written(ob, 1, "");
		write_now(ob, 2 * DUE + late, 1, VERB_PATCH, 6);
	}
	checked_outbox_free(ob);
}

static void test_follow_up_is_deferred_after_the_answer(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	assert_true(checked_submit_due(ob, 1, 1, S, 0));
	entry = take_expected(ob, S, 1, VERB_CREATE, 1);
	assert_true(checked_submit_due(ob, 1, 2, S, DUE));
	assert_true(checked_submit_due(ob, 1, 3, S, DUE + S));
	assert_counted(ob, 2, 1);
	checked_answer(ob, entry, ANSWER_CREATED, S);
	assert_counted(ob, 2, 0);
	assert_true(outbox_empty(ob));
	collect_written(ob, 1, "");
	assert_int_equal(outbox_next_due(ob, S), DUE + S);
	assert_true(checked_submit_due(ob, 1, 4, S, DUE + S));
	write_now(ob, DUE + S, 1, VERB_PATCH, 4);
	checked_outbox_free(ob);
}

static void test_follow_up_merges_into_what_is_repeated(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	assert_true(checked_submit_due(ob, 1, 1, S, 0));
	entry = take_expected(ob, S, 1, VERB_CREATE, 1);
	assert_true(checked_submit_due(ob, 1, 2, S, DUE));
	checked_answer(ob, entry, ANSWER_UNSENT, S);
	assert_counted(ob, 0, 2);
	outbox_make_due_now(ob);
	write_now(ob, S, 1, VERB_CREATE, 2);
	assert_counts(ob, 1, 0, 1, 0);
	checked_outbox_free(ob);
}

static void test_follow_up_becomes_pending(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	for (int released = 0; released <= 1; released++) {
		assert_true(checked_submit_due(ob, 1, 1, S, 0));
		entry = checked_take(ob, S);
		assert_true(checked_submit_due(ob, 1, 2, S, DUE));
		if (released) {
			outbox_release(ob, 1, S);
		} else {
			assert_true(checked_submit_due(ob, 1, 3, S, 0));
		}
		assert_counted(ob, 0, released ? 2 : 3);
		checked_answer(ob, entry, ANSWER_CREATED, S);
		collect_written(ob, 1, "");
		write_now(ob, S, 1, VERB_PATCH, released ? 2 : 3);
	}
	checked_outbox_free(ob);
}

static void test_release(void **state)
{
	struct outbox *ob = checked_outbox(1);
	struct entry *entry;

	(void)state;
	for (unsigned id = 1; id <= 4; id++) {
		assert_true(checked_submit_due(ob, id, 2, S, DUE + id));
	}
	outbox_release(ob, 5, S);
	outbox_release(ob, 3, S);
	assert_counted(ob, 3, 1);
	entry = take_expected(ob, S, 3, VERB_PATCH, 2);
	assert_int_equal(((struct fake_write *)entry->item)->on_time, 1);
	checked_answer(ob, entry, answer_with(200), S);
	collect_written(ob, 3, "");
	outbox_release_all(ob, S);
	assert_counted(ob, 0, 3);
	write_now(ob, S, 1, VERB_PATCH, 2);
	checked_outbox_free(ob);
}

/* A create was dropped: what is deferred behind it, or before the drop is collected, creates the event. */
static void test_follow_up_of_a_dropped_create_is_a_create(void **state)
{
	(void)state;
	for (int follows = 0; follows <= 1; follows++) {
		struct outbox *ob = checked_outbox(10);
		struct entry *entry;

		assert_true(checked_submit_due(ob, 1, 1, S, 0));
		entry = take_expected(ob, S, 1, VERB_CREATE, 1);
		if (follows) {
			assert_true(checked_submit_due(ob, 1, 2, S, DUE));
		}
		checked_answer(ob, entry, answer_with(422), S);
		if (!follows) {
			assert_true(checked_submit_due(ob, 1, 2, S, DUE));
		}
		outbox_recycle(ob, outbox_collect(ob, 1));
		write_now(ob, DUE, 1, VERB_CREATE, 2);
		checked_outbox_free(ob);
	}
}

/* Its event was never there: if both names are taken, they are those of other events. */
static void test_follow_up_of_a_dropped_create_patches_no_other_event(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct outbox_stats stats;
	struct entry *entry;

	(void)state;
	assert_true(checked_submit_due(ob, 1, 1, S, 0));
	entry = take_expected(ob, S, 1, VERB_CREATE, 1);
	assert_true(checked_submit_due(ob, 1, 2, S, DUE));
	checked_answer(ob, entry, answer_with(422), S);
	outbox_recycle(ob, outbox_collect(ob, 1));
	for (int i = 0; i < 2; i++) {
		checked_answer(ob, take_expected(ob, DUE, 1, VERB_CREATE, 2), answer_with(409), DUE);
	}
	assert_null(checked_take(ob, DUE));
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CONFLICT], 1);
	outbox_recycle(ob, outbox_collect(ob, 1));
	checked_outbox_free(ob);
}

/* An earlier create may have arrived, and this one was refused. If its name is taken, it is that of its own event. */
static void test_follow_up_of_a_dropped_create_patches_its_own_event(void **state)
{
	const struct fake_write draft = { .name = "n1", .count = 1 };
	const struct occurrence occurrence = { .id = 1, .verb = VERB_CREATE, .again = true, .draft = &draft };
	struct outbox *ob = checked_outbox(10);
	enum evrec_cause cause;
	struct entry *entry;

	(void)state;
	assert_true(outbox_submit(ob, &occurrence, &cause));
	entry = take_expected(ob, S, 1, VERB_CREATE, 1);
	assert_true(checked_submit_due(ob, 1, 2, S, DUE));
	checked_answer(ob, entry, answer_with(422), S);
	outbox_recycle(ob, outbox_collect(ob, 1));
	checked_answer(ob, take_expected(ob, DUE, 1, VERB_CREATE, 2), answer_with(409), DUE);
	write_now(ob, DUE, 1, VERB_PATCH, 2);
	checked_outbox_free(ob);
}

static bool submit_bounded(struct outbox *ob, uint64_t id, size_t max_deferred, bool *deferred)
{
	struct fake_write draft = { .count = 2 };
	const struct occurrence occurrence = {
		.id = id,
		.verb = VERB_PATCH,
		.now = S,
		.due = DUE,
		.max_deferred = max_deferred,
		.deferred = deferred,
		.draft = &draft,
	};
	enum evrec_cause cause = EVREC_CAUSE_CLOSED;
	const bool ok = outbox_submit(ob, &occurrence, &cause);

	outbox_check_equation(ob);
	assert_true(ok || cause == EVREC_CAUSE_QUEUE_FULL);
	return ok;
}

/* Beyond the bound a write is pending, and the limits hold for it. */
static void test_deferred_writes_may_have_a_bound(void **state)
{
	struct outbox *ob = checked_outbox(1);
	bool deferred;

	(void)state;
	for (uint64_t id = 1; id <= 3; id++) {
		assert_true(submit_bounded(ob, id, 2, &deferred));
		assert_int_equal(deferred, id <= 2);
	}
	assert_counted(ob, 2, 1);
	assert_false(submit_bounded(ob, 4, 2, &deferred));
	/* The writes that there are take in further occurrences. */
	assert_true(submit_bounded(ob, 1, 2, &deferred) && deferred);
	assert_counted(ob, 3, 1);
	assert_true(submit_bounded(ob, 4, 0, &deferred) && deferred);
	checked_outbox_free(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_counted_until_its_time),
		cmocka_unit_test(test_occurrences_fold_and_set_the_time_anew),
		cmocka_unit_test(test_occurrence_without_a_time_makes_it_pending),
		cmocka_unit_test(test_time_that_has_come_is_not_put_off),
		cmocka_unit_test(test_follow_up_is_deferred_after_the_answer),
		cmocka_unit_test(test_follow_up_merges_into_what_is_repeated),
		cmocka_unit_test(test_follow_up_becomes_pending),
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_deferred_writes_may_have_a_bound),
		cmocka_unit_test(test_follow_up_of_a_dropped_create_is_a_create),
		cmocka_unit_test(test_follow_up_of_a_dropped_create_patches_no_other_event),
		cmocka_unit_test(test_follow_up_of_a_dropped_create_patches_its_own_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Writes without an occurrence: what an earlier process has counted, and the end of a series. */
#include "checked_outbox.h"

#define DUE (100 * S)

static bool submit_silent_again(struct outbox *ob, enum verb verb, unsigned count, int64_t due, bool again)
{
	struct fake_write draft = { .name = "n1", .count = count };
	const struct occurrence occurrence = {
		.id = 1, .verb = verb, .silent = true, .due = due, .again = again, .draft = &draft
	};
	enum evrec_cause cause;

	return outbox_submit(ob, &occurrence, &cause);
}

static bool submit_silent(struct outbox *ob, unsigned count, int64_t due)
{
	return submit_silent_again(ob, VERB_PATCH, count, due, false);
}

static struct outbox_stats stats_of(struct outbox *ob)
{
	struct outbox_stats stats;

	outbox_get_stats(ob, &stats);
	return stats;
}

/* Takes the silent write, which gets an answer with this status. */
static void try_silent_as(struct outbox *ob, int64_t now, enum verb verb, int status)
{
	const evrec_answer answer = answer_with(status);
	struct entry *entry = outbox_take(ob, now);

	assert_non_null(entry);
	assert_int_equal(entry->verb, verb);
	answer_entry_as_kubernetes(ob, entry, &answer, now);
}

static void try_silent(struct outbox *ob, int64_t now, int status)
{
	try_silent_as(ob, now, VERB_PATCH, status);
}

static void test_silent_write_counts_nothing(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct outbox_stats stats;

	(void)state;
	assert_true(submit_silent(ob, 3, 0));
	assert_int_equal(stats_of(ob).writes, 1);
	assert_false(outbox_empty(ob));
	try_silent(ob, 0, 500);
	try_silent(ob, S, 200);
	assert_true(outbox_empty(ob));
	collect_written(ob, 1, "");
	stats = stats_of(ob);
	assert_int_equal(stats.submitted + stats.created + stats.patched + stats.coalesced + stats.pending, 0);
	/* The event is gone: it is not created anew. */
	assert_true(submit_silent(ob, 3, DUE));
	try_silent(ob, DUE, 404);
	assert_true(outbox_empty(ob));
	checked_outbox_free(ob);
}

/* An earlier process has counted it, and may not have created it. */
static void test_silent_write_of_an_earlier_process(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	assert_true(submit_silent_again(ob, VERB_PATCH, 3, DUE, true));
	try_silent(ob, DUE, 404);
	assert_false(outbox_empty(ob));
	try_silent_as(ob, DUE, VERB_CREATE, 201);
	collect_written(ob, 1, "");
	/* It exists: there is nothing more to be told. */
	assert_true(submit_silent_again(ob, VERB_CREATE, 1, DUE, true));
	try_silent_as(ob, DUE, VERB_CREATE, 409);
	assert_true(outbox_empty(ob));
	collect_written(ob, 1, "");
	assert_counts(ob, 0, 0, 0, 0);
	checked_outbox_free(ob);
}

/* A create in doubt, too, counts no occurrence. Another write may have created the event, with a lower count. */
static void test_silent_create_in_doubt_makes_no_second_event(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	assert_true(submit_silent_again(ob, VERB_PATCH, 3, DUE, true));
	try_silent(ob, DUE, 404);
	entry = outbox_take(ob, DUE);
	assert_int_equal(entry->verb, VERB_CREATE);
	answer_entry_as_kubernetes(ob, entry, &ANSWER_LOST, DUE);
	try_silent_as(ob, DUE + 10 * S, VERB_CREATE, 409);
	assert_false(outbox_empty(ob));
	try_silent(ob, DUE + 10 * S, 200);
	assert_true(outbox_empty(ob));
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

/* The first create was dropped, so the last write is a create, which arrived although its answer was lost. */
static void test_silent_create_whose_answer_is_lost_makes_no_second_event(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	entry = checked_take(ob, 0);
	assert_true(submit_silent(ob, 3, DUE));
	checked_answer(ob, entry, answer_with(422), 0);
	outbox_recycle(ob, outbox_collect(ob, 1));
	entry = outbox_take(ob, DUE);
	assert_int_equal(entry->verb, VERB_CREATE);
	answer_entry_as_kubernetes(ob, entry, &ANSWER_LOST, DUE);
	try_silent_as(ob, DUE + 10 * S, VERB_CREATE, 409);
	assert_true(outbox_empty(ob));
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

/* Not written is not written, though no occurrence was dropped. */
static void test_silent_write_that_is_forgone(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	assert_true(submit_silent(ob, 3, DUE));
	try_silent(ob, DUE, 422);
	entry = outbox_collect(ob, 1);
	assert_true(entry->forgone && !entry->dropped);
	outbox_recycle(ob, entry);
	assert_true(submit_silent(ob, 3, DUE));
	try_silent(ob, DUE, 200);
	entry = outbox_collect(ob, 1);
	assert_false(entry->forgone);
	outbox_recycle(ob, entry);
	checked_outbox_free(ob);
}

static void test_silent_write_folds(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	assert_true(submit_silent(ob, 3, 0));
	checked_submit(ob, 1, 4);
	entry = take_expected(ob, 0, 1, VERB_PATCH, 4);
	assert_true(submit_silent(ob, 5, DUE));
	assert_counted(ob, 0, 1);
	checked_answer(ob, entry, answer_with(200), 0);
	assert_counts(ob, 0, 1, 0, 0);
	checked_submit_due(ob, 1, 6, 0, DUE);
	assert_true(submit_silent(ob, 7, DUE));
	assert_counted(ob, 1, 0);
	checked_answer(ob, take_expected(ob, DUE, 1, VERB_PATCH, 7), answer_with(200), DUE);
	assert_counts(ob, 0, 2, 0, 0);
	checked_outbox_free(ob);
}

static void test_lost_silent_write_is_no_loss(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct outbox_stats stats;

	(void)state;
	assert_true(submit_silent(ob, 3, DUE));
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	collect_written(ob, 1, "");
	fake_writes.no_memory = true;
	assert_false(submit_silent(ob, 3, 0));
	fake_writes.no_memory = false;
	stats = stats_of(ob);
	assert_int_equal(stats.submitted + stats.dropped[EVREC_CAUSE_CLOSED] + stats.dropped[EVREC_CAUSE_MEMORY], 0);
	checked_outbox_free(ob);
}

/* A row has occurrences. */
static void test_silent_write_has_no_row(void **state)
{
	struct outbox *ob = checked_outbox(10);
	const evrec_answer busy = answer_with(500);
	struct outbox_row row;
	struct entry *entry;

	(void)state;
	outbox_expect(ob, true);
	outbox_expect(ob, false);
	outbox_write_rows_after(ob, S);
	assert_true(submit_silent(ob, 3, DUE));
	assert_int_equal(outbox_next_row(ob, S, 1, &row), OUTBOX_NO_ROW);
	checked_submit_due(ob, 1, 4, S, DUE);
	assert_int_equal(outbox_next_row(ob, 2 * S, 1, &row), OUTBOX_ROW);
	assert_int_equal(row.count, 1);
	outbox_discard(ob, row.item);
	outbox_rows_written(ob, true);
	checked_answer(ob, checked_take(ob, DUE), answer_with(200), DUE);
	/* While one is in flight an occurrence follows it, and joins it as it has to be tried again. */
	assert_true(submit_silent(ob, 5, DUE));
	entry = outbox_take(ob, DUE);
	assert_true(fake_write_submit(ob, 1, 6));
	answer_entry_as_kubernetes(ob, entry, &busy, DUE);
	assert_int_equal(outbox_next_row(ob, DUE + S, 2, &row), OUTBOX_ROW);
	assert_int_equal(row.count, 1);
	outbox_discard(ob, row.item);
	outbox_rows_written(ob, true);
	checked_answer(ob, checked_take(ob, DUE + S), answer_with(200), DUE + S);
	assert_true(submit_silent(ob, 7, 0));
	outbox_keep_all_for_spool(ob);
	assert_null(outbox_next_kept(ob, NULL));
	assert_true(outbox_empty(ob));
	checked_outbox_free(ob);
}

/* A write that waits for a silent one in flight may be dropped once the two have a row. */
static void test_row_of_a_dropped_follow_up_is_deleted(void **state)
{
	evrec_limits limits = limits_without_age(2);
	struct outbox_row row;
	struct outbox *ob;
	const int64_t later = unit_mono() + 2 * S;
	int64_t answered;

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	ob = checked_outbox_limited(&limits);
	outbox_write_rows_after(ob, S);
	assert_true(submit_silent(ob, 3, 0));
	assert_non_null(outbox_take(ob, 0));
	assert_true(fake_write_submit(ob, 1, 4));
	assert_int_equal(outbox_next_row(ob, later, 1, &row), OUTBOX_ROW);
	assert_int_equal(row.count, 1);
	outbox_discard(ob, row.item);
	outbox_rows_written(ob, true);
	assert_int_equal(outbox_get_answered_rows(ob, 0, &answered, 1), 0);
	assert_true(fake_write_submit(ob, 2, 1));
	assert_int_equal(stats_of(ob).dropped[EVREC_CAUSE_QUEUE_FULL], 1);
	assert_int_equal(outbox_get_answered_rows(ob, 0, &answered, 1), 1);
	assert_int_equal(answered, row.row);
	assert_int_equal(outbox_next_row(ob, later, 2, &row), OUTBOX_ROW); /* of the other event */
	assert_int_equal(row.row, -2);
	outbox_discard(ob, row.item);
	outbox_free(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silent_write_counts_nothing),
		cmocka_unit_test(test_silent_write_of_an_earlier_process),
		cmocka_unit_test(test_silent_create_in_doubt_makes_no_second_event),
		cmocka_unit_test(test_silent_create_whose_answer_is_lost_makes_no_second_event),
		cmocka_unit_test(test_silent_write_that_is_forgone),
		cmocka_unit_test(test_silent_write_folds),
		cmocka_unit_test(test_lost_silent_write_is_no_loss),
		cmocka_unit_test(test_silent_write_has_no_row),
		cmocka_unit_test(test_row_of_a_dropped_follow_up_is_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

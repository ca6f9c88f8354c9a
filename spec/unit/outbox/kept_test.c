/* Entries that an outbox keeps for the spool, and rows that are restored from there. */
#include "checked_outbox.h"

/* Submits the first occurrence of `id` at the time `now`. */
static bool submit_at(struct outbox *ob, uint64_t id, bool important, int64_t now)
{
	struct fake_write draft = { .name = "n", .count = 1 };
	const struct occurrence occurrence = {
		.id = id, .verb = VERB_CREATE, .important = important, .now = now, .draft = &draft
	};
	enum evrec_cause cause;

	return outbox_submit(ob, &occurrence, &cause);
}

/* Marks 20 of 40 kept entries, one occurrence each, as stored in the file, then the others. */
static void spool_in_two_parts(struct outbox *ob)
{
	const struct entry *last = NULL;
	struct outbox_stats stats;

	for (unsigned i = 0; i < 20; i++) {
		last = outbox_next_kept(ob, last);
	}
	outbox_spooled(ob, last);
	outbox_check_equation(ob);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.spooled, 20);
	assert_int_equal(stats.pending, 20);
	outbox_spooled(ob, NULL);
	outbox_check_equation(ob);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.spooled, 40);
}

/* Important entries come first, and by age among their kind, whether they waited, backed off or were in flight. */
static void test_kept_entries_are_ordered_by_importance_and_age(void **state)
{
	struct outbox *ob = checked_outbox(100);
	const struct entry *kept = NULL;
	struct entry *entry;
	int64_t last[2] = { 0, 0 };
	unsigned n = 0;

	(void)state;
	outbox_expect(ob, true);
	for (unsigned i = 1; i <= 40; i++) {
		assert_true(submit_at(ob, i, i % 3 == 0, i));
	}
	for (unsigned i = 0; i < 20 && (entry = outbox_take(ob, 40)) != NULL; i++) {
		if (i % 4 != 0) {
			const evrec_answer unsent = { .unsent = true };

			answer_entry_as_kubernetes(ob, entry, &unsent, 40);
		}
	}
	outbox_keep_all_for_spool(ob);
	while ((kept = outbox_next_kept(ob, kept)) != NULL) {
		n++;
		assert_int_equal(kept->important, n <= 13);
		assert_true(kept->last > last[kept->important]);
		last[kept->important] = kept->last;
	}
	assert_int_equal(n, 40);
	spool_in_two_parts(ob);
	outbox_free(ob);
}

/* Rows in order of age are inserted in constant time: a walk past all younger entries would take half a minute. */
static void test_restoring_many_rows_is_fast(void **state)
{
	const unsigned many = 50000;
	evrec_limits limits = limits_without_age(2 * many);
	struct fake_write draft = { .name = "n", .count = 1 };
	struct outbox_stats stats;
	struct outbox *ob;

	(void)state;
	limits.max_age = 10 * EVREC_SECOND;
	ob = outbox_new(&fake_write_ops, &limits, 1);
	outbox_expect(ob, true);
	for (unsigned i = 1; i <= many; i++) {
		assert_true(submit_at(ob, i, false, many + i));
	}
	for (unsigned i = 1; i <= many; i++) {
		const struct outbox_saved saved = {
			.row = i, .verb = VERB_CREATE, .count = 1, .last = i, .item = fake_write_make(&draft)
		};

		assert_true(outbox_restore(ob, &saved));
	}
	/* Only the oldest 1000 have expired. */
	(void)outbox_expire(ob, 1000 + limits.max_age + 1);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.dropped[EVREC_CAUSE_EXPIRED], 1000);
	outbox_check_equation(ob);
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

static void restore_row_of(struct outbox *ob, int64_t row, uint64_t event)
{
	struct fake_write draft = { .name = "n", .count = 6 };
	const struct outbox_saved saved = {
		.row = row, .verb = VERB_PATCH, .count = 1, .event = event, .item = fake_write_make(&draft)
	};

	assert_true(outbox_restore(ob, &saved));
}

static void restore_row(struct outbox *ob, int64_t row)
{
	restore_row_of(ob, row, 0);
}

/* With a kept state both may be of one event, and the row has the lower count. */
static void test_rows_go_before_new_entries(void **state)
{
	const evrec_answer unsent = { .unsent = true };
	struct entry *entry;

	(void)state;
	for (unsigned last = 0; last < 3; last++) {
		struct outbox *ob = checked_outbox(100);
		int64_t now = 0;

		outbox_expect(ob, true);
		outbox_send_rows_first(ob);
		assert_true(submit_at(ob, 1, false, 0));
		assert_null(outbox_take(ob, now));
		if (last == 0) {
			/* The spool has none. */
			outbox_expect(ob, false);
		} else if (last == 1) {
			/* It is not taken up in time. */
			now = 30 * EVREC_SECOND;
			assert_null(outbox_take(ob, now - 1));
		} else {
			restore_row(ob, 1);
			outbox_expect(ob, false);
			entry = outbox_take(ob, now);
			assert_true(outbox_is_restored(entry));
			assert_null(outbox_take(ob, now));
			/* An outage does not end the wait. */
			for (int i = 0; i < 10; i++) {
				now += 20 * EVREC_SECOND;
				answer_entry_as_kubernetes(ob, entry, &unsent, now);
				now = entry->due;
				entry = outbox_take(ob, now);
				assert_true(outbox_is_restored(entry));
				assert_null(outbox_take(ob, now));
			}
			answer_entry_as_kubernetes(ob, entry, &ANSWER_CREATED, now);
		}
		assert_true(outbox_next_due(ob, now) <= now);
		entry = outbox_take(ob, now);
		assert_non_null(entry);
		assert_false(outbox_is_restored(entry));
		outbox_free(ob);
	}
}

static struct entry *take_row(struct outbox *ob, int64_t now, int64_t row)
{
	struct entry *entry = checked_take(ob, now);

	assert_non_null(entry);
	assert_int_equal(entry->row, row);
	return entry;
}

/* At the end, too: before the row is answered, an entry that was submitted before or after it is not sent. */
static void test_rows_go_before_new_entries_at_the_end(void **state)
{
	(void)state;
	for (unsigned when = 0; when < 3; when++) {
		struct outbox *ob = checked_outbox(100);
		struct entry *row;

		outbox_expect(ob, true);
		outbox_send_rows_first(ob);
		assert_true(when != 0 || submit_at(ob, 1, false, 0));
		restore_row(ob, 1);
		assert_true(when != 1 || submit_at(ob, 1, false, 0));
		if (when == 2) {
			row = take_row(ob, 0, 1);
			assert_true(submit_at(ob, 1, false, 0));
			assert_null(checked_take(ob, 0));
			outbox_close(ob);
		} else {
			outbox_close(ob);
			row = take_row(ob, 0, 1);
		}
		outbox_expect(ob, false);
		assert_null(checked_take(ob, 0));
		assert_true(outbox_next_due(ob, 0) > 0);
		checked_answer(ob, row, ANSWER_CREATED, 0);
		assert_int_equal(outbox_next_due(ob, 0), 0);
		checked_answer(ob, take_row(ob, 0, 0), ANSWER_CREATED, 0);
		assert_true(outbox_empty(ob));
		checked_outbox_free(ob);
	}
}

/* The server may carry out two requests in either order. */
static void test_rows_of_one_event_are_sent_one_after_the_other(void **state)
{
	struct outbox *ob = checked_outbox(100);
	struct entry *first, *entry;

	(void)state;
	for (int64_t row = 1; row <= 5; row++) {
		restore_row_of(ob, row, row == 3 ? 8 : 7);
	}
	first = take_row(ob, 0, 1);
	checked_answer(ob, take_row(ob, 0, 3), ANSWER_CREATED, 0);
	assert_null(checked_take(ob, 0));
	/* While the first one backs off, the others wait on. */
	checked_answer(ob, first, ANSWER_UNSENT, 0);
	first = take_row(ob, first->due, 1);
	assert_null(checked_take(ob, first->due));
	for (int64_t row = 1; row <= 5; row += row == 2 ? 2 : 1) {
		entry = row == 1 ? first : take_row(ob, first->due, row);
		assert_null(checked_take(ob, first->due));
		checked_answer(ob, entry, ANSWER_CREATED, first->due);
	}
	assert_null(checked_take(ob, 100 * S));
	checked_outbox_free(ob);
}

/* An answered row may be collected after the next row of its event was sent. */
static void test_row_waits_for_an_answer_not_for_its_collection(void **state)
{
	struct outbox *ob = checked_outbox(100);
	struct entry *collected;

	(void)state;
	restore_row_of(ob, 1, 7);
	checked_answer(ob, take_row(ob, 0, 1), ANSWER_CREATED, 0);
	restore_row_of(ob, 2, 7);
	checked_answer(ob, take_row(ob, 0, 2), ANSWER_CREATED, 0);
	collected = outbox_collect(ob, 2);
	assert_non_null(collected->next);
	outbox_recycle(ob, collected);
	checked_outbox_free(ob);
}

/* A closed outbox sends the rows of one event in their order, although rows of other events wait. */
static void test_rows_of_one_event_keep_their_order_at_the_end(void **state)
{
	struct outbox *ob = checked_outbox(100);
	struct entry *first;

	(void)state;
	outbox_expect(ob, true);
	outbox_send_rows_first(ob);
	for (int64_t row = 1; row <= 4; row++) {
		restore_row_of(ob, row, row == 3 ? 8 : 7);
	}
	first = take_row(ob, 0, 1);
	outbox_close(ob);
	checked_answer(ob, first, ANSWER_CREATED, 0);
	checked_answer(ob, take_row(ob, 0, 2), ANSWER_CREATED, 0);
	checked_answer(ob, take_row(ob, 0, 4), ANSWER_CREATED, 0);
	checked_answer(ob, take_row(ob, 0, 3), ANSWER_CREATED, 0);
	outbox_expect(ob, false);
	assert_true(outbox_empty(ob));
	checked_outbox_free(ob);
}

/* A row that is not answered at the end is kept, and so are those behind it: nobody waits for them. */
static void test_rows_behind_one_that_is_kept_are_kept(void **state)
{
	struct outbox *ob = checked_outbox(100);

	(void)state;
	outbox_expect(ob, true);
	outbox_send_rows_first(ob);
	for (int64_t row = 1; row <= 3; row++) {
		restore_row_of(ob, row, 7);
	}
	assert_true(submit_at(ob, 1, false, 0));
	checked_answer(ob, take_row(ob, 0, 1), ANSWER_UNSENT, 0);
	outbox_close(ob);
	outbox_expect(ob, false);
	checked_answer(ob, take_row(ob, 0, 1), ANSWER_UNSENT, 0);
	/* One of this process as well: the next process sends the rows, which would set its count back. */
	assert_null(checked_take(ob, 0));
	assert_true(outbox_empty(ob));
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

/* A new entry may be of the event of a queued row. If it was sent first, that row would set its count back. */
static void test_new_entry_does_not_overtake_queued_rows_at_the_end(void **state)
{
	struct outbox *ob = checked_outbox(100);
	struct entry *first;

	(void)state;
	outbox_expect(ob, true);
	outbox_send_rows_first(ob);
	restore_row_of(ob, 1, 7);
	restore_row_of(ob, 2, 7);
	assert_true(submit_at(ob, 1, false, 0));
	first = take_row(ob, 0, 1);
	outbox_close(ob);
	assert_null(checked_take(ob, 0));
	checked_answer(ob, first, ANSWER_CREATED, 0);
	checked_answer(ob, take_row(ob, 0, 2), ANSWER_CREATED, 0);
	outbox_expect(ob, false);
	checked_answer(ob, take_row(ob, 0, 0), ANSWER_CREATED, 0);
	assert_true(outbox_empty(ob));
	checked_outbox_free(ob);
}

/* An entry that waits for the rows is dropped as others are, and leaves the outbox whole. */
static void test_held_entries_are_dropped_as_others_are(void **state)
{
	evrec_limits limits = limits_without_age(100);
	struct outbox *ob;

	(void)state;
	limits.max_age = S;
	ob = checked_outbox_limited(&limits);
	outbox_expect(ob, true);
	outbox_send_rows_first(ob);
	for (uint64_t id = 1; id <= 3; id++) {
		assert_true(submit_at(ob, id, false, id == 3 ? 2 * S : 0));
	}
	assert_null(checked_take(ob, 0));
	(void)outbox_expire(ob, 2 * S);
	assert_dropped(ob, EVREC_CAUSE_EXPIRED, 2);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	assert_dropped(ob, EVREC_CAUSE_CLOSED, 1);
	checked_outbox_free(ob);
}

/* The first row was never sent, and its name is taken: a later row of the event goes to the name that it got instead. */
static void test_row_goes_to_the_second_name_of_its_event(void **state)
{
	struct outbox *ob = checked_outbox(100);
	struct fake_write draft = { .name = "n", .count = 1 };
	struct outbox_saved saved = { .verb = VERB_CREATE, .count = 1, .event = 7 };
	const struct entry *entry;

	(void)state;
	for (saved.row = 1; saved.row <= 2; saved.row++) {
		saved.item = fake_write_make(&draft);
		assert_true(outbox_restore(ob, &saved));
		saved.verb = VERB_PATCH;
	}
	checked_answer(ob, take_row(ob, 0, 1), answer_with(409), 0);
	checked_answer(ob, take_row(ob, 0, 1), ANSWER_CREATED, 0);
	entry = take_row(ob, 0, 2);
	assert_string_equal(((const struct fake_write *)entry->item)->name, "renamed-1");
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

/* Rows that are still queued after the last round stay in the spool. */
static void test_rows_that_are_queued_are_kept(void **state)
{
	struct outbox *ob = checked_outbox(100);
	struct outbox_stats stats;

	(void)state;
	outbox_expect(ob, true);
	for (int64_t row = 1; row <= 3; row++) {
		restore_row_of(ob, row, 7);
	}
	(void)take_row(ob, 0, 1);
	outbox_keep_all_for_spool(ob);
	outbox_spooled(ob, NULL);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.spooled, 3);
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

/* Whatever becomes of an earlier row, the later one does not wait for ever, nor is forgotten. */
static void test_queued_rows_are_dropped_as_others_are(void **state)
{
	evrec_limits limits = limits_without_age(100);
	struct outbox *ob;
	struct entry *first;

	(void)state;
	limits.max_age = S;
	ob = checked_outbox_limited(&limits);
	for (int64_t row = 1; row <= 3; row++) {
		restore_row_of(ob, row, 7);
	}
	first = take_row(ob, 0, 1);
	(void)outbox_expire(ob, 2 * S);
	assert_dropped(ob, EVREC_CAUSE_EXPIRED, 2);
	checked_answer(ob, first, ANSWER_CREATED, 2 * S);
	assert_true(outbox_empty(ob));
	restore_row_of(ob, 4, 7);
	restore_row_of(ob, 5, 7);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	assert_dropped(ob, EVREC_CAUSE_CLOSED, 2);
	restore_row_of(ob, 6, 7);
	restore_row_of(ob, 7, 7);
	first = take_row(ob, 0, 6);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	assert_dropped(ob, EVREC_CAUSE_CLOSED, 4);
	checked_answer(ob, first, ANSWER_CREATED, 2 * S);
	assert_true(outbox_empty(ob));
	checked_outbox_free(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_go_before_new_entries),
		cmocka_unit_test(test_rows_go_before_new_entries_at_the_end),
		cmocka_unit_test(test_rows_of_one_event_are_sent_one_after_the_other),
		cmocka_unit_test(test_row_waits_for_an_answer_not_for_its_collection),
		cmocka_unit_test(test_rows_of_one_event_keep_their_order_at_the_end),
		cmocka_unit_test(test_rows_behind_one_that_is_kept_are_kept),
		cmocka_unit_test(test_new_entry_does_not_overtake_queued_rows_at_the_end),
		cmocka_unit_test(test_held_entries_are_dropped_as_others_are),
		cmocka_unit_test(test_row_goes_to_the_second_name_of_its_event),
		cmocka_unit_test(test_rows_that_are_queued_are_kept),
		cmocka_unit_test(test_queued_rows_are_dropped_as_others_are),
		cmocka_unit_test(test_kept_entries_are_ordered_by_importance_and_age),
		cmocka_unit_test(test_restoring_many_rows_is_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

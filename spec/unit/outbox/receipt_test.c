/* Receipts: an occurrence's comes back once, with the entry in which the occurrence ended. */
#include "alloc_failure.h"
#include "checked_outbox.h"

static const struct receipt_id ours = { 1, 7 }, theirs = { 2, 7 };

static bool submit_at(struct outbox *ob, uint64_t id, unsigned count, int64_t due, struct receipt_id receipt)
{
	struct fake_write draft = { .name = "n1", .count = count };
	const struct occurrence occurrence = {
		.id = id, .verb = count > 1 ? VERB_PATCH : VERB_CREATE, .due = due, .receipt = &receipt, .draft = &draft
	};
	enum evrec_cause cause;
	bool ok = outbox_submit(ob, &occurrence, &cause);

	outbox_check_equation(ob);
	assert_true(ok || cause == EVREC_CAUSE_MEMORY);
	return ok;
}

static void submit(struct outbox *ob, unsigned count, struct receipt_id receipt)
{
	assert_true(submit_at(ob, 1, count, 0, receipt));
}

static void check_receipt(const struct entry *entry, struct receipt_id id, unsigned written, unsigned n)
{
	const struct receipt *r = entry->receipts;

	while (r != NULL && (r->id.source != id.source || r->id.node != id.node)) {
		r = r->next;
	}
	assert_non_null(r);
	assert_int_equal(r->written, written);
	assert_int_equal(r->n, n);
}

/* A thousand occurrences of two processes are one entry, with two receipts. */
static void test_occurrences_that_fold_take_no_memory(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct unit_allocator allocator = { 0 };
	struct entry *entry;
	size_t calls;

	(void)state;
	submit(ob, 1, ours);
	submit(ob, 2, theirs);
	evrec_set_allocator(unit_realloc, &allocator);
	submit(ob, 3, ours);
	calls = allocator.calls;
	for (unsigned n = 4; n <= 1000; n++) {
		submit(ob, n, n % 2 == 0 ? theirs : ours);
	}
	assert_int_equal(allocator.calls, calls);
	evrec_set_allocator(NULL, NULL);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 1000), ANSWER_CREATED, 0);
	entry = outbox_collect(ob, 1);
	check_receipt(entry, ours, 500, 0);
	check_receipt(entry, theirs, 500, 0);
	assert_null(entry->receipts->next->next);
	outbox_recycle(ob, entry);
	checked_outbox_free(ob);
}

/* An aggregate: one write for the events of a thousand nodes. */
static void test_many_receipts_in_one_entry(void **state)
{
	struct outbox *ob = checked_outbox(10);
	static bool seen[1000];
	struct entry *entry;
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		submit(ob, 1 + i, (struct receipt_id){ 5, i % 1000 });
	}
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 3000), ANSWER_CREATED, 0);
	entry = outbox_collect(ob, 1);
	for (const struct receipt *r = entry->receipts; r != NULL; r = r->next) {
		assert_int_equal(r->written, 3);
		assert_false(seen[r->id.node]);
		seen[r->id.node] = true;
		n++;
	}
	assert_int_equal(n, 1000);
	outbox_recycle(ob, entry);
	checked_outbox_free(ob);
}

/* The occurrences in the request that created the event are written; those that came later are dropped. */
static void test_an_entry_is_written_in_part(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	submit(ob, 1, ours);
	submit(ob, 2, theirs);
	entry = take_expected(ob, 0, 1, VERB_CREATE, 2);
	submit(ob, 3, theirs);
	submit(ob, 4, theirs);
	checked_answer(ob, entry, ANSWER_LOST, 0);
	assert_null(outbox_collect(ob, 1));
	checked_answer(ob, take_expected(ob, 60 * S, 1, VERB_CREATE, 4), answer_with(409), 60 * S);
	checked_answer(ob, take_expected(ob, 60 * S, 1, VERB_PATCH, 4), answer_with(422), 60 * S);
	entry = outbox_collect(ob, 1);
	assert_true(entry->dropped);
	assert_int_equal(entry->count, 2);
	check_receipt(entry, ours, 1, 0);
	check_receipt(entry, theirs, 1, 2);
	outbox_recycle(ob, entry);
	checked_outbox_free(ob);
}

/* A receipt of a counted occurrence stays until the heartbeat, or the end, writes it. */
static void test_a_deferred_write_keeps_its_receipts(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	assert_true(submit_at(ob, 1, 2, 5 * S, ours));
	assert_true(submit_at(ob, 1, 3, 6 * S, ours));
	assert_null(checked_take(ob, 5 * S));
	assert_null(outbox_collect(ob, 1));
	checked_answer(ob, take_expected(ob, 6 * S, 1, VERB_PATCH, 3), answer_with(200), 6 * S);
	entry = outbox_collect(ob, 1);
	check_receipt(entry, ours, 2, 0);
	outbox_recycle(ob, entry);
	checked_outbox_free(ob);
}

static void test_a_spooled_entry_comes_back_for_its_receipts(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	outbox_expect(ob, true);
	outbox_expect(ob, false);
	submit(ob, 1, ours);
	assert_true(checked_submit(ob, 2, 1)); /* without a receipt: it does not come back */
	outbox_keep_all_for_spool(ob);
	assert_false(outbox_has_news(ob));
	outbox_spooled(ob, NULL);
	assert_true(outbox_has_news(ob));
	entry = outbox_collect(ob, 1);
	assert_true(entry->spooled);
	assert_false(entry->dropped);
	check_receipt(entry, ours, 0, 1);
	outbox_recycle(ob, entry);
	assert_null(outbox_collect(ob, 1));
	checked_outbox_free(ob);
}

static void put_row(struct outbox *ob, int64_t now)
{
	struct outbox_row row;

	assert_int_equal(outbox_next_row(ob, now, 1, &row), OUTBOX_ROW);
	outbox_discard(ob, row.item);
}

/* The next entry that comes back has receipts alone: `n` occurrences of ours. */
static void check_spooled(struct outbox *ob, unsigned n)
{
	struct entry *entry = outbox_collect(ob, 1);

	assert_non_null(entry);
	assert_true(entry->spooled);
	check_receipt(entry, ours, 0, n);
	outbox_recycle(ob, entry);
	assert_null(outbox_collect(ob, 1));
}

/* The occurrences of a row settle once the row is in the file, and not again with the entry. */
static void test_a_row_settles_what_it_has(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	outbox_expect(ob, true);
	outbox_expect(ob, false);
	outbox_write_rows_after(ob, 0);
	submit(ob, 1, ours);
	submit(ob, 2, ours);
	put_row(ob, 0);
	assert_null(outbox_collect(ob, 1));
	/* The disk is full: nothing is in the file. */
	outbox_rows_written(ob, false);
	assert_null(outbox_collect(ob, 1));
	put_row(ob, 0);
	submit(ob, 3, ours);
	/* The entry has changed since: the next row tells that this one is in the file. */
	outbox_rows_written(ob, true);
	assert_null(outbox_collect(ob, 1));
	put_row(ob, S);
	check_spooled(ob, 2);
	outbox_rows_written(ob, true);
	check_spooled(ob, 1);
	submit(ob, 4, theirs);
	checked_answer(ob, take_expected(ob, S, 1, VERB_CREATE, 4), ANSWER_CREATED, S);
	entry = outbox_collect(ob, 1);
	assert_false(entry->spooled);
	check_receipt(entry, theirs, 1, 0);
	assert_null(entry->receipts->next);
	outbox_recycle(ob, entry);
	checked_outbox_free(ob);
}

/* Two writes of one event, and an occurrence that was counted: none of the calls changes anything if it fails. */
static void submit_without_memory(void)
{
	struct outbox *ob = fake_write_outbox(10);
	unsigned accepted = 0, settled = 0;
	struct entry *entry;

	assert_non_null(ob);
	alloc_failure_arm();
	for (unsigned n = 1; n <= 6; n++) {
		const bool ok = submit_at(ob, 1 + n % 2, n, n % 3 == 0 ? S : 0, n % 2 == 0 ? ours : theirs);

		alloc_failure_check(ok);
		accepted += ok;
	}
	alloc_failure_disarm();
	outbox_close(ob);
	outbox_drop_all(ob, EVREC_CAUSE_CLOSED);
	while ((entry = outbox_collect(ob, 1)) != NULL) {
		for (const struct receipt *r = entry->receipts; r != NULL; r = r->next) {
			settled += r->n;
		}
		outbox_recycle(ob, entry);
	}
	assert_int_equal(settled, accepted);
	outbox_free(ob);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(submit_without_memory, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_occurrences_that_fold_take_no_memory),
		cmocka_unit_test(test_many_receipts_in_one_entry),
		cmocka_unit_test(test_an_entry_is_written_in_part),
		cmocka_unit_test(test_a_deferred_write_keeps_its_receipts),
		cmocka_unit_test(test_a_spooled_entry_comes_back_for_its_receipts),
		cmocka_unit_test(test_a_row_settles_what_it_has),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

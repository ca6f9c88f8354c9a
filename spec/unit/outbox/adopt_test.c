/* A create finds that an earlier process created the object: the write adopts it, as a patch. */
#include "checked_outbox.h"

#define DUE (100 * S)

static void answer_adopt(struct outbox *ob, struct entry *entry, const char *name, uint32_t base, int64_t now)
{
	struct outcome outcome = { .verdict = VERDICT_ADOPT, .base = base };

	snprintf(outcome.name, sizeof(outcome.name), "%s", name);
	outbox_answer(ob, entry, &outcome, now);
	outbox_check_equation(ob);
}

static void assert_item(const struct entry *entry, const char *name, uint32_t base, unsigned count)
{
	const struct fake_write *item = entry->item;

	assert_string_equal(item->name, name);
	assert_int_equal(item->base, base);
	assert_int_equal(item->count, count);
}

static void collect_adopted(struct outbox *ob, const char *name, uint32_t base)
{
	struct entry *entry = outbox_collect(ob, 1);

	assert_non_null(entry);
	assert_false(entry->dropped);
	assert_string_equal(entry_name(entry), name);
	assert_int_equal(entry->base, base);
	outbox_recycle(ob, entry);
}

static void test_create_becomes_a_patch_at_once(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	checked_submit(ob, 2, 1);
	checked_submit(ob, 1, 1);
	checked_submit(ob, 3, 1);
	entry = take_expected(ob, 0, 2, VERB_CREATE, 1);
	answer_adopt(ob, entry, "found", 7, 0);
	entry = take_expected(ob, 0, 2, VERB_PATCH, 1);
	assert_item(entry, "found", 7, 1);
	checked_answer(ob, entry, answer_with(200), 0);
	assert_counts(ob, 0, 1, 0, 2);
	collect_adopted(ob, "found", 7);
	checked_outbox_free(ob);
}

static void test_its_tries_are_counted_anew(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct outbox_stats stats;
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	checked_answer(ob, checked_take(ob, 0), ANSWER_LOST, 0);
	entry = checked_take(ob, S);
	answer_adopt(ob, entry, "found", 7, S);
	entry = checked_take(ob, S);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.retries, 1);
	assert_int_equal(entry->maybe_received, 0);
	checked_answer(ob, entry, answer_with(200), S);
	checked_outbox_free(ob);
}

/* Pending or deferred, it is part of the patch. */
static void test_follow_up_is_absorbed(void **state)
{
	(void)state;
	for (int deferred = 0; deferred <= 1; deferred++) {
		struct outbox *ob = checked_outbox(10);
		struct entry *entry;

		checked_submit(ob, 1, 1);
		entry = checked_take(ob, 0);
		checked_submit_due(ob, 1, 2, 0, deferred ? DUE : 0);
		answer_adopt(ob, entry, "found", 7, 0);
		assert_counted(ob, 0, 2);
		entry = take_expected(ob, 0, 1, VERB_PATCH, 2);
		assert_item(entry, "found", 7, 2);
		checked_answer(ob, entry, answer_with(200), 0);
		assert_counts(ob, 0, 1, 1, 0);
		checked_outbox_free(ob);
	}
}

/* Until the pipeline has collected the answer, what it submits has the old name and no base. */
static void test_later_writes_inherit_name_and_base(void **state)
{
	(void)state;
	for (int deferred = 0; deferred <= 1; deferred++) {
		struct outbox *ob = checked_outbox(10);
		struct entry *entry;

		checked_submit(ob, 1, 1);
		answer_adopt(ob, checked_take(ob, 0), "found", 7, 0);
		checked_submit(ob, 1, 2);
		entry = take_expected(ob, 0, 1, VERB_PATCH, 2);
		assert_item(entry, "found", 7, 2);
		checked_submit_due(ob, 1, 3, 0, deferred ? DUE : 0);
		checked_answer(ob, entry, answer_with(200), 0);
		entry = take_expected(ob, DUE, 1, VERB_PATCH, 3);
		assert_item(entry, "found", 7, 3);
		checked_answer(ob, entry, answer_with(200), DUE);
		checked_submit_due(ob, 1, 4, DUE, deferred ? 2 * DUE : 0);
		entry = take_expected(ob, 2 * DUE, 1, VERB_PATCH, 4);
		assert_item(entry, "found", 7, 4);
		checked_answer(ob, entry, answer_with(200), 2 * DUE);
		collect_adopted(ob, "found", 7);
		collect_adopted(ob, "found", 7);
		collect_adopted(ob, "found", 7);
		checked_outbox_free(ob);
	}
}

/* A follow-up that could not be merged for want of memory is sent after the patch. */
static void test_without_memory_the_follow_up_stays(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	entry = checked_take(ob, 0);
	checked_submit(ob, 1, 2);
	fake_writes.no_memory = true;
	answer_adopt(ob, entry, "found", 7, 0);
	fake_writes.no_memory = false;
	entry = take_expected(ob, 0, 1, VERB_PATCH, 1);
	checked_answer(ob, entry, answer_with(200), 0);
	entry = take_expected(ob, 0, 1, VERB_PATCH, 2);
	assert_item(entry, "found", 7, 2);
	checked_answer(ob, entry, answer_with(200), 0);
	checked_outbox_free(ob);
}

static void test_items_without_a_base(void **state)
{
	struct outbox_ops ops = fake_write_ops;
	const evrec_limits limits = limits_without_age(10);
	struct outbox *ob;
	struct entry *entry;

	(void)state;
	ops.set_base = NULL;
	ops.on_time = NULL;
	ob = outbox_new(&ops, &limits, 1);
	checked_submit(ob, 1, 1);
	answer_adopt(ob, checked_take(ob, 0), "found", 7, 0);
	entry = take_expected(ob, 0, 1, VERB_PATCH, 1);
	assert_item(entry, "found", 0, 1);
	checked_submit_due(ob, 2, 2, 0, DUE);
	entry = take_expected(ob, DUE, 2, VERB_PATCH, 2);
	assert_int_equal(((struct fake_write *)entry->item)->on_time, 0);
	checked_outbox_free(ob);
}

/* Another process may have created it: a name that is taken is its own, and all that is known here is patched. */
static void test_created_by_another_process_is_patched(void **state)
{
	const evrec_answer taken = answer_with(409);
	struct outbox *ob = checked_outbox(10);
	struct fake_write draft = { .name = "n1", .count = 1 };
	struct occurrence occurrence = { .id = 1, .verb = VERB_CREATE, .again = true, .draft = &draft };
	enum evrec_cause cause;
	struct entry *entry;

	(void)state;
	assert_true(outbox_submit(ob, &occurrence, &cause));
	draft.count = 2;
	occurrence.verb = VERB_PATCH;
	assert_true(outbox_submit(ob, &occurrence, &cause));
	entry = take_expected(ob, 0, 1, VERB_CREATE, 2);
	assert_true(entry->again);
	checked_answer(ob, entry, taken, 0);
	entry = take_expected(ob, 0, 1, VERB_PATCH, 2);
	/* It has gone meanwhile: then the next one is a new one. */
	assert_false(entry->again);
	checked_answer(ob, entry, answer_with(404), 0);
	entry = take_expected(ob, 0, 1, VERB_CREATE, 2);
	checked_answer(ob, entry, ANSWER_CREATED, 0);
	outbox_recycle(ob, outbox_collect(ob, 1));
	checked_outbox_free(ob);
}

static void answer_with_status(struct outbox *ob, enum verb verb, unsigned count, int status)
{
	checked_answer(ob, take_expected(ob, 0, 1, verb, count), answer_with(status), 0);
}

/* Somebody created it between the answer to the patch and the create: a row of the spool, or another process. */
static void test_missing_object_that_is_there_is_patched(void **state)
{
	const unsigned renamed = fake_writes.renamed;
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 2);
	answer_with_status(ob, VERB_PATCH, 2, 404);
	answer_with_status(ob, VERB_CREATE, 2, 409);
	answer_with_status(ob, VERB_PATCH, 2, 200);
	assert_counts(ob, 0, 1, 0, 0);
	/* No server makes this go on for ever. */
	checked_submit(ob, 1, 3);
	for (int i = 0; i < 2; i++) {
		answer_with_status(ob, VERB_PATCH, 3, 404);
		answer_with_status(ob, VERB_CREATE, 3, 409);
	}
	assert_int_equal(fake_writes.renamed, renamed + 1);
	answer_with_status(ob, VERB_CREATE, 3, 201);
	assert_counts(ob, 1, 1, 0, 0);
	outbox_recycle(ob, outbox_collect(ob, 2));
	checked_outbox_free(ob);
}

/* The lost create may not be what created it: the server may have a lower count. */
static void test_missing_object_in_doubt_is_patched(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 2);
	answer_with_status(ob, VERB_PATCH, 2, 404);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 2), ANSWER_LOST, 0);
	checked_answer(ob, take_expected(ob, 10 * S, 1, VERB_CREATE, 2), answer_with(409), 10 * S);
	answer_with_status(ob, VERB_PATCH, 2, 200);
	assert_counts(ob, 0, 1, 0, 0);
	checked_outbox_free(ob);
}

/* The next process does not know that another one may have created it, perhaps with fewer occurrences. */
static void test_row_of_what_another_process_may_have_created(void **state)
{
	const struct {
		bool told;
		unsigned occurrences;
		enum verb verb;
		unsigned maybe_received;
	} cases[] = { { true, 1, VERB_PATCH, 0 }, { false, 2, VERB_PATCH, 0 }, { false, 1, VERB_CREATE, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outbox *ob = checked_outbox(10);
		struct fake_write draft = { .name = "n1", .count = 1 };
		struct occurrence occurrence = { .id = 1, .verb = VERB_CREATE, .again = true, .draft = &draft };
		const struct entry *kept;
		struct outbox_row row;
		enum evrec_cause cause;

		outbox_expect(ob, true);
		outbox_write_rows_after(ob, S);
		occurrence.silent = cases[i].told;
		occurrence.due = cases[i].told ? DUE : 0;
		assert_true(outbox_submit(ob, &occurrence, &cause));
		for (unsigned n = cases[i].told ? 0 : 1; n < cases[i].occurrences; n++) {
			checked_submit(ob, 1, 2);
		}
		assert_int_equal(outbox_next_row(ob, 2 * S, 1, &row), OUTBOX_ROW);
		assert_int_equal(row.verb, cases[i].verb);
		outbox_discard(ob, row.item);
		outbox_rows_written(ob, true);
		outbox_keep_all_for_spool(ob);
		kept = outbox_next_kept(ob, NULL);
		assert_int_equal(kept->verb, cases[i].verb);
		assert_int_equal(kept->maybe_received, cases[i].maybe_received);
		outbox_spooled(ob, kept);
		checked_outbox_free(ob);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_becomes_a_patch_at_once),
		cmocka_unit_test(test_created_by_another_process_is_patched),
		cmocka_unit_test(test_missing_object_that_is_there_is_patched),
		cmocka_unit_test(test_missing_object_in_doubt_is_patched),
		cmocka_unit_test(test_row_of_what_another_process_may_have_created),
		cmocka_unit_test(test_its_tries_are_counted_anew),
		cmocka_unit_test(test_follow_up_is_absorbed),
		cmocka_unit_test(test_later_writes_inherit_name_and_base),
		cmocka_unit_test(test_without_memory_the_follow_up_stays),
		cmocka_unit_test(test_items_without_a_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

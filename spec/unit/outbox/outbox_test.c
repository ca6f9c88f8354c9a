/* The outbox: order of writes, folding, follow-ups, and the effect of answers. */
#include "checked_outbox.h"

static void test_first_come_first_served(void **state)
{
	struct outbox *ob = checked_outbox(1000);

	(void)state;
	for (unsigned i = 1; i <= 500; i++) {
		assert_true(checked_submit(ob, i, 1));
	}
	for (unsigned i = 1; i <= 500; i++) {
		checked_answer(ob, take_expected(ob, 0, i, VERB_CREATE, 1), ANSWER_CREATED, 0);
	}
	assert_null(checked_take(ob, 0));
	for (unsigned i = 1; i <= 500; i++) {
		collect_written(ob, i, "");
	}
	assert_null(outbox_collect(ob, 1));
	assert_counts(ob, 500, 0, 0, 0);
	checked_outbox_free(ob);
}

static void test_occurrences_fold_into_a_waiting_write(void **state)
{
	struct outbox *ob = checked_outbox(1);

	(void)state;
	for (unsigned i = 1; i <= 40; i++) {
		assert_true(checked_submit(ob, 7, i));
	}
	assert_counts(ob, 0, 0, 0, 40);
	checked_answer(ob, take_expected(ob, 0, 7, VERB_CREATE, 40), ANSWER_CREATED, 0);
	assert_counts(ob, 1, 0, 39, 0);
	collect_written(ob, 7, "");
	checked_outbox_free(ob);
}

static void test_follow_up_waits_until_answered(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *post, *other;

	(void)state;
	checked_submit(ob, 1, 1);
	post = take_expected(ob, 0, 1, VERB_CREATE, 1);
	checked_submit(ob, 1, 2);
	checked_submit(ob, 1, 3);
	assert_null(checked_take(ob, 0));
	/* A write of another id does not wait for it. */
	checked_submit(ob, 2, 1);
	other = take_expected(ob, 0, 2, VERB_CREATE, 1);
	checked_answer(ob, other, ANSWER_CREATED, 0);
	checked_answer(ob, post, ANSWER_CREATED, 0);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_PATCH, 3), answer_with(200), 0);
	assert_null(checked_take(ob, 0));
	assert_counts(ob, 2, 1, 1, 0);
	collect_written(ob, 2, "");
	collect_written(ob, 1, "");
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

static void test_follow_up_is_merged_for_a_retry(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *post;

	(void)state;
	checked_submit(ob, 1, 1);
	post = take_expected(ob, 0, 1, VERB_CREATE, 1);
	checked_submit(ob, 1, 2);
	checked_answer(ob, post, ANSWER_UNSENT, 0);
	checked_submit(ob, 1, 3);
	assert_null(checked_take(ob, -1));
	checked_answer(ob, take_expected(ob, S, 1, VERB_CREATE, 3), ANSWER_CREATED, S);
	assert_counts(ob, 1, 0, 2, 0);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

static void test_due_retries_come_before_new_writes(void **state)
{
	struct outbox *ob = checked_outbox(10);
	evrec_answer later = { .status = 500, .retry_after = 5 * S }, sooner = { .status = 500, .retry_after = 2 * S };
	struct outbox_stats stats;

	(void)state;
	checked_submit(ob, 1, 1);
	checked_submit(ob, 2, 1);
	checked_answer(ob, checked_take(ob, 0), later, 0);
	checked_answer(ob, checked_take(ob, 0), sooner, 0);
	assert_int_equal(outbox_next_due(ob, 0), 2 * S);
	assert_null(checked_take(ob, 2 * S - 1));
	checked_submit(ob, 3, 1);
	assert_int_equal(outbox_next_due(ob, 5), 5);
	take_expected(ob, 2 * S, 2, VERB_CREATE, 1);
	take_expected(ob, 2 * S, 3, VERB_CREATE, 1);
	assert_int_equal(outbox_next_due(ob, 0), 5 * S);
	take_expected(ob, 5 * S, 1, VERB_CREATE, 1);
	assert_int_equal(outbox_next_due(ob, 5 * S), INT64_MAX);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.retries, 2);
	assert_int_equal(stats.in_flight, 3);
	checked_outbox_free(ob);
}

static void test_patch_of_nothing_becomes_a_post(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *patch;

	(void)state;
	checked_submit(ob, 1, 5);
	checked_submit(ob, 2, 1);
	patch = take_expected(ob, 0, 1, VERB_PATCH, 5);
	checked_submit(ob, 1, 6);
	checked_answer(ob, patch, answer_with(404), 0);
	/* At once, before other writes, and with all occurrences so far. */
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 6), ANSWER_CREATED, 0);
	assert_counts(ob, 1, 0, 1, 1);
	collect_written(ob, 1, "");
	assert_no_message(ob);
	checked_outbox_free(ob);
}

static void test_conflict_renames_once(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *post;

	(void)state;
	fake_writes.renamed = 0;
	checked_submit(ob, 1, 1);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 1), answer_with(409), 0);
	post = take_expected(ob, 0, 1, VERB_CREATE, 1);
	assert_string_equal(((struct fake_write *)post->item)->name, "renamed-1");
	/* A follow-up gets the new name too. */
	checked_submit(ob, 1, 2);
	checked_answer(ob, post, ANSWER_CREATED, 0);
	post = take_expected(ob, 0, 1, VERB_PATCH, 2);
	assert_string_equal(((struct fake_write *)post->item)->name, "renamed-1");
	checked_answer(ob, post, answer_with(200), 0);
	collect_written(ob, 1, "renamed-1");
	collect_written(ob, 1, "renamed-1");

	checked_submit(ob, 2, 1);
	checked_answer(ob, checked_take(ob, 0), answer_with(409), 0);
	checked_answer(ob, checked_take(ob, 0), answer_with(409), 0);
	assert_null(checked_take(ob, 0));
	collect_dropped(ob, 2, EVREC_CAUSE_CONFLICT, 1);
	assert_message(ob, "conflict", "POST: 409");
	checked_outbox_free(ob);
}

static void test_name_of_the_server_is_used_before_it_is_collected(void **state)
{
	struct outbox *ob = checked_outbox(10);
	evrec_answer named = { .status = 201, .name = "chosen", .resource_version = "9" };
	struct entry *entry;

	(void)state;
	checked_submit(ob, 1, 1);
	checked_answer(ob, checked_take(ob, 0), named, 0);
	checked_submit(ob, 1, 2);
	entry = take_expected(ob, 0, 1, VERB_PATCH, 2);
	assert_string_equal(((struct fake_write *)entry->item)->name, "chosen");
	/* The name is kept, also if the second answer has none. */
	checked_answer(ob, entry, answer_with(200), 0);
	checked_submit(ob, 1, 3);
	entry = take_expected(ob, 0, 1, VERB_PATCH, 3);
	assert_string_equal(((struct fake_write *)entry->item)->name, "chosen");
	entry = outbox_collect(ob, 1);
	assert_string_equal(entry_name(entry), "chosen");
	assert_string_equal(entry_resource_version(entry), "9");
	outbox_recycle(ob, entry);
	collect_written(ob, 1, "chosen");
	assert_null(outbox_collect(ob, 1));
	/* The pipeline learns the name from the collected entries. */
	checked_outbox_free(ob);
}

static void test_conflict_with_an_uncertain_post_is_success(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 1);
	checked_submit(ob, 1, 2);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 2), ANSWER_LOST, 0);
	checked_answer(ob, take_expected(ob, S, 1, VERB_CREATE, 2), answer_with(409), S);
	assert_null(checked_take(ob, S));
	collect_written(ob, 1, "");
	assert_counts(ob, 1, 0, 1, 0);
	checked_outbox_free(ob);
}

static void test_occurrences_after_an_uncertain_post_are_patched(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *post;

	(void)state;
	checked_submit(ob, 1, 1);
	checked_submit(ob, 1, 2);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 2), ANSWER_LOST, 0);
	checked_submit(ob, 1, 3);
	post = take_expected(ob, S, 1, VERB_CREATE, 3);
	checked_submit(ob, 1, 4);
	checked_answer(ob, post, answer_with(409), S);
	/* The first two occurrences are stored; a PATCH writes the others. */
	assert_counts(ob, 1, 0, 1, 2);
	checked_answer(ob, take_expected(ob, S, 1, VERB_PATCH, 4), answer_with(200), S);
	assert_counts(ob, 1, 1, 2, 0);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

static void test_doubt_ends_with_the_post(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 1);
	checked_answer(ob, checked_take(ob, 0), ANSWER_LOST, 0);
	checked_submit(ob, 1, 2);
	checked_answer(ob, checked_take(ob, S), answer_with(409), S);
	/* The event was stored, then expired, and another client used its name. */
	checked_answer(ob, take_expected(ob, S, 1, VERB_PATCH, 2), answer_with(404), S);
	checked_answer(ob, take_expected(ob, S, 1, VERB_CREATE, 2), answer_with(409), S);
	assert_memory_equal(((struct fake_write *)take_expected(ob, S, 1, VERB_CREATE, 2)->item)->name, "renamed-", 8);
	checked_outbox_free(ob);
}

static void test_conflict_with_an_unsent_post_renames(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *post;

	(void)state;
	checked_submit(ob, 1, 1);
	checked_answer(ob, checked_take(ob, 0), ANSWER_UNSENT, 0);
	checked_answer(ob, checked_take(ob, S), answer_with(429), S);
	checked_answer(ob, checked_take(ob, 3 * S), answer_with(409), 3 * S);
	post = take_expected(ob, 3 * S, 1, VERB_CREATE, 1);
	assert_memory_equal(((struct fake_write *)post->item)->name, "renamed-", 8);
	/* No POST under the new name is in doubt. */
	checked_answer(ob, post, answer_with(409), 3 * S);
	collect_dropped(ob, 1, EVREC_CAUSE_CONFLICT, 1);
	checked_outbox_free(ob);
}

static void test_rename_forgets_uncertainty_only_of_the_old_name(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	fake_writes.renamed = 0;
	checked_submit(ob, 1, 1);
	checked_answer(ob, checked_take(ob, 0), answer_with(409), 0);
	checked_answer(ob, checked_take(ob, 0), answer_with(500), 0);
	checked_answer(ob, checked_take(ob, S), answer_with(409), S);
	collect_written(ob, 1, "renamed-1");
	assert_counts(ob, 1, 0, 0, 0);
	checked_outbox_free(ob);
}

static void test_follow_up_of_a_dropped_write_is_sent(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *post;

	(void)state;
	checked_submit(ob, 1, 1);
	post = checked_take(ob, 0);
	checked_submit(ob, 1, 2);
	checked_answer(ob, post, (evrec_answer){ .status = 422, .message = "no good" }, 0);
	assert_message(ob, "rejected", "POST: 422: no good");
	collect_dropped(ob, 1, EVREC_CAUSE_REJECTED, 1);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_PATCH, 2), answer_with(404), 0);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 2), ANSWER_CREATED, 0);
	collect_written(ob, 1, "");
	assert_counts(ob, 1, 0, 0, 0);
	checked_outbox_free(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_come_first_served),
		cmocka_unit_test(test_occurrences_fold_into_a_waiting_write),
		cmocka_unit_test(test_follow_up_waits_until_answered),
		cmocka_unit_test(test_follow_up_is_merged_for_a_retry),
		cmocka_unit_test(test_due_retries_come_before_new_writes),
		cmocka_unit_test(test_patch_of_nothing_becomes_a_post),
		cmocka_unit_test(test_conflict_renames_once),
		cmocka_unit_test(test_name_of_the_server_is_used_before_it_is_collected),
		cmocka_unit_test(test_conflict_with_an_uncertain_post_is_success),
		cmocka_unit_test(test_occurrences_after_an_uncertain_post_are_patched),
		cmocka_unit_test(test_doubt_ends_with_the_post),
		cmocka_unit_test(test_conflict_with_an_unsent_post_renames),
		cmocka_unit_test(test_rename_forgets_uncertainty_only_of_the_old_name),
		cmocka_unit_test(test_follow_up_of_a_dropped_write_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

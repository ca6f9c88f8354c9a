/* What the outbox makes of answers: order, folding, follow-ups, names. */
#include "outbox_hand.h"

static void test_first_come_first_served(void **state)
{
	struct outbox *ob = new_outbox(1000);

	(void)state;
	for (unsigned i = 1; i <= 500; i++) {
		assert_true(submit(ob, i, 1));
	}
	for (unsigned i = 1; i <= 500; i++) {
		answer(ob, take_this(ob, 0, i, VERB_CREATE, 1), CREATED, 0);
	}
	assert_null(take(ob, 0));
	for (unsigned i = 1; i <= 500; i++) {
		collect_written(ob, i, "");
	}
	assert_null(outbox_collect(ob));
	assert_stats(ob, 500, 0, 0, 0);
	end_outbox(ob);
}

static void test_folds_into_what_waits(void **state)
{
	struct outbox *ob = new_outbox(1);

	(void)state;
	for (unsigned i = 1; i <= 40; i++) {
		assert_true(submit(ob, 7, i));
	}
	assert_stats(ob, 0, 0, 0, 40);
	answer(ob, take_this(ob, 0, 7, VERB_CREATE, 40), CREATED, 0);
	assert_stats(ob, 1, 0, 39, 0);
	collect_written(ob, 7, "");
	end_outbox(ob);
}

static void test_one_request_of_an_id_at_a_time(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *post, *other;

	(void)state;
	submit(ob, 1, 1);
	post = take_this(ob, 0, 1, VERB_CREATE, 1);
	submit(ob, 1, 2);
	submit(ob, 1, 3);
	assert_null(take(ob, 0));
	/* Another id does not wait for it. */
	submit(ob, 2, 1);
	other = take_this(ob, 0, 2, VERB_CREATE, 1);
	answer(ob, other, CREATED, 0);
	answer(ob, post, CREATED, 0);
	answer(ob, take_this(ob, 0, 1, VERB_PATCH, 3), status(200), 0);
	assert_null(take(ob, 0));
	assert_stats(ob, 2, 1, 1, 0);
	collect_written(ob, 2, "");
	collect_written(ob, 1, "");
	collect_written(ob, 1, "");
	end_outbox(ob);
}

static void test_follow_up_is_merged_for_a_retry(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *post;

	(void)state;
	submit(ob, 1, 1);
	post = take_this(ob, 0, 1, VERB_CREATE, 1);
	submit(ob, 1, 2);
	answer(ob, post, UNSENT, 0);
	submit(ob, 1, 3);
	assert_null(take(ob, -1));
	answer(ob, take_this(ob, S, 1, VERB_CREATE, 3), CREATED, S);
	assert_stats(ob, 1, 0, 2, 0);
	collect_written(ob, 1, "");
	end_outbox(ob);
}

static void test_what_is_due_comes_before_what_waits(void **state)
{
	struct outbox *ob = new_outbox(10);
	evrec_answer later = { .status = 429, .retry_after = 5 * S }, sooner = { .status = 429, .retry_after = 2 * S };
	struct outbox_stats stats;

	(void)state;
	submit(ob, 1, 1);
	submit(ob, 2, 1);
	answer(ob, take(ob, 0), later, 0);
	answer(ob, take(ob, 0), sooner, 0);
	assert_int_equal(outbox_next_due(ob, 0), 2 * S);
	assert_null(take(ob, 2 * S - 1));
	submit(ob, 3, 1);
	assert_int_equal(outbox_next_due(ob, 5), 5);
	take_this(ob, 2 * S, 2, VERB_CREATE, 1);
	take_this(ob, 2 * S, 3, VERB_CREATE, 1);
	assert_int_equal(outbox_next_due(ob, 0), 5 * S);
	take_this(ob, 5 * S, 1, VERB_CREATE, 1);
	assert_int_equal(outbox_next_due(ob, 5 * S), INT64_MAX);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.retries, 2);
	assert_int_equal(stats.in_flight, 3);
	end_outbox(ob);
}

static void test_patch_of_nothing_becomes_a_post(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *patch;

	(void)state;
	submit(ob, 1, 5);
	submit(ob, 2, 1);
	patch = take_this(ob, 0, 1, VERB_PATCH, 5);
	submit(ob, 1, 6);
	answer(ob, patch, status(404), 0);
	/* At once, before the others, and with all that has come. */
	answer(ob, take_this(ob, 0, 1, VERB_CREATE, 6), CREATED, 0);
	assert_stats(ob, 1, 0, 1, 1);
	collect_written(ob, 1, "");
	assert_no_report(ob);
	end_outbox(ob);
}

static void test_conflict_renames_once(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *post;

	(void)state;
	items_renamed = 0;
	submit(ob, 1, 1);
	answer(ob, take_this(ob, 0, 1, VERB_CREATE, 1), status(409), 0);
	post = take_this(ob, 0, 1, VERB_CREATE, 1);
	assert_string_equal(((struct item *)post->item)->name, "renamed-1");
	/* Its follow-up is known by the new name as well. */
	submit(ob, 1, 2);
	answer(ob, post, CREATED, 0);
	post = take_this(ob, 0, 1, VERB_PATCH, 2);
	assert_string_equal(((struct item *)post->item)->name, "renamed-1");
	answer(ob, post, status(200), 0);
	collect_written(ob, 1, "renamed-1");
	collect_written(ob, 1, "renamed-1");

	submit(ob, 2, 1);
	answer(ob, take(ob, 0), status(409), 0);
	answer(ob, take(ob, 0), status(409), 0);
	assert_null(take(ob, 0));
	collect_dropped(ob, 2, EVREC_CAUSE_CONFLICT, 1);
	assert_report(ob, "conflict", "POST: 409");
	end_outbox(ob);
}

static void test_submit_before_a_new_name_is_collected(void **state)
{
	struct outbox *ob = new_outbox(10);
	evrec_answer named = { .status = 201, .name = "chosen", .resource_version = "9" };
	struct entry *entry;

	(void)state;
	submit(ob, 1, 1);
	answer(ob, take(ob, 0), named, 0);
	submit(ob, 1, 2);
	entry = take_this(ob, 0, 1, VERB_PATCH, 2);
	assert_string_equal(((struct item *)entry->item)->name, "chosen");
	/* The name lasts, whether or not the second answer tells it. */
	answer(ob, entry, status(200), 0);
	submit(ob, 1, 3);
	entry = take_this(ob, 0, 1, VERB_PATCH, 3);
	assert_string_equal(((struct item *)entry->item)->name, "chosen");
	entry = outbox_collect(ob);
	assert_string_equal(entry->name, "chosen");
	assert_string_equal(entry->resource_version, "9");
	outbox_recycle(ob, entry);
	collect_written(ob, 1, "chosen");
	assert_null(outbox_collect(ob));
	/* Once all was collected the lane knows the name itself. */
	end_outbox(ob);
}

static void test_uncertain_post_that_exists(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	submit(ob, 1, 1);
	submit(ob, 1, 2);
	answer(ob, take_this(ob, 0, 1, VERB_CREATE, 2), LOST, 0);
	answer(ob, take_this(ob, S, 1, VERB_CREATE, 2), status(409), S);
	assert_null(take(ob, S));
	collect_written(ob, 1, "");
	assert_stats(ob, 1, 0, 1, 0);
	end_outbox(ob);
}

static void test_uncertain_post_that_exists_and_has_grown(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *post;

	(void)state;
	submit(ob, 1, 1);
	submit(ob, 1, 2);
	answer(ob, take_this(ob, 0, 1, VERB_CREATE, 2), LOST, 0);
	submit(ob, 1, 3);
	post = take_this(ob, S, 1, VERB_CREATE, 3);
	submit(ob, 1, 4);
	answer(ob, post, status(409), S);
	/* The first two are there; of the others a patch has to tell. */
	assert_stats(ob, 1, 0, 1, 2);
	answer(ob, take_this(ob, S, 1, VERB_PATCH, 4), status(200), S);
	assert_stats(ob, 1, 1, 2, 0);
	collect_written(ob, 1, "");
	end_outbox(ob);
}

static void test_doubt_ends_with_the_post(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	submit(ob, 1, 1);
	answer(ob, take(ob, 0), LOST, 0);
	submit(ob, 1, 2);
	answer(ob, take(ob, S), status(409), S);
	/* It was there; then it expired, and somebody else took its name: that is not ours. */
	answer(ob, take_this(ob, S, 1, VERB_PATCH, 2), status(404), S);
	answer(ob, take_this(ob, S, 1, VERB_CREATE, 2), status(409), S);
	assert_memory_equal(((struct item *)take_this(ob, S, 1, VERB_CREATE, 2)->item)->name, "renamed-", 8);
	end_outbox(ob);
}

static void test_unsent_post_that_conflicts_is_somebody_elses(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *post;

	(void)state;
	submit(ob, 1, 1);
	answer(ob, take(ob, 0), UNSENT, 0);
	answer(ob, take(ob, S), status(429), S);
	answer(ob, take(ob, 3 * S), status(409), 3 * S);
	post = take_this(ob, 3 * S, 1, VERB_CREATE, 1);
	assert_memory_equal(((struct item *)post->item)->name, "renamed-", 8);
	/* The new name was never tried before, so what was uncertain is no longer. */
	answer(ob, post, status(409), 3 * S);
	collect_dropped(ob, 1, EVREC_CAUSE_CONFLICT, 1);
	end_outbox(ob);
}

static void test_rename_forgets_uncertainty_only_of_the_old_name(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	items_renamed = 0;
	submit(ob, 1, 1);
	answer(ob, take(ob, 0), status(409), 0);
	answer(ob, take(ob, 0), status(503), 0);
	answer(ob, take(ob, S), status(409), S);
	collect_written(ob, 1, "renamed-1");
	assert_stats(ob, 1, 0, 0, 0);
	end_outbox(ob);
}

static void test_follow_up_of_a_dropped_write_goes_on(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *post;

	(void)state;
	submit(ob, 1, 1);
	post = take(ob, 0);
	submit(ob, 1, 2);
	answer(ob, post, (evrec_answer){ .status = 422, .message = "no good" }, 0);
	assert_report(ob, "rejected", "POST: 422: no good");
	collect_dropped(ob, 1, EVREC_CAUSE_REJECTED, 1);
	answer(ob, take_this(ob, 0, 1, VERB_PATCH, 2), status(404), 0);
	answer(ob, take_this(ob, 0, 1, VERB_CREATE, 2), CREATED, 0);
	collect_written(ob, 1, "");
	assert_stats(ob, 1, 0, 0, 0);
	end_outbox(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_come_first_served),
		cmocka_unit_test(test_folds_into_what_waits),
		cmocka_unit_test(test_one_request_of_an_id_at_a_time),
		cmocka_unit_test(test_follow_up_is_merged_for_a_retry),
		cmocka_unit_test(test_what_is_due_comes_before_what_waits),
		cmocka_unit_test(test_patch_of_nothing_becomes_a_post),
		cmocka_unit_test(test_conflict_renames_once),
		cmocka_unit_test(test_submit_before_a_new_name_is_collected),
		cmocka_unit_test(test_uncertain_post_that_exists),
		cmocka_unit_test(test_uncertain_post_that_exists_and_has_grown),
		cmocka_unit_test(test_doubt_ends_with_the_post),
		cmocka_unit_test(test_unsent_post_that_conflicts_is_somebody_elses),
		cmocka_unit_test(test_rename_forgets_uncertainty_only_of_the_old_name),
		cmocka_unit_test(test_follow_up_of_a_dropped_write_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

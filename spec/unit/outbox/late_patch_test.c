/*
 * A PATCH without an answer may be carried out late, after a newer one, and lower the count. Once a newer PATCH
 * succeeds, the outbox repeats it 2 s later.
 */
#include "checked_outbox.h"

#define MAYBE_LATE_FOR (2 * S)

static const evrec_answer HUNG = { .status = 0, .maybe_late = true, .message = "no answer within 30 s" };

/* A PATCH with count 3 gets no answer at 0, and is acknowledged at 1 s. */
static void acknowledge_in_doubt(struct outbox *ob)
{
	checked_submit(ob, 1, 3);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_PATCH, 3), HUNG, 0);
	checked_answer(ob, take_expected(ob, S, 1, VERB_PATCH, 3), answer_with(200), S);
	assert_counts(ob, 0, 0, 0, 1);
	assert_null(outbox_collect(ob, 1));
}

static void test_patch_is_repeated_2_s_after_success(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct outbox_stats stats;

	(void)state;
	acknowledge_in_doubt(ob);
	outbox_make_due_now(ob);
	assert_int_equal(outbox_next_due(ob, S), S + MAYBE_LATE_FOR);
	assert_null(checked_take(ob, S + MAYBE_LATE_FOR - 1));
	checked_answer(ob, take_expected(ob, S + MAYBE_LATE_FOR, 1, VERB_PATCH, 3), answer_with(200),
	               S + MAYBE_LATE_FOR);
	assert_int_equal(outbox_next_due(ob, S), INT64_MAX);
	assert_counts(ob, 0, 1, 0, 0);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.retries, 2);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

static void test_patch_is_not_repeated_if_a_late_one_is_another_record(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	outbox_append_only(ob);
	checked_submit(ob, 1, 3);
	checked_answer(ob, take_expected(ob, 0, 1, VERB_PATCH, 3), HUNG, 0);
	checked_answer(ob, take_expected(ob, S, 1, VERB_PATCH, 3), answer_with(200), S);
	assert_int_equal(outbox_next_due(ob, S), INT64_MAX);
	assert_counts(ob, 0, 1, 0, 0);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

/* The 2 s begin anew with the success after the last doubt. */
static void test_repeat_in_doubt_is_repeated(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	acknowledge_in_doubt(ob);
	checked_answer(ob, checked_take(ob, 3 * S), HUNG, 3 * S);
	checked_answer(ob, take_expected(ob, 4 * S, 1, VERB_PATCH, 3), answer_with(200), 4 * S);
	assert_null(checked_take(ob, 6 * S - 1));
	checked_answer(ob, take_expected(ob, 6 * S, 1, VERB_PATCH, 3), answer_with(200), 6 * S);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

static void test_occurrences_before_the_repeat_fold_into_it(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *patch;

	(void)state;
	checked_submit(ob, 1, 3);
	patch = checked_take(ob, 0);
	checked_answer(ob, patch, HUNG, 0);
	patch = checked_take(ob, S);
	checked_submit(ob, 1, 4);
	checked_answer(ob, patch, answer_with(200), S);
	checked_submit(ob, 1, 5);
	assert_null(checked_take(ob, S));
	patch = take_expected(ob, 3 * S, 1, VERB_PATCH, 5);
	assert_int_equal(patch->acked, 1);
	checked_submit(ob, 1, 6);
	checked_answer(ob, patch, answer_with(200), 3 * S);
	/* The follow-up is in no doubt. */
	checked_answer(ob, take_expected(ob, 3 * S, 1, VERB_PATCH, 6), answer_with(200), 3 * S);
	assert_counts(ob, 0, 2, 2, 0);
	collect_written(ob, 1, "");
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

/* All occurrences were acknowledged: the write counts as written, however it ends. */
static void assert_nothing_dropped(struct outbox *ob)
{
	assert_counts(ob, 0, 1, 0, 0);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

/* One occurrence came after the acknowledgement: it alone counts as dropped. */
static void assert_one_dropped(struct outbox *ob, enum evrec_cause cause)
{
	struct outbox_stats stats;

	assert_counts(ob, 0, 1, 0, 0);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.dropped[cause], 1);
	collect_dropped(ob, 1, cause, 4);
	checked_outbox_free(ob);
}

static struct outbox *acknowledged_in_doubt(const evrec_limits *limits)
{
	struct outbox *ob = checked_outbox_limited(limits);

	acknowledge_in_doubt(ob);
	return ob;
}

static void test_eviction_drops_only_new_occurrences(void **state)
{
	evrec_limits limits = limits_without_age(1);

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	for (int has_more = 0; has_more <= 1; has_more++) {
		struct outbox *ob = acknowledged_in_doubt(&limits);

		if (has_more) {
			checked_submit(ob, 1, 4);
		}
		checked_submit(ob, 2, 1);
		checked_answer(ob, take_expected(ob, S, 2, VERB_CREATE, 1), answer_with(422), S);
		if (has_more) {
			assert_one_dropped(ob, EVREC_CAUSE_QUEUE_FULL);
		} else {
			assert_nothing_dropped(ob);
		}
	}
}

static void test_expiry_drops_only_new_occurrences(void **state)
{
	evrec_limits limits = limits_without_age(10);

	(void)state;
	limits.max_age = 2 * S;
	for (int has_more = 0; has_more <= 1; has_more++) {
		struct outbox *ob = acknowledged_in_doubt(&limits);

		if (has_more) {
			checked_submit(ob, 1, 4);
		}
		assert_int_equal(outbox_expire(ob, 2 * S), 2 * S + 1);
		assert_int_equal(outbox_expire(ob, 2 * S + 1), INT64_MAX);
		if (has_more) {
			assert_one_dropped(ob, EVREC_CAUSE_EXPIRED);
		} else {
			assert_nothing_dropped(ob);
		}
	}
}

static void test_max_tries_drops_only_new_occurrences(void **state)
{
	evrec_limits limits = limits_without_age(10);

	(void)state;
	limits.max_tries = 2;
	for (int has_more = 0; has_more <= 1; has_more++) {
		struct outbox *ob = acknowledged_in_doubt(&limits);

		if (has_more) {
			checked_submit(ob, 1, 4);
		}
		checked_answer(ob, checked_take(ob, 3 * S), answer_with(500), 3 * S);
		if (has_more) {
			assert_one_dropped(ob, EVREC_CAUSE_MAX_TRIES);
		} else {
			assert_nothing_dropped(ob);
		}
	}
}

/* The write waits or is in flight; it has new occurrences or none. */
static void test_drop_all_drops_only_new_occurrences(void **state)
{
	(void)state;
	for (int variant = 0; variant < 4; variant++) {
		const bool has_more = variant % 2 != 0, in_flight = variant >= 2;
		struct outbox *ob = checked_outbox(10);
		struct entry *entry;

		acknowledge_in_doubt(ob);
		if (has_more) {
			checked_submit(ob, 1, 4);
		}
		entry = in_flight ? checked_take(ob, 3 * S) : NULL;
		outbox_drop_all(ob, EVREC_CAUSE_FORBIDDEN);
		assert_true(outbox_empty(ob));
		if (in_flight) {
			checked_answer(ob, entry, answer_with(200), 3 * S);
		}
		if (has_more) {
			assert_one_dropped(ob, EVREC_CAUSE_FORBIDDEN);
		} else {
			assert_nothing_dropped(ob);
		}
	}
}

/* The follow-up takes over the doubt. */
static void test_follow_up_of_a_dropped_patch_is_repeated(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *patch;

	(void)state;
	checked_submit(ob, 1, 3);
	checked_answer(ob, checked_take(ob, 0), HUNG, 0);
	patch = checked_take(ob, S);
	checked_submit(ob, 1, 4);
	checked_answer(ob, patch, answer_with(422), S);
	collect_dropped(ob, 1, EVREC_CAUSE_REJECTED, 3);
	checked_answer(ob, take_expected(ob, S, 1, VERB_PATCH, 4), answer_with(200), S);
	assert_null(checked_take(ob, S));
	checked_answer(ob, take_expected(ob, 3 * S, 1, VERB_PATCH, 4), answer_with(200), 3 * S);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

static void test_close_repeats_at_once(void **state)
{
	struct outbox *ob = checked_outbox(10);
	struct entry *patch;

	(void)state;
	acknowledge_in_doubt(ob);
	checked_submit(ob, 2, 3);
	checked_answer(ob, checked_take(ob, S), HUNG, S);
	checked_submit(ob, 3, 3);
	patch = checked_take(ob, S);
	/* Waiting repeats are sent at once, and not repeated again. */
	outbox_close(ob);
	checked_answer(ob, patch, (evrec_answer){ .status = 200, .maybe_late = true }, S);
	checked_answer(ob, take_expected(ob, S, 2, VERB_PATCH, 3), answer_with(200), S);
	checked_answer(ob, take_expected(ob, S, 1, VERB_PATCH, 3), HUNG, S);
	assert_true(outbox_empty(ob));
	assert_counts(ob, 0, 3, 0, 0);
	collect_written(ob, 3, "");
	collect_written(ob, 2, "");
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

static void test_post_is_not_repeated(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 1);
	checked_answer(ob, checked_take(ob, 0), HUNG, 0);
	checked_answer(ob, checked_take(ob, S), (evrec_answer){ .status = 201, .maybe_late = true }, S);
	collect_written(ob, 1, "");
	/* The first PATCH after a POST is not repeated either: a late POST cannot lower a count. */
	checked_submit(ob, 2, 1);
	checked_answer(ob, checked_take(ob, S), HUNG, S);
	checked_submit(ob, 2, 2);
	checked_answer(ob, checked_take(ob, 2 * S), answer_with(409), 2 * S);
	checked_answer(ob, take_expected(ob, 2 * S, 2, VERB_PATCH, 2), answer_with(200), 2 * S);
	collect_written(ob, 2, "");
	checked_outbox_free(ob);
}

/* A sink that never sets maybe_late has no PATCH repeated. */
static void test_lost_answer_alone_repeats_nothing(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 3);
	checked_answer(ob, checked_take(ob, 0), ANSWER_LOST, 0);
	checked_answer(ob, checked_take(ob, S), answer_with(500), S);
	checked_answer(ob, checked_take(ob, 3 * S), answer_with(200), 3 * S);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

/* For example, libcurl sent the PATCH twice and got an answer to the second sending only. */
static void test_success_in_doubt_is_repeated(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	checked_submit(ob, 1, 3);
	checked_answer(ob, checked_take(ob, 0), (evrec_answer){ .status = 200, .maybe_late = true }, 0);
	checked_answer(ob, take_expected(ob, 2 * S, 1, VERB_PATCH, 3), answer_with(200), 2 * S);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

/* The event is gone at the repeat: it is created anew only if there are new occurrences. */
static void test_repeat_creates_no_event_without_new_occurrences(void **state)
{
	struct outbox *ob = checked_outbox(10);

	(void)state;
	acknowledge_in_doubt(ob);
	checked_answer(ob, checked_take(ob, 3 * S), answer_with(404), 3 * S);
	assert_nothing_dropped(ob);

	ob = checked_outbox(10);
	acknowledge_in_doubt(ob);
	checked_submit(ob, 1, 4);
	checked_answer(ob, checked_take(ob, 3 * S), answer_with(404), 3 * S);
	assert_counts(ob, 0, 1, 0, 1);
	checked_answer(ob, take_expected(ob, 3 * S, 1, VERB_CREATE, 4), (evrec_answer){ .status = 422 }, 3 * S);
	assert_one_dropped(ob, EVREC_CAUSE_REJECTED);
}

static void assert_kept(const struct entry *entry, unsigned count, unsigned maybe_received)
{
	assert_non_null(entry);
	assert_int_equal(((struct fake_write *)entry->item)->count, count);
	assert_int_equal(entry->verb, VERB_PATCH);
	assert_int_equal(entry->maybe_received, maybe_received);
}

/* The spool has a mark on PATCHes in doubt. A follow-up that could not be merged for want of memory is dropped. */
static void test_spool_marks_patches_in_doubt(void **state)
{
	(void)state;
	for (int is_acked = 0; is_acked <= 1; is_acked++) {
		struct outbox *ob = checked_outbox(10);
		struct outbox_stats stats;
		const struct entry *kept;
		struct entry *patch;

		outbox_expect(ob, true);
		outbox_expect(ob, false);
		checked_submit(ob, 2, 1);
		checked_submit(ob, 1, 3);
		checked_answer(ob, checked_take(ob, 0), ANSWER_CREATED, 0);
		checked_submit(ob, 2, 2);
		patch = take_expected(ob, 0, 1, VERB_PATCH, 3);
		checked_submit(ob, 1, 4);
		fake_writes.no_memory = true;
		checked_answer(ob, patch, (evrec_answer){ .status = is_acked ? 200 : 0, .maybe_late = true }, 0);
		outbox_keep_all_for_spool(ob);
		fake_writes.no_memory = false;
		kept = outbox_next_kept(ob, NULL);
		assert_kept(kept, 3, 1);
		kept = outbox_next_kept(ob, kept);
		assert_kept(kept, 2, 0);
		assert_null(outbox_next_kept(ob, kept));
		outbox_spooled(ob, NULL);
		outbox_get_stats(ob, &stats);
		assert_int_equal(stats.dropped[EVREC_CAUSE_MEMORY], 1);
		checked_outbox_free(ob);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patch_is_repeated_2_s_after_success),
		cmocka_unit_test(test_patch_is_not_repeated_if_a_late_one_is_another_record),
		cmocka_unit_test(test_repeat_in_doubt_is_repeated),
		cmocka_unit_test(test_occurrences_before_the_repeat_fold_into_it),
		cmocka_unit_test(test_eviction_drops_only_new_occurrences),
		cmocka_unit_test(test_expiry_drops_only_new_occurrences),
		cmocka_unit_test(test_max_tries_drops_only_new_occurrences),
		cmocka_unit_test(test_drop_all_drops_only_new_occurrences),
		cmocka_unit_test(test_follow_up_of_a_dropped_patch_is_repeated),
		cmocka_unit_test(test_close_repeats_at_once),
		cmocka_unit_test(test_post_is_not_repeated),
		cmocka_unit_test(test_lost_answer_alone_repeats_nothing),
		cmocka_unit_test(test_success_in_doubt_is_repeated),
		cmocka_unit_test(test_repeat_creates_no_event_without_new_occurrences),
		cmocka_unit_test(test_spool_marks_patches_in_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

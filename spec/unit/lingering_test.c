/* A PATCH that the server may still carry out, after a later one: told once more, some time after its success. */
#include "outbox_hand.h"

#define LINGERING (2 * S)

static const evrec_answer HUNG = { .status = 0, .lingers = true, .message = "no answer within 30 s" };

/* PATCH 3 of write 1 gets no answer, then success, at S. */
static void tell(struct outbox *ob)
{
	submit(ob, 1, 3);
	answer(ob, take_this(ob, 0, 1, VERB_PATCH, 3), HUNG, 0);
	answer(ob, take_this(ob, S, 1, VERB_PATCH, 3), status(200), S);
	assert_stats(ob, 0, 0, 0, 1);
	assert_null(outbox_collect(ob));
}

static void test_told_again_after_2_s(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct outbox_stats stats;

	(void)state;
	tell(ob);
	outbox_hasten(ob);
	assert_int_equal(outbox_next_due(ob, S), S + LINGERING);
	assert_null(take(ob, S + LINGERING - 1));
	answer(ob, take_this(ob, S + LINGERING, 1, VERB_PATCH, 3), status(200), S + LINGERING);
	assert_int_equal(outbox_next_due(ob, S), INT64_MAX);
	assert_stats(ob, 0, 1, 0, 0);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.retries, 2);
	collect_written(ob, 1, "");
	end_outbox(ob);
}

/* In doubt again, told again: from the success on that came after that. */
static void test_a_repeat_may_hang_too(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	tell(ob);
	answer(ob, take(ob, 3 * S), HUNG, 3 * S);
	answer(ob, take_this(ob, 4 * S, 1, VERB_PATCH, 3), status(200), 4 * S);
	assert_null(take(ob, 6 * S - 1));
	answer(ob, take_this(ob, 6 * S, 1, VERB_PATCH, 3), status(200), 6 * S);
	collect_written(ob, 1, "");
	end_outbox(ob);
}

static void test_what_comes_meanwhile_folds_into_it(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *patch;

	(void)state;
	submit(ob, 1, 3);
	patch = take(ob, 0);
	answer(ob, patch, HUNG, 0);
	patch = take(ob, S);
	submit(ob, 1, 4);
	answer(ob, patch, status(200), S);
	submit(ob, 1, 5);
	assert_null(take(ob, S));
	patch = take_this(ob, 3 * S, 1, VERB_PATCH, 5);
	assert_int_equal(patch->told, 1);
	submit(ob, 1, 6);
	answer(ob, patch, status(200), 3 * S);
	/* Its follow-up: there is no doubt any more. */
	answer(ob, take_this(ob, 3 * S, 1, VERB_PATCH, 6), status(200), 3 * S);
	assert_stats(ob, 0, 2, 2, 0);
	collect_written(ob, 1, "");
	collect_written(ob, 1, "");
	end_outbox(ob);
}

/* Nothing new has come: what was told is not lost, whatever the outbox does with it. */
static void assert_nothing_dropped(struct outbox *ob)
{
	assert_stats(ob, 0, 1, 0, 0);
	collect_written(ob, 1, "");
	end_outbox(ob);
}

/* One more has come, which alone is lost. */
static void assert_one_dropped(struct outbox *ob, enum evrec_cause cause)
{
	struct outbox_stats stats;

	assert_stats(ob, 0, 1, 0, 0);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.dropped[cause], 1);
	collect_dropped(ob, 1, cause, 4);
	end_outbox(ob);
}

static struct outbox *limited(const evrec_limits *limits)
{
	struct outbox *ob = outbox_new(&item_ops, limits, 1);

	assert_non_null(ob);
	tell(ob);
	return ob;
}

static void test_evicted(void **state)
{
	evrec_limits limits = limits_of(1);

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	for (int more = 0; more <= 1; more++) {
		struct outbox *ob = limited(&limits);

		if (more) {
			submit(ob, 1, 4);
		}
		submit(ob, 2, 1);
		answer(ob, take_this(ob, S, 2, VERB_CREATE, 1), status(422), S);
		if (more) {
			assert_one_dropped(ob, EVREC_CAUSE_QUEUE_FULL);
		} else {
			assert_nothing_dropped(ob);
		}
	}
}

static void test_expired(void **state)
{
	evrec_limits limits = limits_of(10);

	(void)state;
	limits.max_age = 2 * S;
	for (int more = 0; more <= 1; more++) {
		struct outbox *ob = limited(&limits);

		if (more) {
			submit(ob, 1, 4);
		}
		assert_int_equal(outbox_expire(ob, 2 * S), 2 * S + 1);
		assert_int_equal(outbox_expire(ob, 2 * S + 1), INT64_MAX);
		if (more) {
			assert_one_dropped(ob, EVREC_CAUSE_EXPIRED);
		} else {
			assert_nothing_dropped(ob);
		}
	}
}

static void test_tried_too_often(void **state)
{
	evrec_limits limits = limits_of(10);

	(void)state;
	limits.max_tries = 2;
	for (int more = 0; more <= 1; more++) {
		struct outbox *ob = limited(&limits);

		if (more) {
			submit(ob, 1, 4);
		}
		answer(ob, take(ob, 3 * S), status(503), 3 * S);
		if (more) {
			assert_one_dropped(ob, EVREC_CAUSE_MAX_TRIES);
		} else {
			assert_nothing_dropped(ob);
		}
	}
}

/* While it waits, or while it is under way. */
static void test_all_dropped(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		const bool more = way % 2 != 0, flies = way >= 2;
		struct outbox *ob = new_outbox(10);
		struct entry *entry;

		tell(ob);
		if (more) {
			submit(ob, 1, 4);
		}
		entry = flies ? take(ob, 3 * S) : NULL;
		outbox_drop_all(ob, EVREC_CAUSE_FORBIDDEN);
		assert_true(outbox_empty(ob));
		if (flies) {
			answer(ob, entry, status(200), 3 * S);
		}
		if (more) {
			assert_one_dropped(ob, EVREC_CAUSE_FORBIDDEN);
		} else {
			assert_nothing_dropped(ob);
		}
	}
}

/* The doubt goes on with what follows. */
static void test_dropped_with_a_follow_up(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *patch;

	(void)state;
	submit(ob, 1, 3);
	answer(ob, take(ob, 0), HUNG, 0);
	patch = take(ob, S);
	submit(ob, 1, 4);
	answer(ob, patch, status(422), S);
	collect_dropped(ob, 1, EVREC_CAUSE_REJECTED, 3);
	answer(ob, take_this(ob, S, 1, VERB_PATCH, 4), status(200), S);
	assert_null(take(ob, S));
	answer(ob, take_this(ob, 3 * S, 1, VERB_PATCH, 4), status(200), 3 * S);
	collect_written(ob, 1, "");
	end_outbox(ob);
}

static void test_closed(void **state)
{
	struct outbox *ob = new_outbox(10);
	struct entry *patch;

	(void)state;
	tell(ob);
	submit(ob, 2, 3);
	answer(ob, take(ob, S), HUNG, S);
	submit(ob, 3, 3);
	patch = take(ob, S);
	/* What waits is told at once, and nothing after that. */
	outbox_close(ob);
	answer(ob, patch, (evrec_answer){ .status = 200, .lingers = true }, S);
	answer(ob, take_this(ob, S, 2, VERB_PATCH, 3), status(200), S);
	answer(ob, take_this(ob, S, 1, VERB_PATCH, 3), HUNG, S);
	assert_true(outbox_empty(ob));
	assert_stats(ob, 0, 3, 0, 0);
	collect_written(ob, 3, "");
	collect_written(ob, 2, "");
	collect_written(ob, 1, "");
	end_outbox(ob);
}

static void test_a_post_is_not_told_again(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	submit(ob, 1, 1);
	answer(ob, take(ob, 0), HUNG, 0);
	answer(ob, take(ob, S), (evrec_answer){ .status = 201, .lingers = true }, S);
	collect_written(ob, 1, "");
	/* Nor what follows one, which cannot set anything back. */
	submit(ob, 2, 1);
	answer(ob, take(ob, S), HUNG, S);
	submit(ob, 2, 2);
	answer(ob, take(ob, 2 * S), status(409), 2 * S);
	answer(ob, take_this(ob, 2 * S, 2, VERB_PATCH, 2), status(200), 2 * S);
	collect_written(ob, 2, "");
	end_outbox(ob);
}

/* Of a sink that knows no such thing: lost is lost. */
static void test_doubt_alone_is_no_reason(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	submit(ob, 1, 3);
	answer(ob, take(ob, 0), LOST, 0);
	answer(ob, take(ob, S), status(503), S);
	answer(ob, take(ob, 3 * S), status(200), 3 * S);
	collect_written(ob, 1, "");
	end_outbox(ob);
}

/* Sent twice by libcurl, say: answered, and in doubt all the same. */
static void test_success_that_leaves_doubt(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	submit(ob, 1, 3);
	answer(ob, take(ob, 0), (evrec_answer){ .status = 200, .lingers = true }, 0);
	answer(ob, take_this(ob, 2 * S, 1, VERB_PATCH, 3), status(200), 2 * S);
	collect_written(ob, 1, "");
	end_outbox(ob);
}

/* Told, and gone since: not made anew for that, but for what has come meanwhile. */
static void test_gone_when_it_is_told_again(void **state)
{
	struct outbox *ob = new_outbox(10);

	(void)state;
	tell(ob);
	answer(ob, take(ob, 3 * S), status(404), 3 * S);
	assert_nothing_dropped(ob);

	ob = new_outbox(10);
	tell(ob);
	submit(ob, 1, 4);
	answer(ob, take(ob, 3 * S), status(404), 3 * S);
	assert_stats(ob, 0, 1, 0, 1);
	answer(ob, take_this(ob, 3 * S, 1, VERB_CREATE, 4), (evrec_answer){ .status = 422 }, 3 * S);
	assert_one_dropped(ob, EVREC_CAUSE_REJECTED);
}

static void assert_left(const struct entry *entry, unsigned count, unsigned arrived)
{
	assert_non_null(entry);
	assert_int_equal(((struct item *)entry->item)->count, count);
	assert_int_equal(entry->verb, VERB_PATCH);
	assert_int_equal(entry->arrived, arrived);
}

/* For the spool, what lingers is marked; what there was no memory to merge with it does not go there. */
static void test_left_for_the_spool(void **state)
{
	(void)state;
	for (int told = 0; told <= 1; told++) {
		struct outbox *ob = new_outbox(10);
		struct outbox_stats stats;
		const struct entry *left;
		struct entry *patch;

		outbox_expect(ob, true);
		outbox_expect(ob, false);
		submit(ob, 2, 1);
		submit(ob, 1, 3);
		answer(ob, take(ob, 0), CREATED, 0);
		submit(ob, 2, 2);
		patch = take_this(ob, 0, 1, VERB_PATCH, 3);
		submit(ob, 1, 4);
		items_fail = true;
		answer(ob, patch, (evrec_answer){ .status = told ? 200 : 0, .lingers = true }, 0);
		outbox_leave_all(ob);
		items_fail = false;
		left = outbox_next_left(ob, NULL);
		assert_left(left, 3, 1);
		left = outbox_next_left(ob, left);
		assert_left(left, 2, 0);
		assert_null(outbox_next_left(ob, left));
		outbox_spooled(ob);
		outbox_get_stats(ob, &stats);
		assert_int_equal(stats.dropped[EVREC_CAUSE_MEMORY], 1);
		end_outbox(ob);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_again_after_2_s),
		cmocka_unit_test(test_a_repeat_may_hang_too),
		cmocka_unit_test(test_what_comes_meanwhile_folds_into_it),
		cmocka_unit_test(test_evicted),
		cmocka_unit_test(test_expired),
		cmocka_unit_test(test_tried_too_often),
		cmocka_unit_test(test_all_dropped),
		cmocka_unit_test(test_dropped_with_a_follow_up),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_a_post_is_not_told_again),
		cmocka_unit_test(test_doubt_alone_is_no_reason),
		cmocka_unit_test(test_success_that_leaves_doubt),
		cmocka_unit_test(test_gone_when_it_is_told_again),
		cmocka_unit_test(test_left_for_the_spool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

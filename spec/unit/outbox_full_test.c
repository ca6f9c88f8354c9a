/* The outbox when it is full, when writes get old or fail too often, and where namespaces refuse. */
#include "outbox_hand.h"

static struct outbox *outbox_with(evrec_limits limits)
{
	struct outbox *ob = outbox_new(&item_ops, &limits, 1);

	assert_non_null(ob);
	return ob;
}

/* Occurrence `count` of `id` at the time `now`: of the place, or of "shop" where that is NULL. */
static bool put(struct outbox *ob, uint64_t id, unsigned count, bool important, int64_t now, const char *place)
{
	struct item draft = { .count = count };
	const struct occurrence occurrence = {
		id, count > 1 ? VERB_PATCH : VERB_CREATE, important, now, &draft,
	};
	enum evrec_cause cause;
	bool ok;

	snprintf(draft.name, sizeof(draft.name), "%s%sn%u", place == NULL ? "" : place, place == NULL ? "" : "/",
	         (unsigned)id);
	ok = outbox_submit(ob, &occurrence, &cause);
	assert_true(ok || cause == EVREC_CAUSE_QUEUE_FULL);
	assert_equation(ob);
	return ok;
}

#define normal(ob, id) put(ob, id, 1, false, 0, NULL)
#define warning(ob, id) put(ob, id, 1, true, 0, NULL)

static void test_drop_newest(void **state)
{
	evrec_limits limits = limits_of(3);
	struct outbox *ob = outbox_with(limits);

	(void)state;
	assert_true(normal(ob, 1) && warning(ob, 2) && normal(ob, 3));
	assert_false(normal(ob, 4));
	/* A Warning takes the place of the newest other one, as long as there is one. */
	assert_true(warning(ob, 5));
	collect_dropped(ob, 3, EVREC_CAUSE_QUEUE_FULL, 1);
	assert_true(warning(ob, 6));
	collect_dropped(ob, 1, EVREC_CAUSE_QUEUE_FULL, 1);
	assert_false(warning(ob, 7));
	assert_false(normal(ob, 8));
	assert_null(outbox_collect(ob));
	take_this(ob, 0, 2, VERB_CREATE, 1);
	take_this(ob, 0, 5, VERB_CREATE, 1);
	take_this(ob, 0, 6, VERB_CREATE, 1);
	end_outbox(ob);
}

static void test_drop_oldest(void **state)
{
	evrec_limits limits = limits_of(3);
	struct outbox *ob;

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	ob = outbox_with(limits);
	assert_true(warning(ob, 1) && normal(ob, 2) && normal(ob, 3));
	assert_true(put(ob, 2, 2, false, 0, NULL)); /* it has happened again: no longer the oldest */
	assert_true(normal(ob, 4));
	collect_dropped(ob, 3, EVREC_CAUSE_QUEUE_FULL, 1);
	assert_true(warning(ob, 5));
	collect_dropped(ob, 2, EVREC_CAUSE_QUEUE_FULL, 2);
	assert_true(warning(ob, 6));
	collect_dropped(ob, 4, EVREC_CAUSE_QUEUE_FULL, 1);
	/* Only Warnings: what is none does not come in, another takes the place of the oldest. */
	assert_false(normal(ob, 7));
	assert_true(warning(ob, 8));
	collect_dropped(ob, 1, EVREC_CAUSE_QUEUE_FULL, 1);
	end_outbox(ob);
}

static void test_what_is_in_flight_stays(void **state)
{
	evrec_limits limits = limits_of(3);
	struct outbox *ob;
	struct entry *first, *second;

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	ob = outbox_with(limits);
	assert_true(normal(ob, 1) && normal(ob, 2));
	first = take_this(ob, 0, 1, VERB_CREATE, 1);
	assert_true(put(ob, 1, 2, false, 0, NULL)); /* its follow-up */
	second = take_this(ob, 0, 2, VERB_CREATE, 1);
	assert_true(normal(ob, 3)); /* for which the follow-up goes */
	collect_dropped(ob, 1, EVREC_CAUSE_QUEUE_FULL, 2);
	assert_true(warning(ob, 4));
	collect_dropped(ob, 3, EVREC_CAUSE_QUEUE_FULL, 1);
	answer(ob, second, LOST, 0);
	/* What backs off may go. */
	assert_true(warning(ob, 5));
	collect_dropped(ob, 2, EVREC_CAUSE_QUEUE_FULL, 1);
	answer(ob, first, CREATED, 0);
	collect_written(ob, 1, "");
	end_outbox(ob);
}

static void test_bytes(void **state)
{
	evrec_limits limits = limits_of(1000);
	struct outbox *ob = outbox_with(limits);
	struct item draft = { .count = 1, .size = 1000000, .name = "big" };
	const struct occurrence big = { 99, VERB_CREATE, false, 0, &draft };
	enum evrec_cause cause = EVREC_CAUSES;
	struct outbox_stats stats;
	size_t each;

	(void)state;
	assert_true(normal(ob, 1));
	outbox_get_stats(ob, &stats);
	each = stats.bytes;
	assert_true(each >= sizeof(struct entry));
	end_outbox(ob);

	limits.full = EVREC_DROP_OLDEST;
	limits.max_pending_bytes = 10 * each + 5000;
	ob = outbox_with(limits);
	for (unsigned i = 1; i <= 10; i++) {
		assert_true(normal(ob, i));
	}
	/* What cannot fit drops nothing. */
	assert_false(outbox_submit(ob, &big, &cause));
	assert_int_equal(cause, EVREC_CAUSE_QUEUE_FULL);
	assert_null(outbox_collect(ob));
	/* What takes the room of three drops as many as it needs. */
	draft.size = (unsigned)(2 * each + 5000);
	assert_true(outbox_submit(ob, &big, &cause));
	for (unsigned i = 1; i <= 3; i++) {
		collect_dropped(ob, i, EVREC_CAUSE_QUEUE_FULL, 1);
	}
	assert_null(outbox_collect(ob));
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.bytes, limits.max_pending_bytes);
	end_outbox(ob);
}

static void test_age(void **state)
{
	evrec_limits limits = limits_of(10);
	struct outbox *ob;
	struct entry *flying;

	(void)state;
	limits.max_age = 60 * S;
	ob = outbox_with(limits);
	put(ob, 1, 1, false, 0, NULL);
	put(ob, 2, 1, true, 10 * S, NULL);
	flying = take_this(ob, 10 * S, 1, VERB_CREATE, 1);
	put(ob, 1, 2, false, 20 * S, NULL); /* a follow-up */
	answer(ob, take_this(ob, 20 * S, 2, VERB_CREATE, 1), (evrec_answer){ .status = 429, .retry_after = 300 * S },
	       20 * S);
	/* The one that backs off, the follow-up; never what is in flight. */
	assert_int_equal(outbox_expire(ob, 70 * S), 70 * S + 1);
	assert_null(outbox_collect(ob));
	assert_int_equal(outbox_expire(ob, 70 * S + 1), 80 * S + 1);
	collect_dropped(ob, 2, EVREC_CAUSE_EXPIRED, 1);
	assert_int_equal(outbox_expire(ob, 90 * S), INT64_MAX);
	collect_dropped(ob, 1, EVREC_CAUSE_EXPIRED, 2);
	answer(ob, flying, CREATED, 90 * S);
	collect_written(ob, 1, "");
	/* Every occurrence makes it young again; about to be taken it is looked at too. */
	put(ob, 3, 1, false, 100 * S, NULL);
	put(ob, 3, 2, false, 150 * S, NULL);
	assert_int_equal(outbox_expire(ob, 161 * S), 210 * S + 1);
	assert_null(take(ob, 210 * S + 1));
	collect_dropped(ob, 3, EVREC_CAUSE_EXPIRED, 2);
	assert_true(outbox_empty(ob));
	end_outbox(ob);
}

static void test_max_tries(void **state)
{
	evrec_limits limits = limits_of(10);
	struct outbox *ob;
	int64_t now = 0;

	(void)state;
	limits.max_tries = 12;
	ob = outbox_with(limits);
	put(ob, 1, 5, false, 0, NULL);
	for (unsigned i = 1; i <= 12; i++) {
		struct entry *entry = take(ob, now);

		assert_non_null(entry);
		/* Another verb is not another write. */
		if (i == 6) {
			answer(ob, entry, status(404), now);
			entry = take_this(ob, now, 1, VERB_CREATE, 5);
		}
		answer(ob, entry, i % 2 == 0 ? status(503) : LOST, now);
		now += 31 * S;
	}
	assert_null(take(ob, now));
	collect_dropped(ob, 1, EVREC_CAUSE_MAX_TRIES, 5);
	end_outbox(ob);
}

static const evrec_answer FORBIDDEN = { .status = 403, .message = "events is forbidden: User \"u\" cannot create" };
static const evrec_answer TERMINATING = { .status = 403, .terminating = true, .message = "being terminated" };

static void test_a_place_that_refuses_is_remembered(void **state)
{
	struct outbox *ob = new_outbox(20);
	struct entry *probe;
	struct outbox_report report;

	(void)state;
	put(ob, 1, 1, false, 0, "a");
	put(ob, 2, 1, false, 0, "a");
	put(ob, 3, 1, false, 0, "b");
	put(ob, 4, 9, false, 0, "a"); /* a patch: another right */
	answer(ob, take_this(ob, 0, 1, VERB_CREATE, 1), FORBIDDEN, 0);
	/* The second goes the same way, without a request; other places and verbs do not mind. */
	answer(ob, take_this(ob, S, 3, VERB_CREATE, 1), CREATED, S);
	answer(ob, take_this(ob, S, 4, VERB_PATCH, 9), status(200), S);
	collect_dropped(ob, 1, EVREC_CAUSE_FORBIDDEN, 1);
	collect_dropped(ob, 2, EVREC_CAUSE_FORBIDDEN, 1);
	collect_written(ob, 3, "");
	collect_written(ob, 4, "");
	assert_true(outbox_next_report(ob, &report));
	assert_no_report(ob);
	/* Half a minute later one is sent; the others wait for what becomes of it. */
	put(ob, 5, 1, false, 30 * S, "a");
	put(ob, 6, 1, false, 30 * S, "a");
	put(ob, 7, 1, false, 30 * S, "b");
	probe = take_this(ob, 30 * S, 5, VERB_CREATE, 1);
	answer(ob, take_this(ob, 30 * S, 7, VERB_CREATE, 1), CREATED, 30 * S);
	assert_null(take(ob, 30 * S));
	answer(ob, probe, FORBIDDEN, 30 * S);
	assert_null(take(ob, 30 * S));
	collect_written(ob, 7, "");
	collect_dropped(ob, 5, EVREC_CAUSE_FORBIDDEN, 1);
	collect_dropped(ob, 6, EVREC_CAUSE_FORBIDDEN, 1);
	/* The right was given. */
	put(ob, 8, 1, false, 60 * S, "a");
	put(ob, 9, 1, false, 60 * S, "a");
	probe = take_this(ob, 60 * S, 8, VERB_CREATE, 1);
	assert_null(take(ob, 60 * S));
	answer(ob, probe, CREATED, 60 * S);
	answer(ob, take_this(ob, 60 * S, 9, VERB_CREATE, 1), CREATED, 60 * S);
	assert_stats(ob, 4, 1, 0, 0);
	end_outbox(ob);
}

static void test_a_probe_that_learns_nothing(void **state)
{
	struct outbox *ob = new_outbox(20);
	struct outbox_stats stats;
	struct entry *probe;

	(void)state;
	put(ob, 1, 1, false, 0, "a");
	answer(ob, take(ob, 0), TERMINATING, 0);
	collect_dropped(ob, 1, EVREC_CAUSE_TERMINATING, 1);
	assert_no_report(ob);
	put(ob, 2, 1, false, 30 * S, "a");
	put(ob, 3, 1, false, 30 * S, "a");
	probe = take_this(ob, 30 * S, 2, VERB_CREATE, 1);
	assert_null(take(ob, 30 * S));
	answer(ob, probe, status(503), 30 * S);
	take_this(ob, 30 * S, 3, VERB_CREATE, 1);
	/* To be held is not to be tried. */
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.retries, 0);
	/* Who ends does not wait for a probe. */
	answer(ob, take_this(ob, 31 * S, 2, VERB_CREATE, 1), TERMINATING, 31 * S);
	put(ob, 4, 1, false, 70 * S, "a");
	put(ob, 5, 1, false, 70 * S, "a");
	take_this(ob, 70 * S, 4, VERB_CREATE, 1);
	outbox_close(ob);
	take_this(ob, 70 * S, 5, VERB_CREATE, 1);
	end_outbox(ob);
}

static void test_64_places_are_remembered(void **state)
{
	struct outbox *ob = new_outbox(1000);
	char place[16];

	(void)state;
	for (unsigned i = 0; i < 65; i++) {
		snprintf(place, sizeof(place), "ns-%u", i);
		put(ob, 1 + i, 1, false, 0, place);
		answer(ob, take(ob, i), FORBIDDEN, i);
	}
	put(ob, 100, 1, false, 0, "ns-1");
	put(ob, 101, 1, false, 0, "ns-64");
	put(ob, 102, 1, false, 0, "ns-0"); /* refused longest ago */
	take_this(ob, S, 102, VERB_CREATE, 1);
	end_outbox(ob);
}

static void test_held_at_the_end_of_time(void **state)
{
	const int64_t end = INT64_MAX - EVREC_SECOND / 2;
	const evrec_answer refused = { .status = 403, .terminating = true };
	struct outbox *ob = outbox_with(limits_of(10));

	(void)state;
	assert_true(put(ob, 1, 1, false, 0, NULL));
	(void)outbox_answer(ob, outbox_take(ob, 0), &refused, end - 31 * EVREC_SECOND);
	outbox_recycle(ob, outbox_collect(ob));
	assert_true(put(ob, 2, 1, false, end, NULL) && put(ob, 3, 1, false, end, NULL));
	assert_non_null(outbox_take(ob, end)); /* the probe */
	assert_null(outbox_take(ob, end));
	assert_true(outbox_next_due(ob, end) == INT64_MAX);
	end_outbox(ob);
}

/* What is left is in the order of its last occurrences, whatever it waited for, and however important it is. */
static void test_left_by_age(void **state)
{
	struct outbox *ob = outbox_with(limits_of(100));
	const struct entry *left = NULL;
	struct entry *entry;
	size_t n = 0;

	(void)state;
	outbox_expect(ob, true);
	for (unsigned i = 1; i <= 40; i++) {
		assert_true(put(ob, i, 1, i % 3 == 0, i, NULL));
	}
	for (unsigned i = 0; i < 20 && (entry = outbox_take(ob, 40)) != NULL; i++) {
		if (i % 4 != 0) {
			const evrec_answer away = { .unsent = true };

			(void)outbox_answer(ob, entry, &away, 40);
		}
	}
	outbox_leave_all(ob);
	while ((left = outbox_next_left(ob, left)) != NULL) {
		n++;
		assert_int_equal(left->last, n);
	}
	assert_int_equal(n, 40);
	outbox_spooled(ob);
	assert_equation(ob);
	outbox_free(ob);
}

/* In that order each finds its place at once: by a walk past all that is younger this would take half a minute. */
static void test_many_restored(void **state)
{
	const unsigned many = 50000;
	evrec_limits limits = limits_of(2 * many);
	struct item draft = { .name = "n", .count = 1 };
	struct outbox_stats stats;
	struct outbox *ob;

	(void)state;
	limits.max_age = 10 * EVREC_SECOND;
	ob = outbox_with(limits);
	outbox_expect(ob, true);
	for (unsigned i = 1; i <= many; i++) {
		const struct occurrence occurrence = { i, VERB_CREATE, false, many + i, &draft };
		enum evrec_cause cause;

		assert_true(outbox_submit(ob, &occurrence, &cause));
	}
	for (unsigned i = 1; i <= many; i++) {
		const struct outbox_saved saved = {
			.row = i, .verb = VERB_CREATE, .count = 1, .last = i, .item = item_make(&draft)
		};

		outbox_restore(ob, &saved, true);
	}
	/* The oldest of them, and no other, are too old. */
	(void)outbox_expire(ob, 1000 + limits.max_age + 1);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.dropped[EVREC_CAUSE_EXPIRED], 1000);
	assert_equation(ob);
	outbox_free(ob);
	assert_int_equal(items_alive, 0);
}

static void test_limits_are_checked(void **state)
{
	evrec_limits limits = limits_of(1);
	evrec_error err;

	(void)state;
	assert_int_equal(outbox_check_limits(&limits, &err), 0);
	limits.max_age = -1;
	assert_int_equal(outbox_check_limits(&limits, &err), EVREC_EINVALID);
	assert_memory_equal(err.message, "max_age: ", 9);
	limits.max_age = 0;
	limits.full = (enum evrec_full)7;
	assert_int_equal(outbox_check_limits(&limits, &err), EVREC_EINVALID);
	assert_memory_equal(err.message, "full: ", 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_newest),
		cmocka_unit_test(test_drop_oldest),
		cmocka_unit_test(test_what_is_in_flight_stays),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_max_tries),
		cmocka_unit_test(test_a_place_that_refuses_is_remembered),
		cmocka_unit_test(test_a_probe_that_learns_nothing),
		cmocka_unit_test(test_64_places_are_remembered),
		cmocka_unit_test(test_held_at_the_end_of_time),
		cmocka_unit_test(test_left_by_age),
		cmocka_unit_test(test_many_restored),
		cmocka_unit_test(test_limits_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

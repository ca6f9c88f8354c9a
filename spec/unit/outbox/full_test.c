/* The outbox when it is full, when writes get old or fail too often, and when a namespace refuses writes. */
#include "checked_outbox.h"

/* Submits occurrence `count` of `id` at the time `now`, in namespace `ns`; NULL: "shop". */
static bool put(struct outbox *ob, uint64_t id, unsigned count, bool important, int64_t now, const char *ns)
{
	struct fake_write draft = { .count = count };
	const struct occurrence occurrence = {
		.id = id,
		.verb = count > 1 ? VERB_PATCH : VERB_CREATE,
		.important = important,
		.now = now,
		.draft = &draft,
	};
	enum evrec_cause cause;
	bool ok;

	snprintf(draft.name, sizeof(draft.name), "%s%sn%u", ns == NULL ? "" : ns, ns == NULL ? "" : "/", (unsigned)id);
	ok = outbox_submit(ob, &occurrence, &cause);
	assert_true(ok || cause == EVREC_CAUSE_QUEUE_FULL);
	outbox_check_equation(ob);
	return ok;
}

#define normal(ob, id) put(ob, id, 1, false, 0, NULL)
#define warning(ob, id) put(ob, id, 1, true, 0, NULL)

static void test_drop_newest_refuses_unless_a_warning_evicts(void **state)
{
	evrec_limits limits = limits_without_age(3);
	struct outbox *ob = checked_outbox_limited(&limits);

	(void)state;
	assert_true(normal(ob, 1) && warning(ob, 2) && normal(ob, 3));
	assert_false(normal(ob, 4));
	/* A Warning evicts the newest Normal event, as long as there is one. */
	assert_true(warning(ob, 5));
	collect_dropped(ob, 3, EVREC_CAUSE_QUEUE_FULL, 1);
	assert_true(warning(ob, 6));
	collect_dropped(ob, 1, EVREC_CAUSE_QUEUE_FULL, 1);
	assert_false(warning(ob, 7));
	assert_false(normal(ob, 8));
	assert_null(outbox_collect(ob, 1));
	take_expected(ob, 0, 2, VERB_CREATE, 1);
	take_expected(ob, 0, 5, VERB_CREATE, 1);
	take_expected(ob, 0, 6, VERB_CREATE, 1);
	checked_outbox_free(ob);
}

static void test_drop_oldest_evicts_by_last_occurrence(void **state)
{
	evrec_limits limits = limits_without_age(3);
	struct outbox *ob;

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	ob = checked_outbox_limited(&limits);
	assert_true(warning(ob, 1) && normal(ob, 2) && normal(ob, 3));
	assert_true(put(ob, 2, 2, false, 0, NULL)); /* it occurred again: it is no longer the oldest */
	assert_true(normal(ob, 4));
	collect_dropped(ob, 3, EVREC_CAUSE_QUEUE_FULL, 1);
	assert_true(warning(ob, 5));
	collect_dropped(ob, 2, EVREC_CAUSE_QUEUE_FULL, 2);
	assert_true(warning(ob, 6));
	collect_dropped(ob, 4, EVREC_CAUSE_QUEUE_FULL, 1);
	/* Only Warnings are left: a Normal event is refused, a Warning evicts the oldest. */
	assert_false(normal(ob, 7));
	assert_true(warning(ob, 8));
	collect_dropped(ob, 1, EVREC_CAUSE_QUEUE_FULL, 1);
	checked_outbox_free(ob);
}

static void test_writes_in_flight_are_not_evicted(void **state)
{
	evrec_limits limits = limits_without_age(3);
	struct outbox *ob;
	struct entry *first, *second;

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	ob = checked_outbox_limited(&limits);
	assert_true(normal(ob, 1) && normal(ob, 2));
	first = take_expected(ob, 0, 1, VERB_CREATE, 1);
	assert_true(put(ob, 1, 2, false, 0, NULL)); /* its follow-up */
	second = take_expected(ob, 0, 2, VERB_CREATE, 1);
	assert_true(normal(ob, 3)); /* evicts the follow-up */
	collect_dropped(ob, 1, EVREC_CAUSE_QUEUE_FULL, 2);
	assert_true(warning(ob, 4));
	collect_dropped(ob, 3, EVREC_CAUSE_QUEUE_FULL, 1);
	checked_answer(ob, second, ANSWER_LOST, 0);
	/* A write that backs off may be evicted. */
	assert_true(warning(ob, 5));
	collect_dropped(ob, 2, EVREC_CAUSE_QUEUE_FULL, 1);
	checked_answer(ob, first, ANSWER_CREATED, 0);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

/* Checks that one row is due, with so many occurrences of `id`. */
static void expect_row(struct outbox *ob, uint64_t id, int64_t number, unsigned occurrences)
{
	struct outbox_row row;
	unsigned named;

	assert_int_equal(outbox_next_row(ob, EVREC_SECOND, number, &row), OUTBOX_ROW);
	assert_int_equal(sscanf(((struct fake_write *)row.item)->name, "n%u", &named), 1);
	assert_int_equal(named, id);
	assert_int_equal(row.count, occurrences);
	outbox_discard(ob, row.item);
	outbox_rows_written(ob, true);
}

/* The row of a write in flight has its follow-up's occurrences, until these are dropped. */
static void test_row_has_no_evicted_occurrence(void **state)
{
	evrec_limits limits = limits_without_age(2);
	struct outbox_row row;
	struct entry *entry;
	struct outbox *ob;

	(void)state;
	limits.full = EVREC_DROP_OLDEST;
	ob = checked_outbox_limited(&limits);
	outbox_write_rows_after(ob, 0);
	assert_true(normal(ob, 1));
	entry = take_expected(ob, 0, 1, VERB_CREATE, 1);
	assert_true(put(ob, 1, 2, false, 0, NULL));
	expect_row(ob, 1, 1, 2);
	assert_true(normal(ob, 3));
	collect_dropped(ob, 1, EVREC_CAUSE_QUEUE_FULL, 2);
	expect_row(ob, 3, 2, 1);
	expect_row(ob, 1, 3, 1);
	assert_int_equal(outbox_next_row(ob, EVREC_SECOND, 3, &row), OUTBOX_NO_ROW);
	checked_answer(ob, entry, ANSWER_CREATED, 0);
	collect_written(ob, 1, "");
	checked_outbox_free(ob);
}

static void test_bytes_are_bounded(void **state)
{
	evrec_limits limits = limits_without_age(1000);
	struct outbox *ob = checked_outbox_limited(&limits);
	struct fake_write draft = { .count = 1, .size = 1000000, .name = "big" };
	const struct occurrence big = { .id = 99, .verb = VERB_CREATE, .important = false, .now = 0, .draft = &draft };
	enum evrec_cause cause = EVREC_CAUSES;
	struct outbox_stats stats;
	size_t each;

	(void)state;
	assert_true(normal(ob, 1));
	outbox_get_stats(ob, &stats);
	each = stats.bytes;
	assert_true(each >= sizeof(struct entry));
	checked_outbox_free(ob);

	limits.full = EVREC_DROP_OLDEST;
	limits.max_pending_bytes = 10 * each + 5000;
	ob = checked_outbox_limited(&limits);
	for (unsigned i = 1; i <= 10; i++) {
		assert_true(normal(ob, i));
	}
	/* A write larger than the outbox evicts nothing. */
	assert_false(outbox_submit(ob, &big, &cause));
	assert_int_equal(cause, EVREC_CAUSE_QUEUE_FULL);
	assert_null(outbox_collect(ob, 1));
	/* A write as large as three evicts three. */
	draft.size = (unsigned)(2 * each + 5000);
	assert_true(outbox_submit(ob, &big, &cause));
	for (unsigned i = 1; i <= 3; i++) {
		collect_dropped(ob, i, EVREC_CAUSE_QUEUE_FULL, 1);
	}
	assert_null(outbox_collect(ob, 1));
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.bytes, limits.max_pending_bytes);
	checked_outbox_free(ob);
}

static void test_waiting_writes_expire(void **state)
{
	evrec_limits limits = limits_without_age(10);
	struct outbox *ob;
	struct entry *in_flight;

	(void)state;
	limits.max_age = 60 * S;
	ob = checked_outbox_limited(&limits);
	put(ob, 1, 1, false, 0, NULL);
	put(ob, 2, 1, true, 10 * S, NULL);
	in_flight = take_expected(ob, 10 * S, 1, VERB_CREATE, 1);
	put(ob, 1, 2, false, 20 * S, NULL); /* a follow-up */
	checked_answer(ob, take_expected(ob, 20 * S, 2, VERB_CREATE, 1),
	               (evrec_answer){ .status = 500, .retry_after = 300 * S }, 20 * S);
	/* A write that backs off expires, and so does a follow-up, but no write in flight. */
	assert_int_equal(outbox_expire(ob, 70 * S), 70 * S + 1);
	assert_null(outbox_collect(ob, 1));
	assert_int_equal(outbox_expire(ob, 70 * S + 1), 80 * S + 1);
	collect_dropped(ob, 2, EVREC_CAUSE_EXPIRED, 1);
	assert_int_equal(outbox_expire(ob, 90 * S), INT64_MAX);
	collect_dropped(ob, 1, EVREC_CAUSE_EXPIRED, 2);
	checked_answer(ob, in_flight, ANSWER_CREATED, 90 * S);
	collect_written(ob, 1, "");
	/* Every occurrence renews the age; outbox_take drops expired writes too. */
	put(ob, 3, 1, false, 100 * S, NULL);
	put(ob, 3, 2, false, 150 * S, NULL);
	assert_int_equal(outbox_expire(ob, 161 * S), 210 * S + 1);
	assert_null(checked_take(ob, 210 * S + 1));
	collect_dropped(ob, 3, EVREC_CAUSE_EXPIRED, 2);
	assert_true(outbox_empty(ob));
	checked_outbox_free(ob);
}

static void test_max_tries_drops_after_the_last(void **state)
{
	evrec_limits limits = limits_without_age(10);
	struct outbox *ob;
	int64_t now = 0;

	(void)state;
	limits.max_tries = 12;
	ob = checked_outbox_limited(&limits);
	put(ob, 1, 5, false, 0, NULL);
	for (unsigned i = 1; i <= 12; i++) {
		struct entry *entry = checked_take(ob, now);

		assert_non_null(entry);
		/* A write keeps its number of tries when its verb changes. */
		if (i == 6) {
			checked_answer(ob, entry, answer_with(404), now);
			entry = take_expected(ob, now, 1, VERB_CREATE, 5);
		}
		checked_answer(ob, entry, i % 2 == 0 ? answer_with(500) : ANSWER_LOST, now);
		now += 31 * S;
	}
	assert_null(checked_take(ob, now));
	collect_dropped(ob, 1, EVREC_CAUSE_MAX_TRIES, 5);
	checked_outbox_free(ob);
}

static const evrec_answer FORBIDDEN = { .status = 403, .message = "events is forbidden: User \"u\" cannot create" };
static const evrec_answer TERMINATING = { .status = 403, .terminating = true, .message = "being terminated" };

static void test_refusing_namespace_is_probed_every_30_s(void **state)
{
	struct outbox *ob = checked_outbox(20);
	struct entry *probe;
	struct outbox_message message;

	(void)state;
	put(ob, 1, 1, false, 0, "a");
	put(ob, 2, 1, false, 0, "a");
	put(ob, 3, 1, false, 0, "b");
	put(ob, 4, 9, false, 0, "a"); /* a PATCH, for which the user needs another right */
	checked_answer(ob, take_expected(ob, 0, 1, VERB_CREATE, 1), FORBIDDEN, 0);
	/* The second write is dropped without a request; other namespaces and verbs are not affected. */
	checked_answer(ob, take_expected(ob, S, 3, VERB_CREATE, 1), ANSWER_CREATED, S);
	checked_answer(ob, take_expected(ob, S, 4, VERB_PATCH, 9), answer_with(200), S);
	collect_dropped(ob, 1, EVREC_CAUSE_FORBIDDEN, 1);
	collect_dropped(ob, 2, EVREC_CAUSE_FORBIDDEN, 1);
	collect_written(ob, 3, "");
	collect_written(ob, 4, "");
	assert_true(outbox_next_message(ob, &message));
	assert_no_message(ob);
	/* After 30 s one write is sent as a probe; the others wait for its answer. */
	put(ob, 5, 1, false, 30 * S, "a");
	put(ob, 6, 1, false, 30 * S, "a");
	put(ob, 7, 1, false, 30 * S, "b");
	probe = take_expected(ob, 30 * S, 5, VERB_CREATE, 1);
	checked_answer(ob, take_expected(ob, 30 * S, 7, VERB_CREATE, 1), ANSWER_CREATED, 30 * S);
	assert_null(checked_take(ob, 30 * S));
	checked_answer(ob, probe, FORBIDDEN, 30 * S);
	assert_null(checked_take(ob, 30 * S));
	collect_written(ob, 7, "");
	collect_dropped(ob, 5, EVREC_CAUSE_FORBIDDEN, 1);
	collect_dropped(ob, 6, EVREC_CAUSE_FORBIDDEN, 1);
	/* The right was granted meanwhile. */
	put(ob, 8, 1, false, 60 * S, "a");
	put(ob, 9, 1, false, 60 * S, "a");
	probe = take_expected(ob, 60 * S, 8, VERB_CREATE, 1);
	assert_null(checked_take(ob, 60 * S));
	checked_answer(ob, probe, ANSWER_CREATED, 60 * S);
	checked_answer(ob, take_expected(ob, 60 * S, 9, VERB_CREATE, 1), ANSWER_CREATED, 60 * S);
	assert_counts(ob, 4, 1, 0, 0);
	checked_outbox_free(ob);
}

static void test_next_write_probes_after_an_inconclusive_probe(void **state)
{
	struct outbox *ob = checked_outbox(20);
	struct outbox_stats stats;
	struct entry *probe;

	(void)state;
	put(ob, 1, 1, false, 0, "a");
	checked_answer(ob, checked_take(ob, 0), TERMINATING, 0);
	collect_dropped(ob, 1, EVREC_CAUSE_TERMINATING, 1);
	assert_no_message(ob);
	put(ob, 2, 1, false, 30 * S, "a");
	put(ob, 3, 1, false, 30 * S, "a");
	probe = take_expected(ob, 30 * S, 2, VERB_CREATE, 1);
	assert_null(checked_take(ob, 30 * S));
	checked_answer(ob, probe, answer_with(500), 30 * S);
	take_expected(ob, 30 * S, 3, VERB_CREATE, 1);
	/* A write that waits for a probe counts no retry. */
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.retries, 0);
	/* A closed outbox does not wait for a probe. */
	checked_answer(ob, take_expected(ob, 31 * S, 2, VERB_CREATE, 1), TERMINATING, 31 * S);
	put(ob, 4, 1, false, 70 * S, "a");
	put(ob, 5, 1, false, 70 * S, "a");
	take_expected(ob, 70 * S, 4, VERB_CREATE, 1);
	outbox_close(ob);
	take_expected(ob, 70 * S, 5, VERB_CREATE, 1);
	checked_outbox_free(ob);
}

static void test_64_refusing_namespaces_are_remembered(void **state)
{
	struct outbox *ob = checked_outbox(1000);
	char ns[16];

	(void)state;
	for (unsigned i = 0; i < 65; i++) {
		snprintf(ns, sizeof(ns), "ns-%u", i);
		put(ob, 1 + i, 1, false, 0, ns);
		checked_answer(ob, checked_take(ob, i), FORBIDDEN, i);
	}
	put(ob, 100, 1, false, 0, "ns-1");
	put(ob, 101, 1, false, 0, "ns-64");
	put(ob, 102, 1, false, 0, "ns-0"); /* refused longest ago */
	take_expected(ob, S, 102, VERB_CREATE, 1);
	checked_outbox_free(ob);
}

static void test_next_probe_saturates_at_the_end_of_time(void **state)
{
	const int64_t end = INT64_MAX - EVREC_SECOND / 2;
	const evrec_answer refused = { .status = 403, .terminating = true };
	struct outbox *ob = checked_outbox(10);

	(void)state;
	assert_true(put(ob, 1, 1, false, 0, NULL));
	answer_entry_as_kubernetes(ob, outbox_take(ob, 0), &refused, end - 31 * EVREC_SECOND);
	outbox_recycle(ob, outbox_collect(ob, 1));
	assert_true(put(ob, 2, 1, false, end, NULL) && put(ob, 3, 1, false, end, NULL));
	assert_non_null(outbox_take(ob, end)); /* the probe */
	assert_null(outbox_take(ob, end));
	assert_true(outbox_next_due(ob, end) == INT64_MAX);
	checked_outbox_free(ob);
}

static void test_invalid_limits_are_refused(void **state)
{
	evrec_limits limits = limits_without_age(1);
	evrec_error err;

	(void)state;
	assert_int_equal(outbox_check_limits(&limits, &err), 0);
	limits.max_age = -1;
	assert_int_equal(outbox_check_limits(&limits, &err), EVREC_EINVALID);
	assert_memory_equal(err.message, "max_age: ", 9);
	limits.max_age = 0;
	limits.full = (enum evrec_overflow)7;
	assert_int_equal(outbox_check_limits(&limits, &err), EVREC_EINVALID);
	assert_memory_equal(err.message, "full: ", 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_newest_refuses_unless_a_warning_evicts),
		cmocka_unit_test(test_drop_oldest_evicts_by_last_occurrence),
		cmocka_unit_test(test_writes_in_flight_are_not_evicted),
		cmocka_unit_test(test_row_has_no_evicted_occurrence),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_waiting_writes_expire),
		cmocka_unit_test(test_max_tries_drops_after_the_last),
		cmocka_unit_test(test_refusing_namespace_is_probed_every_30_s),
		cmocka_unit_test(test_next_write_probes_after_an_inconclusive_probe),
		cmocka_unit_test(test_64_refusing_namespaces_are_remembered),
		cmocka_unit_test(test_next_probe_saturates_at_the_end_of_time),
		cmocka_unit_test(test_invalid_limits_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Entries of a process that wait until the rows of earlier ones are answered: when that ends, and random histories of it. */
#include "checked_outbox.h"

#define SEEDS 4000
#define STEPS 300
#define FLYING_MAX 64

static struct outbox *outbox_that_waits(size_t max_pending)
{
	struct outbox *ob = checked_outbox(max_pending);

	outbox_expect(ob, true);
	outbox_send_rows_first(ob);
	return ob;
}

static bool restore_row(struct outbox *ob, int64_t row, enum verb verb, uint64_t event)
{
	struct fake_write draft = { .name = "n", .count = 1 };
	const struct outbox_saved saved = {
		.row = row, .verb = verb, .count = 1, .event = event, .item = fake_write_make(&draft)
	};

	return outbox_restore(ob, &saved);
}

/* Whoever waits for the outbox with a fake clock learns that there is something to do, though the row backs off. */
static void test_time_that_is_up_is_no_stall(void **state)
{
	const evrec_answer busy = { .status = 500, .retry_after = 60 * S };
	struct outbox *ob = outbox_that_waits(100);

	(void)state;
	checked_submit(ob, 1, 1);
	assert_true(restore_row(ob, 1, VERB_PATCH, 0));
	outbox_expect(ob, false);
	checked_answer(ob, checked_take(ob, 0), busy, 0);
	assert_null(checked_take(ob, 0));
	assert_true(outbox_stalled(ob, 30 * S - 1));
	assert_false(outbox_stalled(ob, 30 * S));
	checked_answer(ob, take_expected(ob, 30 * S, 1, VERB_CREATE, 1), ANSWER_CREATED, 30 * S);
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

/* New entries have taken half of the room, before a row was read, which they wait for. */
static void test_what_waits_leaves_room_for_rows(void **state)
{
	struct outbox *ob = outbox_that_waits(10);
	struct outbox_rows rows;

	(void)state;
	for (unsigned id = 1; id <= 6; id++) {
		checked_submit(ob, id, 1);
	}
	assert_null(checked_take(ob, 0));
	outbox_get_rows(ob, &rows);
	assert_int_equal(rows.room, 4);
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

/* A row that is read after the answer to the row before it goes to the name that this answer gave to their event. */
static void test_row_that_is_read_later_goes_to_the_second_name(void **state)
{
	struct outbox *ob = checked_outbox(100);
	const struct entry *entry;

	(void)state;
	assert_true(restore_row(ob, 1, VERB_CREATE, 7));
	checked_answer(ob, checked_take(ob, 0), answer_with(409), 0);
	checked_answer(ob, checked_take(ob, 0), ANSWER_CREATED, 0);
	assert_true(restore_row(ob, 2, VERB_PATCH, 7));
	entry = checked_take(ob, 0);
	assert_int_equal(entry->row, 2);
	assert_string_equal(((const struct fake_write *)entry->item)->name, "renamed-1");
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

/* A new entry of the same event did not wait any longer, and created it with a count that includes the row's. */
static void test_name_that_a_new_entry_took_is_the_event(void **state)
{
	struct outbox *ob = outbox_that_waits(100);

	(void)state;
	assert_true(restore_row(ob, 1, VERB_CREATE, 7));
	checked_answer(ob, checked_take(ob, 0), answer_with(409), 0);
	assert_null(checked_take(ob, 0));
	assert_counts(ob, 1, 0, 0, 0);
	assert_true(restore_row(ob, 2, VERB_PATCH, 8));
	checked_answer(ob, checked_take(ob, 0), answer_with(404), 0);
	checked_answer(ob, take_expected(ob, 0, ENTRY_RESTORED | 8, VERB_CREATE, 1), answer_with(409), 0);
	checked_answer(ob, take_expected(ob, 0, ENTRY_RESTORED | 8, VERB_PATCH, 1), answer_with(200), 0);
	assert_null(checked_take(ob, 0));
	assert_counts(ob, 1, 1, 0, 0);
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

/* The time in which rows go first is over. */
static void test_row_that_is_read_too_late_may_have_been_overtaken(void **state)
{
	struct outbox *ob = outbox_that_waits(100);

	(void)state;
	checked_submit(ob, 1, 1);
	assert_null(checked_take(ob, 0));
	checked_answer(ob, take_expected(ob, 30 * S, 1, VERB_CREATE, 1), ANSWER_CREATED, 30 * S);
	assert_true(restore_row(ob, 1, VERB_CREATE, 7));
	checked_answer(ob, checked_take(ob, 30 * S), answer_with(409), 30 * S);
	assert_null(checked_take(ob, 30 * S));
	assert_counts(ob, 2, 0, 0, 0);
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

/* Nobody has polled since the row was to be tried again. Sent last, it would set the event's count back. */
static void test_row_that_is_due_when_the_time_is_up_goes_first(void **state)
{
	struct outbox *ob = outbox_that_waits(100);

	(void)state;
	checked_submit(ob, 1, 1);
	assert_true(restore_row(ob, 1, VERB_PATCH, 7));
	outbox_expect(ob, false);
	checked_answer(ob, checked_take(ob, 0), answer_with(500), 0);
	assert_null(checked_take(ob, 0));
	checked_answer(ob, take_expected(ob, 60 * S, ENTRY_RESTORED | 7, VERB_PATCH, 1), answer_with(200), 60 * S);
	checked_answer(ob, take_expected(ob, 60 * S, 1, VERB_CREATE, 1), ANSWER_CREATED, 60 * S);
	outbox_free(ob);
	assert_int_equal(fake_writes.alive, 0);
}

/* ---- random histories ---- */

struct history {
	uint64_t random;
	struct outbox *ob;
	int64_t now, row;
	struct entry *flying[FLYING_MAX];
	size_t flying_len;
	bool closed;
};

static unsigned dice(struct history *h, unsigned sides)
{
	return (unsigned)(unit_random(&h->random) % sides);
}

static void submit(struct history *h)
{
	const unsigned id = 1 + dice(h, 20);
	struct fake_write draft = { .count = 2, .size = dice(h, 300) };
	struct occurrence occurrence = {
		.id = id, .verb = VERB_CREATE, .important = dice(h, 3) == 0, .now = h->now, .draft = &draft
	};
	struct receipt_id receipt = { 0 };
	enum evrec_cause cause;
	bool deferred;

	(void)snprintf(draft.name, sizeof(draft.name), "%s/n%u", id % 2 ? "a" : "b", id);
	if (dice(h, 3) == 0) {
		occurrence.due = h->now + (1 + dice(h, 5)) * S;
		occurrence.deferred = &deferred;
	}
	if (dice(h, 4) == 0) {
		occurrence.receipt = &receipt;
	} else {
		occurrence.silent = dice(h, 6) == 0;
	}
	(void)outbox_submit(h->ob, &occurrence, &cause);
}

static void answer(struct history *h)
{
	static const int statuses[] = { 200, 201, 403, 404, 409, 429, 500, 503 };
	evrec_answer a = { .unsent = true };
	size_t i;

	if (h->flying_len != 0) {
		i = dice(h, (unsigned)h->flying_len);
		if (dice(h, 4) != 0) {
			a = answer_with(statuses[dice(h, 8)]);
		}
		answer_entry_as_kubernetes(h->ob, h->flying[i], &a, h->now);
		h->flying[i] = h->flying[--h->flying_len];
	}
}

static void take(struct history *h)
{
	struct entry *entry = h->flying_len < FLYING_MAX ? outbox_take(h->ob, h->now) : NULL;

	if (entry != NULL) {
		assert_int_equal(entry->state, ENTRY_IN_FLIGHT);
		h->flying[h->flying_len++] = entry;
	}
}

static void write_row(struct history *h)
{
	struct outbox_row row;

	if (outbox_next_row(h->ob, h->now, ++h->row, &row) == OUTBOX_ROW) {
		assert_int_not_equal(row.count, 0);
		outbox_discard(h->ob, row.item);
		outbox_rows_written(h->ob, dice(h, 3) != 0);
	}
}

static void step(struct history *h)
{
	const unsigned what = dice(h, 32);

	if (what < 6) {
		submit(h);
	} else if (what < 8) {
		(void)(h->closed || restore_row(h->ob, ++h->row, dice(h, 2) ? VERB_PATCH : VERB_CREATE, dice(h, 5)));
	} else if (what < 15) {
		take(h);
	} else if (what < 21) {
		answer(h);
	} else if (what < 23 && h->flying_len != 0) {
		outbox_untake(h->ob, h->flying[--h->flying_len]);
	} else if (what < 25) {
		h->now += dice(h, 4) * S / 2;
	} else if (what < 26) {
		(void)outbox_expire(h->ob, h->now);
	} else if (what < 27) {
		outbox_expect(h->ob, dice(h, 4) != 0 && !h->closed);
	} else if (what < 29) {
		outbox_recycle(h->ob, outbox_collect(h->ob, 5));
	} else if (what < 31) {
		write_row(h);
	} else if (dice(h, 10) == 0) {
		h->closed = true;
		outbox_close(h->ob);
		if (dice(h, 2) == 0) {
			outbox_leave_rows(h->ob);
		}
	}
}

/* All requests succeed: nothing is left that no list has, and nothing waits for ever. */
static void drain(struct history *h)
{
	outbox_expect(h->ob, false);
	for (unsigned turn = 0; turn < 5000 && (h->flying_len != 0 || !outbox_empty(h->ob)); turn++) {
		while (h->flying_len != 0) {
			struct entry *entry = h->flying[--h->flying_len];
			const evrec_answer a = answer_with(entry->verb == VERB_CREATE ? 201 : 200);

			answer_entry_as_kubernetes(h->ob, entry, &a, h->now);
		}
		take(h);
		h->now += h->flying_len == 0 ? S / 2 : 0;
	}
	assert_true(outbox_empty(h->ob));
}

static void run(uint64_t seed)
{
	struct history h = { .random = seed, .now = 100 * S };
	evrec_limits limits = limits_without_age(6 + seed % 40);
	struct outbox_stats stats;

	limits.max_age = dice(&h, 3) == 0 ? 20 * S : 0;
	limits.max_tries = dice(&h, 3) == 0 ? 2 : 0;
	limits.full = dice(&h, 2) ? EVREC_DROP_OLDEST : EVREC_DROP_NEWEST;
	h.ob = checked_outbox_limited(&limits);
	outbox_expect(h.ob, true);
	outbox_write_rows_after(h.ob, S);
	outbox_send_rows_first(h.ob);
	for (unsigned i = 0; i < STEPS; i++) {
		step(&h);
	}
	if (dice(&h, 2)) {
		drain(&h);
	}
	outbox_keep_all_for_spool(h.ob);
	outbox_spooled(h.ob, NULL);
	outbox_get_stats(h.ob, &stats);
	assert_int_equal(stats.pending + stats.writes + stats.counted + stats.bytes, 0);
	outbox_free(h.ob);
	assert_int_equal(fake_writes.alive, 0);
}

static void test_random_histories(void **state)
{
	uint64_t seed = unit_seed();

	(void)state;
	for (unsigned i = 0; i < SEEDS; i++) {
		run(seed + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_that_is_up_is_no_stall),
		cmocka_unit_test(test_what_waits_leaves_room_for_rows),
		cmocka_unit_test(test_row_that_is_read_later_goes_to_the_second_name),
		cmocka_unit_test(test_name_that_a_new_entry_took_is_the_event),
		cmocka_unit_test(test_row_that_is_read_too_late_may_have_been_overtaken),
		cmocka_unit_test(test_row_that_is_due_when_the_time_is_up_goes_first),
		cmocka_unit_test(test_random_histories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Limits of restored events: they keep their age and importance, and take no more room than the outbox has. Senders
 * without a thread follow each other by a fake clock.
 */
#define _GNU_SOURCE

#include "spool_fixture.h"

#define S EVREC_SECOND

static void begin_life(struct sender_fixture *f, const char *path, int64_t now, const evrec_limits *limits)
{
	struct spooler *spooler = spooler_new(str_from(path), SPOOL_AT_END, &fake_write_codec);

	sender_fixture_open_limited(f, true, evrec_clock_fake(now), spooler, limits);
}

/* Ends a life with `spooled` events waiting, which become rows. */
static void end_life(struct sender_fixture *f, uint64_t spooled)
{
	evrec_clock *clock = f->clock;
	struct entry *entry;

	f->protocol->silent = true;
	(void)sender_join(f->sender, 0);
	assert_int_equal(sender_fixture_stats(f).spooled, spooled);
	assert_int_equal(sender_fixture_stats(f).dropped[EVREC_CAUSE_CLOSED], 0);
	while ((entry = outbox_collect(f->ob, 1)) != NULL) {
		outbox_recycle(f->ob, entry);
	}
	sender_release(f->sender);
	evrec_clock_release(clock);
	assert_int_equal(fake_writes.alive, 0);
}

/* Submits an event named "n<id>" at the time of the clock. */
static bool submit(struct sender_fixture *f, unsigned id, bool important, unsigned size)
{
	const int64_t now = evrec_clock_now(f->clock);
	struct fake_write draft = { .count = 1, .size = size, .important = important };
	const struct occurrence occurrence = {
		.id = id, .verb = VERB_CREATE, .important = important, .now = now, .draft = &draft
	};
	enum evrec_cause cause;
	bool taken;

	(void)snprintf(draft.name, sizeof(draft.name), "n%u", id);
	taken = outbox_submit(f->ob, &occurrence, &cause);
	(void)sender_fixture_stats(f);
	return taken;
}

static struct outbox_stats step_at(struct sender_fixture *f, int64_t now)
{
	evrec_clock_set(f->clock, now);
	sender_step(f->sender);
	return sender_fixture_stats(f);
}

/* The next entry to collect is "n<id>", dropped for `cause`. */
static void check_lost(struct sender_fixture *f, unsigned id, enum evrec_cause cause)
{
	struct entry *entry = outbox_collect(f->ob, 1);
	char name[16];

	(void)snprintf(name, sizeof(name), "n%u", id);
	assert_non_null(entry);
	assert_true(entry->dropped && entry->item != NULL);
	assert_int_equal(entry->cause, cause);
	assert_string_equal(((struct fake_write *)entry->item)->name, name);
	outbox_recycle(f->ob, entry);
}

/* From now on the server answers 503 with a Retry-After of an hour. */
static void refuse_all(struct sender_fixture *f)
{
	f->protocol->status = 503;
	f->protocol->retry_after = 3600 * S;
}

static evrec_limits limits_with_age(int64_t max_age)
{
	evrec_limits limits = limits_without_age(1000);

	limits.max_age = max_age;
	return limits;
}

/* ---- age ---- */

static void test_old_rows_expire(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	const evrec_limits limits = limits_with_age(100 * S);
	struct outbox_stats stats;
	struct sender_fixture f;

	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, false, 0));
	evrec_clock_set(f.clock, T0 + 50 * S);
	assert_true(submit(&f, 2, false, 0));
	end_life(&f, 2);
	begin_life(&f, path, T0 + 120 * S, &limits);
	stats = step_at(&f, T0 + 120 * S);
	assert_int_equal(stats.restored, 2);
	assert_int_equal(stats.dropped[EVREC_CAUSE_EXPIRED], 1);
	assert_int_equal(stats.created, 1);
	assert_int_equal(f.protocol->sent_by_id[2], 1);
	check_lost(&f, 1, EVREC_CAUSE_EXPIRED);
	end_life(&f, 0);
	/* The file has neither row. */
	begin_life(&f, path, T0 + 120 * S, &limits);
	assert_int_equal(step_at(&f, T0 + 120 * S).restored, 0);
	assert_true(outbox_empty(f.ob));
	end_life(&f, 0);
}

static void test_age_continues_in_the_next_process(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	const evrec_limits limits = limits_with_age(100 * S);
	struct sender_fixture f;

	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, false, 0));
	end_life(&f, 1);
	begin_life(&f, path, T0 + 30 * S, &limits);
	refuse_all(&f);
	assert_int_equal(step_at(&f, T0 + 30 * S).restored, 1);
	end_life(&f, 1);
	begin_life(&f, path, T0 + 50 * S, &limits);
	refuse_all(&f);
	assert_int_equal(step_at(&f, T0 + 50 * S).restored, 1);
	assert_true(fake_write_submit(f.ob, 2, 1)); /* of time 0: expires at once */
	assert_int_equal(step_at(&f, T0 + 99 * S).pending, 1);
	check_lost(&f, 2, EVREC_CAUSE_EXPIRED);
	assert_int_equal(step_at(&f, T0 + 100 * S).pending, 1);
	assert_int_equal(step_at(&f, T0 + 101 * S).pending, 0);
	check_lost(&f, 1, EVREC_CAUSE_EXPIRED);
	end_life(&f, 0);
}

static void test_rows_without_max_age_are_written(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	const evrec_limits limits = limits_with_age(0);
	struct sender_fixture f;

	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, false, 0));
	end_life(&f, 1);
	begin_life(&f, path, T0 * 5, &limits);
	assert_int_equal(step_at(&f, T0 * 5).created, 1);
	end_life(&f, 0);
}

static void test_age_restarts_if_the_clock_was_set_back(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	const evrec_limits limits = limits_with_age(100 * S);
	const int64_t before = T0 - 7200 * S;
	struct sender_fixture f;

	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, false, 0));
	end_life(&f, 1);
	begin_life(&f, path, before, &limits);
	refuse_all(&f);
	assert_int_equal(step_at(&f, before).restored, 1);
	assert_int_equal(step_at(&f, before + 100 * S).pending, 1);
	assert_int_equal(step_at(&f, before + 101 * S).pending, 0);
	check_lost(&f, 1, EVREC_CAUSE_EXPIRED);
	end_life(&f, 0);
}

/* ---- eviction ---- */

/* The age decides, whether an event was restored or submitted. */
static void test_oldest_events_are_evicted_first(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	evrec_limits limits = limits_without_age(4);
	struct sender_fixture f;

	limits.full = EVREC_DROP_OLDEST;
	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, false, 0));
	evrec_clock_set(f.clock, T0 + 10 * S);
	assert_true(submit(&f, 2, false, 0));
	end_life(&f, 2);
	begin_life(&f, path, T0 + 20 * S, &limits);
	refuse_all(&f);
	assert_true(submit(&f, 3, false, 0));
	assert_int_equal(step_at(&f, T0 + 21 * S).restored, 1); /* half of the room is for new events */
	assert_true(submit(&f, 4, false, 0));
	assert_true(submit(&f, 5, false, 0));
	assert_true(submit(&f, 6, false, 0));
	check_lost(&f, 1, EVREC_CAUSE_QUEUE_FULL);
	assert_true(submit(&f, 7, false, 0));
	check_lost(&f, 3, EVREC_CAUSE_QUEUE_FULL);
	/* The evicted event has left the file; the one without room is still there. */
	end_life(&f, 4);
	limits = limits_without_age(1000);
	begin_life(&f, path, T0 + 30 * S, &limits);
	assert_int_equal(step_at(&f, T0 + 30 * S).restored, 5);
	assert_int_equal(step_at(&f, T0 + 30 * S).created, 5);
	assert_int_equal(f.protocol->sent_by_id[1] + f.protocol->sent_by_id[3], 0);
	end_life(&f, 0);
}

/* The second row is the older event. */
static void test_oldest_restored_event_is_evicted_first(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	evrec_limits limits = limits_without_age(4);
	struct sender_fixture f;

	limits.full = EVREC_DROP_OLDEST;
	begin_life(&f, path, T0 + 10 * S, &limits);
	assert_true(submit(&f, 1, false, 0));
	evrec_clock_set(f.clock, T0);
	assert_true(submit(&f, 2, false, 0));
	end_life(&f, 2);
	begin_life(&f, path, T0 + 20 * S, &limits);
	refuse_all(&f);
	assert_int_equal(step_at(&f, T0 + 20 * S).restored, 2);
	for (unsigned id = 3; id <= 6; id++) {
		assert_true(submit(&f, id, false, 0));
	}
	check_lost(&f, 2, EVREC_CAUSE_QUEUE_FULL);
	check_lost(&f, 1, EVREC_CAUSE_QUEUE_FULL);
	end_life(&f, 4);
}

static void test_restored_warnings_outlast_normal_events(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	evrec_limits limits = limits_without_age(2);
	struct sender_fixture f;

	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, true, 0));
	end_life(&f, 1);
	limits.full = EVREC_DROP_OLDEST;
	begin_life(&f, path, T0 + S, &limits);
	refuse_all(&f);
	assert_int_equal(step_at(&f, T0 + S).restored, 1);
	assert_true(submit(&f, 2, false, 0));
	assert_true(submit(&f, 3, false, 0));
	check_lost(&f, 2, EVREC_CAUSE_QUEUE_FULL);
	assert_true(submit(&f, 4, true, 0));
	check_lost(&f, 3, EVREC_CAUSE_QUEUE_FULL);
	assert_false(submit(&f, 5, false, 0));
	end_life(&f, 2);
	/* The same with EVREC_DROP_NEWEST. */
	limits.full = EVREC_DROP_NEWEST;
	begin_life(&f, path, T0 + 2 * S, &limits);
	refuse_all(&f);
	assert_int_equal(step_at(&f, T0 + 2 * S).restored, 1);
	assert_true(submit(&f, 6, false, 0));
	assert_true(submit(&f, 7, true, 0));
	check_lost(&f, 6, EVREC_CAUSE_QUEUE_FULL);
	assert_false(submit(&f, 8, true, 0));
	end_life(&f, 2);
}

/* ---- room ---- */

/* Rows are restored as the outbox gets room, each once, within the limits. */
static void check_restored_in_turns(const char *path, const evrec_limits *limits, bool newer_events)
{
	const evrec_limits wide = limits_without_age(1000);
	const size_t bytes = limits->max_pending_bytes == 0 ? SIZE_MAX : limits->max_pending_bytes;
	unsigned accepted = 0, rounds = 0;
	struct outbox_stats stats;
	struct entry *entry;
	struct sender_fixture f;

	begin_life(&f, path, T0, &wide);
	for (unsigned id = 1; id <= 100; id++) {
		assert_true(submit(&f, id, id % 2 == 0, id * 3));
	}
	end_life(&f, 100);
	begin_life(&f, path, T0, limits);
	do {
		assert_true(++rounds < 1000);
		f.protocol->silent = rounds % 4 == 0;
		f.protocol->answers_a_step = 1 + rounds % 3;
		if (newer_events && rounds < 100) {
			accepted += submit(&f, 100 + rounds, false, 10);
		}
		stats = step_at(&f, T0 + rounds * S);
		assert_true(stats.writes <= limits->max_pending);
		assert_true(stats.bytes <= bytes);
		while ((entry = outbox_collect(f.ob, 1)) != NULL) {
			assert_false(entry->dropped);
			outbox_recycle(f.ob, entry);
		}
	} while (!outbox_empty(f.ob) || (newer_events && rounds < 100));
	assert_true(rounds > 20);
	assert_int_equal(stats.restored, 100);
	assert_int_equal(stats.created, 100 + accepted);
	for (unsigned id = 1; id <= 100; id++) {
		assert_int_equal(f.protocol->sent_by_id[id], 1);
	}
	end_life(&f, 0);
	begin_life(&f, path, T0, limits);
	assert_int_equal(step_at(&f, T0).restored, 0);
	assert_true(outbox_empty(f.ob));
	end_life(&f, 0);
}

static void test_restoring_keeps_within_max_pending(void **state)
{
	const evrec_limits limits = limits_without_age(7);

	check_restored_in_turns(tmpdir_path(*state, "spool"), &limits, false);
	check_restored_in_turns(tmpdir_path(*state, "spool"), &limits, true);
}

static void test_restoring_keeps_within_max_pending_bytes(void **state)
{
	evrec_limits limits = limits_without_age(1000);

	limits.max_pending_bytes = 4 * (outbox_entry_bytes() + 100);
	check_restored_in_turns(tmpdir_path(*state, "spool"), &limits, false);
	check_restored_in_turns(tmpdir_path(*state, "spool"), &limits, true);
}

/* One message; the rows stay for a process with more room. */
static void test_row_larger_than_the_outbox_stays(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	const evrec_limits wide = limits_without_age(1000);
	evrec_limits limits = limits_without_age(1000);
	struct outbox_message message;
	struct sender_fixture f;

	begin_life(&f, path, T0, &wide);
	for (unsigned id = 1; id <= 9; id++) {
		assert_true(submit(&f, id, false, id % 4 == 0 ? 60000 : 10));
	}
	end_life(&f, 9);
	limits.max_pending_bytes = 50000;
	begin_life(&f, path, T0, &limits);
	assert_int_equal(step_at(&f, T0).restored, 7);
	assert_true(outbox_next_message(f.ob, &message));
	assert_string_equal(message.name, "spool");
	assert_string_equal(message.message, "an event in the spool is larger than max_pending_bytes, and stays there");
	assert_false(outbox_next_message(f.ob, &message));
	assert_int_equal(step_at(&f, T0).created, 7);
	(void)step_at(&f, T0); /* there is no other file */
	assert_true(outbox_empty(f.ob));
	end_life(&f, 0);
	begin_life(&f, path, T0, &wide);
	assert_int_equal(step_at(&f, T0).created, 2);
	assert_int_equal(f.protocol->sent_by_id[4] + f.protocol->sent_by_id[8], 2);
	end_life(&f, 0);
}

/* The next row waits until the outbox has room for it. Meanwhile whoever drives the sender has nothing to do. */
static void test_row_larger_than_the_present_room_waits(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	const evrec_limits wide = limits_without_age(1000);
	evrec_limits limits = limits_without_age(1000);
	struct sender_fixture f;

	begin_life(&f, path, T0, &wide);
	assert_true(submit(&f, 1, false, 40000));
	end_life(&f, 1);
	limits.max_pending_bytes = 50000;
	begin_life(&f, path, T0, &limits);
	f.protocol->status = 500;
	assert_true(submit(&f, 2, false, 15000));
	assert_int_equal(step_at(&f, T0).restored, 0);
	/* The least delay is one hundredth of a second. */
	assert_true(sender_step_delay(f.sender, S) > S / 100);
	f.protocol->status = 201;
	/* An answer makes room: nobody waits for the next look, which is 3 s after the first one. */
	for (int i = 1; i <= 5; i++) {
		(void)step_at(&f, T0 + i * S / 2);
	}
	assert_int_equal(sender_fixture_stats(&f).created, 2);
	end_life(&f, 0);
}

/* With a kept state: a new event is kept at the end if not all rows were read, which the next process sends before it. */
static void test_new_event_stays_behind_unread_rows(void **state)
{
	const char *path = tmpdir_path(*state, "spool");
	const evrec_limits wide = limits_without_age(1000), narrow = limits_without_age(4);
	struct sender_fixture f;

	begin_life(&f, path, T0, &wide);
	for (unsigned id = 1; id <= 9; id++) {
		assert_true(submit(&f, id, false, 10));
	}
	end_life(&f, 9);
	begin_life(&f, path, T0, &narrow);
	outbox_send_rows_first(f.ob);
	f.protocol->silent = true;
	assert_true(submit(&f, 20, false, 10));
	assert_int_equal(step_at(&f, T0).restored, 3);
	sender_end(f.sender);
	f.protocol->silent = false;
	for (int i = 0; i < 3; i++) {
		(void)step_at(&f, T0);
	}
	assert_int_equal(sender_fixture_stats(&f).created, 3);
	assert_true(outbox_empty(f.ob));
	end_life(&f, 1);
	begin_life(&f, path, T0, &wide);
	for (int i = 0; i < 3; i++) {
		(void)step_at(&f, T0);
	}
	assert_int_equal(sender_fixture_stats(&f).created, 7);
	end_life(&f, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(test_old_rows_expire),
		SPOOL_TEST(test_age_continues_in_the_next_process),
		SPOOL_TEST(test_rows_without_max_age_are_written),
		SPOOL_TEST(test_age_restarts_if_the_clock_was_set_back),
		SPOOL_TEST(test_oldest_events_are_evicted_first),
		SPOOL_TEST(test_oldest_restored_event_is_evicted_first),
		SPOOL_TEST(test_restored_warnings_outlast_normal_events),
		SPOOL_TEST(test_restoring_keeps_within_max_pending),
		SPOOL_TEST(test_restoring_keeps_within_max_pending_bytes),
		SPOOL_TEST(test_row_larger_than_the_outbox_stays),
		SPOOL_TEST(test_row_larger_than_the_present_room_waits),
		SPOOL_TEST(test_new_event_stays_behind_unread_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

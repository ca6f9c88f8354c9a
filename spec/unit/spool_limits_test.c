/*
 * What comes out of a spool has the age that it has, its importance, and no more room than there is: a sender without a
 * thread, whose server is as the script says, and lives that follow each other by a fake clock.
 */
#define _GNU_SOURCE

#include "folder.h"
#include "script.h"

#define S EVREC_SECOND

static void begin_life(struct fixture *f, const char *path, int64_t now, const evrec_limits *limits)
{
	struct spooler *spooler = spooler_new(str_from(path), &item_codec);

	open_limited(f, true, evrec_clock_fake(now), spooler, limits);
}

/* What waits goes into the spool. */
static void end_life(struct fixture *f, uint64_t spooled)
{
	evrec_clock *clock = f->clock;
	struct entry *entry;

	f->script->silent = true;
	(void)sender_join(f->sender, 0);
	assert_int_equal(stats_of(f).spooled, spooled);
	assert_int_equal(stats_of(f).dropped[EVREC_CAUSE_CLOSED], 0);
	while ((entry = outbox_collect(f->ob)) != NULL) {
		outbox_recycle(f->ob, entry);
	}
	sender_release(f->sender);
	evrec_clock_release(clock);
	assert_int_equal(items_alive, 0);
}

/* "n<id>", happening now. */
static bool submit(struct fixture *f, unsigned id, bool important, unsigned size)
{
	const int64_t now = evrec_clock_now(f->clock);
	struct item draft = { .count = 1, .size = size, .important = important };
	const struct occurrence occurrence = { id, VERB_CREATE, important, now, &draft };
	enum evrec_cause cause;
	bool taken;

	(void)snprintf(draft.name, sizeof(draft.name), "n%u", id);
	taken = outbox_submit(f->ob, &occurrence, &cause);
	(void)stats_of(f);
	return taken;
}

static struct outbox_stats step_at(struct fixture *f, int64_t now)
{
	evrec_clock_set(f->clock, now);
	sender_step(f->sender);
	return stats_of(f);
}

/* The next to be collected was dropped: "n<id>". */
static void lost(struct fixture *f, unsigned id, enum evrec_cause cause)
{
	struct entry *entry = outbox_collect(f->ob);
	char name[16];

	(void)snprintf(name, sizeof(name), "n%u", id);
	assert_non_null(entry);
	assert_true(entry->dropped && entry->item != NULL);
	assert_int_equal(entry->cause, cause);
	assert_string_equal(((struct item *)entry->item)->name, name);
	outbox_recycle(f->ob, entry);
}

/* Every answer from now on: try again in an hour. */
static void turn_away(struct fixture *f)
{
	f->script->status = 503;
	f->script->retry_after = 3600 * S;
}

static evrec_limits aged(int64_t max_age)
{
	evrec_limits limits = limits_of(1000);

	limits.max_age = max_age;
	return limits;
}

/* ---- age ---- */

static void test_too_old_by_now(void **state)
{
	const char *path = in_folder(*state, "spool");
	const evrec_limits limits = aged(100 * S);
	struct outbox_stats stats;
	struct fixture f;

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
	assert_int_equal(f.script->seen[2], 1);
	lost(&f, 1, EVREC_CAUSE_EXPIRED);
	end_life(&f, 0);
	/* The file has forgotten both. */
	begin_life(&f, path, T0 + 120 * S, &limits);
	assert_int_equal(step_at(&f, T0 + 120 * S).restored, 0);
	assert_true(outbox_empty(f.ob));
	end_life(&f, 0);
}

/* From one life to the next its age goes on. */
static void test_the_rest_of_its_age(void **state)
{
	const char *path = in_folder(*state, "spool");
	const evrec_limits limits = aged(100 * S);
	struct fixture f;

	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, false, 0));
	end_life(&f, 1);
	begin_life(&f, path, T0 + 30 * S, &limits);
	turn_away(&f);
	assert_int_equal(step_at(&f, T0 + 30 * S).restored, 1);
	end_life(&f, 1);
	begin_life(&f, path, T0 + 50 * S, &limits);
	turn_away(&f);
	assert_int_equal(step_at(&f, T0 + 50 * S).restored, 1);
	assert_true(item_submit(f.ob, 2, 1)); /* of time 0: gone */
	assert_int_equal(step_at(&f, T0 + 99 * S).pending, 1);
	lost(&f, 2, EVREC_CAUSE_EXPIRED);
	assert_int_equal(step_at(&f, T0 + 100 * S).pending, 1);
	assert_int_equal(step_at(&f, T0 + 101 * S).pending, 0);
	lost(&f, 1, EVREC_CAUSE_EXPIRED);
	end_life(&f, 0);
}

/* As long as it takes. */
static void test_no_max_age(void **state)
{
	const char *path = in_folder(*state, "spool");
	const evrec_limits limits = aged(0);
	struct fixture f;

	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, false, 0));
	end_life(&f, 1);
	begin_life(&f, path, T0 * 5, &limits);
	assert_int_equal(step_at(&f, T0 * 5).created, 1);
	end_life(&f, 0);
}

static void test_the_clock_was_set_back(void **state)
{
	const char *path = in_folder(*state, "spool");
	const evrec_limits limits = aged(100 * S);
	const int64_t before = T0 - 7200 * S;
	struct fixture f;

	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, false, 0));
	end_life(&f, 1);
	begin_life(&f, path, before, &limits);
	turn_away(&f);
	assert_int_equal(step_at(&f, before).restored, 1);
	assert_int_equal(step_at(&f, before + 100 * S).pending, 1);
	assert_int_equal(step_at(&f, before + 101 * S).pending, 0);
	lost(&f, 1, EVREC_CAUSE_EXPIRED);
	end_life(&f, 0);
}

/* ---- who goes ---- */

/* By age, whichever of them was here first. */
static void test_the_oldest_go(void **state)
{
	const char *path = in_folder(*state, "spool");
	evrec_limits limits = limits_of(4);
	struct fixture f;

	limits.full = EVREC_DROP_OLDEST;
	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, false, 0));
	evrec_clock_set(f.clock, T0 + 10 * S);
	assert_true(submit(&f, 2, false, 0));
	end_life(&f, 2);
	begin_life(&f, path, T0 + 20 * S, &limits);
	turn_away(&f);
	assert_true(submit(&f, 3, false, 0));
	assert_int_equal(step_at(&f, T0 + 21 * S).restored, 1); /* half of the room is for others */
	assert_true(submit(&f, 4, false, 0));
	assert_true(submit(&f, 5, false, 0));
	assert_true(submit(&f, 6, false, 0));
	lost(&f, 1, EVREC_CAUSE_QUEUE_FULL);
	assert_true(submit(&f, 7, false, 0));
	lost(&f, 3, EVREC_CAUSE_QUEUE_FULL);
	/* The one that was dropped is gone from the file; the one that found no room is not. */
	end_life(&f, 4);
	limits = limits_of(1000);
	begin_life(&f, path, T0 + 30 * S, &limits);
	assert_int_equal(step_at(&f, T0 + 30 * S).restored, 5);
	assert_int_equal(step_at(&f, T0 + 30 * S).created, 5);
	assert_int_equal(f.script->seen[1] + f.script->seen[3], 0);
	end_life(&f, 0);
}

/* Two of a spool: the later one in the file is the older one. */
static void test_the_oldest_of_the_spool_goes(void **state)
{
	const char *path = in_folder(*state, "spool");
	evrec_limits limits = limits_of(4);
	struct fixture f;

	limits.full = EVREC_DROP_OLDEST;
	begin_life(&f, path, T0 + 10 * S, &limits);
	assert_true(submit(&f, 1, false, 0));
	evrec_clock_set(f.clock, T0);
	assert_true(submit(&f, 2, false, 0));
	end_life(&f, 2);
	begin_life(&f, path, T0 + 20 * S, &limits);
	turn_away(&f);
	assert_int_equal(step_at(&f, T0 + 20 * S).restored, 2);
	for (unsigned id = 3; id <= 6; id++) {
		assert_true(submit(&f, id, false, 0));
	}
	lost(&f, 2, EVREC_CAUSE_QUEUE_FULL);
	lost(&f, 1, EVREC_CAUSE_QUEUE_FULL);
	end_life(&f, 4);
}

static void test_warnings_outlast_others(void **state)
{
	const char *path = in_folder(*state, "spool");
	evrec_limits limits = limits_of(2);
	struct fixture f;

	begin_life(&f, path, T0, &limits);
	assert_true(submit(&f, 1, true, 0));
	end_life(&f, 1);
	limits.full = EVREC_DROP_OLDEST;
	begin_life(&f, path, T0 + S, &limits);
	turn_away(&f);
	assert_int_equal(step_at(&f, T0 + S).restored, 1);
	assert_true(submit(&f, 2, false, 0));
	assert_true(submit(&f, 3, false, 0));
	lost(&f, 2, EVREC_CAUSE_QUEUE_FULL);
	assert_true(submit(&f, 4, true, 0));
	lost(&f, 3, EVREC_CAUSE_QUEUE_FULL);
	assert_false(submit(&f, 5, false, 0));
	end_life(&f, 2);
	/* The same for those that drop the newest. */
	limits.full = EVREC_DROP_NEWEST;
	begin_life(&f, path, T0 + 2 * S, &limits);
	turn_away(&f);
	assert_int_equal(step_at(&f, T0 + 2 * S).restored, 1);
	assert_true(submit(&f, 6, false, 0));
	assert_true(submit(&f, 7, true, 0));
	lost(&f, 6, EVREC_CAUSE_QUEUE_FULL);
	assert_false(submit(&f, 8, true, 0));
	end_life(&f, 2);
}

/* ---- room ---- */

/* Rows come as room gets free, each once, and never more than there is room for. */
static void come_in_turns(const char *path, const evrec_limits *limits, bool newer_ones)
{
	const evrec_limits wide = limits_of(1000);
	const size_t bytes = limits->max_pending_bytes == 0 ? SIZE_MAX : limits->max_pending_bytes;
	unsigned accepted = 0, rounds = 0;
	struct outbox_stats stats;
	struct entry *entry;
	struct fixture f;

	begin_life(&f, path, T0, &wide);
	for (unsigned id = 1; id <= 100; id++) {
		assert_true(submit(&f, id, id % 2 == 0, id * 3));
	}
	end_life(&f, 100);
	begin_life(&f, path, T0, limits);
	do {
		assert_true(++rounds < 1000);
		f.script->silent = rounds % 4 == 0;
		f.script->at_most = 1 + rounds % 3;
		if (newer_ones && rounds < 100) {
			accepted += submit(&f, 100 + rounds, false, 10);
		}
		stats = step_at(&f, T0 + rounds * S);
		assert_true(stats.writes <= limits->max_pending);
		assert_true(stats.bytes <= bytes);
		while ((entry = outbox_collect(f.ob)) != NULL) {
			assert_false(entry->dropped);
			outbox_recycle(f.ob, entry);
		}
	} while (!outbox_empty(f.ob) || (newer_ones && rounds < 100));
	assert_true(rounds > 20);
	assert_int_equal(stats.restored, 100);
	assert_int_equal(stats.created, 100 + accepted);
	for (unsigned id = 1; id <= 100; id++) {
		assert_int_equal(f.script->seen[id], 1);
	}
	end_life(&f, 0);
	begin_life(&f, path, T0, limits);
	assert_int_equal(step_at(&f, T0).restored, 0);
	assert_true(outbox_empty(f.ob));
	end_life(&f, 0);
}

static void test_few_pending(void **state)
{
	const evrec_limits limits = limits_of(7);

	come_in_turns(in_folder(*state, "spool"), &limits, false);
	come_in_turns(in_folder(*state, "spool"), &limits, true);
}

static void test_few_bytes(void **state)
{
	evrec_limits limits = limits_of(1000);

	limits.max_pending_bytes = 4 * (entry_bytes() + 100);
	come_in_turns(in_folder(*state, "spool"), &limits, false);
	come_in_turns(in_folder(*state, "spool"), &limits, true);
}

/* Told of once, and left for one that has the room. */
static void test_larger_than_all_the_room(void **state)
{
	const char *path = in_folder(*state, "spool");
	const evrec_limits wide = limits_of(1000);
	evrec_limits limits = limits_of(1000);
	struct outbox_report report;
	struct fixture f;

	begin_life(&f, path, T0, &wide);
	for (unsigned id = 1; id <= 9; id++) {
		assert_true(submit(&f, id, false, id % 4 == 0 ? 60000 : 10));
	}
	end_life(&f, 9);
	limits.max_pending_bytes = 50000;
	begin_life(&f, path, T0, &limits);
	assert_int_equal(step_at(&f, T0).restored, 7);
	assert_true(outbox_next_report(f.ob, &report));
	assert_string_equal(report.name, "spool");
	assert_string_equal(report.message, "an event in the spool is larger than max_pending_bytes, and stays there");
	assert_false(outbox_next_report(f.ob, &report));
	assert_int_equal(step_at(&f, T0).created, 7);
	assert_true(outbox_empty(f.ob));
	end_life(&f, 0);
	begin_life(&f, path, T0, &wide);
	assert_int_equal(step_at(&f, T0).created, 2);
	assert_int_equal(f.script->seen[4] + f.script->seen[8], 2);
	end_life(&f, 0);
}

static int tear_down(void **state)
{
	return remove_folder(state) + (items_alive != 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_too_old_by_now),
		TEST(test_the_rest_of_its_age),
		TEST(test_no_max_age),
		TEST(test_the_clock_was_set_back),
		TEST(test_the_oldest_go),
		TEST(test_the_oldest_of_the_spool_goes),
		TEST(test_warnings_outlast_others),
		TEST(test_few_pending),
		TEST(test_few_bytes),
		TEST(test_larger_than_all_the_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

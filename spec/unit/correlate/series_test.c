/* Series: what is written at once and what later, the ticks, the end, the bounds of the cache. */
#include "series_fixture.h"

#define S EVREC_SECOND

static void test_second_begins_a_series_and_further_ones_wait(void **state)
{
	const evrec_series_options options = series_options(10);
	struct series_fixture f;
	evrec_series_stats stats;
	struct observed *o;
	uint64_t handle;
	char name[64];

	(void)state;
	series_setup(&f, &options, NULL);
	assert_int_equal(series_next_due(f.s), INT64_MAX);
	o = series_see(&f, "a", "m", 5);
	assert_int_equal(o->why, EVREC_NEW);
	assert_true(!o->patch && !o->skip && !o->finishes && !o->merged && o->due == 0);
	assert_true(o->count == 1 && o->base == 0 && o->first == T0 + 5 && o->last == T0 + 5);
	(void)snprintf(name, sizeof(name), "%.*s", (int)o->name.len, o->name.data);
	assert_memory_equal(name, "a.", 2);
	handle = o->handle;
	assert_int_not_equal(handle, 0);
	series_check_told(&f, "");
	o = series_see(&f, "a", "m", 10 * S);
	assert_int_equal(o->why, EVREC_SERIES);
	assert_true(o->patch && !o->skip && !o->finishes && o->due == 0 && o->count == 2);
	assert_true(o->first == T0 + 5 && o->last == T0 + 10 * S && o->handle == handle);
	assert_true(str_eq(o->name, str_from(name)));
	assert_true(f.told[0].handle == handle && f.told[0].event_time == T0 + 5 && f.told[0].last == T0 + 10 * S);
	assert_string_equal(f.told[0].name, name);
	assert_false(f.told[0].evicted || f.told[0].untold);
	series_check_told(&f, "Ongoing a 2");
	o = series_see(&f, "a", "m", 20 * S);
	assert_int_equal(o->why, EVREC_SERIES);
	assert_true(o->patch && o->finishes && o->due == T0 + 720 * S && o->count == 3 && o->handle == handle);
	series_check_told(&f, "");
	(void)series_see(&f, "b", "m", 20 * S);
	series_get_stats(f.s, &stats);
	assert_true(stats.series == 2 && stats.ongoing == 1 && stats.begun == 1 && stats.finished == 0);
	series_teardown(&f);
}

/* Of the third and each further occurrence: heartbeats at every 1800 s, finish ticks at every 360 s. */
static void test_due_is_the_next_heartbeat_or_the_end(void **state)
{
	static const struct {
		int64_t seen, due;
		bool finishes;
	} cases[] = {
		{ 0, 720 * S, true },
		{ 1, 720 * S, true },
		{ 360 * S - 1, 720 * S, true },
		{ 360 * S, 1080 * S, true },
		{ 1080 * S - 1, 1440 * S, true },
		{ 1440 * S - 1, 1800 * S, true },
		{ 1440 * S, 1800 * S, false },
		{ 1800 * S - 1, 1800 * S, false },
		{ 1800 * S, 2520 * S, true },
		{ 3239 * S, 3600 * S, true },
		{ 3240 * S, 3600 * S, false },
		{ 3600 * S - 1, 3600 * S, false },
		{ 3600 * S, 4320 * S, true },
	};
	const evrec_series_options options = series_options(10);
	struct series_fixture f;
	struct observed *o;
	size_t i;

	(void)state;
	series_setup(&f, &options, NULL);
	(void)series_see(&f, "a", "m", 0);
	(void)series_see(&f, "a", "m", 0);
	series_check_told(&f, "Ongoing a 2");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* Another object keeps nothing alive: so the series is seen often enough. */
		int64_t between = i == 0 ? 0 : cases[i - 1].seen;

		for (; between + 300 * S < cases[i].seen; between += 300 * S) {
			(void)series_see(&f, "a", "m", between);
		}
		o = series_see(&f, "a", "m", cases[i].seen);
		assert_true(o->patch);
		assert_int_equal(o->due - T0, cases[i].due);
		assert_int_equal(o->finishes, cases[i].finishes);
	}
	series_check_told(&f, "");
	series_teardown(&f);
}

/* More than finish_time before a tick: so 6 to 12 minutes after the last observation. */
static void test_ticks_finish_what_is_older_than_finish_time(void **state)
{
	static const struct {
		int64_t seen, end;
	} cases[] = { { 0, 720 * S }, { 1, 720 * S }, { 360 * S - 1, 720 * S }, { 360 * S, 1080 * S } };
	const evrec_series_options options = series_options(10);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct series_fixture f;
		evrec_series_stats stats;

		series_setup(&f, &options, NULL);
		(void)series_see(&f, "single", "m", cases[i].seen);
		(void)series_see(&f, "a", "m", cases[i].seen);
		(void)series_see(&f, "a", "m", cases[i].seen);
		series_check_told(&f, "Ongoing a 2");
		assert_int_equal(series_next_due(f.s) - T0, cases[i].end);
		series_tick(f.s, T0 + cases[i].end - 1, SIZE_MAX);
		series_check_told(&f, "");
		series_tick(f.s, T0 + cases[i].end, SIZE_MAX);
		series_check_told(&f, "Finished a 2");
		assert_int_equal(series_next_due(f.s), INT64_MAX);
		series_get_stats(f.s, &stats);
		assert_true(stats.series == 0 && stats.ongoing == 0 && stats.finished == 1 && stats.evicted == 0);
		series_teardown(&f);
	}
}

/* A series that a tick leaves is still due. If it makes room for another, it counts as finished, not as evicted. */
static void test_a_tick_ends_no_more_than_asked_for(void **state)
{
	const evrec_series_options options = series_options(5);
	struct series_fixture f;
	evrec_series_stats stats;

	(void)state;
	series_setup(&f, &options, NULL);
	for (char object[] = "a"; object[0] <= 'e'; object[0]++) {
		(void)series_see(&f, object, "m", 0);
		(void)series_see(&f, object, "m", 0);
		(void)series_see(&f, object, "m", 0);
	}
	series_check_told(&f, "Ongoing a 2, Ongoing b 2, Ongoing c 2, Ongoing d 2, Ongoing e 2");
	series_tick(f.s, T0 + 800 * S, 0);
	series_check_told(&f, "");
	series_tick(f.s, T0 + 800 * S, 2);
	series_check_told(&f, "Finished a 3, Finished b 3");
	assert_int_equal(series_next_due(f.s), T0 + 720 * S);
	/* The last of them finishes itself. */
	assert_int_equal(series_see(&f, "e", "m", 800 * S)->why, EVREC_NEW);
	series_check_told(&f, "Finished e 3");
	(void)series_see(&f, "f", "m", 800 * S);
	(void)series_see(&f, "g", "m", 800 * S);
	series_check_told(&f, "");
	(void)series_see(&f, "h", "m", 800 * S);
	assert_false(f.told[0].evicted || f.told[0].untold);
	series_check_told(&f, "Finished c 3");
	series_tick(f.s, T0 + 800 * S, 2);
	series_check_told(&f, "Finished d 3");
	series_get_stats(f.s, &stats);
	assert_true(stats.series == 4 && stats.finished == 5 && stats.evicted == 0);
	assert_int_equal(series_next_due(f.s), T0 + 1440 * S);
	series_teardown(&f);
}

static void test_an_observation_finishes_its_own_series(void **state)
{
	const evrec_series_options options = series_options(10);
	struct series_fixture f;
	struct observed *o;
	uint64_t handle;
	char name[64];

	(void)state;
	series_setup(&f, &options, NULL);
	handle = series_see(&f, "a", "m", 0)->handle;
	(void)snprintf(name, sizeof(name), "%.*s", (int)f.o.name.len, f.o.name.data);
	(void)series_see(&f, "a", "m", 0);
	(void)series_see(&f, "b", "m", 0);
	series_check_told(&f, "Ongoing a 2");
	o = series_see(&f, "a", "n", 720 * S);
	series_check_told(&f, "Finished a 2");
	assert_true(o->why == EVREC_NEW && !o->patch && o->count == 1 && o->first == T0 + 720 * S && !o->merged);
	assert_false(str_eq(o->name, str_from(name)) || o->handle == handle);
	assert_str(o->note, "n");
	/* News about the old handle does not change the new event. */
	series_answered(f.s, handle, EVREC_STR("old"), 7);
	series_dropped(f.s, handle, EVREC_CAUSE_REJECTED, T0 + 720 * S);
	o = series_see(&f, "a", "n", 720 * S);
	assert_true(o->patch && o->due == 0 && o->base == 0 && !str_eq(o->name, EVREC_STR("old")));
	series_check_told(&f, "Ongoing a 2");
	/* A single event of that age is forgotten in silence. */
	o = series_see(&f, "b", "m", 720 * S);
	assert_true(o->why == EVREC_NEW && o->count == 1);
	series_teardown(&f);
}

/* Only a deferred write that was due at the end, and was not released, says that the series is finished. */
static void test_untold_unless_the_last_write_says_finished(void **state)
{
	static const struct {
		int64_t last;
		int released; /* 0: not; 1: all; 2: this one; 3: another one */
		bool untold;
	} cases[] = { { 100 * S, 0, false }, { 100 * S, 1, true },  { 100 * S, 2, true },
		      { 100 * S, 3, false }, { 1500 * S, 0, true }, { 0, 0, true } };
	const evrec_series_options options = series_options(10);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t at = cases[i].last > 1000 * S ? cases[i].last - 2 * S : 0;
		struct series_fixture f;

		series_setup(&f, &options, NULL);
		(void)series_see(&f, "a", "m", at);
		(void)series_see(&f, "a", "m", at);
		series_check_told(&f, "Ongoing a 2");
		series_released(f.s, 0); /* before the last observation it changes nothing */
		if (cases[i].last != 0) {
			(void)series_see(&f, "a", "m", cases[i].last);
			assert_int_equal(f.o.finishes, cases[i].last < 1000 * S);
		}
		if (cases[i].released != 0) {
			series_released(f.s, cases[i].released == 1 ? 0 : f.o.handle + (cases[i].released == 3));
		}
		series_tick(f.s, T0 + 3600 * S, SIZE_MAX);
		assert_int_equal(f.told_len, 1);
		assert_int_equal(f.told[0].untold, cases[i].untold);
		f.told_len = 0;
		series_teardown(&f);
	}
}

static void test_a_new_event_evicts_the_least_recently_seen(void **state)
{
	const evrec_series_options options = series_options(3);
	struct series_fixture f;
	evrec_series_stats stats;
	uint64_t handle;

	(void)state;
	series_setup(&f, &options, NULL);
	handle = series_see(&f, "a", "m", 1)->handle;
	(void)series_see(&f, "b", "m", 2);
	(void)series_see(&f, "c", "m", 3);
	(void)series_see(&f, "a", "m", 4);
	(void)series_see(&f, "c", "m", 5);
	(void)series_see(&f, "a", "m", 6);
	assert_true(f.o.finishes);
	(void)series_see(&f, "c", "m", 7);
	series_check_told(&f, "Ongoing a 2, Ongoing c 2");
	(void)series_see(&f, "d", "m", 8); /* b, in silence */
	series_check_told(&f, "");
	series_get_stats(f.s, &stats);
	assert_true(stats.series == 3 && stats.ongoing == 2 && stats.evicted == 0 && stats.finished == 0);
	assert_int_equal(stats.evicted_singles, 1);
	(void)series_see(&f, "e", "m", 9);
	assert_true(f.told[0].evicted && f.told[0].untold && f.told[0].handle == handle);
	series_check_told(&f, "Finished a 3");
	series_get_stats(f.s, &stats);
	assert_true(stats.series == 3 && stats.ongoing == 1 && stats.evicted == 1 && stats.finished == 1);
	assert_true(stats.begun == 2 && stats.evicted_singles == 1);
	assert_int_equal(series_see(&f, "c", "m", 10)->count, 4);
	series_teardown(&f);
}

static void test_a_cache_of_one(void **state)
{
	const evrec_series_options options = series_options(1);
	struct series_fixture f;

	(void)state;
	series_setup(&f, &options, NULL);
	(void)series_see(&f, "a", "m", 1);
	(void)series_see(&f, "a", "m", 2);
	(void)series_see(&f, "b", "m", 3);
	series_check_told(&f, "Ongoing a 2, Finished a 2");
	assert_int_equal(series_see(&f, "b", "m", 4)->count, 2);
	series_check_told(&f, "Ongoing b 2");
	series_teardown(&f);
}

static void test_a_series_has_its_last_note(void **state)
{
	const evrec_series_options options = series_options(10);
	struct series_fixture f;
	evrec_series_stats stats;
	char note[32];
	int i;

	(void)state;
	series_setup(&f, &options, NULL);
	assert_false(series_see(&f, "a", "first", 1)->merged);
	assert_false(series_see(&f, "a", "first", 2)->merged);
	series_check_told(&f, "Ongoing a 2");
	assert_true(series_see(&f, "a", "a longer second note", 3)->merged);
	assert_str(f.o.note, "a longer second note");
	assert_false(series_see(&f, "a", "a longer second note", 4)->merged);
	assert_true(series_see(&f, "a", "first", 5)->merged);
	series_get_stats(f.s, &stats);
	assert_int_equal(stats.notes, 1);
	for (i = 3; i <= 20; i++) {
		(void)snprintf(note, sizeof(note), "note %d", i);
		assert_true(series_see(&f, "a", note, 10 + i)->merged);
	}
	series_get_stats(f.s, &stats);
	assert_int_equal(stats.notes, 15); /* 16 are told apart, the first included */
	(void)series_see(&f, "b", "x", 40);
	(void)series_see(&f, "b", "", 41);
	assert_true(f.o.merged);
	series_check_told(&f, "Ongoing b 2");
	series_get_stats(f.s, &stats);
	assert_int_equal(stats.notes, 16);
	series_tick(f.s, T0 + 720 * S, SIZE_MAX);
	assert_string_equal(f.told[0].note, "note 20");
	assert_string_equal(f.told[1].note, "");
	series_check_told(&f, "Finished a 23, Finished b 2");
	series_teardown(&f);
}

static void test_notes_may_be_a_part_of_the_key(void **state)
{
	evrec_series_options options = series_options(10);
	struct series_fixture f;

	(void)state;
	options.note_in_key = true;
	series_setup(&f, &options, NULL);
	assert_int_equal(series_see(&f, "a", "m", 1)->why, EVREC_NEW);
	assert_int_equal(series_see(&f, "a", "n", 2)->why, EVREC_NEW);
	assert_int_equal(series_see(&f, "a", "m", 3)->count, 2);
	assert_false(f.o.merged);
	series_check_told(&f, "Ongoing a 2");
	series_teardown(&f);
}

static evrec_fields full_event(void)
{
	evrec_fields e = pod_event("a", "R", "m", T0);

	e.instance = EVREC_STR("i");
	e.action = EVREC_STR("A");
	e.related = (evrec_reference){ .kind = EVREC_STR("Node"), .name = EVREC_STR("n") };
	return e;
}

/* Each of these fields makes another series; the fields behind them do not. */
static void test_key_fields(void **state)
{
	const evrec_series_options options = series_options(100);
	evrec_fields e = full_event();
	evrec_str *const parts[] = {
		&e.type,           &e.reason,       &e.action,         &e.controller,    &e.instance,
		&e.regarding.kind, &e.regarding.ns, &e.regarding.name, &e.regarding.uid, &e.regarding.api_version,
		&e.related.kind,   &e.related.ns,   &e.related.name,   &e.related.uid,   &e.related.api_version
	};
	evrec_str *const others[] = { &e.regarding.resource_version,
		                      &e.regarding.field_path,
		                      &e.related.resource_version,
		                      &e.related.field_path,
		                      &e.component,
		                      &e.host,
		                      &e.note };
	struct series_fixture f;
	size_t i;

	(void)state;
	series_setup(&f, &options, NULL);
	(void)series_see_event(&f, &e, T0);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		*parts[i] = EVREC_STR("other");
		assert_int_equal(series_see_event(&f, &e, T0)->why, EVREC_NEW);
		e = full_event();
	}
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		*others[i] = EVREC_STR("other");
		assert_int_equal(series_see_event(&f, &e, T0)->count, i + 2);
		e = full_event();
	}
	/* An unset action is the reason. */
	e.action = e.reason;
	assert_int_equal(series_see_event(&f, &e, T0)->why, EVREC_NEW);
	e.action = EVREC_STR("");
	assert_int_equal(series_see_event(&f, &e, T0)->count, 2);
	f.told_len = 0;
	series_teardown(&f);
}

/* Bytes that move from one part to the next make another key; and no key is one of keys_make. */
static void test_keys_are_unambiguous(void **state)
{
	evrec_fields a = pod_event("a", "RA", "m", T0), b = pod_event("a", "R", "m", T0);
	struct buf one = { 0 }, two = { 0 };
	struct key x, y;

	(void)state;
	a.action = EVREC_STR("B");
	b.action = EVREC_STR("AB");
	assert_true(key_series(&x, &one, &a, false) && key_series(&y, &two, &b, false));
	assert_false(str_eq(x.tail, y.tail));
	assert_true(x.head.len == 0 && x.tail.data[0] == 's');
	assert_true(key_series(&y, &two, &a, true));
	assert_int_equal(y.tail.len, x.tail.len + sizeof(uint32_t) + 1);
	buf_free(&one);
	buf_free(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_second_begins_a_series_and_further_ones_wait),
		cmocka_unit_test(test_due_is_the_next_heartbeat_or_the_end),
		cmocka_unit_test(test_ticks_finish_what_is_older_than_finish_time),
		cmocka_unit_test(test_a_tick_ends_no_more_than_asked_for),
		cmocka_unit_test(test_an_observation_finishes_its_own_series),
		cmocka_unit_test(test_untold_unless_the_last_write_says_finished),
		cmocka_unit_test(test_a_new_event_evicts_the_least_recently_seen),
		cmocka_unit_test(test_a_cache_of_one),
		cmocka_unit_test(test_a_series_has_its_last_note),
		cmocka_unit_test(test_notes_may_be_a_part_of_the_key),
		cmocka_unit_test(test_key_fields),
		cmocka_unit_test(test_keys_are_unambiguous),
	};

	return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}

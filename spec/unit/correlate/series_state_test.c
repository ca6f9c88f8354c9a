/* The state of a series as bytes: one that was loaded goes on with the counts and names of the one before. */
#include "series_life.h"

#define S EVREC_SECOND

static evrec_series_stats stats_of(const struct series_life *life)
{
	evrec_series_stats stats;

	series_get_stats(life->f.s, &stats);
	return stats;
}

static void test_a_series_goes_on(void **unused)
{
	struct observed *o;
	struct series_life life;
	char name[64];

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	o = series_see(&life.f, "a", "m", 0);
	series_answered(life.f.s, o->handle, EVREC_STR("named-by-server"), 0);
	(void)series_life_see_written(&life, "a", 4, 10 * S);
	series_settled(life.f.s, o->handle, 1, 0);
	series_check_told(&life.f, "Ongoing a 2");
	series_life_save_changes(&life);
	assert_int_equal(series_life_go_on(&life, 20 * S).records, 1);
	assert_int_equal(life.f.told[0].last, T0 + 10 * S);
	assert_int_equal(life.f.told[0].due, 0);
	assert_int_equal(life.f.told[0].event_time, T0);
	(void)snprintf(name, sizeof(name), "%s", life.f.told[0].name);
	assert_string_equal(name, "named-by-server");
	series_check_told(&life.f, "Unknown a 5");
	assert_int_equal(stats_of(&life).ongoing, 1);
	state_begin_changes(life.state);
	assert_int_equal(state_changes(life.state), 0);
	/* The first one is written at once, as a patch; the others are counted. */
	o = series_see(&life.f, "a", "m", 21 * S);
	assert_true(o->patch && !o->again && o->due == 0);
	assert_int_equal(o->base + (uint32_t)o->count, 6);
	assert_true(str_eq(o->name, str_from(name)));
	series_check_told(&life.f, "Ongoing a 6");
	o = series_see(&life.f, "a", "m", 22 * S);
	assert_true(o->patch && o->due != 0);
	assert_int_equal(o->base + (uint32_t)o->count, 7);
	series_life_end(&life);
}

static void test_notes(void **unused)
{
	struct observed *o;
	struct series_life life;

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	(void)series_see(&life.f, "a", "first", 0);
	(void)series_see(&life.f, "a", "second", 1);
	(void)series_see(&life.f, "b", "first", 1);
	(void)series_see(&life.f, "b", "", 1);
	series_check_told(&life.f, "Ongoing a 2, Ongoing b 2");
	series_life_save_changes(&life);
	(void)series_life_go_on(&life, 2);
	assert_int_equal(life.f.told_len, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(life.f.told[i].note, life.f.told[i].object[0] == 'a' ? "second" : "");
	}
	life.f.told_len = 0;
	assert_false(series_see(&life.f, "a", "second", 3)->merged);
	o = series_see(&life.f, "a", "first", 4);
	assert_true(o->merged);
	/* Both were known before. */
	assert_int_equal(stats_of(&life).notes, 0);
	(void)series_see(&life.f, "a", "third", 5);
	assert_int_equal(stats_of(&life).notes, 1);
	series_check_told(&life.f, "Ongoing a 3");
	series_life_end(&life);
}

static void test_a_single_event_begins_a_series(void **unused)
{
	struct observed *o;
	struct series_life life;

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	(void)series_life_see_written(&life, "a", 1, 0);
	series_life_save_all(&life);
	(void)series_life_go_on(&life, S);
	series_check_told(&life.f, "");
	o = series_see(&life.f, "a", "m", 2 * S);
	assert_true(o->patch && o->due == 0);
	assert_int_equal(o->base + (uint32_t)o->count, 2);
	series_check_told(&life.f, "Ongoing a 2");
	series_life_end(&life);
}

/* A process that was killed had counted more than it had written. */
static void test_what_was_only_counted_is_due(void **unused)
{
	struct series_life life;
	uint64_t handle;

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	handle = series_life_see_written(&life, "a", 2, 0);
	(void)series_see(&life.f, "a", "m", S);
	(void)series_life_see_written(&life, "b", 2, S);
	series_life_save_changes(&life);
	life.f.told_len = 0;
	(void)series_life_go_on(&life, 2 * S);
	assert_int_equal(life.f.told_len, 2);
	for (size_t i = 0; i < 2; i++) {
		const bool is_a = life.f.told[i].object[0] == 'a';

		assert_int_equal(life.f.told[i].due, is_a ? T0 + 720 * S : 0);
		assert_int_equal(life.f.told[i].finishes, is_a);
		assert_int_equal(life.f.told[i].count, is_a ? 3 : 2);
		handle = is_a ? life.f.told[i].handle : handle;
	}
	life.f.told_len = 0;
	/* Once that is written, the next life has nothing to write. */
	series_answered(life.f.s, handle, EVREC_STR(""), 0);
	series_life_save_all(&life);
	(void)series_life_go_on(&life, 3 * S);
	assert_true(life.f.told[0].due == 0 && life.f.told[1].due == 0);
	life.f.told_len = 0;
	series_life_end(&life);
}

static void test_a_dropped_write_is_due(void **unused)
{
	struct series_life life;
	uint64_t handle;

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	handle = series_life_see_written(&life, "a", 2, 0);
	(void)series_see(&life.f, "a", "m", S);
	series_settled(life.f.s, handle, 1, 0);
	series_dropped(life.f.s, handle, EVREC_CAUSE_EXPIRED, T0 + S);
	series_check_told(&life.f, "Ongoing a 2");
	series_life_save_all(&life);
	(void)series_life_go_on(&life, 2 * S);
	assert_true(life.f.told[0].due != 0);
	series_check_told(&life.f, "Unknown a 3");
	series_life_end(&life);
}

static void test_what_is_over_is_left_out(void **unused)
{
	struct series_life life;

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	(void)series_life_see_written(&life, "written", 3, 0);
	(void)series_life_see_written(&life, "single", 1, 0);
	(void)series_life_see_written(&life, "counted", 3, 0);
	(void)series_see(&life.f, "counted", "m", 0);
	(void)series_life_see_written(&life, "later", 2, 10 * S);
	life.f.told_len = 0;
	series_life_save_all(&life);
	/* Both ticks of 360 s have gone by: its count is written yet. */
	assert_int_equal(series_life_go_on(&life, 720 * S).records, 1);
	series_check_told(&life.f, "Unknown counted 4");
	series_tick(life.f.s, T0 + 720 * S, SIZE_MAX);
	assert_false(life.f.told[0].untold);
	series_check_told(&life.f, "Finished counted 4");
	series_life_end(&life);
}

static void test_too_old_to_be_written(void **unused)
{
	struct series_life life;

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	(void)series_life_see_written(&life, "a", 3, 0);
	(void)series_see(&life.f, "a", "m", 0);
	life.f.told_len = 0;
	series_life_save_all(&life);
	(void)series_life_go_on(&life, (1800 + 360) * S - 1);
	series_check_told(&life.f, "Unknown a 4");
	assert_int_equal(series_life_go_on(&life, (1800 + 360) * S).records, 0);
	assert_int_equal(stats_of(&life).series, 0);
	series_life_end(&life);
}

static void test_a_finished_series_stays_finished(void **unused)
{
	struct series_life life;

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	(void)series_life_see_written(&life, "a", 2, 0);
	(void)series_see(&life.f, "a", "m", 1);
	series_life_save_changes(&life);
	series_tick(life.f.s, T0 + 720 * S, SIZE_MAX);
	series_check_told(&life.f, "Ongoing a 2, Finished a 3");
	series_life_save_changes(&life);
	(void)series_life_go_on(&life, 730 * S);
	series_check_told(&life.f, "");
	assert_int_equal(stats_of(&life).series, 0);
	/* It has begun anew since. */
	(void)series_life_see_written(&life, "a", 2, 730 * S);
	series_tick(life.f.s, T0 + 1440 * S, SIZE_MAX);
	(void)series_life_see_written(&life, "a", 3, 1440 * S);
	life.f.told_len = 0;
	series_life_save_changes(&life);
	(void)series_life_go_on(&life, 1440 * S);
	series_check_told(&life.f, "Unknown a 3");
	series_life_end(&life);
}

/* Other processes record the occurrences that they keep again if this process is killed; none is counted twice. */
static void test_counts_of_others(void **unused)
{
	struct observed *o;
	struct series_life life;
	uint64_t handle;

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	(void)series_see(&life.f, "a", "m", 0);
	series_for_others(life.f.s, true);
	for (int i = 0; i < 5; i++) {
		(void)series_see(&life.f, "a", "m", 1);
	}
	handle = life.f.o.handle;
	series_settled(life.f.s, handle, 3, 2);
	life.f.told_len = 0;
	series_life_save_changes(&life);
	(void)series_life_go_on(&life, S);
	series_check_told(&life.f, "Unknown a 3");
	/* The server's count has what is recorded again. */
	{
		evrec_fields event = pod_event("a", "R", "m", T0);

		o = series_see(&life.f, "b", "m", 2 * S);
		event.name = EVREC_STR("none");
		event.series_count = 6;
		assert_true(series_resume(life.f.s, &event, T0 + 2 * S));
		series_check_told(&life.f, "");
	}
	assert_int_equal(o->count, 1);
	series_life_end(&life);
}

/* Nothing is counted yet, but whoever records it again must not give it another name. */
static void test_a_name_without_a_count(void **unused)
{
	struct observed *o;
	struct series_life life;
	char name[64];

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	series_for_others(life.f.s, true);
	o = series_see(&life.f, "a", "m", 0);
	(void)snprintf(name, sizeof(name), "%.*s", (int)o->name.len, o->name.data);
	series_life_save_changes(&life);
	(void)series_life_go_on(&life, S);
	series_check_told(&life.f, "");
	o = series_see(&life.f, "a", "m", S);
	assert_true(!o->patch && o->again);
	assert_int_equal(o->base + (uint32_t)o->count, 1);
	assert_true(str_eq(o->name, str_from(name)));
	series_answered(life.f.s, o->handle, EVREC_STR(""), 0);
	assert_false(series_see(&life.f, "a", "m", S)->again);
	series_check_told(&life.f, "Ongoing a 2");
	series_life_end(&life);
}

static void test_the_larger_count_of_server_and_state(void **unused)
{
	evrec_fields event;
	struct series_life life;
	char name[64];

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	(void)series_life_see_written(&life, "a", 1, 0);
	(void)snprintf(name, sizeof(name), "%.*s", (int)life.f.o.name.len, life.f.o.name.data);
	series_life_save_changes(&life);
	(void)series_life_go_on(&life, S);
	event = pod_event("a", "R", "m", T0);
	event.event_time = T0;
	event.name = EVREC_STR("another");
	event.series_count = 9;
	event.series_last = T0 + S;
	assert_true(series_resume(life.f.s, &event, T0 + S));
	series_check_told(&life.f, "");
	event.name = str_from(name);
	assert_true(series_resume(life.f.s, &event, T0 + S));
	series_check_told(&life.f, "Unknown a 9");
	event.series_count = 8;
	assert_true(series_resume(life.f.s, &event, T0 + S));
	assert_int_equal(series_see(&life.f, "a", "m", 2 * S)->base, 9);
	series_check_told(&life.f, "Ongoing a 10");
	/* From now on the own count holds. */
	event.series_count = 50;
	assert_true(series_resume(life.f.s, &event, T0 + 2 * S));
	assert_int_equal(series_see(&life.f, "a", "m", 2 * S)->base, 9);
	series_life_end(&life);
}

static void test_tokens_do_not_come_back(void **unused)
{
	evrec_series_options options = series_options(10);
	evrec_correlator_options limits;
	struct observed *o;
	struct series_life life;

	(void)unused;
	evrec_correlator_options_init(&limits);
	limits.burst_size = 1;
	options.rate_limit = true;
	series_life_begin(&life, &options, &limits);
	(void)series_see(&life.f, "a", "m", 0);
	{
		evrec_fields event = pod_event("a", "Q", "m", T0);

		assert_true(series_see_event(&life.f, &event, T0)->skip);
	}
	series_life_save_changes(&life);
	assert_int_equal(series_life_go_on_with(&life, &options, &limits, S).records, 3);
	/* No answer has come to its create. */
	assert_int_equal(life.f.told[0].due, T0 + 720 * S);
	series_check_told(&life.f, " a 1");
	{
		/* Its first occurrence had none; if the third had one, it would tell of all three. */
		evrec_fields event = pod_event("a", "Q", "m", T0);

		o = series_see_event(&life.f, &event, T0 + S);
		assert_true(o->skip && !o->patch);
		o = series_see_event(&life.f, &event, T0 + 400 * S);
		assert_true(!o->skip && !o->patch && !o->again);
		assert_int_equal(o->base + (uint32_t)o->count, 3);
	}
	series_check_told(&life.f, "Ongoing a 3");
	series_life_end(&life);
}

static void test_bounds(void **unused)
{
	const evrec_series_options small = series_options(2);
	struct series_life life;
	char object[16];

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	for (int i = 0; i < 5; i++) {
		(void)snprintf(object, sizeof(object), "o%d", i);
		(void)series_life_see_written(&life, object, 2, i);
	}
	life.f.told_len = 0;
	series_life_save_all(&life);
	(void)series_life_go_on_with(&life, &small, NULL, S);
	series_check_told(&life.f, "Unknown o4 2, Unknown o3 2");
	assert_int_equal(stats_of(&life).series, 2);
	series_life_end(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_series_goes_on),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_a_single_event_begins_a_series),
		cmocka_unit_test(test_what_was_only_counted_is_due),
		cmocka_unit_test(test_a_dropped_write_is_due),
		cmocka_unit_test(test_what_is_over_is_left_out),
		cmocka_unit_test(test_too_old_to_be_written),
		cmocka_unit_test(test_a_finished_series_stays_finished),
		cmocka_unit_test(test_counts_of_others),
		cmocka_unit_test(test_a_name_without_a_count),
		cmocka_unit_test(test_the_larger_count_of_server_and_state),
		cmocka_unit_test(test_tokens_do_not_come_back),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

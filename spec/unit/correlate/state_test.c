/* The state of a correlator as bytes: a correlator that was loaded goes on as if it had never ended. */
#include "correlator_life.h"

static void test_a_duplicate_after_a_restart_is_a_patch(void **unused)
{
	struct correlator_life life;
	struct observed o;
	struct state_loaded loaded;
	char name[64];

	(void)unused;
	correlator_life_begin(&life, NULL);
	(void)correlator_life_observe_pod(&life, "a", "m", T0);
	o = correlator_life_observe_pod(&life, "a", "m", T0 + 1);
	correlator_answered(life.c, o.handle, EVREC_STR("other-name"), EVREC_STR("17"));
	(void)snprintf(name, sizeof(name), "other-name");
	correlator_life_save_changes(&life);
	loaded = correlator_life_next(&life, NULL, life.file.len, T0 + 5);
	assert_int_equal(loaded.records, 3);
	state_begin_changes(life.state);
	assert_int_equal(state_changes(life.state), 0);
	o = correlator_life_observe_pod(&life, "a", "m", T0 + 6);
	assert_true(o.patch);
	assert_int_equal(o.why, EVREC_DUPLICATE);
	assert_int_equal(o.count, 3);
	assert_int_equal(o.first, T0);
	assert_true(str_eq(o.name, str_from(name)));
	assert_str(o.resource_version, "17");
	correlator_life_end(&life);
}

static void test_an_answer_is_a_change(void **unused)
{
	struct correlator_life life;
	struct observed o;

	(void)unused;
	correlator_life_begin(&life, NULL);
	o = correlator_life_observe_pod(&life, "a", "m", T0);
	correlator_life_save_changes(&life);
	correlator_answered(life.c, o.handle, EVREC_STR("renamed"), EVREC_STR("2"));
	state_answered(life.state, o.handle);
	state_begin_changes(life.state);
	assert_int_equal(state_changes(life.state), 1);
	correlator_life_save_changes(&life);
	(void)correlator_life_next(&life, NULL, life.file.len, T0);
	assert_str(correlator_life_observe_pod(&life, "a", "m", T0).name, "renamed");
	/* Of an entry that was evicted, or never was. */
	state_answered(life.state, o.handle + 1000);
	correlator_life_end(&life);
}

/* However many entries change while a write goes on, it has those that had changed when it began. */
static void test_a_write_has_what_changed_before_it(void **unused)
{
	struct correlator_life life;
	char object[16];
	size_t n = 0;

	(void)unused;
	correlator_life_begin(&life, NULL);
	(void)correlator_life_observe_pod(&life, "a", "m", T0);
	state_begin_changes(life.state);
	assert_int_equal(state_changes(life.state), 3);
	while (state_changes(life.state) != 0) {
		assert_int_equal(state_take_changes(life.state, 1, &life.file), 1);
		(void)snprintf(object, sizeof(object), "b%zu", ++n);
		(void)correlator_life_observe_pod(&life, object, "m", T0);
	}
	assert_int_equal(n, 3);
	assert_int_equal(state_take_changes(life.state, 1, &life.file), 0);
	assert_int_equal(correlator_life_next(&life, NULL, life.file.len, T0).records, 3);
	assert_int_equal(correlator_life_observe_pod(&life, "a", "m", T0).count, 2);
	correlator_life_end(&life);
}

static void test_similar_events_are_combined_after_a_restart(void **unused)
{
	struct correlator_life life;
	char message[16];

	(void)unused;
	correlator_life_begin(&life, NULL);
	for (int i = 1; i <= 12; i++) {
		enum evrec_why why = i < 10 ? EVREC_NEW : EVREC_AGGREGATED;

		(void)snprintf(message, sizeof(message), "m%d", i);
		assert_int_equal(correlator_life_observe_pod(&life, "a", message, T0 + i).why, why);
		correlator_life_save_changes(&life);
		(void)correlator_life_next(&life, NULL, life.file.len, T0 + i);
		correlator_life_save_all(&life);
	}
	correlator_life_end(&life);
}

/* Events that would pass in a process that had always had the new option are not combined for ever. */
static void test_fewer_events_are_similar_after_a_restart(void **unused)
{
	evrec_correlator_options options;
	struct correlator_life life;
	char message[16];

	(void)unused;
	evrec_correlator_options_init(&options);
	correlator_life_begin(&life, &options);
	for (int i = 1; i <= 9; i++) {
		(void)snprintf(message, sizeof(message), "m%d", i);
		assert_int_equal(correlator_life_observe_pod(&life, "a", message, T0 + i).why, EVREC_NEW);
	}
	correlator_life_save_all(&life);
	options.max_events = 3;
	(void)correlator_life_next(&life, &options, life.file.len, T0 + 10);
	assert_int_equal(correlator_life_observe_pod(&life, "a", "m9", T0 + 10).why, EVREC_DUPLICATE);
	assert_int_equal(correlator_life_observe_pod(&life, "a", "m8", T0 + 11).why, EVREC_DUPLICATE);
	assert_int_equal(correlator_life_observe_pod(&life, "a", "m7", T0 + 12).why, EVREC_AGGREGATED);
	correlator_life_end(&life);
}

static void test_tokens_do_not_come_back(void **unused)
{
	evrec_correlator_options options;
	struct correlator_life life;

	(void)unused;
	evrec_correlator_options_init(&options);
	options.burst_size = 2;
	correlator_life_begin(&life, &options);
	assert_false(correlator_life_observe_pod(&life, "a", "m", T0).skip);
	assert_false(correlator_life_observe_pod(&life, "a", "m", T0).skip);
	correlator_life_save_all(&life);
	(void)correlator_life_next(&life, &options, life.file.len, T0);
	assert_true(correlator_life_observe_pod(&life, "a", "m", T0 + 299 * EVREC_SECOND).skip);
	/* They are refilled while no process lives. */
	correlator_life_save_all(&life);
	(void)correlator_life_next(&life, &options, life.file.len, T0 + 300 * EVREC_SECOND);
	assert_false(correlator_life_observe_pod(&life, "a", "m", T0 + 300 * EVREC_SECOND).skip);
	correlator_life_end(&life);
}

/* Saved once, at the end. */
static void test_a_correlator_that_was_not_watched(void **unused)
{
	evrec_correlator_options options;
	struct correlator_life life;
	struct state *late;

	(void)unused;
	evrec_correlator_options_init(&options);
	options.lru_cache_size = 2;
	correlator_life_begin(&life, &options);
	late = state_new(life.c);
	assert_non_null(late);
	(void)correlator_life_observe_pod(&life, "a", "m", T0);
	(void)correlator_life_observe_pod(&life, "b", "m", T0);
	(void)correlator_life_observe_pod(&life, "a", "m", T0);
	state_free(life.state);
	life.state = late;
	assert_true(state_note_all(late, T0));
	state_begin_changes(late);
	assert_int_equal(state_changes(late), 0);
	correlator_life_save_all(&life);
	assert_int_equal(correlator_life_next(&life, &options, life.file.len, T0).records, 6);
	/* The one that was not used for longest makes room. */
	(void)correlator_life_observe_pod(&life, "c", "m", T0);
	assert_int_equal(correlator_life_observe_pod(&life, "a", "m", T0).count, 3);
	correlator_life_end(&life);
}

static void test_old_entries_are_left_out(void **unused)
{
	struct state_loaded loaded;
	struct correlator_life life;

	(void)unused;
	correlator_life_begin(&life, NULL);
	(void)correlator_life_observe_pod(&life, "old", "m", T0);
	(void)correlator_life_observe_pod(&life, "used", "m", T0);
	(void)correlator_life_observe_pod(&life, "used", "m", T0 + 1);
	correlator_life_save_all(&life);
	loaded = correlator_life_next(&life, NULL, life.file.len, T0 + 3600 * EVREC_SECOND + 1);
	assert_int_equal(loaded.old, 3);
	assert_int_equal(loaded.records, 3);
	assert_int_equal(correlator_life_observe_pod(&life, "used", "m", T0 + 2).count, 3);
	assert_int_equal(correlator_life_observe_pod(&life, "old", "m", T0 + 2).count, 1);
	correlator_life_end(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_duplicate_after_a_restart_is_a_patch),
		cmocka_unit_test(test_an_answer_is_a_change),
		cmocka_unit_test(test_a_write_has_what_changed_before_it),
		cmocka_unit_test(test_similar_events_are_combined_after_a_restart),
		cmocka_unit_test(test_fewer_events_are_similar_after_a_restart),
		cmocka_unit_test(test_tokens_do_not_come_back),
		cmocka_unit_test(test_a_correlator_that_was_not_watched),
		cmocka_unit_test(test_old_entries_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

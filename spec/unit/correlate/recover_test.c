/* The counts of a process that was killed: a state of some time ago, what its journal knows, and what others record again. */
#include "correlations.h"

#include "correlate/state.h"

static evrec_correlator *make(void)
{
	evrec_correlator_options options;
	evrec_correlator *c;

	evrec_correlator_options_init(&options);
	c = evrec_correlator_new(&options, NULL);
	assert_non_null(c);
	return c;
}

/* By a connection, or by this process itself for 0. */
static struct observed observe(evrec_correlator *c, uint64_t process, uint64_t connection, bool again)
{
	const evrec_fields event = pod_event("p", "R", "m", T0);
	const struct origin origin = { process, connection, 0, again, false };
	struct keys keys = { 0 };
	struct observed o;

	assert_true(keys_make(&keys, &event));
	assert_int_equal(correlator_observe(c, &event, &keys, T0, connection == 0 ? NULL : &origin, &o), 0);
	keys_free(&keys);
	return o;
}

/* The next process, with the state as it is by now. */
static evrec_correlator *killed(evrec_correlator *c)
{
	evrec_correlator *next = make();
	struct state *before = state_new(c), *after = state_new(next);
	struct state_loaded loaded;
	struct buf bytes = { 0 };
	uint64_t cursor = 0;

	assert_true(state_note_all(before, T0));
	(void)state_take_all(before, &cursor, SIZE_MAX, &bytes);
	assert_true(state_load(after, buf_str(&bytes), T0, INT64_MAX, &loaded));
	state_free(before);
	state_free(after);
	buf_free(&bytes);
	evrec_correlator_free(c);
	return next;
}

static void recover(evrec_correlator *c, const char *name, int32_t sure)
{
	evrec_fields noted = pod_event("p", "R", "m", T0);

	noted.name = str_from(name);
	correlator_recover(c, &noted, sure, T0);
}

static char *name_of(const struct observed *o)
{
	return str_dup(o->name);
}

static void test_what_a_worker_has_recorded_is_not_sure(void **state)
{
	evrec_correlator *c = make();
	struct observed o;

	(void)state;
	assert_int_equal(observe(c, 7, 1, false).sure, 0);
	assert_int_equal(observe(c, 0, 0, false).sure, 1);
	o = observe(c, 7, 1, false);
	assert_int_equal(o.count, 3);
	assert_int_equal(o.sure, 1);
	/* Also if it is acknowledged, or left to this process: a state may be older. */
	correlator_tell(c, o.handle, 1, false, 1, 9);
	correlator_acknowledge(c, o.handle, 1, false, 1);
	correlator_leave(c, 1);
	o = observe(c, 0, 0, false);
	assert_int_equal(o.count, 4);
	assert_int_equal(o.sure, 2);
	evrec_correlator_free(c);
}

/* Two of the worker and one own are in the state; then come two own, and one of the worker that only the worker has. */
static void check_recovered(bool recorded_before)
{
	evrec_correlator *c = make();
	struct observed o;
	char *name;

	(void)observe(c, 7, 1, false);
	o = observe(c, 7, 1, false);
	name = name_of(&o);
	(void)observe(c, 0, 0, false);
	c = killed(c);
	if (recorded_before) {
		assert_int_equal(observe(c, 7, 1, true).count, 3);
	}
	recover(c, name, 3);
	/* A journal is read again if its import was cut off. */
	recover(c, name, 3);
	if (!recorded_before) {
		assert_true(observe(c, 7, 1, true).repeated);
	}
	o = observe(c, 7, 1, true);
	assert_true(o.repeated);
	assert_int_equal(o.count, 5);
	o = observe(c, 7, 1, true);
	assert_false(o.repeated);
	assert_int_equal(o.count, 6);
	evrec_correlator_free(c);
	mem_free(name);
}

static void test_each_occurrence_is_counted_once(void **state)
{
	(void)state;
	check_recovered(false);
	check_recovered(true);
}

/* The worker has ended too: what it had recorded is in the state, and in what its journal was sure of. */
static void test_worker_that_does_not_come_back(void **state)
{
	evrec_correlator *c = make();
	struct observed o;
	char *name;

	(void)state;
	o = observe(c, 7, 1, false);
	name = name_of(&o);
	(void)observe(c, 0, 0, false);
	c = killed(c);
	recover(c, name, 2);
	/* The state still expects it. */
	c = killed(c);
	o = observe(c, 7, 1, true);
	assert_true(o.repeated);
	assert_int_equal(o.count, 3);
	evrec_correlator_free(c);
	mem_free(name);
}

static void test_event_that_no_state_has(void **state)
{
	evrec_correlator *c = make();
	struct observed o;

	(void)state;
	recover(c, "p.1", 4);
	o = observe(c, 0, 0, false);
	assert_true(o.patch);
	assert_int_equal(o.count, 5);
	assert_true(str_eq(o.name, EVREC_STR("p.1")));
	/* Another event has the key by now. */
	recover(c, "p.2", 9);
	assert_int_equal(observe(c, 0, 0, false).count, 6);
	evrec_correlator_free(c);
}

/* The worker may record again all that the state has. */
static void test_state_of_which_nothing_is_sure(void **state)
{
	evrec_correlator *c = make();
	struct observed o = observe(c, 7, 1, false);
	char *name = name_of(&o);

	(void)state;
	c = killed(c);
	recover(c, name, 3);
	o = observe(c, 7, 1, true);
	assert_true(o.repeated);
	assert_int_equal(o.count, 4);
	evrec_correlator_free(c);
	mem_free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_worker_has_recorded_is_not_sure),
		cmocka_unit_test(test_each_occurrence_is_counted_once),
		cmocka_unit_test(test_worker_that_does_not_come_back),
		cmocka_unit_test(test_state_of_which_nothing_is_sure),
		cmocka_unit_test(test_event_that_no_state_has),
	};

	return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}

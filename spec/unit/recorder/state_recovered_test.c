/* Counts from the journal of a killed process are in the next state, also of events that have not occurred since. */
#include "checked_outbox.h"
#include "correlations.h"
#include "tmpdir.h"

#include "recorder/kept_state.h"

/* A process with a kept state. */
struct life {
	struct outbox *ob;
	evrec_correlator *correlator;
	struct state_file *file;
};

static void wake(void *ctx)
{
	(void)ctx;
}

static void begin(struct life *life, evrec_str path)
{
	evrec_correlator_options options;

	evrec_correlator_options_init(&options);
	life->correlator = evrec_correlator_new(&options, NULL);
	life->ob = checked_outbox(10);
	life->file = kept_state_new(path, kept_state_open(path, str_from("")), &(struct kept){ life->correlator, NULL },
	                            T0, life->ob, NULL);
	assert_non_null(life->file);
	state_file_on_change(life->file, wake, NULL);
}

/* As by SIGKILL, after the state was written. */
static void end(struct life *life)
{
	state_file_step(life->file, life->ob, 0, false);
	state_file_free(life->file);
	checked_outbox_free(life->ob);
}

static void test_recovered_count_outlives_the_next_process(void **state)
{
	const evrec_str path = str_from(tmpdir_path(*state, "state"));
	evrec_fields event = pod_event("a", "R", "m", T0);
	struct keys keys = { 0 };
	struct observed o;
	struct life life;

	begin(&life, path);
	event.name = str_from("a.1");
	correlator_recover(life.correlator, &event, 3, T0);
	end(&life);
	begin(&life, path);
	event.name = str_from("");
	assert_true(keys_make(&keys, &event));
	assert_int_equal(correlator_observe(life.correlator, &event, &keys, T0, NULL, &o), 0);
	assert_int_equal(o.count, 4);
	assert_true(str_eq(o.name, EVREC_STR("a.1")));
	keys_free(&keys);
	end(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_recovered_count_outlives_the_next_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

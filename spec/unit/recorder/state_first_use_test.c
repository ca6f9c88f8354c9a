/* The option state_file: the file is opened at the first use of the sink. */
#include "state_life.h"
#include "tmpdir.h"

/* A program that checks its configuration starts a sink, and frees it. */
static void test_a_sink_that_is_not_used_touches_no_file(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	state_life_start(&life, path, T0);
	assert_int_equal(state_life_size(path), -1);
	state_life_free(&life);
	assert_int_equal(state_life_size(path), -1);
	assert_int_equal(state_life_size(tmpdir_path(*state, "state.lock")), -1);
}

static void test_the_first_event_counts_on(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	state_life_live_once(path, T0);
	state_life_start(&life, path, T0);
	state_life_emit(&life, "a");
	state_life_end(&life);
	assert_int_equal(life.patches, 1);
	assert_int_equal(life.count, 3);
	assert_int_equal(life.errors, 0);
}

/* A recording call tells that there is no file. */
static void test_the_first_event_tells(void **state)
{
	struct state_life life;

	state_life_start(&life, tmpdir_path(*state, "no/such/folder"), T0);
	assert_int_equal(life.errors, 0);
	state_life_emit(&life, "a");
	state_life_check_told(&life, "No such file or directory");
	state_life_end(&life);
}

/* A server that forks its workers after it has read its configuration. */
static void test_a_child_of_a_process_that_has_not_used_it(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;
	pid_t child;

	state_life_live_once(path, T0);
	state_life_start(&life, path, T0);
	child = fork();
	if (child == 0) {
		state_life_record(&life, "a");
		state_life_shutdown(&life);
		_exit(life.errors == 0 && life.patches == 1 && life.count == 3 ? 0 : 1);
	}
	assert_int_equal(unit_wait(child), 0);
	state_life_free(&life);
	state_life_check_next(path, T0, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_sink_that_is_not_used_touches_no_file),
		TMPDIR_TEST(test_the_first_event_counts_on),
		TMPDIR_TEST(test_the_first_event_tells),
		TMPDIR_TEST(test_a_child_of_a_process_that_has_not_used_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

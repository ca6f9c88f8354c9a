/* Somebody removes the state file of a process, or its lock. */
#include "state_life.h"
#include "tmpdir.h"

#include <unistd.h>

/* With or without its lock. The next write, or the end, makes a new file. */
static void test_a_removed_file_is_made_anew(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life, other;

	for (unsigned i = 0; i < 4; i++) {
		const bool with_lock = (i & 1) != 0, at_end = (i & 2) != 0;

		state_life_begin(&life, path, T0);
		state_life_record(&life, "a");
		state_life_record(&life, "a");
		state_life_advance(&life, EVREC_SECOND);
		assert_int_equal(unlink(path), 0);
		if (with_lock) {
			assert_int_equal(unlink(tmpdir_path(*state, "state.lock")), 0);
		}
		if (!at_end) {
			state_life_record(&life, "b");
			state_life_advance(&life, EVREC_SECOND);
			assert_true(state_life_size(path) > 0);
			state_life_begin(&other, path, T0);
			state_life_check_told(&other, "is in use by another process or sink");
			state_life_end(&other);
		}
		state_life_end(&life);
		assert_int_equal(life.errors, 0);
		state_life_check_next(path, T0, 3);
		assert_int_equal(unlink(path), 0);
	}
}

/* Both are removed, and another process makes new ones. */
static void test_a_removed_file_may_have_another_owner(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life, other;

	state_life_begin(&life, path, T0);
	state_life_record(&life, "a");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(tmpdir_path(*state, "state.lock")), 0);
	state_life_begin(&other, path, T0);
	state_life_record(&other, "a");
	state_life_record(&other, "a");
	for (int i = 0; i < 4; i++) {
		state_life_record(&life, "a");
		state_life_advance(&life, EVREC_SECOND);
	}
	state_life_check_told(&life, "is in use by another process or sink");
	state_life_end(&life);
	state_life_end(&other);
	state_life_check_next(path, T0, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_removed_file_is_made_anew),
		TMPDIR_TEST(test_a_removed_file_may_have_another_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

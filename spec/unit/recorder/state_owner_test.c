/* A state file whose owner ends while another one waits for it. */
#include "state_life.h"
#include "tmpdir.h"

/* A reload: the new configuration starts before the old one ends. */
static void test_the_next_owner_takes_the_file(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life old, life;

	state_life_begin(&old, path, T0);
	state_life_record(&old, "a");
	state_life_begin(&life, path, T0);
	state_life_check_told(&life, "is in use by another process or sink");
	for (int i = 0; i < 4; i++) {
		state_life_record(&life, "a");
	}
	state_life_end(&old);
	state_life_advance(&life, 3 * EVREC_SECOND - 1);
	state_life_check_next(path, T0, 2);
	/* Its own count, not the old owner's, as soon as it has the lock. */
	state_life_advance(&life, 1);
	state_life_free(&life);
	assert_int_equal(life.errors, 1);
	state_life_check_next(path, T0, 5);
}

/* A sink that waited for the lock, too, leaves a file alone that is no state file. */
static void test_the_next_owner_leaves_another_file_alone(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life old, life;

	state_life_begin(&old, path, T0);
	state_life_begin(&life, path, T0);
	state_life_record(&life, "a");
	state_life_end(&old);
	tmpdir_write_file(path, "precious");
	state_life_advance(&life, 3 * EVREC_SECOND);
	state_life_advance(&life, 3 * EVREC_SECOND);
	unit_check_contains(life.error, "is not a state file of evrec");
	assert_int_equal(life.errors, 2);
	state_life_end(&life);
	assert_int_equal(state_life_size(path), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_the_next_owner_takes_the_file),
		TMPDIR_TEST(test_the_next_owner_leaves_another_file_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

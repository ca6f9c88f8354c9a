/* Occurrences of an event that other processes may record again. */
#include "unit.h"

#include "alloc_failure.h"
#include "correlate/origins.h"

static bool take(struct origins *origins, uint64_t process, uint64_t connection, bool *limited)
{
	return origins_take(origins, &(struct origin){ process, connection, true, false }, limited);
}

static void add(struct origins **origins, uint64_t process, uint64_t connection, bool limited)
{
	origins_add(origins, &(struct origin){ process, connection, false, false }, limited);
}

/* As the next process reads them. */
static void restore(struct origins **origins)
{
	struct buf bytes = { 0 };
	evrec_str rest;

	origins_save(*origins, &bytes);
	mem_free(*origins);
	*origins = NULL;
	rest = buf_str(&bytes);
	assert_int_equal(origins_restore(origins, &rest), RESTORED);
	assert_int_equal(rest.len, 0);
	buf_free(&bytes);
}

static void test_each_is_taken_once_by_its_process(void **state)
{
	struct origins *origins = NULL;
	bool limited = true;

	(void)state;
	assert_false(take(origins, 1, 1, &limited));
	add(&origins, 1, 1, false);
	add(&origins, 1, 1, false);
	add(&origins, 2, 2, false);
	assert_false(take(origins, 3, 3, &limited));
	/* Over the same connection nothing comes again. */
	assert_false(take(origins, 1, 1, &limited));
	assert_true(take(origins, 1, 4, &limited));
	assert_false(limited);
	assert_true(take(origins, 1, 4, &limited));
	assert_false(take(origins, 1, 4, &limited));
	assert_true(take(origins, 2, 5, &limited));
	mem_free(origins);
}

static void test_next_process_knows_them(void **state)
{
	struct origins *origins = NULL;
	bool limited = true;

	(void)state;
	add(&origins, 1, 7, true);
	add(&origins, 1, 7, false);
	restore(&origins);
	assert_true(take(origins, 1, 7, &limited));
	assert_false(limited);
	origins_add(&origins, &(struct origin){ 1, 7, true, false }, false);
	/* Killed too, before the second came. */
	restore(&origins);
	assert_true(take(origins, 1, 1, &limited) && !limited);
	assert_true(take(origins, 1, 1, &limited) && limited);
	assert_false(take(origins, 1, 1, &limited));
	mem_free(origins);
}

static void test_acknowledged_ones_are_forgotten(void **state)
{
	struct origins *origins = NULL;
	bool limited;

	(void)state;
	add(&origins, 1, 1, false);
	add(&origins, 1, 1, false);
	add(&origins, 1, 1, true);
	origins_acknowledge(&origins, 2, false, 1);
	origins_acknowledge(&origins, 1, false, 1);
	restore(&origins);
	assert_true(take(origins, 1, 1, &limited) && !limited);
	assert_true(take(origins, 1, 1, &limited) && limited);
	assert_false(take(origins, 1, 1, &limited));
	add(&origins, 2, 2, true);
	origins_acknowledge(&origins, 2, true, 5);
	mem_free(origins);
	origins = NULL;
	add(&origins, 2, 2, true);
	origins_acknowledge(&origins, 2, true, 1);
	assert_null(origins);
}

/* A new one says that nothing comes again any more. */
static void test_new_one_ends_what_is_recorded_again(void **state)
{
	struct origins *origins = NULL;
	bool limited;

	(void)state;
	add(&origins, 1, 1, false);
	add(&origins, 1, 2, false);
	assert_false(take(origins, 1, 2, &limited));
	assert_true(take(origins, 1, 3, &limited));
	assert_false(take(origins, 1, 3, &limited));
	mem_free(origins);
}

static void test_of_too_many_processes_the_first_are_forgotten(void **state)
{
	struct origins *origins = NULL;
	bool limited;

	(void)state;
	for (uint64_t i = 1; i <= 100; i++) {
		add(&origins, i, i, false);
	}
	restore(&origins);
	assert_false(take(origins, 1, 1, &limited));
	assert_true(take(origins, 100, 1, &limited));
	mem_free(origins);
}

static void test_damaged_bytes(void **state)
{
	const uint32_t many = 1000, one = 1;
	struct origins *origins = NULL;
	evrec_str bytes = { (const char *)&many, sizeof(many) };

	(void)state;
	assert_int_equal(origins_restore(&origins, &bytes), RESTORED_INVALID);
	bytes = (evrec_str){ (const char *)&one, sizeof(one) };
	assert_int_equal(origins_restore(&origins, &bytes), RESTORED_INVALID);
	bytes.len = 1;
	assert_int_equal(origins_restore(&origins, &bytes), RESTORED_INVALID);
	assert_null(origins);
}

static void without_memory(void)
{
	struct origins *origins = NULL;
	struct buf bytes = { 0 };
	evrec_str rest;
	bool limited;

	alloc_failure_arm();
	for (uint64_t i = 1; i <= 3; i++) {
		add(&origins, i, i, false);
	}
	origins_save(origins, &bytes);
	mem_free(origins);
	origins = NULL;
	rest = buf_str(&bytes);
	alloc_failure_check(!bytes.failed && origins_restore(&origins, &rest) == RESTORED &&
	                    take(origins, 1, 9, &limited) && take(origins, 3, 9, &limited));
	alloc_failure_disarm();
	mem_free(origins);
	buf_free(&bytes);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(without_memory, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_taken_once_by_its_process),
		cmocka_unit_test(test_next_process_knows_them),
		cmocka_unit_test(test_acknowledged_ones_are_forgotten),
		cmocka_unit_test(test_new_one_ends_what_is_recorded_again),
		cmocka_unit_test(test_of_too_many_processes_the_first_are_forgotten),
		cmocka_unit_test(test_damaged_bytes),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("origins", tests, NULL, NULL);
}

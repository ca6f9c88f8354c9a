/* Occurrences of an event that other processes may record again. */
#include "unit.h"

#include "alloc_failure.h"
#include "correlate/origins.h"

static bool take(struct origins *origins, uint64_t process, uint64_t connection, bool *limited)
{
	return origins_take(origins, &(struct origin){ process, connection, 0, true, false }, limited);
}

static void add(struct origins **origins, uint64_t process, uint64_t connection, bool limited)
{
	origins_add(origins, &(struct origin){ process, connection, 0, false, false }, limited);
}

/* In the next batch, which the process gets. */
static void acknowledge(struct origins **origins, uint64_t connection, bool limited, uint32_t n)
{
	static uint64_t batch;

	origins_tell(*origins, connection, limited, n, ++batch);
	origins_acknowledge(origins, connection, limited, n);
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
	origins_add(&origins, &(struct origin){ 1, 7, 0, true, false }, false);
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
	acknowledge(&origins, 2, false, 1);
	acknowledge(&origins, 1, false, 1);
	restore(&origins);
	assert_true(take(origins, 1, 1, &limited) && !limited);
	assert_true(take(origins, 1, 1, &limited) && limited);
	assert_false(take(origins, 1, 1, &limited));
	add(&origins, 2, 2, true);
	acknowledge(&origins, 2, true, 5);
	mem_free(origins);
	origins = NULL;
	add(&origins, 2, 2, true);
	acknowledge(&origins, 2, true, 1);
	assert_null(origins);
}

/* The owner was killed after its state said that they are acknowledged: only the process knows whether it was told so. */
static void check_batch_after_kill(uint64_t got, uint32_t expected)
{
	struct origins *origins = NULL;
	struct origin from = { .process = 1, .connection = 1, .batch = got, .again = true };
	bool limited;

	for (int i = 0; i < 3; i++) {
		add(&origins, 1, 1, false);
	}
	origins_tell(origins, 1, false, 2, 77);
	restore(&origins);
	assert_true(origins_is_to_reconnect(origins, &from));
	origins_reconnect(&origins, &from);
	assert_false(origins_is_to_reconnect(origins, &from));
	for (; expected > 0; expected--) {
		assert_true(origins_take(origins, &from, &limited));
	}
	assert_false(origins_take(origins, &from, &limited));
	mem_free(origins);
}

static void test_batch_that_the_process_has_got(void **state)
{
	(void)state;
	check_batch_after_kill(77, 1);
	check_batch_after_kill(76, 3);
}

static void test_batch_without_a_rest_is_forgotten_when_its_process_comes(void **state)
{
	const struct origin from = { .process = 1, .connection = 1, .batch = 5, .again = true };
	struct origins *origins = NULL;

	(void)state;
	add(&origins, 1, 1, true);
	origins_tell(origins, 1, true, 1, 5);
	restore(&origins);
	origins_reconnect(&origins, &from);
	assert_null(origins);
}

/* Its process has got a later one. */
static void test_earlier_batch_is_forgotten(void **state)
{
	struct origins *origins = NULL;

	(void)state;
	add(&origins, 1, 1, false);
	add(&origins, 1, 1, true);
	origins_tell(origins, 1, false, 1, 5);
	origins_tell(origins, 1, true, 1, 6);
	origins_acknowledge(&origins, 1, true, 1);
	assert_null(origins);
	origins_tell(origins, 1, true, 1, 7);
}

/* It was a worker of the last owner, has recorded all of that again, and is the owner now: nothing comes again. */
static void test_process_that_is_the_owner_now_leaves_no_mark(void **state)
{
	struct origins *origins = NULL;
	bool limited;

	(void)state;
	add(&origins, 1, 7, false);
	add(&origins, 2, 8, false);
	restore(&origins);
	assert_true(take(origins, 1, 0, &limited));
	add(&origins, 1, 0, limited);
	assert_false(origins_have(origins, 0));
	assert_true(take(origins, 2, 1, &limited));
	add(&origins, 2, 1, limited);
	acknowledge(&origins, 1, false, 1);
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
	for (uint64_t i = 1; i <= 257; i++) {
		add(&origins, i, i, false);
	}
	restore(&origins);
	assert_false(take(origins, 1, 1, &limited));
	for (uint64_t i = 2; i <= 257; i++) {
		assert_true(take(origins, i, 1, &limited));
	}
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
		cmocka_unit_test(test_batch_that_the_process_has_got),
		cmocka_unit_test(test_batch_without_a_rest_is_forgotten_when_its_process_comes),
		cmocka_unit_test(test_earlier_batch_is_forgotten),
		cmocka_unit_test(test_process_that_is_the_owner_now_leaves_no_mark),
		cmocka_unit_test(test_new_one_ends_what_is_recorded_again),
		cmocka_unit_test(test_of_too_many_processes_the_first_are_forgotten),
		cmocka_unit_test(test_damaged_bytes),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("origins", tests, NULL, NULL);
}

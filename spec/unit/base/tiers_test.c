/* An array that grows in tiers: its elements stay where they are, and it grows to a bound at most. */
#include "counting_allocator.h"

#include "base/tiers.h"

#define ELEMENTS 50000

/* Writes the number of each element over all its bytes that an unsigned has. */
static void check_elements_stay(size_t size)
{
	static char *at[ELEMENTS];
	struct tiers t = { .room = 0 };
	size_t known = 0;

	while (known < ELEMENTS) {
		assert_true(tiers_grow(&t, size, ELEMENTS));
		for (; known < t.room; known++) {
			const unsigned number = (unsigned)known;

			at[known] = tiers_at(&t, known, size);
			memset(at[known], 0, size);
			memcpy(at[known], &number, sizeof(number));
		}
	}
	assert_int_equal(t.room, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++) {
		unsigned number;

		assert_ptr_equal(tiers_at(&t, i, size), at[i]);
		memcpy(&number, at[i], sizeof(number));
		assert_int_equal(number, i);
	}
	tiers_free(&t);
}

static void test_elements_stay_and_share_no_memory(void **state)
{
	(void)state;
	check_elements_stay(sizeof(unsigned));
	check_elements_stay(24);
	check_elements_stay(200);
}

/* Each tier has as many elements as all before it, and TIERS_FIRST more. */
static void test_tiers_double(void **state)
{
	struct tiers t = { .room = 0 };

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		const size_t before = t.room;

		assert_int_equal(tiers_next(&t, SIZE_MAX), before + TIERS_FIRST);
		assert_true(tiers_grow(&t, 1, SIZE_MAX));
		assert_int_equal(t.room, 2 * before + TIERS_FIRST);
	}
	tiers_free(&t);
}

static void test_array_grows_to_its_bound(void **state)
{
	static const size_t bounds[] = { 1, 15, 16, 17, 47, 48, 49, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		struct tiers t = { .room = 0 };

		while (tiers_next(&t, bounds[i]) != 0) {
			const size_t room = t.room + tiers_next(&t, bounds[i]);

			assert_true(tiers_grow(&t, 8, bounds[i]));
			assert_int_equal(t.room, room);
			memset(tiers_at(&t, room - 1, 8), 'x', 8);
		}
		assert_int_equal(t.room, bounds[i]);
		assert_false(tiers_grow(&t, 8, bounds[i]));
		assert_int_equal(t.room, bounds[i]);
		tiers_free(&t);
	}
}

/* Between tiers of its own the array has one of the caller's. */
static void test_array_owns_a_tier_that_the_caller_made(void **state)
{
	struct counting_allocator memory = { 0 };
	struct tiers t = { .room = 0 };
	size_t elements;
	char *tier;

	(void)state;
	evrec_set_allocator(counting_realloc, &memory);
	assert_true(tiers_grow(&t, 8, 1000));
	elements = tiers_next(&t, 1000);
	tier = mem_alloc(elements * 8);
	tiers_add(&t, tier, elements);
	assert_true(tiers_grow(&t, 8, 1000));
	assert_int_equal(memory.calls, 3);
	assert_ptr_equal(tiers_at(&t, TIERS_FIRST, 8), tier);
	assert_ptr_equal(tiers_at(&t, TIERS_FIRST + elements - 1, 8), tier + (elements - 1) * 8);
	tiers_free(&t);
	assert_int_equal(memory.live, 0);
	assert_int_equal(t.room, 0);
	assert_true(tiers_grow(&t, 8, 1000)); /* it is an empty array again */
	assert_int_equal(t.room, TIERS_FIRST);
	tiers_free(&t);
	assert_int_equal(memory.live, 0);
	evrec_set_allocator(NULL, NULL);
}

static void test_array_without_memory_stays_as_it_is(void **state)
{
	struct unit_allocator memory = { .fail_at = 2 };
	struct tiers t = { .room = 0 };

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	assert_true(tiers_grow(&t, 8, 1000));
	memset(tiers_at(&t, 3, 8), 'x', 8);
	assert_false(tiers_grow(&t, 8, 1000));
	assert_int_equal(t.room, TIERS_FIRST);
	assert_memory_equal(tiers_at(&t, 3, 8), "xxxxxxxx", 8);
	assert_true(tiers_grow(&t, 8, 1000));
	assert_int_equal(t.room, 3 * TIERS_FIRST);
	assert_memory_equal(tiers_at(&t, 3, 8), "xxxxxxxx", 8);
	tiers_free(&t);
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elements_stay_and_share_no_memory),
		cmocka_unit_test(test_tiers_double),
		cmocka_unit_test(test_array_grows_to_its_bound),
		cmocka_unit_test(test_array_owns_a_tier_that_the_caller_made),
		cmocka_unit_test(test_array_without_memory_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

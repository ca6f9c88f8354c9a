/* The helpers of memory. */
#include "unit.h"

#define PAGE 4096

/* So each page has a byte that was written, wherever the block begins. */
static void test_touching_writes_to_each_page_and_to_the_last_byte(void **state)
{
	static const size_t sizes[] = { 1, 2, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE - 100, 3 * PAGE };
	static unsigned char block[3 * PAGE + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(block, 255, sizeof(block));
		mem_touch(block, sizes[i]);
		for (size_t at = 0; at < sizes[i]; at += PAGE) {
			assert_int_equal(block[at], 0);
		}
		assert_int_equal(block[sizes[i] - 1], 0);
		assert_int_equal(block[sizes[i]], 255);
	}
	block[0] = 255;
	mem_touch(block, 0);
	assert_int_equal(block[0], 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_touching_writes_to_each_page_and_to_the_last_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

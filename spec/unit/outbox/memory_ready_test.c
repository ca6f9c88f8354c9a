/* Memory that the driver makes ready, so that calls that submit a write allocate none. */
#include "alloc_failure.h"
#include "checked_outbox.h"
#include "counting_allocator.h"

#include "outbox/pool.h"

#define WARM_UP 200
#define WRITES 5000

/* The allocations of calls that submit new writes, each of which is followed by a round of a driver. */
static size_t allocations_while_submitting(bool ahead)
{
	struct counting_allocator allocator = { .calls = 0 };
	struct outbox *ob;
	size_t sum = 0;

	evrec_set_allocator(counting_realloc, &allocator);
	ob = checked_outbox(WRITES);
	for (uint64_t id = 1; id <= WRITES; id++) {
		const size_t before = allocator.calls;

		assert_true(checked_submit(ob, id, 1));
		sum += id <= WARM_UP ? 0 : allocator.calls - before;
		(void)outbox_keep_memory_ready(ob, 0, ahead);
	}
	checked_outbox_free(ob);
	evrec_set_allocator(NULL, NULL);
	assert_int_equal(allocator.live, 0);
	return sum;
}

/* 0, as a block of the outbox's pool lies in a slab; 1 with AddressSanitizer, for which each block is one of its own. */
static size_t allocations_of_a_block(void)
{
	struct counting_allocator allocator = { .calls = 0 };
	struct pool pool = { .wanted = 0 };
	void *first, *second;
	size_t of_the_first, of_both;

	evrec_set_allocator(counting_realloc, &allocator);
	first = pool_alloc(&pool, 1);
	of_the_first = allocator.calls;
	second = pool_alloc(&pool, 1);
	of_both = allocator.calls;
	pool_free(&pool, first);
	pool_free(&pool, second);
	pool_destroy(&pool);
	evrec_set_allocator(NULL, NULL);
	return of_both - of_the_first;
}

static void test_submitting_allocates_nothing_if_memory_is_made_ready(void **state)
{
	const size_t of_blocks = (WRITES - WARM_UP) * allocations_of_a_block();

	(void)state;
	assert_int_equal(allocations_while_submitting(true), of_blocks);
	assert_true(allocations_while_submitting(false) > of_blocks);
}

/* All writes that the outbox has taken back off at the same time, whichever allocation has failed. */
static void submit_and_back_off(void)
{
	struct outbox *ob = checked_outbox(WRITES);
	struct entry *entry;

	alloc_failure_arm();
	for (uint64_t id = 1; id <= WARM_UP; id++) {
		(void)checked_submit(ob, id, 1);
		(void)outbox_keep_memory_ready(ob, 0, true);
	}
	alloc_failure_ignore();
	alloc_failure_disarm();
	while ((entry = outbox_take(ob, 0)) != NULL) {
		checked_answer(ob, entry, ANSWER_UNSENT, 0);
	}
	checked_outbox_free(ob);
}

static void test_memory_that_is_not_there_is_not_used(void **state)
{
	(void)state;
	alloc_failure_run(submit_and_back_off, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_submitting_allocates_nothing_if_memory_is_made_ready),
		cmocka_unit_test(test_memory_that_is_not_there_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

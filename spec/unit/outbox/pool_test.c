/* The pool of an outbox: its blocks share no memory, are used again, and are given back after a quiet time. */
#include "alloc_failure.h"
#include "counting_allocator.h"

#include "outbox/pool.h"

#define LARGEST (POOL_SIZES * POOL_STEP) /* some bytes of the largest block are the pool's own */
#define SLAB_MIN ((size_t)4 * 1024)
#define SLAB_MAX ((size_t)2 * 1024 * 1024)

/* ---- blocks ---- */

static void check_block(const unsigned char *block, size_t size, unsigned char fill)
{
	for (size_t i = 0; i < size; i++) {
		if (block[i] != fill) {
			fail_msg("byte %zu of %zu is of another block", i, size);
		}
	}
}

static void test_blocks_of_all_sizes_share_no_memory(void **state)
{
	static unsigned char *blocks[3][LARGEST + 200];
	const size_t sizes = sizeof(blocks[0]) / sizeof(blocks[0][0]);
	struct pool pool = { .wanted = 0 };

	(void)state;
	for (size_t n = 0; n < 3; n++) {
		for (size_t size = 0; size < sizes; size++) {
			unsigned char *block = pool_alloc(&pool, size);

			assert_non_null(block);
			assert_int_equal((uintptr_t)block % _Alignof(void *), 0);
			assert_int_equal((uintptr_t)block % _Alignof(uint64_t), 0);
			memset(block, (int)(n + size) & 255, size);
			blocks[n][size] = block;
		}
	}
	for (size_t n = 0; n < 3; n++) {
		for (size_t size = 0; size < sizes; size++) {
			check_block(blocks[n][size], size, (unsigned char)(n + size));
			pool_free(&pool, blocks[n][size]);
		}
	}
	pool_free(&pool, NULL);
	pool_destroy(&pool);
}

/* Has no block of 1 GiB. */
static void *realloc_less(void *ctx, void *block, size_t size)
{
	(void)ctx;
	return size >= (size_t)1 << 30 ? NULL : unit_realloc(&(struct unit_allocator){ 0 }, block, size);
}

static void test_no_memory_is_large_enough_for_a_huge_block(void **state)
{
	struct pool pool = { .wanted = 0 };
	void *small;

	(void)state;
	evrec_set_allocator(realloc_less, NULL);
	small = pool_alloc(&pool, 1); /* its slab has room */
	for (size_t less = 0; less < 2 * (size_t)POOL_STEP; less++) {
		assert_null(pool_alloc(&pool, SIZE_MAX - less));
	}
	pool_free(&pool, small);
	pool_destroy(&pool);
	evrec_set_allocator(NULL, NULL);
}

/* ---- slabs ---- */

static struct counting_allocator memory;

static struct pool *counted_pool(void)
{
	static struct pool pool;

	memory = (struct counting_allocator){ 0 };
	evrec_set_allocator(counting_realloc, &memory);
	pool = (struct pool){ .wanted = 0 };
	return &pool;
}

/* All memory is given back. */
static void destroy_counted(struct pool *pool)
{
	pool_destroy(pool);
	assert_int_equal(memory.live, 0);
	evrec_set_allocator(NULL, NULL);
}

/* Skips the test: with AddressSanitizer each block is one of the allocator's. */
#define NEEDS_SLABS()                                                                                                  \
	if (UNDER_ASAN) {                                                                                              \
		skip();                                                                                                \
	}

static void test_freed_block_is_used_again(void **state)
{
	struct pool *pool;
	char *first, *second;

	(void)state;
	NEEDS_SLABS();
	pool = counted_pool();
	first = pool_alloc(pool, 100);
	second = pool_alloc(pool, 100);
	pool_free(pool, first);
	assert_ptr_equal(pool_alloc(pool, 90), first); /* of about the same size */
	pool_free(pool, second);
	pool_free(pool, first);
	for (unsigned i = 0; i < 10000; i++) {
		pool_free(pool, pool_alloc(pool, 100));
	}
	assert_int_equal(memory.calls, 1);
	destroy_counted(pool);
}

static void test_large_block_is_one_of_the_allocator(void **state)
{
	struct pool *pool = counted_pool();
	void *block;

	(void)state;
	block = pool_alloc(pool, LARGEST);
	memset(block, 'x', LARGEST);
	assert_int_equal(memory.calls, 1);
	assert_true(memory.live < 2 * LARGEST);
	pool_free(pool, block);
	assert_int_equal(memory.live, 0);
	assert_int_equal(pool_empty_bytes(pool), 0);
	destroy_counted(pool);
}

/* The sizes of the slabs, in the order in which they were allocated. */
struct sizes {
	size_t of[64], len;
};

static void *note_size(void *ctx, void *block, size_t size)
{
	struct sizes *sizes = ctx;

	if (size == 0) {
		free(block);
		return NULL;
	}
	assert_true(sizes->len < 64);
	sizes->of[sizes->len++] = size;
	return realloc(block, size);
}

/* 24 MiB of blocks: slabs double from SLAB_MIN to SLAB_MAX, and are no larger. */
static void test_slabs_grow_to_a_bound(void **state)
{
	static void *blocks[24 * 1024];
	const size_t n = sizeof(blocks) / sizeof(blocks[0]);
	struct pool pool = { .wanted = 0 };
	struct sizes sizes = { .len = 0 };

	(void)state;
	NEEDS_SLABS();
	evrec_set_allocator(note_size, &sizes);
	for (size_t i = 0; i < n; i++) {
		blocks[i] = pool_alloc(&pool, 1000);
		memset(blocks[i], 'x', 1000);
	}
	for (size_t i = 0; i < n; i++) {
		pool_free(&pool, blocks[i]);
	}
	assert_true(sizes.len > 15);
	for (size_t i = 0; i < sizes.len; i++) {
		assert_int_equal(sizes.of[i], SLAB_MIN << i < SLAB_MAX ? SLAB_MIN << i : SLAB_MAX);
	}
	pool_destroy(&pool);
	evrec_set_allocator(NULL, NULL);
}

/* ---- quiet times ---- */

#define BLOCKS 2000

struct blocks {
	void *of[BLOCKS];
};

static void alloc_all(struct pool *pool, struct blocks *blocks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		blocks->of[i] = pool_alloc(pool, 200);
		assert_non_null(blocks->of[i]);
	}
}

static void free_all(struct pool *pool, struct blocks *blocks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		pool_free(pool, blocks->of[i]);
	}
}

static void give_back(struct pool *pool)
{
	pool_free_slabs(pool_take_unused(pool));
}

static void test_slabs_are_given_back_after_a_quiet_time(void **state)
{
	static struct blocks blocks;
	struct pool *pool;
	size_t live;

	(void)state;
	NEEDS_SLABS();
	pool = counted_pool();
	assert_null(pool_take_unused(pool));
	alloc_all(pool, &blocks, BLOCKS);
	assert_int_equal(pool_empty_bytes(pool), 0);
	give_back(pool);
	give_back(pool);
	live = memory.live; /* no slab that is in use is given back */
	assert_true(live > BLOCKS * 200);
	free_all(pool, &blocks, BLOCKS);
	assert_true(pool_empty_bytes(pool) != 0);
	assert_null(pool_take_unused(pool)); /* they were in use a moment ago */
	assert_int_equal(memory.live, live);
	give_back(pool);
	assert_int_equal(memory.live, 0);
	assert_int_equal(pool_empty_bytes(pool), 0);
	/* The pool is as good as new. */
	alloc_all(pool, &blocks, BLOCKS);
	free_all(pool, &blocks, BLOCKS);
	destroy_counted(pool);
}

/* After a burst as much memory stays as is used again and again, so that none is allocated anew. */
static void test_slabs_that_are_used_again_stay(void **state)
{
	static struct blocks blocks;
	struct pool *pool;
	size_t calls, burst, live = 0;

	(void)state;
	NEEDS_SLABS();
	pool = counted_pool();
	alloc_all(pool, &blocks, BLOCKS);
	free_all(pool, &blocks, BLOCKS);
	give_back(pool);
	calls = memory.calls;
	burst = memory.live;
	for (unsigned i = 0; i < 10; i++) {
		live = memory.live;
		alloc_all(pool, &blocks, BLOCKS / 10);
		free_all(pool, &blocks, BLOCKS / 10);
		give_back(pool);
		assert_true(memory.live <= live);
	}
	assert_int_equal(memory.live, live);
	assert_int_equal(memory.calls, calls);
	assert_in_range(live, BLOCKS / 10 * 200, burst - 1);
	destroy_counted(pool);
}

/* ---- ahead of time ---- */

/* Allocates blocks until a slab is ordered. Returns their number. */
static size_t alloc_until_order(struct pool *pool, struct blocks *blocks, struct slab_order *order)
{
	size_t n = 0;

	while (!pool_next_order(pool, order)) {
		assert_true(n < BLOCKS);
		blocks->of[n] = pool_alloc(pool, 24);
		assert_non_null(blocks->of[n++]);
	}
	return n;
}

/* Half of the first slab is in use when the second one is ordered: then no recording call has to allocate it. */
static void test_slab_made_ahead_is_used(void **state)
{
	static struct blocks blocks;
	struct slab_order order;
	struct pool *pool;
	size_t n, calls;

	(void)state;
	NEEDS_SLABS();
	pool = counted_pool();
	assert_false(pool_next_order(pool, &order));
	n = alloc_until_order(pool, &blocks, &order);
	assert_in_range(n, SLAB_MIN / 64 / 2 - 1, SLAB_MIN / 64 / 2);
	assert_int_equal(order.bytes, 2 * SLAB_MIN);
	assert_int_equal(memory.calls, 1);
	pool_add(pool, pool_make(&order));
	assert_true(pool_empty_bytes(pool) != 0);
	pool_free(pool, blocks.of[n - 1]);
	blocks.of[n - 1] = pool_alloc(pool, 24); /* half of it is in use again */
	assert_false(pool_next_order(pool, &order));
	calls = memory.calls;
	while (pool_empty_bytes(pool) != 0) {
		assert_false(pool_next_order(pool, &order)); /* there is one already */
		blocks.of[n++] = pool_alloc(pool, 24);
	}
	assert_int_equal(memory.calls, calls);
	assert_in_range(n, SLAB_MIN / 64 - 1, SLAB_MIN / 64 + 1);
	free_all(pool, &blocks, n);
	destroy_counted(pool);
}

/* A slab that was made ahead, and that no block was taken from, is given back as others are. */
static void test_slab_made_ahead_is_given_back(void **state)
{
	static struct blocks blocks;
	struct slab_order order;
	struct pool *pool;
	size_t n, live;

	(void)state;
	NEEDS_SLABS();
	pool = counted_pool();
	n = alloc_until_order(pool, &blocks, &order);
	live = memory.live;
	pool_add(pool, pool_make(&order));
	give_back(pool);
	assert_true(memory.live > live);
	give_back(pool);
	assert_int_equal(memory.live, live);
	free_all(pool, &blocks, n);
	destroy_counted(pool);
}

/* ---- memory runs out ---- */

static void use_pool(void)
{
	static const size_t sizes[] = { 1, 24, 500, 24, 2000, LARGEST, 24, 3 * LARGEST };
	const size_t n = sizeof(sizes) / sizeof(sizes[0]);
	const struct slab_order order = { 3, SLAB_MIN };
	struct pool pool = { .wanted = 0 };
	void *blocks[sizeof(sizes) / sizeof(sizes[0])];
	struct slab *slab;

	alloc_failure_arm();
	for (size_t i = 0; i < n; i++) {
		blocks[i] = pool_alloc(&pool, sizes[i]);
		alloc_failure_check(blocks[i] != NULL);
		if (blocks[i] != NULL) {
			memset(blocks[i], (int)i, sizes[i]);
		}
	}
	slab = pool_make(&order);
	alloc_failure_check(slab != NULL);
	if (slab != NULL) {
		pool_add(&pool, slab);
	}
	alloc_failure_disarm();
	for (size_t i = 0; i < n; i++) {
		check_block(blocks[i], blocks[i] == NULL ? 0 : sizes[i], (unsigned char)i);
		pool_free(&pool, blocks[i]);
	}
	blocks[0] = pool_alloc(&pool, 500);
	assert_non_null(blocks[0]);
	pool_free(&pool, blocks[0]);
	pool_destroy(&pool);
}

static void test_pool_survives_failures(void **state)
{
	(void)state;
	alloc_failure_run(use_pool, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_of_all_sizes_share_no_memory),
		cmocka_unit_test(test_no_memory_is_large_enough_for_a_huge_block),
		cmocka_unit_test(test_freed_block_is_used_again),
		cmocka_unit_test(test_large_block_is_one_of_the_allocator),
		cmocka_unit_test(test_slabs_grow_to_a_bound),
		cmocka_unit_test(test_slabs_are_given_back_after_a_quiet_time),
		cmocka_unit_test(test_slabs_that_are_used_again_stay),
		cmocka_unit_test(test_slab_made_ahead_is_used),
		cmocka_unit_test(test_slab_made_ahead_is_given_back),
		cmocka_unit_test(test_pool_survives_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

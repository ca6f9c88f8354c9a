/*
 * Random blocks of a pool: sizes of all kinds, bursts and quiet times, slabs made ahead. No block changes while it is
 * in use, and in the end all memory is given back.
 *
 * EVREC_SEED=n repeats the run that failed.
 */
#include "counting_allocator.h"

#include "outbox/pool.h"

#define BLOCKS 1500
#define STEPS 300000

struct block {
	unsigned char *bytes; /* NULL: none */
	size_t size;
	unsigned char fill;
};

struct world {
	struct pool pool;
	struct block blocks[BLOCKS];
	uint64_t random;
	struct slab *made; /* not added yet, or NULL */
};

static size_t below(struct world *w, size_t n)
{
	return unit_random(&w->random) % n;
}

static void fill(struct world *w, struct block *b)
{
	b->size = below(w, 50) == 0 ? below(w, 20000) : below(w, 4) == 0 ? below(w, 2100) : 100 + below(w, 30);
	b->fill = (unsigned char)below(w, 256);
	b->bytes = pool_alloc(&w->pool, b->size);
	assert_non_null(b->bytes);
	assert_int_equal((uintptr_t)b->bytes % sizeof(uint64_t), 0);
	memset(b->bytes, b->fill, b->size);
}

static void empty(struct world *w, struct block *b)
{
	for (size_t i = 0; i < b->size; i++) {
		if (b->bytes[i] != b->fill) {
			fail_msg("byte %zu of %zu was changed", i, b->size);
		}
	}
	pool_free(&w->pool, b->bytes);
	b->bytes = NULL;
}

static void make_ahead(struct world *w)
{
	struct slab_order order;

	if (w->made != NULL) {
		pool_add(&w->pool, w->made);
		w->made = NULL;
	} else if (pool_next_order(&w->pool, &order)) {
		w->made = pool_make(&order);
		assert_non_null(w->made);
	}
}

/* Most blocks are in use in a burst, and few in a quiet time. */
static void step(struct world *w, bool burst)
{
	struct block *b = &w->blocks[below(w, BLOCKS)];
	const bool wants = below(w, 10) != 0 ? burst : !burst;

	if (below(w, 100) == 0) {
		make_ahead(w);
	}
	if (below(w, 3000) == 0) {
		pool_free_slabs(pool_take_unused(&w->pool));
	}
	if (wants && b->bytes == NULL) {
		fill(w, b);
	} else if (!wants && b->bytes != NULL) {
		empty(w, b);
	}
}

static void test_random_blocks_keep_their_bytes(void **state)
{
	static struct world w;
	struct counting_allocator memory = { 0 };

	(void)state;
	w.random = unit_seed();
	evrec_set_allocator(counting_realloc, &memory);
	for (unsigned i = 0; i < STEPS; i++) {
		step(&w, i / 20000 % 2 == 0);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		if (w.blocks[i].bytes != NULL) {
			empty(&w, &w.blocks[i]);
		}
	}
	pool_free_slabs(w.made);
	pool_free_slabs(pool_take_unused(&w.pool));
	pool_free_slabs(pool_take_unused(&w.pool));
	assert_int_equal(pool_empty_bytes(&w.pool), 0);
	assert_int_equal(memory.live, 0);
	pool_destroy(&w.pool);
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_blocks_keep_their_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

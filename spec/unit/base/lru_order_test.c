/* The order of use in a large LRU cache, which puts a use into the order late. */
#include "unit.h"

#include "base/lru.h"

/* A value is the time of its last use. */
static const struct lru_type type = { .value_size = sizeof(uint64_t) };

struct used {
	uint64_t before; /* the time of the use before, in the order of lru_each */
	size_t n;
};

static bool was_used_before(void *ctx, evrec_str key, void *value)
{
	struct used *used = ctx;

	(void)key;
	assert_true(*(const uint64_t *)value < used->before);
	used->before = *(const uint64_t *)value;
	used->n++;
	return true;
}

/* Of two entries at least. */
static void check_order(struct lru *lru)
{
	struct used used = { UINT64_MAX, 0 };
	uint64_t *oldest;

	lru_each(lru, was_used_before, &used);
	assert_int_equal(used.n, lru_len(lru));
	oldest = lru_oldest(lru);
	assert_int_equal(used.before, *oldest);
	lru_use(lru, oldest);
	assert_ptr_not_equal(lru_oldest(lru), oldest);
	lru_remove(lru, oldest);
}

/* The value of the key, used in one of three ways. NULL: the key has no entry. */
static uint64_t *use(struct lru *lru, struct key *key, uint64_t way)
{
	uint64_t *value;
	bool fresh;

	switch (way) {
	case 0:
		value = lru_find(lru, key);
		if (value != NULL) {
			lru_use(lru, value);
		}
		return value;
	case 1:
		return lru_get(lru, key);
	default:
		return lru_put(lru, key, &fresh);
	}
}

static void test_order_is_that_of_use(void **state)
{
	const uint32_t capacity = LRU_LARGE + 500;
	struct lru *lru = lru_new(&type, capacity);
	uint64_t seed = unit_seed();

	(void)state;
	for (uint64_t now = 1; now <= 200000; now++) {
		const uint32_t number = (uint32_t)(unit_random(&seed) % (capacity + 50));
		struct key key = key_of((evrec_str){ (const char *)&number, sizeof(number) }, EVREC_STR(""));
		uint64_t *value = use(lru, &key, unit_random(&seed) % 10);

		if (value != NULL) {
			*value = now;
		}
		if (value != NULL && unit_random(&seed) % 100 == 0) {
			lru_remove(lru, value);
		}
		if (unit_random(&seed) % 300 == 0 && lru_len(lru) > 1) {
			check_order(lru);
		}
	}
	assert_true(lru_len(lru) > LRU_LARGE);
	lru_free(lru);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_order_is_that_of_use) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The LRU cache: order of eviction, handles, hints, bounded memory; and against a model. */
#include "unit.h"

#include "base/lru.h"

struct value {
	uint64_t number;
	struct buf text;
};

static void recycle(void *v)
{
	struct value *value = v;

	value->number = 0;
	buf_clear(&value->text);
}

static void fini(void *v)
{
	buf_free(&((struct value *)v)->text);
}

static const struct lru_type type = { .value_size = sizeof(struct value), .recycle = recycle, .fini = fini };

static struct value *put(struct lru *lru, const char *key, bool *fresh)
{
	struct key k = key_of(str_from(key), EVREC_STR(""));

	return lru_put(lru, &k, fresh);
}

static struct value *get(struct lru *lru, const char *key)
{
	struct key k = key_of(str_from(key), EVREC_STR(""));

	return lru_get(lru, &k);
}

static void test_least_recently_used_is_evicted(void **state)
{
	struct lru *lru = lru_new(&type, 3);
	bool fresh;

	(void)state;
	put(lru, "a", &fresh)->number = 1;
	assert_true(fresh);
	put(lru, "b", &fresh)->number = 2;
	put(lru, "c", &fresh)->number = 3;
	assert_int_equal(get(lru, "a")->number, 1); /* a lookup is a use */
	put(lru, "d", &fresh);                      /* evicts b */
	assert_true(fresh);
	assert_null(get(lru, "b"));
	assert_int_equal(put(lru, "c", &fresh)->number, 3); /* an insertion is a use */
	assert_false(fresh);
	put(lru, "e", &fresh);
	assert_null(get(lru, "a"));
	assert_non_null(get(lru, "c"));
	assert_non_null(get(lru, "d"));
	assert_int_equal(lru_len(lru), 3);
	lru_free(lru);
}

static void test_capacity_of_one_evicts_each_time(void **state)
{
	struct lru *lru = lru_new(&type, 1);
	bool fresh;

	(void)state;
	put(lru, "a", &fresh)->number = 1;
	assert_int_equal(put(lru, "b", &fresh)->number, 0);
	assert_null(get(lru, "a"));
	assert_int_equal(put(lru, "", &fresh)->number, 0);
	assert_non_null(get(lru, ""));
	lru_free(lru);
}

/* All hashes are equal: only the keys differ. */
static void test_keys_are_compared(void **state)
{
	struct lru *lru = lru_new(&type, 100);
	char key[16];
	bool fresh;
	int i;

	(void)state;
	for (i = 0; i < 150; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		((struct value *)lru_put(lru, &(struct key){ str_from(key), { NULL, 0 }, 42, 0, 0 }, &fresh))->number =
			(uint64_t)i;
		assert_true(fresh);
	}
	for (i = 0; i < 150; i++) {
		struct value *value;

		(void)snprintf(key, sizeof(key), "%d", i);
		value = lru_get(lru, &(struct key){ str_from(key), { NULL, 0 }, 42, 0, 0 });
		assert_true(i < 50 ? value == NULL : value->number == (uint64_t)i);
	}
	lru_free(lru);
}

static void test_handle_ends_with_its_entry(void **state)
{
	struct lru *lru = lru_new(&type, 2);
	uint64_t a, b;
	bool fresh;

	(void)state;
	a = lru_handle(put(lru, "a", &fresh));
	b = lru_handle(put(lru, "b", &fresh));
	assert_ptr_equal(lru_at(lru, a), get(lru, "a"));
	assert_int_not_equal(a, 0);
	put(lru, "c", &fresh); /* evicts b */
	assert_null(lru_at(lru, b));
	assert_non_null(lru_at(lru, a));
	assert_null(lru_at(lru, a + 7));
	lru_free(lru);
}

/* The hint of a key leads to its entry, and to no other cache or newer entry. */
static void test_hint_is_valid_for_its_entry_only(void **state)
{
	struct lru *one = lru_new(&type, 2), *other = lru_new(&type, 2);
	struct key key = key_of(EVREC_STR("a"), EVREC_STR(""));
	bool fresh;

	(void)state;
	((struct value *)lru_put(one, &key, &fresh))->number = 1;
	assert_true(fresh);
	assert_int_equal(((struct value *)lru_put(one, &key, &fresh))->number, 1);
	assert_false(fresh);
	put(other, "b", &fresh)->number = 2;
	assert_int_equal(((struct value *)lru_put(other, &key, &fresh))->number, 0);
	assert_true(fresh);
	assert_int_equal(((struct value *)lru_put(one, &key, &fresh))->number, 1);
	put(one, "b", &fresh);
	put(one, "c", &fresh)->number = 3; /* evicts a */
	assert_int_equal(((struct value *)lru_put(one, &key, &fresh))->number, 0);
	assert_true(fresh);
	assert_int_equal(get(one, "c")->number, 3);
	lru_free(one);
	/* A new cache, perhaps at the same address. */
	one = lru_new(&type, 2);
	put(one, "d", &fresh)->number = 4;
	assert_int_equal(((struct value *)lru_put(one, &key, &fresh))->number, 0);
	lru_free(one);
	lru_free(other);
}

static void test_entries_can_be_removed(void **state)
{
	struct lru *lru = lru_new(&type, 3);
	struct key b = key_of(EVREC_STR("b"), EVREC_STR(""));
	uint64_t handle;
	bool fresh;

	(void)state;
	assert_null(lru_find(lru, &b));
	assert_null(lru_oldest(lru));
	put(lru, "a", &fresh)->number = 1;
	put(lru, "b", &fresh)->number = 2;
	put(lru, "c", &fresh)->number = 3;
	assert_int_equal(((struct value *)lru_find(lru, &b))->number, 2);
	assert_int_equal(((struct value *)lru_oldest(lru))->number, 1); /* a search for it is no use of it */
	(void)get(lru, "a");
	assert_ptr_equal(lru_oldest(lru), lru_find(lru, &b));
	handle = lru_handle(lru_put(lru, &b, &fresh));
	lru_remove(lru, lru_at(lru, handle));
	assert_int_equal(lru_len(lru), 2);
	assert_null(lru_at(lru, handle));
	assert_null(get(lru, "b"));
	/* The key's hint leads nowhere; its place is taken by the next entry, which evicts nothing. */
	assert_int_equal(put(lru, "d", &fresh)->number, 0);
	assert_true(fresh);
	assert_int_equal(lru_len(lru), 3);
	assert_null(lru_at(lru, handle));
	assert_int_equal(((struct value *)lru_put(lru, &b, &fresh))->number, 0); /* evicts c */
	assert_true(fresh);
	assert_non_null(get(lru, "a"));
	assert_null(get(lru, "c"));
	while (lru_oldest(lru) != NULL) {
		lru_remove(lru, lru_oldest(lru));
	}
	assert_int_equal(lru_len(lru), 0);
	put(lru, "a", &fresh)->number = 1;
	assert_int_equal(lru_len(lru), 1);
	lru_free(lru);
}

static void test_full_cache_allocates_nothing(void **state)
{
	struct unit_allocator memory = { 0 };
	struct lru *lru;
	char key[32];
	size_t before;
	bool fresh;
	int i;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	lru = lru_new(&type, 64);
	for (i = 0; i < 64; i++) {
		(void)snprintf(key, sizeof(key), "key number %06d", i);
		(void)put(lru, key, &fresh);
	}
	before = memory.calls;
	for (; i < 10000; i++) {
		(void)snprintf(key, sizeof(key), "key number %06d", i);
		(void)put(lru, key, &fresh);
		assert_true(fresh);
	}
	assert_int_equal(memory.calls, before);
	lru_free(lru);
	evrec_set_allocator(NULL, NULL);
}

static void test_insertion_may_fail_without_memory(void **state)
{
	struct unit_allocator memory = { 0 };
	size_t fail_at;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	for (fail_at = 1; fail_at < 60; fail_at++) {
		char key[16];
		struct lru *lru;
		bool fresh;
		int i;

		memory = (struct unit_allocator){ .fail_at = fail_at };
		lru = lru_new(&type, 40);
		for (i = 0; lru != NULL && i < 100; i++) {
			struct value *value;

			(void)snprintf(key, sizeof(key), "%d", i);
			value = put(lru, key, &fresh);
			if (value == NULL) {
				assert_null(get(lru, key));
				value = put(lru, key, &fresh); /* no allocation fails any more */
			}
			assert_non_null(value);
			assert_true(fresh);
		}
		lru_free(lru);
	}
	evrec_set_allocator(NULL, NULL);
}

#define MODEL 5

/* The model is an array with the most recently used key first. */
/* Notes the largest block that was asked for. */
static void *largest_realloc(void *ctx, void *block, size_t size)
{
	size_t *largest = ctx;

	*largest = size > *largest ? size : *largest;
	if (size == 0) {
		free(block);
		return NULL;
	}
	return realloc(block, size);
}

/* Memory for as many entries as there are, and not for those that there might be. */
static void test_cache_without_a_bound_grows(void **state)
{
	const uint32_t entries = 1200000; /* more than slots are made for at once */
	size_t largest = 0;
	struct lru *lru;
	bool fresh;

	(void)state;
	evrec_set_allocator(largest_realloc, &largest);
	lru = lru_new(&type, (size_t)1 << 30);
	for (uint32_t i = 0; i < entries; i++) {
		struct key key = key_of((evrec_str){ (const char *)&i, sizeof(i) }, EVREC_STR(""));

		assert_non_null(lru_put(lru, &key, &fresh));
		assert_true(fresh);
		assert_true(i != 0 || largest <= 16 * 1024 * 1024);
	}
	for (uint32_t i = 0; i < entries; i += 7) {
		const struct key key = key_of((evrec_str){ (const char *)&i, sizeof(i) }, EVREC_STR(""));

		assert_non_null(lru_find(lru, &key));
	}
	lru_free(lru);
	evrec_set_allocator(NULL, NULL);
}

static void test_random_operations_match_the_model(void **state)
{
	uint64_t seed = unit_seed();
	struct lru *lru = lru_new(&type, MODEL);
	int model[MODEL], len = 0, step;

	(void)state;
	for (step = 0; step < 20000; step++) {
		int k = (int)(unit_random(&seed) % 12), at = 0, expected;
		bool insert = unit_random(&seed) % 2 == 0, removes = unit_random(&seed) % 4 == 0, fresh = false;
		char key[16];
		struct value *value;

		(void)snprintf(key, sizeof(key), "%d", k);
		while (at < len && model[at] != k) {
			at++;
		}
		expected = at < len;
		value = insert ? put(lru, key, &fresh) : get(lru, key);
		assert_int_equal(value != NULL && !fresh, expected);
		if (value == NULL) {
			continue;
		}
		assert_int_equal(value->number, fresh ? 0 : k + 1);
		value->number = (uint64_t)k + 1;
		if (!expected) {
			len += len < MODEL;
			at = len - 1;
		}
		memmove(model + 1, model, (size_t)at * sizeof(model[0]));
		model[0] = k;
		if (removes) {
			lru_remove(lru, value);
			memmove(model, model + 1, (size_t)--len * sizeof(model[0]));
		}
		assert_int_equal(lru_len(lru), len);
		value = lru_oldest(lru);
		assert_true(len == 0 ? value == NULL : value->number == (uint64_t)model[len - 1] + 1);
	}
	lru_free(lru);
}

/* As many entries as the tables are made for: AddressSanitizer sees a table that is too short. */
static void test_tables_have_room_for_all_entries(void **state)
{
	(void)state;
	for (size_t capacity = 1; capacity <= 4096; capacity *= 2) {
		struct lru *lru = lru_new(&type, capacity);
		bool fresh;

		for (size_t i = 0; i < capacity; i++) {
			char text[32];

			(void)snprintf(text, sizeof(text), "%zu", i);
			assert_non_null(put(lru, text, &fresh));
		}
		assert_int_equal(lru_len(lru), capacity);
		lru_free(lru);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_least_recently_used_is_evicted),
		cmocka_unit_test(test_capacity_of_one_evicts_each_time),
		cmocka_unit_test(test_keys_are_compared),
		cmocka_unit_test(test_handle_ends_with_its_entry),
		cmocka_unit_test(test_hint_is_valid_for_its_entry_only),
		cmocka_unit_test(test_entries_can_be_removed),
		cmocka_unit_test(test_full_cache_allocates_nothing),
		cmocka_unit_test(test_insertion_may_fail_without_memory),
		cmocka_unit_test(test_cache_without_a_bound_grows),
		cmocka_unit_test(test_random_operations_match_the_model),
		cmocka_unit_test(test_tables_have_room_for_all_entries),
	};

	return cmocka_run_group_tests_name("lru", tests, NULL, NULL);
}

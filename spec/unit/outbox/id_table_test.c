/* The table of entries by id: exactly the inserted entries are found, while the table grows. */
#include "unit.h"

#include "outbox/id_table.h"

#define ENTRIES 5000

/* Ids in the form of LRU handles: an index, and a generation in the upper half. */
static uint64_t id_of(size_t i)
{
	return i % 3 == 0 ? i : i % 3 == 1 ? (uint64_t)i << 32 : (uint64_t)(i % 7) << 32 | i;
}

static void check(const struct id_table *t, const struct entry *entries, const bool *in)
{
	size_t len = 0;

	for (size_t i = 0; i < ENTRIES; i++) {
		assert_ptr_equal(id_table_find(t, id_of(i)), in[i] ? &entries[i] : NULL);
		len += in[i];
	}
	assert_int_equal(t->len, len);
}

static void test_random_operations_match_a_set(void **state)
{
	struct entry *entries = calloc(ENTRIES, sizeof(*entries));
	uint64_t random = unit_seed();
	bool in[ENTRIES] = { false };
	struct id_table t;

	(void)state;
	assert_true(id_table_init(&t));
	for (unsigned n = 0; n < 200000; n++) {
		/* Many ids at first, then few, then many again. */
		size_t i = unit_random(&random) % (n < 50000 || n > 150000 ? ENTRIES : 40);

		if (in[i]) {
			id_table_remove(&t, &entries[i]);
			id_table_remove(&t, &entries[i]);
		} else {
			entries[i].id = id_of(i);
			id_table_insert(&t, &entries[i]);
		}
		in[i] = !in[i];
		if (n % 10000 == 0) {
			check(&t, entries, in);
		}
	}
	check(&t, entries, in);
	id_table_free(&t);
	free(entries);
}

static const struct id_slot *slot_at(const struct id_table *t, size_t i)
{
	return tiers_at(&t->slots, i, sizeof(struct id_slot));
}

/*
 * Growth is spread over the insertions: at most 16 slots each, at least one slot an entry, short chains, and no mark
 * without an entry.
 */
static void test_each_insertion_grows_a_little(void **state)
{
	struct entry *entries = calloc(ENTRIES, sizeof(*entries));
	struct id_table t;

	(void)state;
	assert_true(id_table_init(&t));
	for (size_t i = 0; i < ENTRIES; i++) {
		size_t size = t.size;

		entries[i].id = i;
		id_table_insert(&t, &entries[i]);
		assert_in_range(t.size, size, size + 16);
		assert_true(t.size >= t.len);
	}
	for (size_t i = 0; i < t.size; i++) {
		size_t chain = 0;

		for (const struct entry *entry = slot_at(&t, i)->first; entry != NULL; entry = entry->hash_next) {
			chain++;
		}
		assert_in_range(chain, 0, 8);
		assert_true(chain != 0 || slot_at(&t, i)->marks == 0);
		assert_true((size_t)__builtin_popcountll(slot_at(&t, i)->marks) <= chain);
	}
	for (size_t i = 0; i < ENTRIES; i++) {
		id_table_remove(&t, &entries[i]);
	}
	for (size_t i = 0; i < t.size; i++) {
		assert_true(slot_at(&t, i)->marks == 0);
	}
	id_table_free(&t);
	free(entries);
}

static void *no_memory(void *ctx, void *block, size_t size)
{
	(void)ctx;
	if (size == 0) {
		free(block);
	}
	return NULL;
}

static void test_insertions_succeed_without_memory(void **state)
{
	struct entry *entries = calloc(ENTRIES, sizeof(*entries));
	bool in[ENTRIES] = { false };
	struct id_table t;

	(void)state;
	assert_true(id_table_init(&t));
	evrec_set_allocator(no_memory, NULL);
	for (size_t i = 0; i < ENTRIES; i++) {
		if (i == ENTRIES / 2) {
			check(&t, entries, in);
			evrec_set_allocator(NULL, NULL);
		}
		entries[i].id = id_of(i);
		id_table_insert(&t, &entries[i]);
		in[i] = true;
	}
	check(&t, entries, in);
	assert_true(t.size >= t.len);
	id_table_free(&t);
	free(entries);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_operations_match_a_set),
		cmocka_unit_test(test_each_insertion_grows_a_little),
		cmocka_unit_test(test_insertions_succeed_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

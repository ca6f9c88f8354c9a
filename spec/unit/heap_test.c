/* The heap of what backs off: whatever is pushed and removed, what is left comes out by its due time. */
#include "unit.h"

#include "deliver/heap.h"

#define ENTRIES 64

static void test_random(void **state)
{
	uint64_t random = unit_seed();
	struct entry entries[ENTRIES];
	bool in[ENTRIES] = { false };
	struct heap heap = { 0 };

	(void)state;
	assert_true(heap_reserve(&heap, ENTRIES));
	for (unsigned n = 0; n < 200000; n++) {
		size_t i = unit_random(&random) % ENTRIES;

		if (!in[i]) {
			entries[i].due = (int64_t)(unit_random(&random) % 50);
			heap_push(&heap, &entries[i]);
		} else if (n % 3 == 0) {
			heap_remove(&heap, &entries[i]);
		} else {
			i = (size_t)(heap_pop(&heap) - entries);
			for (size_t j = 0; j < ENTRIES; j++) {
				assert_true(!in[j] || entries[j].due >= entries[i].due);
			}
		}
		in[i] = !in[i];
	}
	for (size_t i = 0; i < heap.len; i++) {
		heap.entries[i]->due = (int64_t)(unit_random(&random) % 50);
	}
	heap_reorder(&heap);
	for (int64_t due = 0; heap.len != 0;) {
		struct entry *entry = heap_pop(&heap);

		assert_true(entry->due >= due);
		due = entry->due;
	}
	assert_null(heap_pop(&heap));
	heap_free(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

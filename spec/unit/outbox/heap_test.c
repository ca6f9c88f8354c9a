/* The heap of writes that back off: entries leave it by due time, whatever is pushed, removed and made due before. */
#include "unit.h"

#include "outbox/backoff.h"

#define ENTRIES 64

static void test_heap_pops_by_due_time(void **state)
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
			entries[i].epoch = 0;
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
	for (int64_t due = 0; heap.len != 0;) {
		struct entry *entry = heap_pop(&heap);

		assert_true(entry->due >= due);
		due = entry->due;
	}
	assert_null(heap_pop(&heap));
	heap_free(&heap);
}

struct model {
	struct entry entry;
	bool in;
	int64_t due;
};

static int64_t first_due(const struct model *model)
{
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < ENTRIES; i++) {
		if (model[i].in && model[i].due < due) {
			due = model[i].due;
		}
	}
	return due;
}

static void test_made_due_now_pops_first(void **state)
{
	uint64_t random = unit_seed();
	struct model model[ENTRIES] = { 0 };
	struct backoff backoff = { 0 };
	struct entry *entry;

	(void)state;
	assert_true(backoff_reserve(&backoff, ENTRIES));
	for (unsigned n = 0; n < 200000; n++) {
		struct model *m = &model[unit_random(&random) % ENTRIES];
		enum backoff_why why = (enum backoff_why)(unit_random(&random) % BACKOFF_WHYS);

		if (n % 100 == 0) {
			backoff_make_due_now(&backoff, why);
			for (size_t i = 0; i < ENTRIES; i++) {
				model[i].due = model[i].entry.why == why ? INT64_MIN : model[i].due;
			}
		} else if (!m->in) {
			m->due = (int64_t)(unit_random(&random) % 50);
			backoff_push(&backoff, &m->entry, why, m->due);
			m->in = true;
		} else if (n % 3 == 0) {
			backoff_remove(&backoff, &m->entry);
			m->in = false;
		} else {
			int64_t due = first_due(model);

			m = (struct model *)backoff_pop(&backoff);
			assert_true(m->in);
			assert_true(m->due == due);
			m->in = false;
		}
		assert_true(backoff_due(&backoff) == first_due(model));
	}
	while ((entry = backoff_pop(&backoff)) != NULL) {
		((struct model *)entry)->in = false;
	}
	assert_true(backoff_empty(&backoff));
	assert_true(first_due(model) == INT64_MAX);
	backoff_free(&backoff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap_pops_by_due_time),
		cmocka_unit_test(test_made_due_now_pops_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

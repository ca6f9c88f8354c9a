/* The memory of a correlator: which calls need some, and what becomes of a call if there is none. */
#include "correlations.h"

static void run_some(evrec_correlator *c)
{
	evrec_correlation r;
	char message[64];
	int i;

	for (i = 0; i < 40; i++) {
		evrec_fields event = pod_event(i % 3 == 0 ? "a" : "b", "R", message, T0 + i);

		(void)snprintf(message, sizeof(message), "m%050d", i);
		event.note = str_from(message);
		(void)evrec_correlator_correlate(c, &event, T0 + i, &r);
		(void)evrec_correlator_update_state(c, &event);
	}
}

static void test_every_allocation_may_fail(void **state)
{
	struct unit_allocator memory = { 0 };
	evrec_correlator_options options = unlimited_options();
	size_t fail_at = 1, calls;

	(void)state;
	options.lru_cache_size = 8;
	evrec_set_allocator(unit_realloc, &memory);
	do {
		evrec_correlator *c;

		memory = (struct unit_allocator){ .fail_at = fail_at++ };
		c = evrec_correlator_new(&options, NULL);
		if (c != NULL) {
			run_some(c);
		}
		evrec_correlator_free(c);
		calls = memory.calls;
	} while (calls >= memory.fail_at);
	assert_true(fail_at > 27);
	evrec_set_allocator(NULL, NULL);
}

/* An occurrence that ends as a count allocates nothing: a duplicate, a similar event, or a suppressed one. */
static void test_counting_allocates_nothing(void **state)
{
	struct unit_allocator memory = { 0 };
	char message[100];
	evrec_correlator *c;
	size_t before = 0;
	int i;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	c = correlator_with(NULL);
	for (i = 0; i < 1000; i++) {
		if (i == 100) {
			before = memory.calls;
		}
		(void)snprintf(message, sizeof(message), "%080d", i);
		(void)correlate_pod_event(c, "a", "Same", "m", T0 + i);
		(void)correlate_pod_event(c, "b", "Similar", message, T0 + i);
	}
	assert_int_equal(memory.calls, before);
	evrec_correlator_free(c);
	evrec_set_allocator(NULL, NULL);
}

/* Combined events after the first one: an aggregate asks for more room, but a message of the same length needs none. */
static void test_combining_needs_no_memory(void **state)
{
	evrec_correlator_options options = unlimited_options();
	struct unit_allocator memory = { 0 };
	char message[201];
	evrec_correlator *c;

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	for (int length = 20; length <= 200; length += 20) {
		memory = (struct unit_allocator){ 0 };
		c = correlator_with(&options);
		for (int i = 1; i <= 40; i++) {
			(void)snprintf(message, sizeof(message), "%0*d", length, i);
			memory.fail_at = i <= 10 ? 0 : memory.calls + 1;
			assert_int_equal(correlate_pod_event(c, "a", "R", message, T0).why,
			                 i < 10 ? EVREC_NEW : EVREC_AGGREGATED);
		}
		evrec_correlator_free(c);
	}
	evrec_set_allocator(NULL, NULL);
}

/* The local keys of an evicted aggregate: their memory is kept if it is short, and given back if it is long. */
static void test_evicted_local_keys_leave_room_for_others(void **state)
{
	static const int lengths[] = { 3000, 10, 500, 200, 3000, 90 };
	evrec_correlator_options options = unlimited_options();
	char message[3001];
	evrec_correlator *c;

	(void)state;
	options.lru_cache_size = 1;
	options.max_events = 100;
	c = evrec_correlator_new(&options, NULL);
	for (int i = 0; i < 60; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "pod-%d", i / 3); /* three messages of each */
		(void)snprintf(message, sizeof(message), "%0*d", lengths[i % 6], i);
		assert_int_equal(correlate_pod_event(c, name, "R", message, T0 + i).why, EVREC_NEW);
	}
	evrec_correlator_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_allocation_may_fail),
		cmocka_unit_test(test_counting_allocates_nothing),
		cmocka_unit_test(test_combining_needs_no_memory),
		cmocka_unit_test(test_evicted_local_keys_leave_room_for_others),
	};

	return cmocka_run_group_tests_name("correlator_memory", tests, NULL, NULL);
}

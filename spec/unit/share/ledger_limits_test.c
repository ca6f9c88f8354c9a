/* Events that a ledger does not take, and the memory that it needs. */
#include "ledger_world.h"

#include "alloc_failure.h"
#include "counting_allocator.h"

static void test_limits_drop_new_events_and_fold_known_ones(void **state)
{
	struct ledger_world *w = *state;
	const struct ledger_limits two = { 2, 1 << 20 }, one = { 1, 1 << 20 }, small = { 100, 1000 };

	ledger_free(w->l);
	w->l = ledger_new(&two);
	ledger_set_sinks(w->l, 1);
	assert_true(ledger_world_add(w, 1, T0) && ledger_world_add(w, 2, T0));
	assert_false(ledger_world_add(w, 3, T0));
	assert_int_equal(w->cause, EVREC_CAUSE_QUEUE_FULL);
	assert_true(ledger_world_add(w, 1, T0));
	assert_int_equal(ledger_world_counts(w, 0).dropped[EVREC_CAUSE_QUEUE_FULL], 1);
	ledger_world_check_counts(w, 0, 0, 3);
	assert_int_equal(ledger_world_ack(w, ledger_world_send_all(w), 1, 0, FRAME_FORWARDED), 1);
	assert_true(ledger_world_add(w, 3, T0));

	/* Lower ones keep what there is. */
	ledger_set_limits(w->l, &one);
	assert_true(ledger_world_add(w, 1, T0) && ledger_world_add(w, 3, T0));
	assert_false(ledger_world_add(w, 2, T0));
	ledger_set_limits(w->l, &ledger_world_wide);
	assert_true(ledger_world_add(w, 2, T0));

	ledger_free(w->l);
	w->l = ledger_new(&small);
	ledger_set_sinks(w->l, 1);
	for (unsigned i = 0; i < 20; i++) {
		(void)ledger_world_add(w, i, T0);
		assert_true(ledger_bytes(w->l) <= 1000);
	}
	assert_in_range(ledger_events(w->l), 1, 19);
	(void)ledger_world_send_all(w);
}

static void test_event_too_long_for_the_protocol_is_dropped(void **state)
{
	struct ledger_world *w = *state;
	char *text = calloc(1, FRAME_EVENT_MAX);

	assert_non_null(text);
	assert_false(ledger_add(w->l, (evrec_str){ text, FRAME_EVENT_MAX }, T0, &w->cause));
	assert_int_equal(w->cause, EVREC_CAUSE_UNFIT);
	free(text);
}

/* Else the owner would refuse it, and with it the connection, again and again. */
static void test_event_that_no_owner_takes_is_dropped(void **state)
{
	struct ledger_world *w = *state;

	assert_false(ledger_add(w->l, EVREC_STR("\x05Event"), T0, &w->cause));
	assert_int_equal(w->cause, EVREC_CAUSE_UNFIT);
	assert_true(ledger_is_empty(w->l));
}

/* A repeated event needs no memory, and idle events take a bounded number of them; the owner is told to forget the rest. */
static void test_memory_is_bounded(void **state)
{
	struct counting_allocator memory = { 0 };
	struct ledger_world *w = *state;
	size_t calls, forgotten = 0;

	ledger_world_teardown(state);
	evrec_set_allocator(counting_realloc, &memory);
	ledger_world_setup(state);
	w = *state;
	(void)ledger_world_add(w, 0, T0);
	calls = memory.calls;
	for (unsigned i = 0; i < 10000; i++) {
		(void)ledger_world_add(w, 0, T0);
	}
	assert_int_equal(memory.calls, calls);
	for (unsigned i = 1; i <= 10000; i++) {
		assert_true(ledger_world_add(w, i, T0));
		while (ledger_world_next(w)) {
			forgotten += w->item.times.n == 0;
			ledger_sent(w->l);
		}
		(void)ledger_world_ack(w, w->item.times.id, UINT32_MAX, 0, FRAME_FORWARDED);
	}
	assert_true(memory.live < 512 * 1024);
	assert_true(forgotten >= 9000);
	ledger_world_teardown(state);
	evrec_set_allocator(NULL, NULL);
	ledger_world_setup(state);
}

/* A process without an owner takes occurrences back in parts, and may end before the last one. */
static void test_part_that_was_taken_is_not_dropped(void **state)
{
	struct ledger_world *w = *state;
	const unsigned all = 15000;
	struct frame_event event;
	struct ledger_item item;
	uint32_t taken;

	for (unsigned i = 0; i < all; i++) {
		assert_true(ledger_world_add(w, 1, T0));
	}
	ledger_disconnect(w->l);
	assert_true(ledger_take(w->l, &item, &event));
	frame_event_destroy(&event);
	taken = item.times.n;
	assert_in_range(taken, 1, all - 1);
	ledger_disconnect(w->l);
	assert_true(ledger_drop_next(w->l, EVREC_CAUSE_CLOSED, &item));
	assert_int_equal(item.times.n, all - taken);
	assert_true(ledger_is_empty(w->l));
}

static void scenario(void)
{
	struct ledger_world w = { .l = NULL };
	struct buf one = { 0 }, two = { 0 };
	enum evrec_cause cause;

	buf_put_str(&one, ledger_world_bytes(&w, 1));
	buf_put_str(&two, ledger_world_bytes(&w, 2));
	alloc_failure_arm();
	w.l = ledger_new(&ledger_world_wide);
	alloc_failure_check(w.l != NULL);
	if (w.l != NULL) {
		ledger_set_sinks(w.l, 1);
		alloc_failure_check(ledger_add(w.l, buf_str(&one), T0, &cause));
		alloc_failure_check(ledger_add(w.l, buf_str(&two), T0, &cause));
		alloc_failure_check(ledger_is_empty(w.l) || ledger_next(w.l, &w.item));
	}
	alloc_failure_disarm();
	if (w.l != NULL) {
		const struct ledger_counts c = ledger_world_counts(&w, 0);

		assert_int_equal(c.pending + c.dropped[EVREC_CAUSE_MEMORY], 2);
		(void)ledger_world_send_all(&w);
		assert_int_equal(ledger_world_counts(&w, 0).pending, c.pending);
	}
	ledger_free(w.l);
	buf_free(&w.bytes);
	buf_free(&one);
	buf_free(&two);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LEDGER_WORLD_TEST(test_limits_drop_new_events_and_fold_known_ones),
		LEDGER_WORLD_TEST(test_event_too_long_for_the_protocol_is_dropped),
		LEDGER_WORLD_TEST(test_event_that_no_owner_takes_is_dropped),
		LEDGER_WORLD_TEST(test_memory_is_bounded),
		LEDGER_WORLD_TEST(test_part_that_was_taken_is_not_dropped),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("ledger: limits", tests, NULL, NULL);
}

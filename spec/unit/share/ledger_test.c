/* The ledger: a worker keeps its events there until its owner acknowledges them. */
#include "ledger_world.h"

static void test_repeated_event_is_folded_and_sent_once(void **state)
{
	struct ledger_world *w = *state;

	assert_true(ledger_world_add(w, 1, T0) && ledger_world_add(w, 1, T0 + 1) && ledger_world_add(w, 1, T0 + 2));
	assert_int_equal(ledger_events(w->l), 1);
	assert_true(ledger_world_next(w));
	assert_false(w->item.known || (w->item.flags & FRAME_AGAIN) != 0);
	assert_int_equal(w->item.times.n, 3);
	assert_int_equal(w->item.times.first, T0);
	assert_int_equal(w->item.times.last, T0 + 2);
	assert_memory_equal(w->item.name.data, "web-1.", 6);
	assert_true(str_eq(w->item.bytes, ledger_world_bytes(w, 1)));
	ledger_sent(w->l);
	assert_false(ledger_world_next(w));
	assert_true(ledger_world_add(w, 1, T0 + 3));
	assert_true(ledger_world_next(w));
	assert_true(w->item.known);
	assert_int_equal(w->item.times.n, 1);
	assert_int_equal(w->item.times.first, T0 + 3);
}

static void test_acknowledged_event_is_idle_and_still_known(void **state)
{
	struct ledger_world *w = *state;
	uint32_t id;

	(void)ledger_world_add(w, 1, T0);
	(void)ledger_world_add(w, 1, T0);
	id = ledger_world_send_all(w);
	ledger_world_check_counts(w, 0, 0, 2);
	assert_int_equal(ledger_world_ack(w, id, 1, 0, FRAME_FORWARDED), 1);
	assert_true(str_eq(w->ended, ledger_world_bytes(w, 1)));
	assert_false(ledger_is_empty(w->l));
	ledger_world_check_counts(w, 0, 1, 1);
	assert_int_equal(ledger_world_ack(w, id, 1, 0, FRAME_RATE_LIMITED), 1);
	assert_true(ledger_is_empty(w->l));
	assert_int_equal(ledger_bytes(w->l), 0);
	assert_int_equal(ledger_world_counts(w, 0).rate_limited, 1);
	(void)ledger_world_add(w, 1, T0 + 1);
	assert_true(ledger_world_next(w) && w->item.known);
	assert_int_equal(w->item.times.n, 1);
}

static void test_more_acknowledgements_than_were_sent_are_not_believed(void **state)
{
	struct ledger_world *w = *state;
	uint32_t id;

	(void)ledger_world_add(w, 1, T0);
	assert_int_equal(ledger_world_ack(w, 0, 1, 0, FRAME_FORWARDED), 0);
	id = ledger_world_send_all(w);
	(void)ledger_world_add(w, 1, T0);
	assert_int_equal(ledger_world_ack(w, id, 5, 0, EVREC_CAUSE_FORBIDDEN), 1);
	assert_int_equal(ledger_world_counts(w, 0).dropped[EVREC_CAUSE_FORBIDDEN], 1);
	assert_int_equal(ledger_world_ack(w, id, 5, 0, FRAME_FORWARDED), 0);
	assert_int_equal(ledger_world_ack(w, id, 5, 1, FRAME_FORWARDED), 0);
	assert_int_equal(ledger_world_ack(w, 1000000, 1, 0, FRAME_FORWARDED), 0);
	ledger_world_check_counts(w, 0, 0, 1);
}

static void test_each_sink_acknowledges(void **state)
{
	struct ledger_world *w = *state;
	uint32_t id;

	ledger_set_sinks(w->l, 2);
	(void)ledger_world_add(w, 1, T0);
	id = ledger_world_send_all(w);
	assert_int_equal(ledger_world_ack(w, id, 1, 1, FRAME_FORWARDED), 1);
	assert_false(ledger_is_empty(w->l));
	ledger_world_check_counts(w, 0, 0, 1);
	ledger_world_check_counts(w, 1, 1, 0);
	assert_int_equal(ledger_world_ack(w, id, 1, 0, EVREC_CAUSE_REJECTED), 1);
	assert_true(ledger_is_empty(w->l));
}

static void test_many_occurrences_are_sent_in_turns(void **state)
{
	struct ledger_world *w = *state;

	for (unsigned i = 0; i < LEDGER_SEND_MAX + 1; i++) {
		(void)ledger_world_add(w, 0, T0);
	}
	assert_true(ledger_world_next(w));
	assert_int_equal(w->item.times.n, LEDGER_SEND_MAX);
	ledger_sent(w->l);
	assert_true(ledger_world_next(w));
	assert_int_equal(w->item.times.n, 1);
	ledger_sent(w->l);
	assert_false(ledger_world_next(w));
}

static void test_end_drops_what_is_left(void **state)
{
	struct ledger_world *w = *state;
	uint64_t dropped = 0;

	(void)ledger_world_add(w, 1, T0);
	(void)ledger_world_send_all(w);
	(void)ledger_world_add(w, 1, T0);
	(void)ledger_world_add(w, 2, T0);
	ledger_disconnect(w->l);
	while (ledger_drop_next(w->l, EVREC_CAUSE_CLOSED, &w->item)) {
		assert_true(w->item.bytes.len != 0);
		dropped += w->item.times.n;
	}
	assert_int_equal(dropped, 3);
	assert_int_equal(ledger_world_counts(w, 0).dropped[EVREC_CAUSE_CLOSED], 3);
	ledger_world_check_counts(w, 0, 0, 0);
	assert_true(ledger_is_empty(w->l));
}

/* Random steps: nothing is lost or counted twice for either sink, whatever the order. */
static void test_random_steps_lose_nothing(void **state)
{
	uint64_t random = unit_seed(), added = 0;
	struct ledger_world *w = *state;

	ledger_set_sinks(w->l, 2);
	for (unsigned step = 0; step < 20000; step++) {
		const unsigned number = (unsigned)(unit_random(&random) % 400);

		switch (unit_random(&random) % 8) {
		case 0:
		case 1:
		case 2:
			added += ledger_world_add(w, number, T0 + step);
			break;
		case 3:
		case 4:
			if (ledger_world_next(w)) {
				ledger_sent(w->l);
			}
			break;
		case 5:
		case 6:
			(void)ledger_world_ack(w, number, (uint32_t)(unit_random(&random) % 3), number % 2,
			                       FRAME_FORWARDED);
			break;
		default:
			if (unit_random(&random) % 50 == 0) {
				ledger_disconnect(w->l);
			}
		}
		for (size_t sink = 0; sink < 2 && step % 16 == 0; sink++) {
			assert_int_equal(ledger_world_counts(w, sink).forwarded + ledger_world_counts(w, sink).pending,
			                 added);
		}
	}
	(void)ledger_world_send_all(w);
	for (unsigned id = 0; id < 1024; id++) {
		(void)ledger_world_ack(w, id, UINT32_MAX, 0, FRAME_FORWARDED);
		(void)ledger_world_ack(w, id, UINT32_MAX, 1, FRAME_FORWARDED);
	}
	assert_true(ledger_is_empty(w->l));
	ledger_world_check_counts(w, 0, added, 0);
	ledger_world_check_counts(w, 1, added, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LEDGER_WORLD_TEST(test_repeated_event_is_folded_and_sent_once),
		LEDGER_WORLD_TEST(test_acknowledged_event_is_idle_and_still_known),
		LEDGER_WORLD_TEST(test_more_acknowledgements_than_were_sent_are_not_believed),
		LEDGER_WORLD_TEST(test_each_sink_acknowledges),
		LEDGER_WORLD_TEST(test_many_occurrences_are_sent_in_turns),
		LEDGER_WORLD_TEST(test_end_drops_what_is_left),
		LEDGER_WORLD_TEST(test_random_steps_lose_nothing),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

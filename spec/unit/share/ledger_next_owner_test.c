/* The ledger of a worker whose owner changes: the next one gets what the last one has not acknowledged. */
#include "ledger_world.h"

/* The name stays, as the first owner may have created the event. */
static void test_next_owner_gets_what_the_last_one_has_not_acknowledged(void **state)
{
	struct ledger_world *w = *state;
	char name[256] = "";
	uint32_t id;

	(void)ledger_world_add(w, 1, T0);
	(void)ledger_world_add(w, 1, T0 + 1);
	(void)ledger_world_next(w);
	memcpy(name, w->item.name.data, w->item.name.len);
	id = ledger_world_send_all(w);
	(void)ledger_world_add(w, 1, T0 + 2);
	assert_int_equal(ledger_world_ack(w, id, 1, 0, FRAME_FORWARDED), 1);
	ledger_disconnect(w->l);
	assert_true(ledger_world_next(w));
	assert_true((w->item.flags & FRAME_AGAIN) != 0 && !w->item.known);
	assert_int_equal(w->item.times.n, 1);
	assert_int_equal(w->item.times.first, T0);
	assert_int_equal(w->item.name.len, strlen(name));
	assert_memory_equal(w->item.name.data, name, strlen(name));
	ledger_sent(w->l);
	assert_true(ledger_world_next(w));
	assert_int_equal(w->item.times.n, 1);
	assert_int_equal(w->item.times.last, T0 + 2);
	(void)ledger_world_send_all(w);
	ledger_world_check_counts(w, 0, 1, 2);
}

/* The first owner may have more than one sink, which end at different times. */
static void test_sink_that_has_acknowledged_is_not_counted_twice(void **state)
{
	struct ledger_world *w = *state;
	uint32_t id;

	ledger_set_sinks(w->l, 2);
	(void)ledger_world_add(w, 1, T0);
	id = ledger_world_send_all(w);
	(void)ledger_world_ack(w, id, 1, 0, FRAME_FORWARDED);
	ledger_disconnect(w->l);
	id = ledger_world_send_all(w);
	assert_int_equal(ledger_world_ack(w, id, 1, 0, FRAME_FORWARDED), 0);
	assert_int_equal(ledger_world_ack(w, id, 1, 1, FRAME_FORWARDED), 1);
	ledger_world_check_counts(w, 0, 1, 0);
	ledger_world_check_counts(w, 1, 1, 0);
}

/* Two sinks have acknowledged different numbers: each gets again what it has not, before what is new. */
static void test_each_sink_gets_again_what_it_has_not_acknowledged(void **state)
{
	struct ledger_world *w = *state;
	uint32_t id;

	ledger_set_sinks(w->l, 2);
	for (unsigned i = 0; i < 5; i++) {
		(void)ledger_world_add(w, 1, T0);
	}
	id = ledger_world_send_all(w);
	(void)ledger_world_ack(w, id, 3, 0, FRAME_FORWARDED);
	(void)ledger_world_ack(w, id, 1, 1, FRAME_FORWARDED);
	(void)ledger_world_add(w, 2, T0);
	(void)ledger_world_add(w, 1, T0 + 1);
	ledger_disconnect(w->l);
	for (unsigned i = 0; i < 2; i++) {
		/* Also over an owner that got nothing, or a part. */
		assert_true(ledger_world_next(w));
		assert_int_equal(w->item.times.n, 2);
		assert_int_equal(w->item.flags & ~FRAME_AGAIN, FRAME_RESENT | (0xff00 & ~(unsigned)FRAME_ENDED(1)));
		ledger_disconnect(w->l);
	}
	assert_true(ledger_world_next(w));
	ledger_sent(w->l);
	assert_true(ledger_world_next(w));
	assert_int_equal(w->item.times.n, 2);
	assert_int_equal(w->item.flags, FRAME_RESENT | (0xff00 & ~(unsigned)(FRAME_ENDED(0) | FRAME_ENDED(1))));
	ledger_sent(w->l);
	assert_true(ledger_world_next(w));
	assert_true(str_eq(w->item.bytes, ledger_world_bytes(w, 2)));
	assert_int_equal(w->item.flags, 0);
	ledger_sent(w->l);
	assert_true(ledger_world_next(w));
	assert_int_equal(w->item.times.n, 1);
	assert_int_equal(w->item.times.first, T0 + 1);
	ledger_sent(w->l);
	assert_false(ledger_world_next(w));
	assert_int_equal(ledger_world_ack(w, id, 9, 0, FRAME_FORWARDED), 3);
	assert_int_equal(ledger_world_ack(w, id, 9, 1, FRAME_FORWARDED), 5);
}

/* An event that the last owner has acknowledged is nothing that the next one could have written. */
static void test_event_that_was_acknowledged_is_a_new_one_for_the_next_owner(void **state)
{
	struct ledger_world *w = *state;
	char name[256] = "";
	uint32_t id;

	(void)ledger_world_add(w, 1, T0);
	(void)ledger_world_next(w);
	memcpy(name, w->item.name.data, w->item.name.len);
	id = ledger_world_send_all(w);
	(void)ledger_world_add(w, 1, T0 + 1);
	(void)ledger_world_ack(w, id, 1, 0, FRAME_FORWARDED);
	ledger_disconnect(w->l);
	assert_true(ledger_world_next(w));
	assert_false((w->item.flags & FRAME_AGAIN) != 0 || w->item.known);
	assert_int_equal(w->item.times.n, 1);
	assert_true(w->item.name.len != 0);
	assert_memory_not_equal(w->item.name.data, name, strlen(name));
}

/* Two owners in turn had it: the second may have written it, although nothing was sent to it. */
static void test_name_stays_over_an_owner_that_got_nothing(void **state)
{
	struct ledger_world *w = *state;
	char name[256] = "";

	(void)ledger_world_add(w, 1, T0);
	(void)ledger_world_next(w);
	memcpy(name, w->item.name.data, w->item.name.len);
	(void)ledger_world_send_all(w);
	ledger_disconnect(w->l);
	ledger_disconnect(w->l);
	assert_true(ledger_world_next(w) && (w->item.flags & FRAME_AGAIN) != 0);
	assert_memory_equal(w->item.name.data, name, strlen(name));
	/* The second owner acknowledges it: the third can only make another event. */
	(void)ledger_world_ack(w, ledger_world_send_all(w), 1, 0, FRAME_FORWARDED);
	(void)ledger_world_add(w, 1, T0 + 1);
	(void)ledger_world_send_all(w);
	(void)ledger_world_add(w, 1, T0 + 1);
	(void)ledger_world_ack(w, 0, 1, 0, FRAME_FORWARDED);
	ledger_disconnect(w->l);
	assert_true(ledger_world_next(w) && (w->item.flags & FRAME_AGAIN) == 0);
	assert_memory_not_equal(w->item.name.data, name, strlen(name));
}

static void test_new_owner_takes_its_own_events(void **state)
{
	struct ledger_world *w = *state;
	struct frame_event event;
	uint32_t id;

	(void)ledger_world_add(w, 1, T0);
	(void)ledger_world_add(w, 1, T0);
	id = ledger_world_send_all(w);
	(void)ledger_world_ack(w, id, 1, 0, FRAME_FORWARDED);
	(void)ledger_world_add(w, 2, T0);
	ledger_disconnect(w->l);
	assert_true(ledger_take(w->l, &w->item, &event));
	frame_event_destroy(&event);
	assert_true((w->item.flags & FRAME_AGAIN) != 0 && w->item.times.n == 1);
	assert_true(str_eq(w->item.bytes, ledger_world_bytes(w, 1)));
	assert_true(ledger_take(w->l, &w->item, &event));
	frame_event_destroy(&event);
	assert_true((w->item.flags & FRAME_AGAIN) == 0 && w->item.times.n == 1 && w->item.name.len != 0);
	assert_false(ledger_take(w->l, &w->item, &event));
	assert_true(ledger_is_empty(w->l));
	ledger_world_check_counts(w, 0, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LEDGER_WORLD_TEST(test_next_owner_gets_what_the_last_one_has_not_acknowledged),
		LEDGER_WORLD_TEST(test_sink_that_has_acknowledged_is_not_counted_twice),
		LEDGER_WORLD_TEST(test_each_sink_gets_again_what_it_has_not_acknowledged),
		LEDGER_WORLD_TEST(test_event_that_was_acknowledged_is_a_new_one_for_the_next_owner),
		LEDGER_WORLD_TEST(test_name_stays_over_an_owner_that_got_nothing),
		LEDGER_WORLD_TEST(test_new_owner_takes_its_own_events),
	};

	return cmocka_run_group_tests_name("ledger: next owner", tests, NULL, NULL);
}

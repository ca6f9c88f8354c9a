/* The ledger: a worker keeps its events there until its owner acknowledges them. */
#include "unit.h"

#include "alloc_failure.h"
#include "counting_allocator.h"
#include "share/ledger.h"

static const struct ledger_limits wide = { 1000, 1 << 24 };

struct world {
	struct ledger *l;
	struct buf bytes;
	enum evrec_cause cause;
	struct ledger_item item;
	evrec_str ended;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->l = ledger_new(&wide);
	ledger_set_sinks(w->l, 1);
	*state = w;
	return w->l == NULL;
}

static int teardown(void **state)
{
	struct world *w = *state;

	ledger_free(w->l);
	buf_free(&w->bytes);
	free(w);
	return 0;
}

static evrec_str bytes_of(struct world *w, unsigned number)
{
	char name[16];
	evrec_fields f;

	(void)snprintf(name, sizeof(name), "web-%u", number);
	evrec_fields_init(&f);
	f.ns = EVREC_STR("shop");
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = str_from(name), .ns = f.ns };
	f.type = EVREC_STR("Normal");
	f.reason = EVREC_STR("Started");
	f.count = 1;
	buf_clear(&w->bytes);
	frame_event_put(&w->bytes, &f, NULL, 0);
	return buf_str(&w->bytes);
}

static bool add(struct world *w, unsigned number, int64_t at)
{
	return ledger_add(w->l, bytes_of(w, number), at, &w->cause);
}

static bool next(struct world *w)
{
	return ledger_next(w->l, &w->item);
}

/* Sends all. The id of the last item. */
static uint32_t send_all(struct world *w)
{
	while (next(w)) {
		ledger_sent(w->l);
	}
	return w->item.times.id;
}

static uint32_t ack(struct world *w, uint32_t id, uint32_t n, size_t sink, int end)
{
	return ledger_ack(w->l, &(struct frame_ack){ id, n, (uint8_t)sink, (uint8_t)end, 0 }, &w->ended);
}

static struct ledger_counts counts(const struct world *w, size_t sink)
{
	struct ledger_counts c;

	ledger_count(w->l, sink, &c);
	return c;
}

static void check_counts(const struct world *w, size_t sink, uint64_t forwarded, uint64_t pending)
{
	const struct ledger_counts c = counts(w, sink);

	assert_int_equal(c.forwarded, forwarded);
	assert_int_equal(c.pending, pending);
}

static void test_repeated_event_is_folded_and_sent_once(void **state)
{
	struct world *w = *state;

	assert_true(add(w, 1, T0) && add(w, 1, T0 + 1) && add(w, 1, T0 + 2));
	assert_int_equal(ledger_events(w->l), 1);
	assert_true(next(w));
	assert_false(w->item.known || (w->item.flags & FRAME_AGAIN) != 0);
	assert_int_equal(w->item.times.n, 3);
	assert_int_equal(w->item.times.first, T0);
	assert_int_equal(w->item.times.last, T0 + 2);
	assert_memory_equal(w->item.name.data, "web-1.", 6);
	assert_true(str_eq(w->item.bytes, bytes_of(w, 1)));
	ledger_sent(w->l);
	assert_false(next(w));
	assert_true(add(w, 1, T0 + 3));
	assert_true(next(w));
	assert_true(w->item.known);
	assert_int_equal(w->item.times.n, 1);
	assert_int_equal(w->item.times.first, T0 + 3);
}

static void test_acknowledged_event_is_idle_and_still_known(void **state)
{
	struct world *w = *state;
	uint32_t id;

	(void)add(w, 1, T0);
	(void)add(w, 1, T0);
	id = send_all(w);
	check_counts(w, 0, 0, 2);
	assert_int_equal(ack(w, id, 1, 0, FRAME_FORWARDED), 1);
	assert_true(str_eq(w->ended, bytes_of(w, 1)));
	assert_false(ledger_is_empty(w->l));
	check_counts(w, 0, 1, 1);
	assert_int_equal(ack(w, id, 1, 0, FRAME_RATE_LIMITED), 1);
	assert_true(ledger_is_empty(w->l));
	assert_int_equal(ledger_bytes(w->l), 0);
	assert_int_equal(counts(w, 0).rate_limited, 1);
	(void)add(w, 1, T0 + 1);
	assert_true(next(w) && w->item.known);
	assert_int_equal(w->item.times.n, 1);
}

static void test_more_acknowledgements_than_were_sent_are_not_believed(void **state)
{
	struct world *w = *state;
	uint32_t id;

	(void)add(w, 1, T0);
	assert_int_equal(ack(w, 0, 1, 0, FRAME_FORWARDED), 0);
	id = send_all(w);
	(void)add(w, 1, T0);
	assert_int_equal(ack(w, id, 5, 0, EVREC_CAUSE_FORBIDDEN), 1);
	assert_int_equal(counts(w, 0).dropped[EVREC_CAUSE_FORBIDDEN], 1);
	assert_int_equal(ack(w, id, 5, 0, FRAME_FORWARDED), 0);
	assert_int_equal(ack(w, id, 5, 1, FRAME_FORWARDED), 0);
	assert_int_equal(ack(w, 1000000, 1, 0, FRAME_FORWARDED), 0);
	check_counts(w, 0, 0, 1);
}

static void test_each_sink_acknowledges(void **state)
{
	struct world *w = *state;
	uint32_t id;

	ledger_set_sinks(w->l, 2);
	(void)add(w, 1, T0);
	id = send_all(w);
	assert_int_equal(ack(w, id, 1, 1, FRAME_FORWARDED), 1);
	assert_false(ledger_is_empty(w->l));
	check_counts(w, 0, 0, 1);
	check_counts(w, 1, 1, 0);
	assert_int_equal(ack(w, id, 1, 0, EVREC_CAUSE_REJECTED), 1);
	assert_true(ledger_is_empty(w->l));
}

/* The name stays, as the first owner may have created the event. */
static void test_next_owner_gets_what_the_last_one_has_not_acknowledged(void **state)
{
	struct world *w = *state;
	char name[256] = "";
	uint32_t id;

	(void)add(w, 1, T0);
	(void)add(w, 1, T0 + 1);
	(void)next(w);
	memcpy(name, w->item.name.data, w->item.name.len);
	id = send_all(w);
	(void)add(w, 1, T0 + 2);
	assert_int_equal(ack(w, id, 1, 0, FRAME_FORWARDED), 1);
	ledger_disconnect(w->l);
	assert_true(next(w));
	assert_true((w->item.flags & FRAME_AGAIN) != 0 && !w->item.known);
	assert_int_equal(w->item.times.n, 1);
	assert_int_equal(w->item.times.first, T0);
	assert_int_equal(w->item.name.len, strlen(name));
	assert_memory_equal(w->item.name.data, name, strlen(name));
	ledger_sent(w->l);
	assert_true(next(w));
	assert_int_equal(w->item.times.n, 1);
	assert_int_equal(w->item.times.last, T0 + 2);
	(void)send_all(w);
	check_counts(w, 0, 1, 2);
}

/* The first owner may have more than one sink, which end at different times. */
static void test_sink_that_has_acknowledged_is_not_counted_twice(void **state)
{
	struct world *w = *state;
	uint32_t id;

	ledger_set_sinks(w->l, 2);
	(void)add(w, 1, T0);
	id = send_all(w);
	(void)ack(w, id, 1, 0, FRAME_FORWARDED);
	ledger_disconnect(w->l);
	id = send_all(w);
	assert_int_equal(ack(w, id, 1, 0, FRAME_FORWARDED), 0);
	assert_int_equal(ack(w, id, 1, 1, FRAME_FORWARDED), 1);
	check_counts(w, 0, 1, 0);
	check_counts(w, 1, 1, 0);
}

/* Two sinks have acknowledged different numbers: each gets again what it has not, before what is new. */
static void test_each_sink_gets_again_what_it_has_not_acknowledged(void **state)
{
	struct world *w = *state;
	uint32_t id;

	ledger_set_sinks(w->l, 2);
	for (unsigned i = 0; i < 5; i++) {
		(void)add(w, 1, T0);
	}
	id = send_all(w);
	(void)ack(w, id, 3, 0, FRAME_FORWARDED);
	(void)ack(w, id, 1, 1, FRAME_FORWARDED);
	(void)add(w, 2, T0);
	(void)add(w, 1, T0 + 1);
	ledger_disconnect(w->l);
	for (unsigned i = 0; i < 2; i++) {
		/* Also over an owner that got nothing, or a part. */
		assert_true(next(w));
		assert_int_equal(w->item.times.n, 2);
		assert_int_equal(w->item.flags & ~FRAME_AGAIN, FRAME_RESENT | (0xff00 & ~(unsigned)FRAME_ENDED(1)));
		ledger_disconnect(w->l);
	}
	assert_true(next(w));
	ledger_sent(w->l);
	assert_true(next(w));
	assert_int_equal(w->item.times.n, 2);
	assert_int_equal(w->item.flags, FRAME_RESENT | (0xff00 & ~(unsigned)(FRAME_ENDED(0) | FRAME_ENDED(1))));
	ledger_sent(w->l);
	assert_true(next(w));
	assert_true(str_eq(w->item.bytes, bytes_of(w, 2)));
	assert_int_equal(w->item.flags, 0);
	ledger_sent(w->l);
	assert_true(next(w));
	assert_int_equal(w->item.times.n, 1);
	assert_int_equal(w->item.times.first, T0 + 1);
	ledger_sent(w->l);
	assert_false(next(w));
	assert_int_equal(ack(w, id, 9, 0, FRAME_FORWARDED), 3);
	assert_int_equal(ack(w, id, 9, 1, FRAME_FORWARDED), 5);
}

/* An event that the last owner has acknowledged is nothing that the next one could have written. */
static void test_event_that_was_acknowledged_is_a_new_one_for_the_next_owner(void **state)
{
	struct world *w = *state;
	char name[256] = "";
	uint32_t id;

	(void)add(w, 1, T0);
	(void)next(w);
	memcpy(name, w->item.name.data, w->item.name.len);
	id = send_all(w);
	(void)add(w, 1, T0 + 1);
	(void)ack(w, id, 1, 0, FRAME_FORWARDED);
	ledger_disconnect(w->l);
	assert_true(next(w));
	assert_false((w->item.flags & FRAME_AGAIN) != 0 || w->item.known);
	assert_int_equal(w->item.times.n, 1);
	assert_true(w->item.name.len != 0);
	assert_memory_not_equal(w->item.name.data, name, strlen(name));
}

/* Two owners in turn had it: the second may have written it, although nothing was sent to it. */
static void test_name_stays_over_an_owner_that_got_nothing(void **state)
{
	struct world *w = *state;
	char name[256] = "";

	(void)add(w, 1, T0);
	(void)next(w);
	memcpy(name, w->item.name.data, w->item.name.len);
	(void)send_all(w);
	ledger_disconnect(w->l);
	ledger_disconnect(w->l);
	assert_true(next(w) && (w->item.flags & FRAME_AGAIN) != 0);
	assert_memory_equal(w->item.name.data, name, strlen(name));
	/* The second owner acknowledges it: the third can only make another event. */
	(void)ack(w, send_all(w), 1, 0, FRAME_FORWARDED);
	(void)add(w, 1, T0 + 1);
	(void)send_all(w);
	(void)add(w, 1, T0 + 1);
	(void)ack(w, 0, 1, 0, FRAME_FORWARDED);
	ledger_disconnect(w->l);
	assert_true(next(w) && (w->item.flags & FRAME_AGAIN) == 0);
	assert_memory_not_equal(w->item.name.data, name, strlen(name));
}

static void test_limits_drop_new_events_and_fold_known_ones(void **state)
{
	struct world *w = *state;
	const struct ledger_limits two = { 2, 1 << 20 }, one = { 1, 1 << 20 }, small = { 100, 1000 };

	ledger_free(w->l);
	w->l = ledger_new(&two);
	ledger_set_sinks(w->l, 1);
	assert_true(add(w, 1, T0) && add(w, 2, T0));
	assert_false(add(w, 3, T0));
	assert_int_equal(w->cause, EVREC_CAUSE_QUEUE_FULL);
	assert_true(add(w, 1, T0));
	assert_int_equal(counts(w, 0).dropped[EVREC_CAUSE_QUEUE_FULL], 1);
	check_counts(w, 0, 0, 3);
	assert_int_equal(ack(w, send_all(w), 1, 0, FRAME_FORWARDED), 1);
	assert_true(add(w, 3, T0));

	/* Lower ones keep what there is. */
	ledger_set_limits(w->l, &one);
	assert_true(add(w, 1, T0) && add(w, 3, T0));
	assert_false(add(w, 2, T0));
	ledger_set_limits(w->l, &wide);
	assert_true(add(w, 2, T0));

	ledger_free(w->l);
	w->l = ledger_new(&small);
	ledger_set_sinks(w->l, 1);
	for (unsigned i = 0; i < 20; i++) {
		(void)add(w, i, T0);
		assert_true(ledger_bytes(w->l) <= 1000);
	}
	assert_in_range(ledger_events(w->l), 1, 19);
	(void)send_all(w);
}

static void test_event_too_long_for_the_protocol_is_dropped(void **state)
{
	struct world *w = *state;
	char *text = calloc(1, FRAME_EVENT_MAX);

	assert_non_null(text);
	assert_false(ledger_add(w->l, (evrec_str){ text, FRAME_EVENT_MAX }, T0, &w->cause));
	assert_int_equal(w->cause, EVREC_CAUSE_UNFIT);
	free(text);
}

/* Else the owner would refuse it, and with it the connection, again and again. */
static void test_event_that_no_owner_takes_is_dropped(void **state)
{
	struct world *w = *state;

	assert_false(ledger_add(w->l, EVREC_STR("\x05Event"), T0, &w->cause));
	assert_int_equal(w->cause, EVREC_CAUSE_UNFIT);
	assert_true(ledger_is_empty(w->l));
}

/* A repeated event needs no memory, and idle events take a bounded number of them; the owner is told to forget the rest. */
static void test_memory_is_bounded(void **state)
{
	struct counting_allocator memory = { 0 };
	struct world *w = *state;
	size_t calls, forgotten = 0;

	teardown(state);
	evrec_set_allocator(counting_realloc, &memory);
	setup(state);
	w = *state;
	(void)add(w, 0, T0);
	calls = memory.calls;
	for (unsigned i = 0; i < 10000; i++) {
		(void)add(w, 0, T0);
	}
	assert_int_equal(memory.calls, calls);
	for (unsigned i = 1; i <= 10000; i++) {
		assert_true(add(w, i, T0));
		while (next(w)) {
			forgotten += w->item.times.n == 0;
			ledger_sent(w->l);
		}
		(void)ack(w, w->item.times.id, UINT32_MAX, 0, FRAME_FORWARDED);
	}
	assert_true(memory.live < 512 * 1024);
	assert_true(forgotten >= 9000);
	teardown(state);
	evrec_set_allocator(NULL, NULL);
	setup(state);
}

static void test_many_occurrences_are_sent_in_turns(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < LEDGER_SEND_MAX + 1; i++) {
		(void)add(w, 0, T0);
	}
	assert_true(next(w));
	assert_int_equal(w->item.times.n, LEDGER_SEND_MAX);
	ledger_sent(w->l);
	assert_true(next(w));
	assert_int_equal(w->item.times.n, 1);
	ledger_sent(w->l);
	assert_false(next(w));
}

static void test_new_owner_takes_its_own_events(void **state)
{
	struct world *w = *state;
	struct frame_event event;
	uint32_t id;

	(void)add(w, 1, T0);
	(void)add(w, 1, T0);
	id = send_all(w);
	(void)ack(w, id, 1, 0, FRAME_FORWARDED);
	(void)add(w, 2, T0);
	ledger_disconnect(w->l);
	assert_true(ledger_take(w->l, &w->item, &event));
	frame_event_destroy(&event);
	assert_true((w->item.flags & FRAME_AGAIN) != 0 && w->item.times.n == 1);
	assert_true(str_eq(w->item.bytes, bytes_of(w, 1)));
	assert_true(ledger_take(w->l, &w->item, &event));
	frame_event_destroy(&event);
	assert_true((w->item.flags & FRAME_AGAIN) == 0 && w->item.times.n == 1 && w->item.name.len != 0);
	assert_false(ledger_take(w->l, &w->item, &event));
	assert_true(ledger_is_empty(w->l));
	check_counts(w, 0, 1, 0);
}

static void test_end_drops_what_is_left(void **state)
{
	struct world *w = *state;
	uint64_t dropped = 0;

	(void)add(w, 1, T0);
	(void)send_all(w);
	(void)add(w, 1, T0);
	(void)add(w, 2, T0);
	ledger_disconnect(w->l);
	while (ledger_drop_next(w->l, EVREC_CAUSE_CLOSED, &w->item)) {
		assert_true(w->item.bytes.len != 0);
		dropped += w->item.times.n;
	}
	assert_int_equal(dropped, 3);
	assert_int_equal(counts(w, 0).dropped[EVREC_CAUSE_CLOSED], 3);
	check_counts(w, 0, 0, 0);
	assert_true(ledger_is_empty(w->l));
}

/* Random steps: nothing is lost or counted twice for either sink, whatever the order. */
static void test_random_steps_lose_nothing(void **state)
{
	uint64_t random = unit_seed(), added = 0;
	struct world *w = *state;

	ledger_set_sinks(w->l, 2);
	for (unsigned step = 0; step < 20000; step++) {
		const unsigned number = (unsigned)(unit_random(&random) % 400);

		switch (unit_random(&random) % 8) {
		case 0:
		case 1:
		case 2:
			added += add(w, number, T0 + step);
			break;
		case 3:
		case 4:
			if (next(w)) {
				ledger_sent(w->l);
			}
			break;
		case 5:
		case 6:
			(void)ack(w, number, (uint32_t)(unit_random(&random) % 3), number % 2, FRAME_FORWARDED);
			break;
		default:
			if (unit_random(&random) % 50 == 0) {
				ledger_disconnect(w->l);
			}
		}
		for (size_t sink = 0; sink < 2 && step % 16 == 0; sink++) {
			assert_int_equal(counts(w, sink).forwarded + counts(w, sink).pending, added);
		}
	}
	(void)send_all(w);
	for (unsigned id = 0; id < 1024; id++) {
		(void)ack(w, id, UINT32_MAX, 0, FRAME_FORWARDED);
		(void)ack(w, id, UINT32_MAX, 1, FRAME_FORWARDED);
	}
	assert_true(ledger_is_empty(w->l));
	check_counts(w, 0, added, 0);
	check_counts(w, 1, added, 0);
}

static void scenario(void)
{
	struct world w = { .l = NULL };
	struct buf one = { 0 }, two = { 0 };
	enum evrec_cause cause;

	buf_put_str(&one, bytes_of(&w, 1));
	buf_put_str(&two, bytes_of(&w, 2));
	alloc_failure_arm();
	w.l = ledger_new(&wide);
	alloc_failure_check(w.l != NULL);
	if (w.l != NULL) {
		ledger_set_sinks(w.l, 1);
		alloc_failure_check(ledger_add(w.l, buf_str(&one), T0, &cause));
		alloc_failure_check(ledger_add(w.l, buf_str(&two), T0, &cause));
		alloc_failure_check(ledger_is_empty(w.l) || ledger_next(w.l, &w.item));
	}
	alloc_failure_disarm();
	if (w.l != NULL) {
		const struct ledger_counts c = counts(&w, 0);

		assert_int_equal(c.pending + c.dropped[EVREC_CAUSE_MEMORY], 2);
		(void)send_all(&w);
		assert_int_equal(counts(&w, 0).pending, c.pending);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_repeated_event_is_folded_and_sent_once),
		TEST(test_acknowledged_event_is_idle_and_still_known),
		TEST(test_more_acknowledgements_than_were_sent_are_not_believed),
		TEST(test_each_sink_acknowledges),
		TEST(test_next_owner_gets_what_the_last_one_has_not_acknowledged),
		TEST(test_sink_that_has_acknowledged_is_not_counted_twice),
		TEST(test_each_sink_gets_again_what_it_has_not_acknowledged),
		TEST(test_event_that_was_acknowledged_is_a_new_one_for_the_next_owner),
		TEST(test_name_stays_over_an_owner_that_got_nothing),
		TEST(test_limits_drop_new_events_and_fold_known_ones),
		TEST(test_event_too_long_for_the_protocol_is_dropped),
		TEST(test_event_that_no_owner_takes_is_dropped),
		TEST(test_memory_is_bounded),
		TEST(test_many_occurrences_are_sent_in_turns),
		TEST(test_new_owner_takes_its_own_events),
		TEST(test_end_drops_what_is_left),
		TEST(test_random_steps_lose_nothing),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

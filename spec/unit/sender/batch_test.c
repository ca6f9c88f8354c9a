/*
 * A protocol that sends batches: the server accepts some writes of a batch, rejects some and defers the others. Outbox and
 * sender do not know the protocol, and every write has an outcome of its own.
 */
#include "fake_write.h"
#include "tmpdir.h"

#define BATCH 4
#define WRITES 10

struct batches {
	struct protocol base;
	unsigned requests, largest;
	unsigned sent[WRITES + 1]; /* by id */
	bool answers_in_send;      /* before send returns */
	struct entry *held[BATCH];
	size_t held_len;
};

/* Rejects ids that are multiples of 3, and defers multiples of 4 once. */
static void answer_batch(struct batches *b, struct sender *s, struct entry *const *entries, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct outcome outcome = { .verdict = VERDICT_WRITTEN };

		if (entries[i]->id % 3 == 0) {
			outcome = (struct outcome){ .verdict = VERDICT_DROP, .cause = EVREC_CAUSE_REJECTED };
		} else if (entries[i]->id % 4 == 0 && b->sent[entries[i]->id] == 1) {
			outcome = (struct outcome){ .verdict = VERDICT_RETRY };
		}
		sender_answered(s, entries[i], &outcome);
	}
	sender_request_ended(s, REQUEST_SUCCEEDED, 0);
}

static void batches_send(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n)
{
	struct batches *b = (struct batches *)p;

	assert_in_range(n, 1, BATCH);
	b->requests++;
	b->largest = n > b->largest ? (unsigned)n : b->largest;
	for (size_t i = 0; i < n; i++) {
		b->sent[entries[i]->id]++;
	}
	if (b->answers_in_send) {
		answer_batch(b, s, entries, n);
		return;
	}
	assert_int_equal(b->held_len, 0);
	memcpy(b->held, entries, n * sizeof(*entries));
	b->held_len = n;
}

static void batches_step(struct protocol *p, struct sender *s, int64_t timeout)
{
	struct batches *b = (struct batches *)p;
	size_t n = b->held_len;

	(void)timeout;
	b->held_len = 0;
	if (n != 0) {
		answer_batch(b, s, b->held, n);
	}
}

static void batches_free(struct protocol *p)
{
	mem_free(p);
}

static const struct protocol_ops ops = {
	.does_io = true, .send = batches_send, .step = batches_step, .free = batches_free
};

static void write_all(bool answers_in_send)
{
	const struct sender_options options = { .clock = evrec_clock_fake(0), .drive = EVREC_DRIVE_POLL };
	struct batches *b = mem_zalloc(sizeof(*b));
	struct outbox *ob = fake_write_outbox(100);
	struct outbox_stats stats;
	struct sender *s;

	b->base = (struct protocol){ .ops = &ops, .max_batch = BATCH, .max_in_flight = 1 };
	b->answers_in_send = answers_in_send;
	s = sender_new(ob, &b->base, &options);
	for (unsigned id = 1; id <= WRITES; id++) {
		assert_true(fake_write_submit(ob, id, 1));
	}
	for (int i = 0; i < 4; i++) {
		sender_step(s);
	}
	assert_int_equal(b->largest, BATCH);
	assert_int_equal(b->requests, 3);
	/* An occurrence folds into a write that backs off. */
	assert_true(fake_write_submit(ob, 4, 2));
	evrec_clock_set(options.clock, EVREC_SECOND);
	for (int i = 0; i < 4; i++) {
		sender_step(s);
	}
	outbox_get_stats(ob, &stats);
	outbox_check_equation(ob);
	assert_int_equal(stats.created, 7); /* 1 2 4 5 7 8 10 */
	assert_int_equal(stats.coalesced, 1);
	assert_int_equal(stats.dropped[EVREC_CAUSE_REJECTED], 3);
	assert_int_equal(stats.retries, 2);
	assert_int_equal(stats.pending, 0);
	assert_int_equal(b->requests, 4);
	sender_release(s);
	evrec_clock_release(options.clock);
	assert_int_equal(fake_writes.alive, 0);
}

static void test_each_write_of_a_batch_has_its_outcome_in_send(void **state)
{
	(void)state;
	write_all(true);
}

static void test_each_write_of_a_batch_has_its_outcome_in_step(void **state)
{
	(void)state;
	write_all(false);
}

/* Writes of a batch without an answer are dropped at the end, one by one. */
static void test_unanswered_batch_is_dropped(void **state)
{
	const struct sender_options options = { .clock = evrec_clock_fake(0), .drive = EVREC_DRIVE_POLL };
	struct batches *b = mem_zalloc(sizeof(*b));
	struct outbox *ob = fake_write_outbox(100);
	struct protocol_ops silent = ops;
	struct outbox_stats stats;
	struct sender *s;

	(void)state;
	silent.step = NULL;
	b->base = (struct protocol){ .ops = &silent, .max_batch = BATCH, .max_in_flight = 1 };
	s = sender_new(ob, &b->base, &options);
	for (unsigned id = 1; id <= WRITES; id++) {
		assert_true(fake_write_submit(ob, id, 1));
	}
	sender_step(s);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.in_flight, BATCH);
	assert_false(sender_join(s, 0));
	outbox_get_stats(ob, &stats);
	outbox_check_equation(ob);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], WRITES);
	sender_release(s);
	evrec_clock_release(options.clock);
	assert_int_equal(fake_writes.alive, 0);
}

/* A sender without a thread, whose batches wait for 5 s, and whose clock is at 0. */
static struct sender *open_gathering(struct batches **b, struct outbox **ob, evrec_clock *clock,
                                     struct spooler *spooler)
{
	const struct sender_options options = { .clock = clock, .drive = EVREC_DRIVE_POLL, .spooler = spooler };

	*b = mem_zalloc(sizeof(**b));
	(*b)->base = (struct protocol){
		.ops = &ops, .max_batch = BATCH, .max_in_flight = 1, .batch_delay = 5 * EVREC_SECOND
	};
	(*b)->answers_in_send = true;
	*ob = fake_write_outbox(100);
	return sender_new(*ob, &(*b)->base, &options);
}

static void test_a_poll_is_due_when_a_batch_is(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct batches *b;
	struct outbox *ob;
	struct sender *s = open_gathering(&b, &ob, clock, NULL);

	(void)state;
	assert_true(fake_write_submit(ob, 1, 1));
	sender_step(s);
	assert_int_equal(b->requests, 0);
	assert_true(sender_step_delay(s, INT64_MAX) <= 5 * EVREC_SECOND);
	assert_false(sender_is_stalled(s)); /* a flush ends the wait */
	evrec_clock_set(clock, 5 * EVREC_SECOND);
	sender_step(s);
	assert_int_equal(b->requests, 1);
	assert_true(sender_step_delay(s, INT64_MAX) > 60 * EVREC_SECOND);
	sender_release(s);
	evrec_clock_release(clock);
	assert_int_equal(fake_writes.alive, 0);
}

static void test_a_full_batch_goes_and_the_rest_waits(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct batches *b;
	struct outbox *ob;
	struct sender *s = open_gathering(&b, &ob, clock, NULL);
	struct outbox_stats stats;

	(void)state;
	for (unsigned id = 1; id <= BATCH + 1; id++) {
		assert_true(fake_write_submit(ob, id, 1));
	}
	sender_step(s);
	assert_int_equal(b->requests, 1);
	assert_int_equal(b->largest, BATCH);
	assert_int_equal(b->sent[BATCH + 1], 0);
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.in_flight, 0);
	(void)sender_join(s, unit_mono() + SOON);
	assert_int_equal(b->sent[BATCH + 1], 1);
	sender_release(s);
	evrec_clock_release(clock);
	assert_int_equal(fake_writes.alive, 0);
}

/* A write that waits for others is not late: the spool is for those that are. */
static void test_rows_are_due_after_the_batch(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct batches *b;
	struct outbox *ob;
	struct sender *s = open_gathering(
		&b, &ob, clock, spooler_new(str_from(tmpdir_path(*state, "spool")), EVREC_SECOND, &fake_write_codec));

	assert_true(fake_write_submit(ob, 1, 1));
	assert_int_equal(outbox_rows_due(ob, 0), 6 * EVREC_SECOND);
	(void)sender_join(s, 0);
	sender_release(s);
	evrec_clock_release(clock);
	assert_int_equal(fake_writes.alive, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_write_of_a_batch_has_its_outcome_in_send),
		cmocka_unit_test(test_each_write_of_a_batch_has_its_outcome_in_step),
		cmocka_unit_test(test_unanswered_batch_is_dropped),
		cmocka_unit_test(test_a_poll_is_due_when_a_batch_is),
		cmocka_unit_test(test_a_full_batch_goes_and_the_rest_waits),
		TMPDIR_TEST(test_rows_are_due_after_the_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A sender whose server says that it has too much to do, or says nothing: the whole sink slows down. Time stands still. */
#include "sender_fixture.h"

#include "sender/sender_inner.h"

static void submit_many(struct sender_fixture *f, unsigned n)
{
	for (unsigned i = 1; i <= n; i++) {
		assert_true(fake_write_submit(f->ob, i, 1));
	}
}

static void step_at(struct sender_fixture *f, int64_t now)
{
	evrec_clock_set(f->clock, now);
	for (int i = 0; i < 20; i++) {
		sender_step(f->sender);
	}
}

static evrec_throttle_stats throttle_of(const struct sender_fixture *f)
{
	evrec_throttle_stats stats;

	sender_get_throttle(f->sender, &stats);
	return stats;
}

static void open_at_zero(struct sender_fixture *f)
{
	sender_fixture_open(f, true, evrec_clock_fake(0));
}

static void close_with_clock(struct sender_fixture *f)
{
	evrec_clock *clock = f->clock;

	sender_fixture_close(f);
	evrec_clock_release(clock);
}

/* Four of twenty writes meet the 429; the others are not sent to meet one of their own. */
static void test_retry_after_pauses_the_whole_sink(void **state)
{
	struct sender_fixture f = { 0 };

	(void)state;
	open_at_zero(&f);
	f.protocol->status = 429;
	f.protocol->retry_after = 7 * EVREC_SECOND;
	submit_many(&f, 20);
	step_at(&f, 0);
	assert_int_equal(sender_fixture_sent(&f), 4);
	assert_int_equal(throttle_of(&f).refused, 4);
	assert_int_equal(throttle_of(&f).window, 0);
	assert_int_equal(throttle_of(&f).paused_for, 7 * EVREC_SECOND);
	assert_true(sender_is_stalled(f.sender));
	f.protocol->status = 201;
	f.protocol->retry_after = 0;
	step_at(&f, 7 * EVREC_SECOND - 1);
	assert_int_equal(sender_fixture_sent(&f), 4);
	step_at(&f, 7 * EVREC_SECOND);
	assert_int_equal(sender_fixture_stats(&f).created, 20);
	assert_int_equal(throttle_of(&f).refused, 4);
	close_with_clock(&f);
}

/* A write that was refused waits for the throttle alone: it has no backoff of its own on top. */
static void test_refused_write_is_due_with_the_next_start(void **state)
{
	struct sender_fixture f = { 0 };

	(void)state;
	open_at_zero(&f);
	f.protocol->status = 503;
	submit_many(&f, 1);
	step_at(&f, 0);
	assert_int_equal(sender_fixture_sent(&f), 1);
	assert_true(throttle_of(&f).paused_for > 0);
	assert_true(outbox_next_due(f.ob, 0) <= 0);
	f.protocol->status = 201;
	step_at(&f, throttle_of(&f).paused_for);
	assert_int_equal(sender_fixture_stats(&f).created, 1);
	assert_int_equal(sender_fixture_stats(&f).retries, 1);
	close_with_clock(&f);
}

/* A server that does not answer costs one request each pause, for a protocol without I/O as well. */
static void test_outage_lets_one_request_try(void **state)
{
	struct sender_fixture f = { 0 };
	unsigned sent;

	(void)state;
	open_at_zero(&f);
	f.protocol->status = 0;
	submit_many(&f, 20);
	step_at(&f, 0);
	sent = sender_fixture_sent(&f);
	assert_in_range(sent, 4, 8);
	for (int i = 1; i <= 10; i++) {
		step_at(&f, i * 100 * EVREC_SECOND);
		assert_int_equal(sender_fixture_sent(&f), sent + (unsigned)i);
	}
	/* The first answer makes all that was not answered due at once. */
	f.protocol->status = 201;
	step_at(&f, 2000 * EVREC_SECOND);
	assert_int_equal(sender_fixture_stats(&f).created, 20);
	close_with_clock(&f);
}

/* At the end no pause holds: each write has its last try. */
static void test_end_waits_for_no_pause(void **state)
{
	struct sender_fixture f = { 0 };

	(void)state;
	open_at_zero(&f);
	f.protocol->status = 429;
	f.protocol->retry_after = 300 * EVREC_SECOND;
	submit_many(&f, 8);
	step_at(&f, 0);
	assert_int_equal(sender_fixture_sent(&f), 4);
	f.protocol->status = 201;
	close_with_clock(&f);
}

/* After a join that timed out the protocol holds entries that were freed: nothing steps it, exit() neither. */
static void test_joined_sender_is_not_stepped(void **state)
{
	struct sender_fixture f = { 0 };
	struct entry *entry;

	(void)state;
	open_at_zero(&f);
	f.protocol->silent = true;
	submit_many(&f, 4);
	step_at(&f, 0);
	assert_false(sender_join(f.sender, 0));
	while ((entry = outbox_collect(f.ob, 1)) != NULL) {
		outbox_recycle(f.ob, entry);
	}
	f.protocol->silent = false;
	sender_step_until(f.sender, 0);
	assert_int_equal(f.protocol->held_len, 4);
	sender_release(f.sender);
	evrec_clock_release(f.clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retry_after_pauses_the_whole_sink),
		cmocka_unit_test(test_refused_write_is_due_with_the_next_start),
		cmocka_unit_test(test_outage_lets_one_request_try),
		cmocka_unit_test(test_end_waits_for_no_pause),
		cmocka_unit_test(test_joined_sender_is_not_stepped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

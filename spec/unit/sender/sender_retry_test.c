/* A sender whose writes fail, expire or wait for a clock. */
#define _GNU_SOURCE

#include "sender_fixture.h"

static void test_thread_follows_a_fake_clock(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, false, clock);
	sender_fixture_set_status(&f, 429);
	fake_write_submit(f.ob, 1, 1);
	while (sender_fixture_stats(&f).in_flight != 0 || sender_fixture_sent(&f) == 0) {
		usleep(1000);
	}
	sender_fixture_set_status(&f, 201);
	evrec_clock_set(clock, 60 * EVREC_SECOND);
	sender_fixture_wait_empty(&f);
	assert_int_equal(sender_fixture_stats(&f).retries, 1);
	sender_fixture_close(&f);
	evrec_clock_release(clock);
}

static void test_credentials_are_reloaded_after_401(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, true, clock);
	sender_fixture_set_status(&f, 401);
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_int_equal(f.protocol->unauthorized, 1);
	sender_fixture_set_status(&f, 201);
	evrec_clock_set(clock, EVREC_SECOND);
	sender_step(f.sender);
	assert_int_equal(sender_fixture_stats(&f).created, 1);
	sender_fixture_close(&f);
	evrec_clock_release(clock);
}

static void test_outage_costs_few_tries(void **state)
{
	struct sender_fixture f;
	struct outbox_stats stats;

	(void)state;
	sender_fixture_open(&f, false, evrec_clock_real());
	f.protocol->retry_after = 3600 * EVREC_SECOND; /* longer than the test takes */
	sender_fixture_set_status(&f, 0);
	for (unsigned i = 1; i <= 500; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	sender_fixture_wait_sent(&f, 4);
	/* After a few failures only single requests are sent, now and then. */
	usleep(100000);
	assert_true(sender_fixture_sent(&f) < 100);
	pthread_mutex_lock(&f.protocol->lock);
	f.protocol->most_held = 0;
	pthread_mutex_unlock(&f.protocol->lock);
	sender_fixture_wait_sent(&f, sender_fixture_sent(&f) + 2);
	pthread_mutex_lock(&f.protocol->lock);
	assert_int_equal(f.protocol->most_held, 1);
	pthread_mutex_unlock(&f.protocol->lock);
	sender_fixture_set_status(&f, 201);
	sender_fixture_wait_empty(&f);
	stats = sender_fixture_stats(&f);
	/* Failed writes were sent at once after the outage, not after their backoff. */
	assert_int_equal(stats.created, 500);
	assert_true(stats.retries < 100);
	sender_fixture_close(&f);
}

/* A waiting write expires although no request may start. */
static void test_waiting_writes_expire_during_a_hang(void **state)
{
	evrec_limits limits = limits_without_age(10);
	struct sender_options options = { .clock = evrec_clock_fake(0), .drive = EVREC_DRIVE_POLL };
	struct sender_fixture f = { 0 };
	struct outbox_stats stats;

	(void)state;
	limits.max_age = 60 * EVREC_SECOND;
	f.ob = outbox_new(&fake_write_ops, &limits, 1);
	f.protocol = fake_protocol_new(&f.freed);
	f.protocol->base.max_in_flight = 1;
	f.sender = sender_new(f.ob, &f.protocol->base, &options);
	f.protocol->silent = true;
	fake_write_submit(f.ob, 1, 1);
	fake_write_submit(f.ob, 2, 1);
	sender_step(f.sender);
	evrec_clock_set(options.clock, 60 * EVREC_SECOND);
	sender_step(f.sender);
	assert_int_equal(sender_fixture_stats(&f).dropped[EVREC_CAUSE_EXPIRED], 0);
	evrec_clock_set(options.clock, 60 * EVREC_SECOND + 1);
	sender_step(f.sender);
	stats = sender_fixture_stats(&f);
	assert_int_equal(stats.dropped[EVREC_CAUSE_EXPIRED], 1);
	assert_int_equal(stats.in_flight, 1);
	f.protocol->silent = false;
	sender_step(f.sender);
	assert_int_equal(sender_fixture_stats(&f).created, 1);
	sender_fixture_close(&f);
	evrec_clock_release(options.clock);
}

static void test_401_costs_few_tries(void **state)
{
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, false, evrec_clock_real());
	sender_fixture_set_status(&f, 401);
	for (unsigned i = 1; i <= 500; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	sender_fixture_wait_sent(&f, 4);
	usleep(100000);
	assert_true(sender_fixture_sent(&f) < 100);
	sender_fixture_set_status(&f, 201);
	sender_fixture_wait_empty(&f);
	assert_int_equal(sender_fixture_stats(&f).created, 500);
	assert_true(sender_fixture_stats(&f).retries < 100);
	sender_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_follows_a_fake_clock),
		cmocka_unit_test(test_credentials_are_reloaded_after_401),
		cmocka_unit_test(test_outage_costs_few_tries),
		cmocka_unit_test(test_waiting_writes_expire_during_a_hang),
		cmocka_unit_test(test_401_costs_few_tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

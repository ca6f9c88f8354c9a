/* The life of a sender: with a thread or without, its end, join and release. */
#define _GNU_SOURCE

#include "sender_fixture.h"

#include <dlfcn.h>
#include <errno.h>

static bool no_threads; /* global: read by the function below */

/* Replaces the C library's function, and fails if the test wants it to. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (no_threads) {
		return EAGAIN;
	}
	if (real == NULL) {
		void *symbol = dlsym(RTLD_NEXT, "pthread_create");

		memcpy(&real, &symbol, sizeof(real));
	}
	return real(thread, attr, run, arg);
}

static void test_thread_writes_with_signals_blocked(void **state)
{
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, false, evrec_clock_real());
	assert_false(sender_needs_step(f.sender));
	for (unsigned round = 1; round <= 20; round++) {
		for (unsigned i = 1; i <= 10; i++) {
			fake_write_submit(f.ob, i, round);
		}
		sender_fixture_wait_empty(&f);
	}
	assert_string_equal(f.protocol->thread_name, "evrec");
	assert_true(f.protocol->signals_blocked);
	assert_true(f.protocol->most_held <= 8);
	sender_step(f.sender); /* no effect */
	assert_int_equal(sender_fixture_stats(&f).created, 10);
	sender_fixture_close(&f);
}

static void test_sender_that_never_started_ends(void **state)
{
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, false, evrec_clock_real());
	sender_fixture_close(&f);
	sender_fixture_open(&f, false, evrec_clock_real());
	sender_end(f.sender);
	sender_release(f.sender);
	assert_int_equal(f.freed, 1);
}

static void test_steps_send_without_a_thread(void **state)
{
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, true, evrec_clock_real());
	assert_true(sender_needs_step(f.sender));
	for (unsigned i = 1; i <= 20; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	assert_int_equal(sender_fixture_sent(&f), 0);
	/* A throttle starts with a window of four requests. */
	sender_step(f.sender);
	assert_int_equal(sender_fixture_stats(&f).created, 4);
	assert_false(f.protocol->signals_blocked);
	sender_step(f.sender);
	assert_int_equal(sender_fixture_stats(&f).created, 8);
	/* sender_join steps it to the end. */
	sender_fixture_close(&f);
}

static void test_step_after_its_deadline_sends_one_write(void **state)
{
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, true, evrec_clock_real());
	f.protocol->answers_in_send = true;
	for (unsigned i = 1; i <= 20; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	/* The deadline has passed: one write all the same, so that repeated calls make progress. */
	sender_step_by(f.sender, 0);
	assert_int_equal(sender_fixture_stats(&f).created, 1);
	sender_step_by(f.sender, unit_mono());
	assert_int_equal(sender_fixture_stats(&f).created, 2);
	sender_step_by(f.sender, unit_mono() + SOON);
	assert_int_equal(sender_fixture_stats(&f).created, 20);
	sender_fixture_close(&f);
}

static void test_protocol_without_io_needs_no_thread(void **state)
{
	struct sender_fixture f;
	struct sender_options options = { .clock = evrec_clock_real() };

	(void)state;
	sender_fixture_open(&f, true, evrec_clock_real());
	sender_release(f.sender);
	f.ob = fake_write_outbox(1000);
	f.freed = 0;
	f.protocol = fake_protocol_new(&f.freed);
	fake_protocol_without_io(f.protocol);
	f.protocol->status = 401; /* the protocol has no credentials to read again: nothing is called */
	f.sender = sender_new(f.ob, &f.protocol->base, &options);
	assert_true(sender_needs_step(f.sender));
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_int_equal(sender_fixture_stats(&f).pending, 1);
	/* No thread sends after the release: waiting writes are lost. */
	sender_release(f.sender);
	assert_int_equal(f.freed, 1);
	assert_int_equal(fake_writes.alive, 0);
}

static void test_steps_send_if_no_thread_starts(void **state)
{
	struct outbox_message message;
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, false, evrec_clock_real());
	no_threads = true;
	fake_write_submit(f.ob, 1, 1);
	no_threads = false;
	assert_true(sender_needs_step(f.sender));
	fake_write_submit(f.ob, 2, 1);
	assert_true(outbox_next_message(f.ob, &message));
	assert_string_equal(message.name, "thread");
	assert_string_equal(message.message,
	                    "no thread could be started (Resource temporarily unavailable): evrec writes from poll()");
	assert_false(outbox_next_message(f.ob, &message));
	sender_step(f.sender);
	assert_int_equal(sender_fixture_stats(&f).created, 2);
	sender_fixture_close(&f);
}

static void test_end_tries_each_write_once_more(void **state)
{
	struct sender_fixture f;
	struct outbox_stats stats;

	(void)state;
	sender_fixture_open(&f, false, evrec_clock_real());
	sender_fixture_set_status(&f, 429);
	fake_write_submit(f.ob, 1, 1);
	sender_fixture_wait_sent(&f, 1);
	sender_fixture_set(&f, &f.protocol->hangs, true);
	fake_write_submit(f.ob, 2, 1);
	sender_fixture_wait_sent(&f, 2);
	sender_end(f.sender);
	assert_false(fake_write_submit(f.ob, 3, 1));
	sender_fixture_set(&f, &f.protocol->hangs, false);
	assert_true(sender_join(f.sender, unit_mono() + SOON));
	stats = sender_fixture_stats(&f);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 3);
	sender_release(f.sender);
	assert_int_equal(fake_writes.alive, 0);
}

static void test_end_needs_no_second_wake(void **state)
{
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, false, evrec_clock_real());
	f.protocol->answers_in_send = true;
	fake_write_submit(f.ob, 1, 1);
	sender_fixture_wait_idle(&f);
	/* One wake serves both the last write and the end: the step after that write must not wait for another wake. */
	sender_fixture_set(&f, &f.protocol->ignores_wake, true);
	fake_write_submit(f.ob, 2, 1);
	sender_end(f.sender);
	sender_fixture_set(&f, &f.protocol->ignores_wake, false);
	sender_fixture_close(&f);
}

static void test_join_drops_at_its_deadline(void **state)
{
	struct sender_fixture f;
	struct entry *entry;
	int64_t start;
	unsigned collected = 0;

	(void)state;
	for (int threadless = 0; threadless <= 1; threadless++) {
		sender_fixture_open(&f, threadless != 0, evrec_clock_real());
		f.protocol->silent = true;
		for (unsigned i = 1; i <= 20; i++) {
			fake_write_submit(f.ob, i, 1);
		}
		if (!threadless) {
			sender_fixture_wait_sent(&f, 4);
		}
		start = unit_mono();
		assert_false(sender_join(f.sender, start + EVREC_SECOND / 20));
		assert_true(unit_mono() - start < SOON);
		assert_int_equal(sender_fixture_stats(&f).dropped[EVREC_CAUSE_CLOSED], 20);
		assert_int_equal(sender_fixture_stats(&f).in_flight, 0);
		while ((entry = outbox_collect(f.ob, 1)) != NULL) {
			assert_true(entry->dropped);
			outbox_recycle(f.ob, entry);
			collected++;
		}
		sender_step(f.sender); /* no effect */
		sender_release(f.sender);
		assert_int_equal(fake_writes.alive, 0);
	}
	assert_int_equal(collected, 40);
}

static void test_join_gives_up_a_hanging_thread(void **state)
{
	struct sender_fixture f;

	(void)state;
	sender_fixture_open(&f, false, evrec_clock_real());
	f.protocol->hangs = true;
	fake_write_submit(f.ob, 1, 1);
	fake_write_submit(f.ob, 2, 1);
	sender_fixture_wait_sent(&f, 1);
	assert_false(sender_join(f.sender, 0));
	assert_int_equal(sender_fixture_stats(&f).dropped[EVREC_CAUSE_CLOSED], 2);
	assert_true(outbox_empty(f.ob));
	sender_release(f.sender);
	assert_int_equal(f.freed, 0);
	/* The thread frees all when it returns. */
	sender_fixture_set(&f, &f.protocol->hangs, false);
	sender_fixture_wait_freed(&f);
}

static void test_released_thread_sends_all(void **state)
{
	struct sender_fixture f;
	int ends[2];
	char bytes[64];
	ssize_t n, total = 0;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	sender_fixture_open(&f, false, evrec_clock_real());
	f.protocol->success_fd = ends[1];
	f.protocol->hangs = true;
	for (unsigned i = 1; i <= 30; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	sender_fixture_wait_sent(&f, 1);
	/* The thread keeps the sender alive, and sends all writes. */
	sender_release(f.sender);
	sender_fixture_set(&f, &f.protocol->hangs, false);
	while (total < 30 && (n = read(ends[0], bytes, sizeof(bytes))) > 0) {
		total += n;
	}
	sender_fixture_wait_freed(&f);
	close(ends[0]);
	close(ends[1]);
}

static void test_released_sender_is_stepped_by_others(void **state)
{
	struct sender_fixture f, other;

	(void)state;
	sender_fixture_open(&f, true, evrec_clock_real());
	sender_fixture_open(&other, true, evrec_clock_real());
	for (unsigned i = 1; i <= 12; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	sender_step(f.sender);
	assert_int_equal(sender_fixture_stats(&f).created, 4);
	sender_release(f.sender);
	assert_int_equal(f.freed, 0);
	/* Steps of another sender send its writes, four each. */
	sender_step(other.sender);
	assert_int_equal(f.freed, 0);
	sender_step(other.sender);
	assert_int_equal(f.freed, 1);
	sender_fixture_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_writes_with_signals_blocked),
		cmocka_unit_test(test_sender_that_never_started_ends),
		cmocka_unit_test(test_steps_send_without_a_thread),
		cmocka_unit_test(test_step_after_its_deadline_sends_one_write),
		cmocka_unit_test(test_protocol_without_io_needs_no_thread),
		cmocka_unit_test(test_steps_send_if_no_thread_starts),
		cmocka_unit_test(test_end_tries_each_write_once_more),
		cmocka_unit_test(test_end_needs_no_second_wake),
		cmocka_unit_test(test_join_drops_at_its_deadline),
		cmocka_unit_test(test_join_gives_up_a_hanging_thread),
		cmocka_unit_test(test_released_thread_sends_all),
		cmocka_unit_test(test_released_sender_is_stepped_by_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

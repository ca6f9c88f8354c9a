/* The life of a sender: its thread, or the want of one; ending, joining, letting go. */
#define _GNU_SOURCE

#include "script.h"

#include <dlfcn.h>
#include <errno.h>

static bool no_threads;

/* In the way of the C library's. */
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

static void test_thread_of_its_own(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, false, evrec_clock_real());
	assert_false(sender_needs_step(f.sender));
	for (unsigned round = 1; round <= 20; round++) {
		for (unsigned i = 1; i <= 10; i++) {
			item_submit(f.ob, i, round);
		}
		wait_empty(&f);
	}
	assert_string_equal(f.script->thread_name, "evrec");
	assert_true(f.script->signals_blocked);
	assert_true(f.script->held_most <= 8);
	sender_step(f.sender); /* of no effect */
	assert_int_equal(stats_of(&f).created, 10);
	close_fixture(&f);
}

static void test_never_started(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, false, evrec_clock_real());
	close_fixture(&f);
	open_fixture(&f, false, evrec_clock_real());
	sender_end(f.sender);
	sender_release(f.sender);
	assert_int_equal(f.freed, 1);
}

static void test_steps(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, true, evrec_clock_real());
	assert_true(sender_needs_step(f.sender));
	for (unsigned i = 1; i <= 20; i++) {
		item_submit(f.ob, i, 1);
	}
	assert_int_equal(sent(&f), 0);
	sender_step(f.sender);
	assert_int_equal(stats_of(&f).created, 8);
	assert_false(f.script->signals_blocked);
	sender_step(f.sender);
	assert_int_equal(stats_of(&f).created, 16);
	/* Joining steps it to the end. */
	close_fixture(&f);
}

static void test_steps_by_a_deadline(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, true, evrec_clock_real());
	f.script->prompt = true;
	for (unsigned i = 1; i <= 20; i++) {
		item_submit(f.ob, i, 1);
	}
	/* Too late: one write, so that whoever comes again gets on. */
	sender_step_by(f.sender, 0);
	assert_int_equal(stats_of(&f).created, 1);
	sender_step_by(f.sender, mono());
	assert_int_equal(stats_of(&f).created, 2);
	sender_step_by(f.sender, mono() + SOON);
	assert_int_equal(stats_of(&f).created, 20);
	close_fixture(&f);
}

static void test_transport_that_wants_no_thread(void **state)
{
	struct fixture f;
	struct sender_options options = { .max_in_flight = 8, .clock = evrec_clock_real() };

	(void)state;
	open_fixture(&f, true, evrec_clock_real());
	sender_release(f.sender);
	f.ob = items_outbox(1000);
	f.freed = 0;
	f.script = mem_zalloc(sizeof(*f.script));
	f.script->base.ops = &polled_ops;
	f.script->status = 401; /* no credentials to read again: nothing is called */
	f.script->tell = -1;
	f.script->freed = &f.freed;
	pthread_mutex_init(&f.script->lock, NULL);
	pthread_cond_init(&f.script->changed, NULL);
	f.sender = sender_new(f.ob, &f.script->base, &options);
	assert_true(sender_needs_step(f.sender));
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_int_equal(stats_of(&f).pending, 1);
	/* Released without a thread: what waits is lost. */
	sender_release(f.sender);
	assert_int_equal(f.freed, 1);
	assert_int_equal(items_alive, 0);
}

static void test_no_thread_to_be_had(void **state)
{
	struct outbox_report report;
	struct fixture f;

	(void)state;
	open_fixture(&f, false, evrec_clock_real());
	no_threads = true;
	item_submit(f.ob, 1, 1);
	no_threads = false;
	assert_true(sender_needs_step(f.sender));
	item_submit(f.ob, 2, 1);
	assert_true(outbox_next_report(f.ob, &report));
	assert_string_equal(report.name, "thread");
	assert_string_equal(report.message,
	                    "no thread could be started (Resource temporarily unavailable): evrec writes from poll()");
	assert_false(outbox_next_report(f.ob, &report));
	sender_step(f.sender);
	assert_int_equal(stats_of(&f).created, 2);
	close_fixture(&f);
}

static void test_end_tries_once_more(void **state)
{
	struct fixture f;
	struct outbox_stats stats;

	(void)state;
	open_fixture(&f, false, evrec_clock_real());
	set_status(&f, 429);
	item_submit(f.ob, 1, 1);
	wait_sent(&f, 1);
	set(&f, &f.script->hang, true);
	item_submit(f.ob, 2, 1);
	wait_sent(&f, 2);
	sender_end(f.sender);
	assert_false(item_submit(f.ob, 3, 1));
	set(&f, &f.script->hang, false);
	assert_true(sender_join(f.sender, mono() + SOON));
	stats = stats_of(&f);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], 3);
	sender_release(f.sender);
	assert_int_equal(items_alive, 0);
}

static void test_last_write_answered_at_once(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, false, evrec_clock_real());
	f.script->prompt = true;
	item_submit(f.ob, 1, 1);
	wait_waits(&f);
	/* One wake for both: the last write, and the end. The step after that write must not wait for another. */
	set(&f, &f.script->deaf, true);
	item_submit(f.ob, 2, 1);
	sender_end(f.sender);
	set(&f, &f.script->deaf, false);
	close_fixture(&f);
}

static void test_join_has_a_deadline(void **state)
{
	struct fixture f;
	struct entry *entry;
	int64_t start;
	unsigned shown = 0;

	(void)state;
	for (int threadless = 0; threadless <= 1; threadless++) {
		open_fixture(&f, threadless != 0, evrec_clock_real());
		f.script->silent = true;
		for (unsigned i = 1; i <= 20; i++) {
			item_submit(f.ob, i, 1);
		}
		if (!threadless) {
			wait_sent(&f, 8);
		}
		start = mono();
		assert_false(sender_join(f.sender, start + EVREC_SECOND / 20));
		assert_true(mono() - start < SOON);
		assert_int_equal(stats_of(&f).dropped[EVREC_CAUSE_CLOSED], 20);
		assert_int_equal(stats_of(&f).in_flight, 0);
		while ((entry = outbox_collect(f.ob)) != NULL) {
			assert_true(entry->dropped);
			outbox_recycle(f.ob, entry);
			shown++;
		}
		sender_step(f.sender); /* of no effect */
		sender_release(f.sender);
		assert_int_equal(items_alive, 0);
	}
	assert_int_equal(shown, 40);
}

static void test_join_of_one_that_hangs(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, false, evrec_clock_real());
	f.script->hang = true;
	item_submit(f.ob, 1, 1);
	item_submit(f.ob, 2, 1);
	wait_sent(&f, 1);
	assert_false(sender_join(f.sender, 0));
	assert_int_equal(stats_of(&f).dropped[EVREC_CAUSE_CLOSED], 2);
	assert_true(outbox_empty(f.ob));
	sender_release(f.sender);
	assert_int_equal(f.freed, 0);
	/* When it comes back it cleans up behind itself. */
	set(&f, &f.script->hang, false);
	wait_freed(&f);
}

static void test_release_sends_in_the_background(void **state)
{
	struct fixture f;
	int ends[2];
	char bytes[64];
	ssize_t n, total = 0;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	open_fixture(&f, false, evrec_clock_real());
	f.script->tell = ends[1];
	f.script->hang = true;
	for (unsigned i = 1; i <= 30; i++) {
		item_submit(f.ob, i, 1);
	}
	wait_sent(&f, 1);
	/* Kept alive by what hangs; then all of it is sent. */
	sender_release(f.sender);
	set(&f, &f.script->hang, false);
	while (total < 30 && (n = read(ends[0], bytes, sizeof(bytes))) > 0) {
		total += n;
	}
	wait_freed(&f);
	close(ends[0]);
	close(ends[1]);
}

static void test_release_without_a_thread(void **state)
{
	struct fixture f, other;

	(void)state;
	open_fixture(&f, true, evrec_clock_real());
	open_fixture(&other, true, evrec_clock_real());
	for (unsigned i = 1; i <= 20; i++) {
		item_submit(f.ob, i, 1);
	}
	sender_step(f.sender);
	assert_int_equal(stats_of(&f).created, 8);
	sender_release(f.sender);
	assert_int_equal(f.freed, 0);
	/* Somebody else's steps carry it on, eight writes each. */
	sender_step(other.sender);
	assert_int_equal(f.freed, 0);
	sender_step(other.sender);
	assert_int_equal(f.freed, 1);
	close_fixture(&other);
}

static void test_fake_clock_is_looked_at(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct fixture f;

	(void)state;
	open_fixture(&f, false, clock);
	set_status(&f, 429);
	item_submit(f.ob, 1, 1);
	while (stats_of(&f).in_flight != 0 || sent(&f) == 0) {
		usleep(1000);
	}
	set_status(&f, 201);
	evrec_clock_set(clock, 60 * EVREC_SECOND);
	wait_empty(&f);
	assert_int_equal(stats_of(&f).retries, 1);
	close_fixture(&f);
	evrec_clock_release(clock);
}

static void test_credentials_are_read_again(void **state)
{
	evrec_clock *clock = evrec_clock_fake(0);
	struct fixture f;

	(void)state;
	open_fixture(&f, true, clock);
	set_status(&f, 401);
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_int_equal(f.script->reloads, 1);
	set_status(&f, 201);
	evrec_clock_set(clock, EVREC_SECOND);
	sender_step(f.sender);
	assert_int_equal(stats_of(&f).created, 1);
	close_fixture(&f);
	evrec_clock_release(clock);
}

static void test_outage_costs_no_tries(void **state)
{
	struct fixture f;
	struct outbox_stats stats;

	(void)state;
	open_fixture(&f, false, evrec_clock_real());
	f.script->retry_after = 3600 * EVREC_SECOND; /* more than the test will wait */
	set_status(&f, 0);
	for (unsigned i = 1; i <= 500; i++) {
		item_submit(f.ob, i, 1);
	}
	wait_sent(&f, 8);
	/* Eight at once fail, then it is one now and then. */
	usleep(100000);
	assert_true(sent(&f) < 100);
	pthread_mutex_lock(&f.script->lock);
	f.script->held_most = 0;
	pthread_mutex_unlock(&f.script->lock);
	wait_sent(&f, sent(&f) + 2);
	pthread_mutex_lock(&f.script->lock);
	assert_int_equal(f.script->held_most, 1);
	pthread_mutex_unlock(&f.script->lock);
	set_status(&f, 201);
	wait_empty(&f);
	stats = stats_of(&f);
	/* Those that failed came back at once, not after their back-off. */
	assert_int_equal(stats.created, 500);
	assert_true(stats.retries < 100);
	close_fixture(&f);
}

/* While all that may be in flight hangs. */
static void test_what_waits_expires(void **state)
{
	evrec_limits limits = limits_of(10);
	struct sender_options options = { .max_in_flight = 1, .clock = evrec_clock_fake(0), .threadless = true };
	struct fixture f = { 0 };
	struct outbox_stats stats;

	(void)state;
	limits.max_age = 60 * EVREC_SECOND;
	f.ob = outbox_new(&item_ops, &limits, 1);
	f.script = script_new(&f.freed);
	f.sender = sender_new(f.ob, &f.script->base, &options);
	f.script->silent = true;
	item_submit(f.ob, 1, 1);
	item_submit(f.ob, 2, 1);
	sender_step(f.sender);
	evrec_clock_set(options.clock, 60 * EVREC_SECOND);
	sender_step(f.sender);
	assert_int_equal(stats_of(&f).dropped[EVREC_CAUSE_EXPIRED], 0);
	evrec_clock_set(options.clock, 60 * EVREC_SECOND + 1);
	sender_step(f.sender);
	stats = stats_of(&f);
	assert_int_equal(stats.dropped[EVREC_CAUSE_EXPIRED], 1);
	assert_int_equal(stats.in_flight, 1);
	f.script->silent = false;
	sender_step(f.sender);
	assert_int_equal(stats_of(&f).created, 1);
	close_fixture(&f);
	evrec_clock_release(options.clock);
}

static void test_a_token_that_ran_out_costs_no_tries(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, false, evrec_clock_real());
	set_status(&f, 401);
	for (unsigned i = 1; i <= 500; i++) {
		item_submit(f.ob, i, 1);
	}
	wait_sent(&f, 8);
	usleep(100000);
	assert_true(sent(&f) < 100);
	set_status(&f, 201);
	wait_empty(&f);
	assert_int_equal(stats_of(&f).created, 500);
	assert_true(stats_of(&f).retries < 100);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_of_its_own),
		cmocka_unit_test(test_never_started),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_steps_by_a_deadline),
		cmocka_unit_test(test_transport_that_wants_no_thread),
		cmocka_unit_test(test_no_thread_to_be_had),
		cmocka_unit_test(test_end_tries_once_more),
		cmocka_unit_test(test_last_write_answered_at_once),
		cmocka_unit_test(test_join_has_a_deadline),
		cmocka_unit_test(test_join_of_one_that_hangs),
		cmocka_unit_test(test_release_sends_in_the_background),
		cmocka_unit_test(test_release_without_a_thread),
		cmocka_unit_test(test_fake_clock_is_looked_at),
		cmocka_unit_test(test_credentials_are_read_again),
		cmocka_unit_test(test_outage_costs_no_tries),
		cmocka_unit_test(test_what_waits_expires),
		cmocka_unit_test(test_a_token_that_ran_out_costs_no_tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

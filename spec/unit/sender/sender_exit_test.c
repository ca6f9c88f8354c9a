/* A sender at fork and exit: a child does not use its parent's sender, and exit sends waiting writes. */
#define _GNU_SOURCE

#include "sender_fixture.h"

#include <signal.h>
#include <stdatomic.h>

/* ThreadSanitizer does not let a forked child start a thread by default. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

/* Returns the child's exit status, 0 if all is well: a failing assertion would run the remaining tests twice. */
static int use_senders_in_child(struct sender_fixture *parents, unsigned generation)
{
	struct sender_fixture f;
	int64_t deadline = unit_mono() + SOON;
	struct outbox_stats stats;

	if (sender_fork_generation() != generation + 1) {
		return 1;
	}
	sender_step(parents->sender);
	sender_end(parents->sender);
	if (sender_join(parents->sender, deadline)) {
		return 2;
	}
	sender_release(parents->sender);
	if (parents->freed != 0) {
		return 3;
	}
	sender_fixture_open(&f, false, evrec_clock_real());
	fake_write_submit(f.ob, 1, 1);
	while (!outbox_wait(f.ob, deadline) && unit_mono() < deadline) {
	}
	outbox_get_stats(f.ob, &stats);
	return stats.created == 1 ? 0 : 4;
}

static void test_child_does_not_use_the_parents_sender(void **state)
{
	struct sender_fixture f;
	unsigned generation = sender_fork_generation();
	pid_t child;

	(void)state;
	if (UNDER_TSAN) {
		skip(); /* it takes the threads of the parent for the child's */
	}
	sender_fixture_open(&f, false, evrec_clock_real());
	fake_write_submit(f.ob, 1, 1);
	sender_fixture_wait_empty(&f);
	child = fork();
	if (child == 0) {
		exit(use_senders_in_child(&f, generation));
	}
	assert_int_equal(unit_wait(child), 0);
	assert_int_equal(sender_fork_generation(), generation);
	fake_write_submit(f.ob, 2, 1);
	sender_fixture_wait_empty(&f);
	sender_fixture_close(&f);
}

struct exit_case {
	bool threadless, release, hang;
	bool deferred;      /* the writes would be due in an hour */
	unsigned failures;  /* answers 500 before the first success */
	int64_t free_takes; /* ns */
};

/* Forks a child that exits with 30 writes waiting; it writes a byte to `success_fd` for each success. */
static pid_t exit_in_child(const struct exit_case *c, int success_fd, int other)
{
	pid_t child = fork();
	struct sender_fixture f;

	if (child != 0) {
		return child;
	}
	close(other);
	(void)signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on with the remaining tests */
	sender_fixture_open(&f, c->threadless, evrec_clock_real());
	f.protocol->delay = EVREC_SECOND / 1000;
	f.protocol->success_fd = success_fd;
	f.protocol->hangs = c->hang;
	f.protocol->failures = c->failures;
	f.protocol->free_takes = c->free_takes;
	for (unsigned i = 1; i <= 30; i++) {
		(void)(c->deferred ? fake_write_defer : fake_write_submit)(f.ob, i, 1);
	}
	if (c->threadless) {
		sender_step(f.sender);
	}
	if (c->release) {
		f.protocol->freed = NULL;
		sender_release(f.sender);
	}
	exit(0);
}

static unsigned exit_and_count_once(struct exit_case c)
{
	int ends[2];
	char bytes[64];
	ssize_t n;
	unsigned total = 0;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = exit_in_child(&c, ends[1], ends[0]);
	close(ends[1]);
	while ((n = read(ends[0], bytes, sizeof(bytes))) > 0) {
		total += (unsigned)n;
	}
	close(ends[0]);
	assert_int_equal(unit_wait(child), 0);
	return total;
}

/* Repeats an exit that was cut off by its deadline because the machine was busy. */
static unsigned exit_and_count(struct exit_case c)
{
	const int64_t exit_takes = EVREC_SECOND * 9 / 5;
	unsigned total = 0;

	for (int tries = 0; tries < 10; tries++) {
		int64_t start = unit_mono();

		total = exit_and_count_once(c);
		if (total == 30 || unit_mono() - start < exit_takes) {
			break;
		}
	}
	return total;
}

static void test_exit_sends_waiting_writes(void **state)
{
	int64_t start;

	(void)state;
	assert_int_equal(exit_and_count((struct exit_case){ 0 }), 30);
	assert_int_equal(exit_and_count((struct exit_case){ .threadless = true }), 30);
	assert_int_equal(exit_and_count((struct exit_case){ .release = true }), 30);
	assert_int_equal(exit_and_count((struct exit_case){ .threadless = true, .release = true }), 30);
	/* The server answers, if only 500: exit retries until its deadline. */
	assert_int_equal(exit_and_count((struct exit_case){ .failures = 30 }), 30);
	assert_int_equal(exit_and_count((struct exit_case){ .threadless = true, .failures = 30 }), 30);
	assert_int_equal(exit_and_count((struct exit_case){ .release = true, .failures = 30 }), 30);
	assert_int_equal(exit_and_count((struct exit_case){ .threadless = true, .release = true, .failures = 30 }), 30);
	start = unit_mono();
	assert_int_equal(exit_and_count_once((struct exit_case){ .hang = true }), 0);
	assert_in_range(unit_mono() - start, EVREC_SECOND, 10 * EVREC_SECOND);
}

/* The thread of a released sender frees the protocol before it unlists the sender. */
static void test_exit_sends_deferred_writes(void **state)
{
	(void)state;
	assert_int_equal(exit_and_count((struct exit_case){ .deferred = true }), 30);
	assert_int_equal(exit_and_count((struct exit_case){ .deferred = true, .release = true }), 30);
	assert_int_equal(exit_and_count((struct exit_case){ .deferred = true, .threadless = true }), 30);
	assert_int_equal(exit_and_count((struct exit_case){ .deferred = true, .failures = 30 }), 30);
}

static void test_exit_uses_no_protocol_that_a_thread_frees(void **state)
{
	const int64_t some_looks = EVREC_SECOND / 20;

	(void)state;
	assert_int_equal(exit_and_count((struct exit_case){ .release = true, .free_takes = some_looks }), 30);
}

/* ---- a library that threads use until they end, and its own exit handler ---- */

#define THREADS 3

static pthread_key_t library_key;
static atomic_uint let_go; /* threads */

static void thread_lets_go(void *value)
{
	const struct timespec moment = { 0, EVREC_SECOND / 20 };

	(void)value;
	nanosleep(&moment, NULL);
	atomic_fetch_add(&let_go, 1);
}

static void use_library(void)
{
	(void)pthread_setspecific(library_key, &library_key);
}

static void end_library(void)
{
	if (atomic_load(&let_go) != THREADS) {
		_exit(1);
	}
}

static bool init_library(void)
{
	static bool is_set_up;

	if (is_set_up) {
		return false;
	}
	is_set_up = true;
	(void)pthread_key_create(&library_key, thread_lets_go);
	(void)atexit(end_library);
	return true;
}

/* Forks a child whose senders are released, and use the library in the last calls of their threads. */
static pid_t exit_with_library(void)
{
	pid_t child = fork();
	struct sender_fixture f[THREADS];
	struct protocol_ops ops = { 0 };

	if (child != 0) {
		return child;
	}
	for (unsigned i = 0; i < THREADS; i++) {
		sender_fixture_open(&f[i], false, evrec_clock_real());
		if (i == 0) {
			ops = *f[i].protocol->base.ops;
			ops.init_library = init_library;
			ops.end_thread = use_library;
		}
		f[i].protocol->base.ops = &ops;
		f[i].protocol->freed = NULL;
		fake_write_submit(f[i].ob, 1, 1);
		sender_release(f[i].sender);
	}
	exit(0);
}

static void test_threads_end_before_exit_handlers_of_libraries(void **state)
{
	(void)state;
	assert_int_equal(unit_wait(exit_with_library()), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_does_not_use_the_parents_sender),
		cmocka_unit_test(test_exit_sends_waiting_writes),
		cmocka_unit_test(test_exit_sends_deferred_writes),
		cmocka_unit_test(test_exit_uses_no_protocol_that_a_thread_frees),
		cmocka_unit_test(test_threads_end_before_exit_handlers_of_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

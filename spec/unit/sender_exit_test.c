/* A sender across fork and exit. */
#define _GNU_SOURCE

#include "script.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN true
#elif defined(__has_feature)
#define UNDER_TSAN __has_feature(thread_sanitizer)
#else
#define UNDER_TSAN false
#endif

/* ThreadSanitizer would not let a forked child start a thread. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

/* What a child does is checked by its exit status: an assertion in it would run the other tests again. */
static int live_in_child(struct fixture *parents, unsigned generation)
{
	struct fixture f;
	int64_t deadline = mono() + SOON;
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
	open_fixture(&f, false, evrec_clock_real());
	item_submit(f.ob, 1, 1);
	while (!outbox_wait(f.ob, deadline) && mono() < deadline) {
	}
	outbox_get_stats(f.ob, &stats);
	return stats.created == 1 ? 0 : 4;
}

static void test_fork(void **state)
{
	struct fixture f;
	unsigned generation = sender_fork_generation();
	pid_t child;

	(void)state;
	if (UNDER_TSAN) {
		skip(); /* its books of threads are wrong in the child */
	}
	open_fixture(&f, false, evrec_clock_real());
	item_submit(f.ob, 1, 1);
	wait_empty(&f);
	child = fork();
	if (child == 0) {
		exit(live_in_child(&f, generation));
	}
	assert_int_equal(unit_wait(child), 0);
	assert_int_equal(sender_fork_generation(), generation);
	item_submit(f.ob, 2, 1);
	wait_empty(&f);
	close_fixture(&f);
}

struct ending {
	bool threadless, release, hang;
	unsigned refuse;
};

/* Exits with 30 writes waiting, of which a byte each is told. */
static pid_t exit_in_child(const struct ending *how, int tell, int other)
{
	pid_t child = fork();
	struct fixture f;

	if (child != 0) {
		return child;
	}
	close(other);
	open_fixture(&f, how->threadless, evrec_clock_real());
	f.script->delay = EVREC_SECOND / 1000;
	f.script->tell = tell;
	f.script->hang = how->hang;
	f.script->refuse = how->refuse;
	for (unsigned i = 1; i <= 30; i++) {
		item_submit(f.ob, i, 1);
	}
	if (how->threadless) {
		sender_step(f.sender);
	}
	if (how->release) {
		f.script->freed = NULL;
		sender_release(f.sender);
	}
	exit(0);
}

static unsigned exit_and_count_once(struct ending how)
{
	int ends[2];
	char bytes[64];
	ssize_t n;
	unsigned total = 0;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = exit_in_child(&how, ends[1], ends[0]);
	close(ends[1]);
	while ((n = read(ends[0], bytes, sizeof(bytes))) > 0) {
		total += (unsigned)n;
	}
	close(ends[0]);
	assert_int_equal(unit_wait(child), 0);
	return total;
}

/* What exit may take is a time: where the machine had no time for it, once more. */
static unsigned exit_and_count(struct ending how)
{
	const int64_t exit_takes = EVREC_SECOND * 9 / 5;
	unsigned total = 0;

	for (int tries = 0; tries < 10; tries++) {
		int64_t start = mono();

		total = exit_and_count_once(how);
		if (total == 30 || mono() - start < exit_takes) {
			break;
		}
	}
	return total;
}

static void test_exit_sends_what_waits(void **state)
{
	int64_t start;

	(void)state;
	assert_int_equal(exit_and_count((struct ending){ 0 }), 30);
	assert_int_equal(exit_and_count((struct ending){ .threadless = true }), 30);
	assert_int_equal(exit_and_count((struct ending){ .release = true }), 30);
	assert_int_equal(exit_and_count((struct ending){ .threadless = true, .release = true }), 30);
	/* A server that was there, if only to refuse: all the tries that there is time for. */
	assert_int_equal(exit_and_count((struct ending){ .refuse = 30 }), 30);
	assert_int_equal(exit_and_count((struct ending){ .threadless = true, .refuse = 30 }), 30);
	assert_int_equal(exit_and_count((struct ending){ .release = true, .refuse = 30 }), 30);
	assert_int_equal(exit_and_count((struct ending){ .threadless = true, .release = true, .refuse = 30 }), 30);
	start = mono();
	assert_int_equal(exit_and_count_once((struct ending){ .hang = true }), 0);
	assert_in_range(mono() - start, EVREC_SECOND, 10 * EVREC_SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_exit_sends_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

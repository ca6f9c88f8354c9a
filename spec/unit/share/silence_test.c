/* An owner that hangs: its workers wait, tell it once, and tell when it answers again. Here it is simply not stepped. */
#include "share_pair.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "raw_connection.h"

static void run(struct share_pair *p, struct share_side *side, unsigned seconds)
{
	while (seconds-- > 0) {
		p->now += EVREC_SECOND;
		share_side_step(p, side);
	}
}

static void check_told(const struct share_side *side, unsigned errors, const char *name, const char *part)
{
	assert_int_equal(side->errors, errors);
	if (errors != 0) {
		assert_string_equal(side->error_name, name);
		unit_check_contains(side->error, part);
	}
}

static void check_pid(const char *message)
{
	char words[64];

	(void)snprintf(words, sizeof(words), "the process %ld, which owns @evrec-pair-", (long)getpid());
	unit_check_contains(message, words);
}

static void test_owner_that_hangs_is_told_once(void **state)
{
	struct share_pair p;
	struct share_side *worker = &p.sides[1];

	(void)state;
	share_pair_init(&p);
	share_pair_start_two(&p);
	assert_int_equal(share_side_add(worker, "a"), SHARE_KEPT);
	run(&p, worker, 10);
	check_told(worker, 0, "", "");
	assert_int_equal(share_silent_since(worker->share), 0);
	run(&p, worker, 2);
	check_told(worker, 1, "share_silent", "has not answered for 10 s");
	check_pid(worker->error);
	assert_true(share_silent_since(worker->share) > T0);
	run(&p, worker, 100);
	assert_int_equal(worker->errors, 1);
	/* The event waits. */
	assert_int_equal(share_side_counts(worker).pending, 1);
	share_pair_step(&p, 4);
	check_told(worker, 2, "share_answers", "answers again after 1");
	check_pid(worker->error);
	assert_int_equal(share_silent_since(worker->share), 0);
	assert_true(share_is_settled(worker->share));
	share_pair_free(&p);
}

/* The server may be away for hours. */
static void test_owner_that_answers_may_take_its_time(void **state)
{
	struct share_pair p;

	(void)state;
	share_pair_init(&p);
	share_pair_start_two(&p);
	p.sides[0].settles = false;
	(void)share_side_add(&p.sides[1], "a");
	for (unsigned i = 0; i < 100; i++) {
		p.now += EVREC_SECOND;
		share_pair_step(&p, 1);
	}
	assert_int_equal(p.sides[1].errors, 0);
	assert_int_equal(share_side_counts(&p.sides[1]).pending, 1);
	share_pair_free(&p);
}

/* It reads nothing more, so that its workers keep their events for the next owner: but it does not hang. */
static void test_owner_that_ends_is_not_silent(void **state)
{
	struct share_pair p;

	(void)state;
	share_pair_init(&p);
	share_pair_start_two(&p);
	share_leave(p.sides[0].share);
	(void)share_side_add(&p.sides[1], "a");
	for (unsigned i = 0; i < 30; i++) {
		p.now += EVREC_SECOND;
		share_pair_step(&p, 1);
	}
	assert_int_equal(p.sides[0].occurrences, 0);
	assert_int_equal(p.sides[1].errors, 0);
	assert_int_equal(share_silent_since(p.sides[1].share), 0);
	share_pair_free(&p);
}

static void test_worker_that_has_nothing_to_hand_over_is_content(void **state)
{
	struct share_pair p;

	(void)state;
	share_pair_init(&p);
	share_pair_start_two(&p);
	run(&p, &p.sides[1], 100);
	/* It was asked for nothing, and is not late: an hour of sleep counts for one step. */
	(void)share_side_add(&p.sides[1], "a");
	share_side_step(&p, &p.sides[1]);
	p.now += 3600 * EVREC_SECOND;
	share_side_step(&p, &p.sides[1]);
	assert_int_equal(p.sides[1].errors, 0);
	share_pair_step(&p, 4);
	assert_true(share_is_settled(p.sides[1].share));
	assert_int_equal(p.sides[1].errors, 0);
	share_pair_free(&p);
}

/* It has bound the endpoint, and hangs before it greets. */
static void test_owner_that_does_not_greet_is_told(void **state)
{
	struct share_options options;
	struct share_side *worker;
	struct share_pair p;
	struct endpoint e;

	(void)state;
	share_pair_init(&p);
	assert_int_equal(endpoint_init(&e, str_from(p.name), NULL), 0);
	assert_int_equal(endpoint_bind(&e, NULL), ENDPOINT_OK);
	options = share_pair_options(&p);
	worker = share_pair_start(&p, 0, &options);
	(void)share_side_add(worker, "a");
	run(&p, worker, 12);
	check_told(worker, 1, "share_silent", "has not answered for 10 s");
	check_pid(worker->error);
	/* If it ends, the worker takes its place. */
	endpoint_close(&e);
	run(&p, worker, 2);
	check_told(worker, 2, "share_answers", "this process, which owns");
	assert_int_equal(worker->occurrences, 1);
	assert_int_equal(share_role(worker->share), SHARE_OWNER);
	share_pair_free(&p);
}

/* So many processes wait for it that it cannot be connected to. */
static void test_owner_that_cannot_be_connected_to_is_told(void **state)
{
	struct share_options options;
	struct share_side *worker;
	struct share_pair p;
	struct endpoint e;
	int fds[256];
	int n = 0;

	(void)state;
	share_pair_init(&p);
	assert_int_equal(endpoint_init(&e, str_from(p.name), NULL), 0);
	assert_int_equal(endpoint_bind(&e, NULL), ENDPOINT_OK);
	do {
		fds[n] = raw_connect(p.name);
	} while (fds[n] >= 0 && ++n < 256);
	assert_true(n < 256);
	options = share_pair_options(&p);
	worker = share_pair_start(&p, 0, &options);
	(void)share_side_add(worker, "a");
	run(&p, worker, 12);
	check_told(worker, 1, "share_silent", "another process, which owns");
	while (n > 0) {
		(void)close(fds[--n]);
	}
	endpoint_close(&e);
	share_pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner_that_hangs_is_told_once),
		cmocka_unit_test(test_owner_that_answers_may_take_its_time),
		cmocka_unit_test(test_owner_that_ends_is_not_silent),
		cmocka_unit_test(test_worker_that_has_nothing_to_hand_over_is_content),
		cmocka_unit_test(test_owner_that_does_not_greet_is_told),
		cmocka_unit_test(test_owner_that_cannot_be_connected_to_is_told),
	};

	return cmocka_run_group_tests_name("silence", tests, NULL, NULL);
}

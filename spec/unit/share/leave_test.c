/* A worker that ends leaves to the owner what that has received; and an owner tells workers of its errors. */
#include "share_pair.h"

#include <pthread.h>
#include <stdatomic.h>

/* An owner that is stepped by a thread of its own. */
struct stepped {
	struct share_pair pair;
	pthread_t thread;
	atomic_bool stops;
};

static void *step_owner(void *ctx)
{
	struct stepped *s = ctx;

	while (!atomic_load(&s->stops)) {
		share_step(s->pair.sides[0].share, s->pair.now, EVREC_SECOND / 1000);
	}
	return NULL;
}

static void begin(struct stepped *s)
{
	share_pair_init(&s->pair);
	share_pair_start_two(&s->pair);
	s->pair.sides[0].settles = false;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(share_side_add(&s->pair.sides[1], "a"), SHARE_KEPT);
	}
}

static void step_in_thread(struct stepped *s)
{
	atomic_init(&s->stops, false);
	assert_int_equal(pthread_create(&s->thread, NULL, step_owner, s), 0);
}

static void end(struct stepped *s)
{
	atomic_store(&s->stops, true);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	share_pair_free(&s->pair);
}

/* Nothing was sent before it ends. */
static void test_worker_leaves_to_the_owner_what_that_has_received(void **state)
{
	struct share_side *worker;
	struct ledger_counts counts;
	struct stepped s;

	(void)state;
	begin(&s);
	worker = &s.pair.sides[1];
	step_in_thread(&s);
	share_end(worker->share, SOON);
	counts = share_side_counts(worker);
	assert_int_equal(counts.forwarded, 3);
	assert_int_equal(counts.dropped[EVREC_CAUSE_CLOSED], 0);
	assert_int_equal(counts.pending, 0);
	assert_int_equal(share_left_to_owner(worker->share), 3);
	assert_int_equal(worker->dropped, 0);
	end(&s);
	assert_int_equal(s.pair.sides[0].occurrences, 3);
	assert_int_equal(s.pair.sides[0].left, 1);
}

/* An owner that ends, too, reads nothing more. The sign of its life, which it sends unasked, is no answer. */
static void test_worker_drops_what_an_owner_that_ends_does_not_read(void **state)
{
	struct share_side *owner, *worker;
	struct ledger_counts counts;
	struct stepped s;

	(void)state;
	begin(&s);
	owner = &s.pair.sides[0];
	worker = &s.pair.sides[1];
	share_leave(owner->share);
	share_side_step(&s.pair, owner);
	share_end(worker->share, EVREC_SECOND / 50);
	counts = share_side_counts(worker);
	assert_int_equal(counts.forwarded, 0);
	assert_int_equal(counts.dropped[EVREC_CAUSE_CLOSED], 3);
	assert_int_equal(worker->dropped, 3);
	assert_int_equal(owner->occurrences, 0);
	share_pair_free(&s.pair);
}

/* It was sent, but perhaps never received. */
static void test_worker_drops_what_a_frozen_owner_was_sent(void **state)
{
	struct share_side *worker;
	struct ledger_counts counts;
	struct stepped s;

	(void)state;
	begin(&s);
	worker = &s.pair.sides[1];
	share_side_step(&s.pair, worker);
	share_end(worker->share, EVREC_SECOND / 50);
	counts = share_side_counts(worker);
	assert_int_equal(counts.forwarded, 0);
	assert_int_equal(counts.dropped[EVREC_CAUSE_CLOSED], 3);
	assert_int_equal(share_left_to_owner(worker->share), 0);
	assert_int_equal(worker->dropped, 3);
	share_pair_free(&s.pair);
}

static void test_worker_that_has_nothing_to_leave_asks_nothing(void **state)
{
	struct share_pair p;
	int64_t before;

	(void)state;
	share_pair_init(&p);
	share_pair_start_two(&p);
	assert_int_equal(share_side_add(&p.sides[1], "a"), SHARE_KEPT);
	share_pair_step(&p, 4);
	before = unit_mono();
	share_end(p.sides[1].share, SOON);
	assert_true(unit_mono() - before < SOON);
	assert_int_equal(share_left_to_owner(p.sides[1].share), 0);
	assert_int_equal(share_side_counts(&p.sides[1]).forwarded, 1);
	share_pair_free(&p);
}

static void report(const struct share_side *owner)
{
	share_report(owner->share, EVREC_STR("forbidden"), EVREC_STR("kubernetes"), EVREC_STR("POST: 403"));
}

static void test_owner_reports_to_those_whose_events_it_has(void **state)
{
	struct share_options options;
	struct share_pair p;

	(void)state;
	share_pair_init(&p);
	share_pair_start_two(&p);
	options = share_pair_options(&p);
	(void)share_pair_start(&p, 2, &options);
	p.sides[0].settles = false;
	assert_int_equal(share_side_add(&p.sides[1], "a"), SHARE_KEPT);
	share_pair_step(&p, 4);
	report(&p.sides[0]);
	share_pair_step(&p, 4);
	assert_int_equal(p.sides[1].troubles, 1);
	assert_string_equal(p.sides[1].error, "kubernetes: forbidden: POST: 403");
	assert_int_equal(p.sides[2].troubles, 0);
	/* The worker still has its event. */
	assert_int_equal(share_side_counts(&p.sides[1]).pending, 1);
	share_pair_free(&p);
}

/* A worker that reads nothing costs the owner no more than a bound. */
static void test_reports_to_a_worker_that_does_not_read_are_bounded(void **state)
{
	struct share_pair p;

	(void)state;
	share_pair_init(&p);
	share_pair_start_two(&p);
	p.sides[0].settles = false;
	assert_int_equal(share_side_add(&p.sides[1], "a"), SHARE_KEPT);
	share_pair_step(&p, 4);
	for (unsigned i = 0; i < 10000; i++) {
		report(&p.sides[0]);
	}
	share_pair_step(&p, 100);
	assert_in_range(p.sides[1].troubles, 100, 1000);
	share_pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worker_leaves_to_the_owner_what_that_has_received),
		cmocka_unit_test(test_worker_drops_what_an_owner_that_ends_does_not_read),
		cmocka_unit_test(test_worker_drops_what_a_frozen_owner_was_sent),
		cmocka_unit_test(test_worker_that_has_nothing_to_leave_asks_nothing),
		cmocka_unit_test(test_owner_reports_to_those_whose_events_it_has),
		cmocka_unit_test(test_reports_to_a_worker_that_does_not_read_are_bounded),
	};

	return cmocka_run_group_tests_name("leave", tests, NULL, NULL);
}

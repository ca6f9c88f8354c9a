/*
 * Property test of the throttle: every change of state is legal, the window stays in its bounds, and it never waits forever:
 * with nothing in flight, the next request may start within the longest Retry-After and its jitter.
 */
#include "checked_throttle.h"

#define RUNS 20000
#define STEPS 500
#define LONGEST (330 * S)

static uint64_t random_state;

static int64_t below(int64_t n)
{
	return (int64_t)(unit_random(&random_state) % (uint64_t)n);
}

static void check(const struct throttle *t, enum throttle_state before, unsigned in_flight, int64_t now)
{
	int64_t next = throttle_next_start(t, now);

	assert_true(t->state == before || throttle_may_step(before, t->state));
	assert_in_range(t->window, 1, t->max_in_flight);
	assert_int_equal(t->in_flight, in_flight);
	assert_true(t->old <= in_flight);
	assert_true(t->rate >= 0);
	assert_true(throttle_window(t, now) <= t->max_in_flight);
	assert_true(in_flight != 0 || next <= now + LONGEST);
	assert_true(next == INT64_MAX || throttle_window(t, next > now ? next : now) > in_flight);
}

/* Results come in series: the most likely one changes now and then. */
static enum request_result next_result(int likely)
{
	return (enum request_result)(below(4) != 0 ? likely : below(5));
}

static void run(unsigned max_in_flight)
{
	static const int64_t waits[] = { 0, MS, 100 * MS, S, 100 * S, 10000 * S };
	unsigned in_flight = 0;
	int64_t now = T0;
	int likely = 0;
	struct throttle t;

	throttle_init(&t, max_in_flight, below(2) == 0);
	for (int i = 0; i < STEPS; i++) {
		enum throttle_state before = t.state;
		int64_t next = throttle_next_start(&t, now);

		likely = below(50) == 0 ? (int)below(5) : likely;
		if (next != INT64_MAX && below(4) != 0) {
			now = next > now ? next : now;
			throttle_started(&t, now);
			in_flight++;
		} else if (in_flight != 0) {
			now += below(1 + waits[below(below(20) == 0 ? 6 : 3)]);
			(void)throttle_ended(&t, next_result(likely), below(3) * below(400) * S, now,
			                     unit_random(&random_state));
			in_flight--;
		}
		check(&t, before, in_flight, now);
	}
}

static void test_random_runs_keep_the_invariants(void **state)
{
	(void)state;
	random_state = unit_seed();
	for (unsigned i = 0; i < RUNS; i++) {
		run(1 + (unsigned)below(below(2) == 0 ? 4 : 1000));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_runs_keep_the_invariants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

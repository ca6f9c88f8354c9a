/* The times of the writes of one event: of a number alone, and of the events of a correlator with a minimum interval. */
#include "correlations.h"

#include "correlate/correlator.h"
#include "correlate/schedule.h"
#include "correlate/state.h"

#define S EVREC_SECOND
#define INTERVAL (60 * S)

/* ---- one number ---- */

static void test_a_write_is_due_an_interval_after_the_last(void **state)
{
	int64_t last = 0;

	(void)state;
	assert_int_equal(schedule_next(&last, T0, INTERVAL), 0);
	assert_int_equal(schedule_next(&last, T0, INTERVAL), T0 + INTERVAL);
	assert_int_equal(schedule_next(&last, T0 + INTERVAL - 1, INTERVAL), T0 + INTERVAL);
	/* One was due by now: the next one follows in an interval. */
	assert_int_equal(schedule_next(&last, T0 + INTERVAL, INTERVAL), T0 + 2 * INTERVAL);
	assert_int_equal(schedule_next(&last, T0 + 2 * INTERVAL + 1, INTERVAL), T0 + 3 * INTERVAL);
}

static void test_at_once_after_a_pause(void **state)
{
	int64_t last = 0;

	(void)state;
	assert_int_equal(schedule_next(&last, T0, INTERVAL), 0);
	assert_int_equal(schedule_next(&last, T0 + INTERVAL, INTERVAL), 0);
	assert_int_equal(schedule_next(&last, T0 + INTERVAL + 3600 * S, INTERVAL), 0);
	assert_int_equal(schedule_next(&last, T0 + INTERVAL + 3600 * S + 1, INTERVAL), T0 + 2 * INTERVAL + 3600 * S);
}

static void test_a_clock_that_is_set_back_holds_nothing_up(void **state)
{
	int64_t last = 0;

	(void)state;
	assert_int_equal(schedule_next(&last, T0, INTERVAL), 0);
	assert_int_equal(schedule_next(&last, T0 - 3600 * S, INTERVAL), 0);
	assert_int_equal(schedule_next(&last, T0 - 3600 * S + 1, INTERVAL), T0 - 3600 * S + INTERVAL);
	/* By less than an interval: it is due when the last write was. */
	assert_int_equal(schedule_next(&last, T0 - 3630 * S, INTERVAL), 0);
	assert_int_equal(schedule_next(&last, T0 - 3640 * S, INTERVAL), T0 - 3630 * S);
}

static void test_extreme_times(void **state)
{
	int64_t last = 0;

	(void)state;
	assert_int_equal(schedule_next(&last, 0, INTERVAL), 0);
	assert_int_not_equal(schedule_next(&last, 0, INTERVAL), 0);
	last = 0;
	assert_int_equal(schedule_next(&last, INT64_MAX - 1, INTERVAL), 0);
	assert_int_equal(schedule_next(&last, INT64_MAX - 1, INTERVAL), INT64_MAX);
	assert_int_equal(schedule_next(&last, INT64_MIN, INTERVAL), 0);
	assert_int_equal(schedule_next(&last, INT64_MAX, INTERVAL), 0);
	last = -INTERVAL;
	assert_int_not_equal(schedule_next(&last, -1, INTERVAL), 0);
}

/*
 * Any times, with writes that are released early: no two writes within an interval but for the released ones, and each
 * occurrence is written within an interval.
 */
static void test_random_times(void **state)
{
	uint64_t random = unit_seed();

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		int64_t last = 0, now = T0, written = INT64_MIN, due = 0;

		for (unsigned i = 0; i < 500; i++) {
			int64_t next;

			now += (int64_t)(unit_random(&random) % (1 + unit_random(&random) % (2 * (uint64_t)INTERVAL)));
			if (due != 0 && due <= now) {
				assert_true(due - written >= INTERVAL);
				written = due;
				due = 0;
			}
			if (unit_random(&random) % 20 == 0) {
				schedule_release(&last, now);
				written = due != 0 ? now : written;
				due = 0;
			}
			next = schedule_next(&last, now, INTERVAL);
			if (next == 0) {
				assert_int_equal(due, 0);
				assert_true(written == INT64_MIN || now - written >= INTERVAL);
				written = now;
			} else {
				assert_true(now < next && next <= now + INTERVAL);
				assert_int_equal(next, written + INTERVAL);
				assert_true(due == 0 || due == next);
				due = next;
			}
		}
	}
}

/* ---- the events of a correlator ---- */

struct paced {
	evrec_correlator *c;
	struct observed o; /* the last result */
};

static void see(struct paced *p, const char *object, const char *note, int64_t now)
{
	const evrec_fields event = pod_event(object, "R", note, now);
	struct keys keys = { 0 };

	p->o = (struct observed){ 0 };
	assert_true(keys_make(&keys, &event));
	assert_int_equal(correlator_observe(p->c, &event, &keys, now, NULL, &p->o), 0);
	keys_free(&keys);
}

static void check_due(struct paced *p, const char *object, int64_t now, int64_t due)
{
	see(p, object, "m", now);
	assert_int_equal(p->o.due, due);
}

static struct paced paced_with(const evrec_correlator_options *options)
{
	struct paced p = { correlator_with(options), { 0 } };

	correlator_set_min_interval(p.c, INTERVAL);
	return p;
}

static void test_each_event_has_times_of_its_own(void **state)
{
	struct paced p = paced_with(NULL);

	(void)state;
	check_due(&p, "a", T0, 0);
	check_due(&p, "b", T0 + 30 * S, 0);
	check_due(&p, "a", T0 + 31 * S, T0 + 60 * S);
	assert_int_equal(p.o.count, 2);
	assert_true(p.o.patch);
	check_due(&p, "b", T0 + 31 * S, T0 + 90 * S);
	check_due(&p, "a", T0 + 61 * S, T0 + 120 * S);
	evrec_correlator_free(p.c);
}

static void test_without_an_interval_nothing_is_due_later(void **state)
{
	struct paced p = { correlator_with(NULL), { 0 } };

	(void)state;
	check_due(&p, "a", T0, 0);
	check_due(&p, "a", T0, 0);
	evrec_correlator_free(p.c);
}

/* The tenth message begins an aggregate, an event of its own, which each further message counts. */
static void test_an_aggregate_is_one_event(void **state)
{
	struct paced p = paced_with(NULL);
	char note[16];

	(void)state;
	for (int i = 1; i <= 12; i++) {
		(void)snprintf(note, sizeof(note), "m%d", i);
		see(&p, "a", note, T0 + i * S);
		assert_int_equal(p.o.why, i < 10 ? EVREC_NEW : EVREC_AGGREGATED);
		assert_int_equal(p.o.due, i <= 10 ? 0 : T0 + 70 * S);
	}
	assert_int_equal(p.o.count, 3);
	evrec_correlator_free(p.c);
}

/* It was not written: the next one with a token is written at once. An occurrence that is due later needs no token. */
static void test_an_occurrence_without_a_token_takes_no_time(void **state)
{
	evrec_correlator_options options;
	struct paced p;

	(void)state;
	evrec_correlator_options_init(&options);
	options.burst_size = 1;
	options.qps = 0.1;
	p = paced_with(&options);
	see(&p, "a", "first", T0);
	check_due(&p, "a", T0 + 1 * S, 0);
	assert_true(p.o.skip);
	check_due(&p, "a", T0 + 11 * S, 0);
	assert_false(p.o.skip);
	check_due(&p, "a", T0 + 12 * S, T0 + 71 * S);
	assert_false(p.o.skip);
	see(&p, "a", "first", T0 + 140 * S);
	assert_false(p.o.skip);
	check_due(&p, "a", T0 + 141 * S, 0);
	assert_true(p.o.skip);
	check_due(&p, "a", T0 + 151 * S, 0);
	assert_false(p.o.skip);
	assert_int_equal(p.o.count, 5);
	evrec_correlator_free(p.c);
}

static void test_an_evicted_event_is_a_new_one(void **state)
{
	evrec_correlator_options options;
	struct paced p;

	(void)state;
	evrec_correlator_options_init(&options);
	options.lru_cache_size = 1;
	p = paced_with(&options);
	check_due(&p, "a", T0, 0);
	check_due(&p, "a", T0, T0 + INTERVAL);
	check_due(&p, "b", T0, 0);
	check_due(&p, "a", T0 + 1, 0);
	assert_int_equal(p.o.why, EVREC_NEW);
	check_due(&p, "a", T0 + 1, T0 + 1 + INTERVAL);
	evrec_correlator_free(p.c);
}

static void test_a_released_write_begins_an_interval(void **state)
{
	struct paced p = paced_with(NULL);

	(void)state;
	check_due(&p, "a", T0, 0);
	check_due(&p, "a", T0, T0 + INTERVAL);
	check_due(&p, "b", T0, 0);
	check_due(&p, "b", T0, T0 + INTERVAL);
	correlator_released(p.c, p.o.handle, T0 + 10 * S);
	check_due(&p, "b", T0 + 20 * S, T0 + 70 * S);
	check_due(&p, "a", T0 + 20 * S, T0 + 60 * S);
	correlator_released(p.c, 0, T0 + 30 * S);
	check_due(&p, "a", T0 + 40 * S, T0 + 90 * S);
	check_due(&p, "b", T0 + 90 * S, 0);
	/* Nothing is deferred any more that is not released again. */
	correlator_released(p.c, 0, T0 + 91 * S);
	correlator_released(p.c, 0, T0 + 92 * S);
	check_due(&p, "a", T0 + 140 * S, T0 + 150 * S);
	evrec_correlator_free(p.c);
}

static void test_after_a_refused_write_the_next_is_due_at_once(void **state)
{
	struct paced p = paced_with(NULL);

	(void)state;
	check_due(&p, "a", T0, 0);
	correlator_refused(p.c, p.o.handle);
	check_due(&p, "a", T0 + 1, 0);
	check_due(&p, "a", T0 + 2, T0 + 1 + INTERVAL);
	/* An event that was evicted meanwhile. */
	correlator_refused(p.c, p.o.handle + (UINT64_C(1) << 40));
	correlator_released(p.c, p.o.handle + (UINT64_C(1) << 40), T0);
	check_due(&p, "a", T0 + 3, T0 + 1 + INTERVAL);
	evrec_correlator_free(p.c);
}

static void test_a_state_has_counts_and_no_times(void **state)
{
	struct paced p = paced_with(NULL), next = paced_with(NULL);
	struct state *of = state_new(p.c), *to = state_new(next.c);
	struct state_loaded loaded;
	struct buf bytes = { 0 };
	uint64_t cursor = 0;

	(void)state;
	check_due(&p, "a", T0, 0);
	check_due(&p, "a", T0 + 1, T0 + INTERVAL);
	assert_true(state_note_all(of, T0 + 2));
	(void)state_take_all(of, &cursor, SIZE_MAX, &bytes);
	assert_true(state_load(to, buf_str(&bytes), T0 + 3, INT64_MAX, &loaded));
	check_due(&next, "a", T0 + 4, 0);
	assert_int_equal(next.o.count, 3);
	check_due(&next, "a", T0 + 5, T0 + 4 + INTERVAL);
	buf_free(&bytes);
	state_free(of);
	state_free(to);
	evrec_correlator_free(p.c);
	evrec_correlator_free(next.c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_write_is_due_an_interval_after_the_last),
		cmocka_unit_test(test_at_once_after_a_pause),
		cmocka_unit_test(test_a_clock_that_is_set_back_holds_nothing_up),
		cmocka_unit_test(test_extreme_times),
		cmocka_unit_test(test_random_times),
		cmocka_unit_test(test_each_event_has_times_of_its_own),
		cmocka_unit_test(test_without_an_interval_nothing_is_due_later),
		cmocka_unit_test(test_an_aggregate_is_one_event),
		cmocka_unit_test(test_an_occurrence_without_a_token_takes_no_time),
		cmocka_unit_test(test_an_evicted_event_is_a_new_one),
		cmocka_unit_test(test_a_released_write_begins_an_interval),
		cmocka_unit_test(test_after_a_refused_write_the_next_is_due_at_once),
		cmocka_unit_test(test_a_state_has_counts_and_no_times),
	};

	return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}

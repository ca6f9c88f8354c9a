/* A sink with a minimum interval that is that of several handles, or of several processes. */
#include "sharing_fixture.h"
#include "stats_invariants.h"

#include "sink/sink.h"

#define OCCURRENCES 40 /* more than there are tokens */

static void start_side(struct side *side, evrec_broadcaster_options options)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	evrec_sink *sink = evrec_sink_file(EVREC_STR("/dev/null"), NULL, NULL);

	options.drive = EVREC_DRIVE_POLL;
	side->b = evrec_broadcaster_new(&options, NULL);
	assert_non_null(side->b);
	sink->min_interval = 3600 * EVREC_SECOND;
	side->watch = evrec_broadcaster_start_recording_to_sink(side->b, sink, NULL, NULL);
	side->r = evrec_recorder_new(side->b, &source, NULL);
	evrec_sink_release(sink);
}

static void check_side(const struct side *side, unsigned created, unsigned patched, unsigned counted)
{
	const evrec_sink_stats s = side_stats(side);

	assert_int_equal(s.created, created);
	assert_int_equal(s.patched, patched);
	assert_int_equal(s.counted, counted);
}

static void test_handles_of_one_broadcaster_have_one_interval(void **state)
{
	struct side sides[2] = { 0 };
	evrec_broadcaster_options options;

	(void)state;
	evrec_broadcaster_options_init(&options);
	options.name = EVREC_STR("min-interval-test");
	for (size_t i = 0; i < 2; i++) {
		start_side(&sides[i], options);
	}
	for (unsigned i = 0; i < OCCURRENCES; i++) {
		assert_int_equal(side_record(&sides[i % 2], "m"), 0);
		checked_poll(sides[i % 2].b);
	}
	check_side(&sides[0], 1, 0, OCCURRENCES - 1);
	assert_int_equal(checked_flush(sides[1].b, SOON), 0);
	check_side(&sides[0], 1, 1, 0);
	side_close(&sides[0]);
	side_close(&sides[1]);
}

/* The owner writes for all, also at its end. */
static void test_processes_that_share_have_one_interval(void **state)
{
	struct sharing_fixture f;

	(void)state;
	sharing_fixture_init(&f);
	for (size_t i = 0; i < 2; i++) {
		start_side(&f.sides[i], sharing_fixture_options(&f, i, &f.sides[i]));
		evrec_broadcaster_poll(f.sides[i].b);
	}
	sharing_fixture_poll(&f, 4);
	for (unsigned i = 0; i < OCCURRENCES; i++) {
		assert_int_equal(side_record(&f.sides[i % 2], "m"), 0);
		sharing_fixture_poll(&f, 6);
	}
	check_side(&f.sides[0], 1, 0, OCCURRENCES - 1);
	assert_int_equal(evrec_broadcaster_flush(f.sides[0].b, SOON, NULL), 0);
	check_side(&f.sides[0], 1, 1, 0);
	assert_int_equal(side_record(&f.sides[1], "m"), 0);
	sharing_fixture_poll(&f, 6);
	check_side(&f.sides[0], 1, 1, 1);
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[0].b, SOON, NULL), 0);
	check_side(&f.sides[0], 1, 2, 0);
	sharing_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handles_of_one_broadcaster_have_one_interval),
		cmocka_unit_test(test_processes_that_share_have_one_interval),
	};

	return cmocka_run_group_tests_name("min_interval_shared", tests, NULL, NULL);
}

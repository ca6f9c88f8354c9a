/* Receipts: who recorded on behalf of others learns once, for each occurrence, what became of it. */
#include "alloc_failure.h"
#include "receipt_fixture.h"
#include "tmpdir.h"

#define RUNS 400

static const struct receipt_id ours = { 1, 1 }, theirs = { 2, 2 };

static void test_written(void **state)
{
	struct receipt_fixture f = { .status = 201 };

	(void)state;
	receipt_fixture_open(&f, NULL, NULL);
	receipt_record(&f, "a", "m", ours);
	receipt_record(&f, "a", "m", ours);
	receipt_record(&f, "a", "m", theirs);
	assert_int_equal(receipt_open(&f), 3);
	receipt_advance(&f, 0);
	assert_int_equal(f.settled[SETTLED_WRITTEN], 3);
	assert_int_equal(f.last_count, 3);
	receipt_end(&f);
	receipt_fixture_free(&f);
}

static void test_rate_limited(void **state)
{
	struct receipt_fixture f = { .status = 201 };
	evrec_correlator_options options;

	(void)state;
	evrec_correlator_options_init(&options);
	options.burst_size = 1;
	receipt_fixture_open(&f, NULL, &options);
	receipt_record(&f, "a", "m", ours);
	receipt_record(&f, "a", "m", theirs);
	assert_int_equal(f.settled[SETTLED_RATE_LIMITED], 1);
	assert_int_equal(f.open[theirs.source][theirs.node], 0);
	receipt_end(&f);
	receipt_fixture_free(&f);
}

/* By the outbox at once, by the outbox later, and by the sink. */
static void test_dropped(void **state)
{
	struct receipt_fixture f = { .status = 422 };
	evrec_sink_options options = receipt_sink_options();

	(void)state;
	options.limits.max_pending = 1;
	receipt_fixture_open(&f, &options, NULL);
	receipt_record(&f, "a", "m", ours);
	receipt_record(&f, "b", "m", theirs);
	assert_int_equal(f.dropped[EVREC_CAUSE_QUEUE_FULL], 1);
	receipt_advance(&f, 0);
	assert_int_equal(f.dropped[EVREC_CAUSE_REJECTED], 1);
	receipt_record(&f, "a", "m", ours);
	receipt_end(&f);
	receipt_fixture_free(&f);
}

static void test_unfit(void **state)
{
	struct receipt_fixture f = { .status = 201, .controller = "no qualified name" };
	evrec_sink_options options = receipt_sink_options();

	(void)state;
	options.api = EVREC_SINK_EVENTS_V1;
	receipt_fixture_open(&f, &options, NULL);
	receipt_record(&f, "a", "m", ours);
	assert_int_equal(f.dropped[EVREC_CAUSE_UNFIT], 1);
	receipt_end(&f);
	receipt_fixture_free(&f);
}

static evrec_sink_options series_options(void)
{
	evrec_sink_options options = receipt_sink_options();

	options.correlate = EVREC_CORRELATE_SERIES;
	return options;
}

/* Occurrences that a series counts are settled by the heartbeat, or by the end. */
static void test_counted(void **state)
{
	struct receipt_fixture f = { .status = 201 };
	evrec_sink_options options = series_options();

	(void)state;
	receipt_fixture_open(&f, &options, NULL);
	for (int i = 0; i < 5; i++) {
		receipt_record(&f, "a", "m", ours);
		receipt_advance(&f, EVREC_SECOND);
	}
	assert_int_equal(f.settled[SETTLED_WRITTEN], 2);
	assert_int_equal(receipt_open(&f), 3);
	receipt_advance(&f, options.series.refresh_interval);
	assert_int_equal(f.settled[SETTLED_WRITTEN], 5);
	for (int i = 0; i < 3; i++) {
		receipt_record(&f, "a", "m", theirs);
		receipt_advance(&f, EVREC_SECOND);
	}
	assert_int_equal(receipt_open(&f), 1);
	receipt_end(&f);
	assert_int_equal(f.settled[SETTLED_WRITTEN], 8);
	receipt_fixture_free(&f);
}

static void test_spooled(void **state)
{
	struct receipt_fixture f = { .status = 0 };
	evrec_sink_options options = receipt_sink_options();

	options.spool = str_from(tmpdir_path(*state, "spool"));
	receipt_fixture_open(&f, &options, NULL);
	receipt_record(&f, "a", "m", ours);
	receipt_record(&f, "b", "m", theirs);
	receipt_end(&f);
	assert_int_equal(f.settled[SETTLED_SPOOLED], 2);
	receipt_fixture_free(&f);
}

/* ---- random pipelines ---- */

static uint64_t random_state;

static unsigned below(unsigned n)
{
	return (unsigned)(unit_random(&random_state) % n);
}

static void record_some(struct receipt_fixture *f)
{
	static const char *const objects[] = { "a", "b", "c", "d" }, *const notes[] = { "m", "n", "o" };

	for (unsigned n = below(8); n > 0; n--) {
		receipt_record(f, objects[below(4)], notes[below(3)],
		               (struct receipt_id){ below(RECEIPT_SOURCES), below(RECEIPT_NODES) });
	}
}

static void run(void **state, unsigned number)
{
	struct receipt_fixture f = { .random = &random_state };
	evrec_sink_options options = below(2) == 0 ? series_options() : receipt_sink_options();
	evrec_correlator_options correlator;
	char spool[16];

	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1 + below(20);
	correlator.max_events = 1 + below(4);
	options.limits.max_pending = 1 + below(6);
	options.limits.max_tries = below(4);
	options.limits.max_age = below(2) * below(100) * EVREC_SECOND;
	options.limits.full = below(2) == 0 ? EVREC_DROP_OLDEST : EVREC_DROP_NEWEST;
	options.series.rate_limit = below(2) == 0;
	if (below(8) == 0) {
		(void)snprintf(spool, sizeof(spool), "spool%u", number);
		options.spool = str_from(tmpdir_path(*state, spool));
	}
	receipt_fixture_open(&f, &options, &correlator);
	for (unsigned steps = 1 + below(40); steps > 0; steps--) {
		record_some(&f);
		if (below(3) != 0) {
			receipt_advance(&f, below(below(8) == 0 ? 4000 : 20) * EVREC_SECOND);
		}
		if (below(16) == 0) {
			pipeline_release(f.pipeline);
		}
	}
	receipt_end(&f);
	receipt_fixture_free(&f);
}

static void test_each_is_settled_once(void **state)
{
	random_state = unit_seed();
	for (unsigned i = 0; i < RUNS; i++) {
		run(state, i);
	}
}

/* ---- no memory ---- */

static bool of_series;

static void scenario(void)
{
	struct receipt_fixture f = { .status = 201 };
	evrec_sink_options options = of_series ? series_options() : receipt_sink_options();
	uint64_t dropped = 0;

	alloc_failure_arm();
	receipt_fixture_open(&f, &options, NULL);
	alloc_failure_check(f.pipeline != NULL);
	if (f.pipeline != NULL) {
		for (int i = 0; i < 4; i++) {
			receipt_record(&f, i % 2 == 0 ? "a" : "b", "m", i < 2 ? ours : theirs);
			alloc_failure_check(f.dropped[EVREC_CAUSE_MEMORY] == dropped);
			dropped = f.dropped[EVREC_CAUSE_MEMORY];
			receipt_advance(&f, EVREC_SECOND);
			alloc_failure_ignore();
			dropped = f.dropped[EVREC_CAUSE_MEMORY];
		}
		receipt_end(&f);
	}
	alloc_failure_disarm();
	receipt_fixture_free(&f);
}

static void test_no_memory(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		of_series = i == 1;
		alloc_failure_run(scenario, 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written),   cmocka_unit_test(test_rate_limited),
		cmocka_unit_test(test_dropped),   cmocka_unit_test(test_unfit),
		cmocka_unit_test(test_counted),   TMPDIR_TEST(test_spooled),
		cmocka_unit_test(test_no_memory), TMPDIR_TEST(test_each_is_settled_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The series that an owner of a share hands to the next one, from pipeline to pipeline. */
#include "receipt_fixture.h"
#include "tmpdir.h"

static const struct receipt_id worker = { 1, 1 }, other = { 2, 1 };

static void begin(struct receipt_fixture *f)
{
	evrec_sink_options options = receipt_sink_options();

	*f = (struct receipt_fixture){ .status = 201 };
	options.api = EVREC_SINK_EVENTS_V1;
	receipt_fixture_open(f, &options, NULL);
	assert_non_null(f->pipeline);
}

static void record(struct receipt_fixture *f, struct receipt_id receipt, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		receipt_record(f, "a", "m", receipt);
		receipt_advance(f, 0);
	}
}

/* Ends the owner, and begins the next one. */
static void hand_over(struct receipt_fixture *from, struct receipt_fixture *to)
{
	struct buf state = { 0 };

	assert_true(pipeline_save_state(from->pipeline, &state));
	receipt_fixture_free(from);
	begin(to);
	pipeline_load_state(to->pipeline, buf_str(&state));
	buf_free(&state);
}

static evrec_series_stats stats_of(const struct receipt_fixture *f)
{
	evrec_sink_stats stats;

	pipeline_get_stats(f->pipeline, &stats);
	return stats.series;
}

static void test_a_series_goes_on(void **state)
{
	struct receipt_fixture f, next;

	(void)state;
	begin(&f);
	record(&f, worker, 3);
	record(&f, other, 2);
	assert_int_equal(f.last_count, 2);
	receipt_end(&f);
	assert_int_equal(f.last_count, 5);
	hand_over(&f, &next);
	assert_int_equal(stats_of(&next).ongoing, 1);
	record(&next, other, 1);
	assert_int_equal(next.last_count, 6);
	assert_int_equal(next.creates, 0);
	receipt_end(&next);
	receipt_fixture_free(&next);
}

/* A server that is down: what the owner has not written stays with the workers, and is counted by the next owner. */
static void test_what_is_left_is_not_counted_twice(void **state)
{
	struct receipt_fixture f, next;

	(void)state;
	begin(&f);
	record(&f, worker, 2);
	f.status = 503;
	record(&f, worker, 3);
	record(&f, other, 1);
	pipeline_end(f.pipeline);
	pipeline_join(f.pipeline, unit_mono() + EVREC_SECOND / 50);
	assert_int_equal(f.dropped[EVREC_CAUSE_CLOSED], 4);
	hand_over(&f, &next);
	record(&next, worker, 3);
	record(&next, other, 1);
	receipt_end(&next);
	assert_int_equal(next.last_count, 6);
	assert_int_equal(next.creates, 0);
	receipt_fixture_free(&next);
}

/* Not even the create was answered. */
static void test_a_name_is_handed_over(void **state)
{
	struct receipt_fixture f, next;
	char name[64];

	(void)state;
	begin(&f);
	f.status = 0;
	record(&f, worker, 1);
	memcpy(name, f.last_name, sizeof(name));
	pipeline_end(f.pipeline);
	pipeline_join(f.pipeline, unit_mono() + EVREC_SECOND / 50);
	hand_over(&f, &next);
	record(&next, worker, 1);
	assert_int_equal(next.creates, 1);
	assert_string_equal(next.last_name, name);
	receipt_end(&next);
	receipt_fixture_free(&next);
}

static void test_a_state_of_another_version_is_not_read(void **state)
{
	struct receipt_fixture f;
	const char bytes[64] = { 0x7f };

	(void)state;
	begin(&f);
	pipeline_load_state(f.pipeline, (evrec_str){ bytes, sizeof(bytes) });
	record(&f, worker, 1);
	assert_int_equal(f.creates, 1);
	receipt_end(&f);
	receipt_fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_series_goes_on),
		cmocka_unit_test(test_what_is_left_is_not_counted_twice),
		cmocka_unit_test(test_a_name_is_handed_over),
		cmocka_unit_test(test_a_state_of_another_version_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

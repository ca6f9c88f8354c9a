/* A sink that correlates by series whose events are dropped or wait: outages, refused creates, unfit events. */
#include "series_world.h"

/* If the server is down, what is counted folds into the write that waits, which cannot say that it is the last. */
static void test_an_end_is_told_after_an_outage(void **state)
{
	struct series_world w = { 0 };

	(void)state;
	series_world_open(&w, NULL);
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	w.status = 503;
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	series_world_record(&w, "web-0", "a");
	assert_int_equal(stats_check_equations(w.b).counted, 0);
	assert_int_equal(stats_check_equations(w.b).pending, 2);
	w.status = 200;
	series_world_advance(&w, 60 * EVREC_SECOND);
	checked_poll(w.b);
	assert_string_equal(w.state, "Ongoing");
	assert_int_equal(w.last.series_count, 3);
	series_world_advance(&w, 720 * EVREC_SECOND);
	checked_poll(w.b);
	checked_poll(w.b);
	assert_string_equal(w.state, "Finished");
	assert_int_equal(w.last.series_count, 3);
	series_world_close(&w);
}

/* An event that the API cannot take is dropped with a cause, and forgotten: it makes no series. */
static void test_an_unfit_event_is_dropped(void **state)
{
	struct series_world w = { 0 };
	evrec_sink_stats s;
	evrec_recorder *r;

	(void)state;
	series_world_open(&w, NULL);
	r = w.r;
	w.r = evrec_recorder_new(w.b, &(evrec_recorder_options){ .component = EVREC_STR("not a name") }, NULL);
	series_world_record(&w, "web-0", "a");
	evrec_recorder_free(w.r);
	w.r = r;
	s = stats_check_equations(w.b);
	assert_int_equal(s.received, 1);
	assert_int_equal(s.dropped[EVREC_CAUSE_UNFIT], 1);
	assert_int_equal(s.series.series, 0);
	assert_int_equal(w.drops, 1);
	assert_string_equal(w.cause, "unfit");
	assert_int_equal(checked_flush(w.b, 0), EVREC_ELOST);
	assert_int_equal(w.creates, 0);
	series_world_close(&w);
}

/* A server that refuses a create is asked again for a later occurrence. */
static void test_a_dropped_create_is_created_again(void **state)
{
	struct series_world w = { 0 };

	(void)state;
	series_world_open(&w, NULL);
	w.status = 422;
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	assert_int_equal(w.drops, 1);
	w.status = 201;
	series_world_advance(&w, 31 * EVREC_SECOND);
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	assert_int_equal(w.creates, 2);
	assert_int_equal(w.last.series_count, 2);
	series_world_close(&w);
}

/* An occurrence before the heartbeat is counted. The heartbeat creates the event, as there is none to be patched. */
static void test_what_is_counted_after_a_dropped_create_creates(void **state)
{
	for (int again = 0; again <= 1; again++) {
		struct series_world w = { 0 };

		(void)state;
		series_world_open(&w, NULL);
		w.status = 422;
		series_world_record(&w, "web-0", "a");
		checked_poll(w.b);
		w.status = 201;
		series_world_advance(&w, 10 * EVREC_SECOND);
		series_world_record(&w, "web-0", "a");
		checked_poll(w.b);
		assert_int_equal(stats_check_equations(w.b).counted, 1);
		series_world_advance(&w, 31 * EVREC_SECOND);
		if (again) {
			series_world_record(&w, "web-0", "a");
		}
		assert_int_equal(checked_flush(w.b, 0), EVREC_ELOST);
		assert_int_equal(w.creates, 2);
		assert_int_equal(w.patches, 0);
		assert_int_equal(w.last.series_count, 2 + again);
		series_world_close(&w);
	}
}

/* An event that the server never had is not finished there either. */
static void test_the_end_of_a_dropped_event_is_not_written(void **state)
{
	struct series_world w = { 0 };

	(void)state;
	series_world_open(&w, NULL);
	w.status = 422;
	for (unsigned i = 0; i < 3; i++) {
		series_world_record(&w, "web-0", "a");
		checked_poll(w.b);
		series_world_advance(&w, 31 * EVREC_SECOND);
	}
	assert_int_equal(w.creates, 3);
	series_world_advance(&w, 720 * EVREC_SECOND);
	checked_poll(w.b);
	checked_poll(w.b);
	assert_int_equal(stats_check_equations(w.b).series.finished, 1);
	assert_int_equal(w.creates, 3);
	assert_int_equal(w.patches, 0);
	series_world_close(&w);
}

/* During an outage memory holds max_pending writes and one for each of max_series, however many events there are. */
static void test_an_outage_is_bounded(void **state)
{
	struct series_world w = { .max_pending = 20 };
	evrec_series_options options = { 1800 * EVREC_SECOND, 360 * EVREC_SECOND, 10, false, false };
	evrec_sink_stats s;
	char name[16];

	(void)state;
	series_world_open(&w, &options);
	for (unsigned i = 0; i < 600; i++) {
		w.status = i < 8 ? 201 : 503;
		snprintf(name, sizeof(name), "web-%u", i);
		for (unsigned n = 0; n < 3; n++) {
			series_world_record(&w, name, "a");
			if (i < 8) {
				checked_poll(w.b);
			}
		}
		if (i % 50 == 8) {
			checked_poll(w.b);
			assert_true(checked_flush(w.b, 0) != 0);
		}
		series_world_advance(&w, i >= 8 ? 60 * EVREC_SECOND : 0);
		s = stats_check_equations(w.b);
		assert_in_range(s.counted, 0, 10);
		assert_in_range(s.pending_writes, 0, 30);
	}
	checked_poll(w.b);
	assert_int_equal(stats_check_equations(w.b).counted, 0);
	series_world_close(&w);
}

/* An event for which a full outbox had no room is created at its next occurrence. */
static void test_a_create_without_room_is_created_again(void **state)
{
	struct series_world w = { .max_pending = 1 };

	(void)state;
	series_world_open(&w, NULL);
	w.status = 503;
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	series_world_record(&w, "web-1", "a");
	assert_string_equal(w.cause, "queue_full");
	w.status = 201;
	w.creates = 0;
	series_world_advance(&w, 60 * EVREC_SECOND);
	checked_poll(w.b);
	series_world_record(&w, "web-1", "a");
	checked_poll(w.b);
	assert_int_equal(w.creates, 2);
	assert_int_equal(w.patches, 0);
	assert_int_equal(w.last.series_count, 2);
	series_world_close(&w);
}

/* The create was dropped after a try without an answer. If its name is taken later, the event is its own. */
static void test_a_dropped_create_that_may_have_arrived_makes_no_second_event(void **state)
{
	struct series_world w = { .max_tries = 1 };

	(void)state;
	series_world_open(&w, NULL);
	w.status = 0;
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	assert_string_equal(w.cause, "max_tries");
	w.status = 409;
	series_world_advance(&w, 31 * EVREC_SECOND);
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	assert_int_equal(w.creates, 2);
	assert_int_equal(w.patches, 1);
	assert_int_equal(w.last.series_count, 2);
	series_world_close(&w);
}

/* The create was found to have arrived; the patch after it was dropped. So the event exists. */
static void test_a_dropped_patch_after_a_create_makes_no_second_event(void **state)
{
	struct series_world w = { .max_tries = 2 };

	(void)state;
	series_world_open(&w, NULL);
	w.status = 0;
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	w.status = 409;
	series_world_record(&w, "web-0", "a");
	series_world_advance(&w, 10 * EVREC_SECOND);
	checked_poll(w.b);
	assert_string_equal(w.cause, "max_tries");
	assert_int_equal(w.creates, 2);
	assert_int_equal(w.patches, 1);
	series_world_advance(&w, 31 * EVREC_SECOND);
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	assert_int_equal(w.creates, 3);
	assert_int_equal(w.patches, 2);
	assert_int_equal(w.last.series_count, 3);
	series_world_close(&w);
}

/* Another client's event had the name. The create under the second name was dropped, but may have arrived. */
static void test_a_dropped_create_keeps_its_second_name(void **state)
{
	struct series_world w = { .max_tries = 1 };
	char second_name[sizeof(w.name)];

	(void)state;
	series_world_open(&w, NULL);
	w.first_status = 409;
	w.status = 0;
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	assert_string_equal(w.cause, "max_tries");
	assert_int_equal(w.creates, 2);
	memcpy(second_name, w.name, sizeof(second_name));
	w.status = 409;
	series_world_advance(&w, 31 * EVREC_SECOND);
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	assert_int_equal(w.creates, 3);
	assert_int_equal(w.patches, 1);
	assert_string_equal(w.name, second_name);
	series_world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_end_is_told_after_an_outage),
		cmocka_unit_test(test_an_unfit_event_is_dropped),
		cmocka_unit_test(test_a_dropped_create_is_created_again),
		cmocka_unit_test(test_what_is_counted_after_a_dropped_create_creates),
		cmocka_unit_test(test_the_end_of_a_dropped_event_is_not_written),
		cmocka_unit_test(test_an_outage_is_bounded),
		cmocka_unit_test(test_a_create_without_room_is_created_again),
		cmocka_unit_test(test_a_dropped_create_that_may_have_arrived_makes_no_second_event),
		cmocka_unit_test(test_a_dropped_patch_after_a_create_makes_no_second_event),
		cmocka_unit_test(test_a_dropped_create_keeps_its_second_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

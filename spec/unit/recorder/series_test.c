/* A sink that correlates by series: its requests, what it tells, and its ends, through the public interface. */
#include "series_world.h"

/* A pod that crashes every 0.72 s for two hours: 10,000 turns are one create, and a patch for each heartbeat. */
static void test_a_crash_loop_is_few_requests(void **state)
{
	struct series_world w = { 0 };
	evrec_sink_stats s;

	(void)state;
	series_world_open(&w, NULL);
	for (unsigned i = 0; i < 10000; i++) {
		series_world_record(&w, "web-0", "back-off");
		series_world_advance(&w, 720 * EVREC_SECOND / 1000);
		checked_poll(w.b);
	}
	assert_int_equal(w.creates, 1);
	assert_in_range(w.patches, 4, 5);
	series_world_advance(&w, 720 * EVREC_SECOND);
	checked_poll(w.b);
	s = stats_check_equations(w.b);
	assert_int_equal(w.creates, 1);
	assert_in_range(w.patches, 5, 6);
	assert_int_equal(w.last.series_count, 10000);
	assert_string_equal(w.state, "Finished");
	assert_int_equal(s.created + s.patched + s.coalesced, 10000);
	assert_int_equal(s.series.finished, 1);
	assert_int_equal(s.series.series, 0);
	series_world_close(&w);
}

/* The first is created, the second patched at once; a further one is counted, and no flush waits for its time. */
static void test_a_flush_writes_what_is_counted(void **state)
{
	struct series_world w = { 0 };
	evrec_sink_stats s;

	(void)state;
	series_world_open(&w, NULL);
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	assert_int_equal(w.creates, 1);
	assert_int_equal(w.last.series_count, 0);
	assert_int_equal(w.last.count, 0);
	assert_int_equal(w.last.event_time, T0);
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	assert_int_equal(w.patches, 1);
	assert_string_equal(w.patch,
	                    "{\"series\":{\"count\":2,\"lastObservedTime\":\"2023-11-14T22:13:20.000000Z\",\"state\":"
	                    "\"Ongoing\"}}");
	series_world_record(&w, "web-0", "a");
	series_world_record(&w, "web-0", "a");
	checked_poll(w.b);
	s = stats_check_equations(w.b);
	assert_int_equal(s.counted, 2);
	assert_int_equal(s.pending, 0);
	assert_int_equal(w.patches, 1);
	assert_int_equal(checked_flush(w.b, 0), 0);
	s = stats_check_equations(w.b);
	assert_int_equal(s.counted, 0);
	assert_int_equal(w.patches, 2);
	assert_int_equal(w.last.series_count, 4);
	assert_string_equal(w.state, "Ongoing");
	series_world_close(&w);
}

static void count_two(struct series_world *w)
{
	for (unsigned i = 0; i < 4; i++) {
		series_world_record(w, "web-0", "a");
		checked_poll(w->b);
	}
	assert_int_equal(stats_check_equations(w->b).counted, 2);
	assert_int_equal(w->patches, 1);
}

static void test_a_shutdown_writes_what_is_counted(void **state)
{
	struct series_world w = { 0 };

	(void)state;
	series_world_open(&w, NULL);
	count_two(&w);
	assert_int_equal(checked_shutdown(w.b, SOON), 0);
	assert_int_equal(w.patches, 2);
	assert_int_equal(w.last.series_count, 4);
	assert_int_equal(stats_check_equations(w.b).counted, 0);
	series_world_close(&w);
}

/* The counters of the sink become a part of the sums, with nothing left that is counted. */
static void test_a_stopped_watch_writes_what_is_counted(void **state)
{
	struct series_world w = { 0 };
	evrec_stats all;

	(void)state;
	series_world_open(&w, NULL);
	count_two(&w);
	evrec_watch_stop(w.watch);
	assert_int_equal(stats_check_equations(w.b).counted, 0);
	checked_poll(w.b);
	checked_poll(w.b);
	assert_int_equal(w.last.series_count, 4);
	evrec_broadcaster_get_stats(w.b, &all);
	assert_int_equal(all.sinks, 0);
	assert_int_equal(all.ended.counted, 0);
	assert_int_equal(all.ended.series.begun, 1);
	assert_int_equal(all.ended.series.series, 0);
	series_world_close(&w);
}

/* A heartbeat is written in time although nobody records, and says that the series goes on. */
static void test_a_heartbeat_says_ongoing_and_the_end_finished(void **state)
{
	struct series_world w = { 0 };
	evrec_series_options options = { 100 * EVREC_SECOND, 60 * EVREC_SECOND, 10, false, false };

	(void)state;
	series_world_open(&w, &options);
	count_two(&w);
	series_world_advance(&w, 50 * EVREC_SECOND);
	series_world_record(&w, "web-0", "a");
	series_world_advance(&w, 50 * EVREC_SECOND);
	checked_poll(w.b);
	assert_int_equal(w.patches, 2);
	assert_int_equal(w.last.series_count, 5);
	assert_string_equal(w.state, "Ongoing");
	/* Nothing is new: an end without a count is still told. */
	series_world_advance(&w, 100 * EVREC_SECOND);
	checked_poll(w.b);
	checked_poll(w.b);
	assert_int_equal(w.patches, 3);
	assert_int_equal(w.last.series_count, 5);
	assert_string_equal(w.state, "Finished");
	assert_int_equal(stats_check_equations(w.b).received, 5);
	series_world_close(&w);
}

/* For a new event the oldest series has to go: its count is written at once, and that it is finished. */
static void test_an_evicted_series_is_written_at_once(void **state)
{
	struct series_world w = { 0 };
	evrec_series_options options = { 1800 * EVREC_SECOND, 360 * EVREC_SECOND, 1, false, false };
	evrec_sink_stats s;

	(void)state;
	series_world_open(&w, &options);
	count_two(&w);
	series_world_record(&w, "web-1", "a");
	checked_poll(w.b);
	s = stats_check_equations(w.b);
	assert_int_equal(s.counted, 0);
	assert_int_equal(s.series.evicted, 1);
	assert_int_equal(w.creates, 2);
	assert_int_equal(w.patches, 2);
	assert_int_equal(w.finished, 1);
	assert_int_equal(w.finished_count, 4);
	series_world_close(&w);
}

/* Fields are made fit: an action, an instance, a note of 1,024 bytes. */
static void test_written_events_are_fit(void **state)
{
	struct series_world w = { 0 };
	char note[3001] = { 0 };

	(void)state;
	series_world_open(&w, NULL);
	memset(note, 'x', sizeof(note) - 1);
	series_world_record(&w, "web-0", note);
	checked_poll(w.b);
	assert_int_equal(w.last_note_len, 1024);
	assert_string_equal(w.action, "BackOff");
	assert_int_equal(strncmp(w.instance, "kubelet-", 8), 0);
	assert_true(strlen(w.instance) > 8);
	series_world_close(&w);
}

/* The new style without series: client-go's correlator counts, and the count is that of a series. */
static void test_new_style_without_series(void **state)
{
	struct series_world w = { .correlate = EVREC_CORRELATE_RECORD };

	(void)state;
	series_world_open(&w, NULL);
	for (unsigned i = 0; i < 3; i++) {
		series_world_record(&w, "web-0", "a");
		checked_poll(w.b);
	}
	assert_int_equal(w.creates, 1);
	assert_int_equal(w.patches, 2);
	assert_int_equal(w.last.series_count, 3);
	assert_int_equal(w.last.count, 0);
	assert_int_equal(w.last.event_time, T0);
	series_world_close(&w);
}

/* A forked child begins series of its own, and leaves its parent's alone. */
static void test_a_forked_child_begins_anew(void **state)
{
	struct series_world w = { 0 };
	pid_t child;

	(void)state;
	series_world_open(&w, NULL);
	count_two(&w);
	child = fork();
	if (child == 0) {
		evrec_sink_stats s = stats_check_equations(w.b);
		bool good = s.counted == 0 && s.series.series == 0;

		w.creates = w.patches = 0;
		evrec_watch_stop(w.watch);
		good = good && checked_flush(w.b, 0) == 0 && w.patches == 0;
		_exit(good ? 0 : 1);
	}
	assert_int_equal(unit_wait(child), 0);
	child = fork();
	if (child == 0) {
		evrec_sink_stats s;
		bool good;

		w.creates = w.patches = 0;
		series_world_record(&w, "web-0", "a");
		good = checked_flush(w.b, 0) == 0 && w.creates == 1 && w.patches == 0;
		s = stats_check_equations(w.b);
		_exit(good && s.received == 1 && s.series.series == 1 && s.series.begun == 0 ? 0 : 1);
	}
	assert_int_equal(unit_wait(child), 0);
	assert_int_equal(stats_check_equations(w.b).counted, 2);
	assert_int_equal(checked_flush(w.b, 0), 0);
	assert_int_equal(w.last.series_count, 4);
	series_world_close(&w);
}

static void check_refused(const evrec_sink_options *options, const char *name)
{
	static const evrec_sink_ops ops = { .create = series_world_create };
	evrec_error err = { 0 };

	assert_null(evrec_sink_new(&ops, NULL, options, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	assert_int_equal(strncmp(err.message, name, strlen(name)), 0);
	assert_true(err.message[strlen(name)] == ':' || strchr(name, ':') != NULL);
}

static void test_bad_options_are_refused_by_name(void **state)
{
	evrec_sink_options bad;

	(void)state;
	evrec_sink_options_init(&bad);
	bad.api = (enum evrec_sink_api)(EVREC_SINK_AUTO + 1);
	check_refused(&bad, "api");
	evrec_sink_options_init(&bad);
	bad.correlate = (enum evrec_correlate)(EVREC_CORRELATE_SERIES + 1);
	check_refused(&bad, "correlate");
	evrec_sink_options_init(&bad);
	bad.series.refresh_interval = EVREC_SECOND - 1;
	check_refused(&bad, "refresh_interval: must be at least 1 s");
	evrec_sink_options_init(&bad);
	bad.series.finish_time = 0;
	check_refused(&bad, "finish_time: must be at least 1 s");
	evrec_sink_options_init(&bad);
	bad.series.max_series = 0;
	check_refused(&bad, "max_series");
	bad.series.max_series = (1U << 24) + 1;
	check_refused(&bad, "max_series");
}

static void test_extreme_options_are_taken(void **state)
{
	const evrec_series_options least = { EVREC_SECOND, EVREC_SECOND, 1, false, false },
				   most = { INT64_MAX, INT64_MAX, 1U << 24, true, true };
	struct series_world w = { 0 };

	(void)state;
	series_world_open(&w, &least);
	count_two(&w);
	series_world_close(&w);
	series_world_open(&w, &most);
	count_two(&w);
	series_world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_crash_loop_is_few_requests),
		cmocka_unit_test(test_a_flush_writes_what_is_counted),
		cmocka_unit_test(test_a_shutdown_writes_what_is_counted),
		cmocka_unit_test(test_a_stopped_watch_writes_what_is_counted),
		cmocka_unit_test(test_a_heartbeat_says_ongoing_and_the_end_finished),
		cmocka_unit_test(test_an_evicted_series_is_written_at_once),
		cmocka_unit_test(test_written_events_are_fit),
		cmocka_unit_test(test_new_style_without_series),
		cmocka_unit_test(test_a_forked_child_begins_anew),
		cmocka_unit_test(test_bad_options_are_refused_by_name),
		cmocka_unit_test(test_extreme_options_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Traces: what is recorded is in the file, gaps are told, the file is bounded and private; and a replay of the file makes
 * the decisions that the correlator made.
 */
#define _GNU_SOURCE

#include "traced.h"

#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

static void test_file_is_private_and_has_all_events(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	evrec_replayed_variant result;
	evrec_replayed_trace trace;
	struct traced t;
	struct stat st;

	traced_begin(&t, path, MANY, NULL);
	assert_int_not_equal(stat(path, &st), 0);
	traced_record(&t, 1, "Started", "m");
	evrec_clock_set(t.clock, T0 + EVREC_SECOND);
	traced_record(&t, 1, "Started", "m");
	traced_record(&t, 2, "Started", "m");
	evrec_broadcaster_poll(t.b);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	traced_replay(path, NULL, &trace, &result);
	assert_int_equal(trace.occurrences, 3);
	assert_int_equal(trace.lost, 0);
	assert_int_equal(trace.first, T0);
	assert_int_equal(trace.last, T0 + EVREC_SECOND);
	assert_int_equal(result.tally.created, 2);
	assert_int_equal(result.tally.patched, 1);
	traced_end(&t);
	assert_int_equal(t.errors + t.drops, 0);
}

/* Nobody polls: 10,000 events wait, and the others are a gap. */
static void test_full_outbox_is_a_gap(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	evrec_replayed_variant result;
	evrec_replayed_trace trace;
	evrec_sink_stats stats;
	struct traced t;

	traced_begin(&t, path, MANY, NULL);
	for (uint64_t i = 0; i < 10250; i++) {
		traced_record(&t, i % 7, "Started", "m");
	}
	assert_true(evrec_watch_get_sink_stats(t.watch, &stats));
	assert_int_equal(stats.dropped[EVREC_CAUSE_QUEUE_FULL], 250);
	assert_int_equal(t.drops, 250);
	assert_int_equal(evrec_broadcaster_flush(t.b, SOON, NULL), EVREC_ELOST);
	traced_record(&t, 1, "Started", "m");
	evrec_broadcaster_poll(t.b);
	traced_replay(path, NULL, &trace, &result);
	assert_int_equal(trace.occurrences, 10001);
	assert_int_equal(trace.lost, 250);
	assert_int_equal(trace.gaps, 1);
	assert_int_equal(trace.malformed, 0);
	traced_end(&t);
}

/* A thread writes while events are recorded. Events that it is too slow for are told as gaps. */
static void test_thread_writes_or_tells_of_all(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	evrec_replayed_variant result;
	evrec_replayed_trace trace;
	evrec_sink_stats stats;
	struct traced t;

	traced_begin_driven(&t, path, MANY, NULL, EVREC_DRIVE_THREAD);
	for (uint64_t i = 0; i < 30000; i++) {
		traced_record(&t, i % 100, "Started", "m");
	}
	(void)evrec_broadcaster_flush(t.b, SOON, NULL);
	traced_record(&t, 1, "Started", "m");
	(void)evrec_broadcaster_flush(t.b, SOON, NULL);
	assert_true(evrec_watch_get_sink_stats(t.watch, &stats));
	assert_int_equal(stats.pending, 0);
	traced_replay(path, NULL, &trace, &result);
	assert_int_equal(trace.occurrences, stats.created);
	assert_int_equal(trace.lost, stats.dropped[EVREC_CAUSE_QUEUE_FULL]);
	assert_int_equal(trace.occurrences + trace.lost, 30001);
	traced_end(&t);
}

/* 9,000 different events need more ids than there are. Each is still found where it comes again. */
static void test_ids_are_used_again(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	evrec_replayed_variant result;
	evrec_replayed_trace trace;
	struct buf text = { 0 };
	struct traced t;

	traced_begin(&t, path, MANY, NULL);
	for (uint64_t i = 0; i < 9000; i++) {
		traced_record(&t, i, "Started", "m");
		traced_record(&t, i, "Started", "m");
		traced_record(&t, i / 2, "Started", "m");
		evrec_broadcaster_poll(t.b);
	}
	traced_replay(path, NULL, &trace, &result);
	assert_int_equal(trace.occurrences, 27000);
	assert_int_equal(trace.malformed, 0);
	assert_true(file_read(path, MANY, &text));
	(void)buf_cstr(&text);
	assert_non_null(strstr(text.data, "{\"id\":4096,"));
	assert_null(strstr(text.data, "{\"id\":4097,"));
	buf_free(&text);
	traced_end(&t);
}

static void test_file_stops_at_max_bytes(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	evrec_replayed_variant result;
	evrec_replayed_trace trace;
	evrec_stats stats;
	struct traced t;
	struct stat st;

	traced_begin(&t, path, 8192, NULL);
	for (uint64_t i = 0; i < 300; i++) {
		traced_record(&t, i % 3, "Started", "m");
		evrec_broadcaster_poll(t.b);
	}
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 7000, 8192);
	traced_replay(path, NULL, &trace, &result);
	assert_true(trace.full);
	assert_in_range(trace.occurrences, 150, 299);
	assert_int_equal(t.errors, 1);
	unit_check_contains(t.error, "max_bytes");
	/* The watch is over: later events are no losses. */
	assert_in_range(t.drops, 1, 2);
	evrec_broadcaster_get_stats(t.b, &stats);
	assert_int_equal(stats.sinks, 0);
	traced_end(&t);
}

/* Records into a trace under this path, which cannot be opened. */
static void check_refused(const char *path, const char *why)
{
	struct traced t;

	traced_begin(&t, path, MANY, NULL);
	traced_record(&t, 1, "Started", "m");
	evrec_broadcaster_poll(t.b);
	traced_record(&t, 1, "Started", "m");
	assert_int_equal(t.errors, 1);
	unit_check_contains(t.error, why);
	assert_int_equal(t.drops, 1);
	traced_end(&t);
}

static void test_other_files_are_left_alone(void **state)
{
	char link_path[512], file_path[512], text[64] = "";
	struct traced t;
	int fd;

	(void)snprintf(file_path, sizeof(file_path), "%s", tmpdir_path(*state, "notes"));
	(void)snprintf(link_path, sizeof(link_path), "%s", tmpdir_path(*state, "link"));
	tmpdir_write_file(file_path, "shopping list, and more than a header");
	check_refused(file_path, "is not a trace");
	assert_int_equal(symlink(file_path, link_path), 0);
	check_refused(link_path, "symbolic link");
	fd = open(file_path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 37);
	close(fd);
	assert_string_equal(text, "shopping list, and more than a header");
	/* One writer at a time. */
	tmpdir_write_file(file_path, "");
	traced_begin(&t, file_path, MANY, NULL);
	traced_record(&t, 1, "Started", "m");
	evrec_broadcaster_poll(t.b);
	check_refused(file_path, "another process");
	traced_end(&t);
}

static void test_an_earlier_trace_is_replaced(void **state)
{
	const char *path = tmpdir_path(*state, "trace");
	evrec_replayed_variant result;
	evrec_replayed_trace trace;

	for (int i = 1; i <= 2; i++) {
		struct traced t;

		traced_begin(&t, path, MANY, NULL);
		for (int n = 0; n < 5 - i; n++) {
			traced_record(&t, 1, "Started", "m");
		}
		traced_end(&t);
	}
	traced_replay(path, NULL, &trace, &result);
	assert_int_equal(trace.occurrences, 3);
}

/* ---- replay equals what the correlator did ---- */

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	(void)ctx;
	(void)event;
	answer->status = 201;
}

static bool by_reason(void *ctx, const evrec_fields *event, evrec_str *key)
{
	static char text[256]; /* global, because the key is borrowed until the next call */

	(void)ctx;
	(void)snprintf(text, sizeof(text), "%.*s\x01%.*s", (int)event->regarding.name.len, event->regarding.name.data,
	               (int)event->reason.len, event->reason.data);
	*key = str_from(text);
	/* Sometimes the default's. */
	return event->reason.data[event->reason.len - 1] != '3';
}

static bool by_type(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	(void)ctx;
	*aggregate_key = event->type;
	*local_key = event->regarding.name;
	return true;
}

static void check_random(const char *path, uint64_t *seed)
{
	static const evrec_sink_ops ops = { .create = create };
	evrec_sink *sink = evrec_sink_new(&ops, NULL, NULL, NULL);
	evrec_correlator_options options;
	evrec_replayed_variant result;
	evrec_replayed_trace trace;
	evrec_sink_stats stats;
	const uint64_t *why = stats.correlator.why;
	evrec_watch *watch;
	struct traced t;

	evrec_correlator_options_init(&options);
	options.burst_size = (unsigned)(unit_random(seed) % 30 + 1);
	options.qps = (double)(unit_random(seed) % 100) / 100;
	options.max_events = (unsigned)(unit_random(seed) % 12 + 1);
	options.lru_cache_size = unit_random(seed) % 40 + 1;
	options.max_interval = (int64_t)(unit_random(seed) % 60) * EVREC_SECOND;
	options.spam_key_func = unit_random(seed) % 2 == 0 ? by_reason : NULL;
	options.key_func = unit_random(seed) % 3 == 0 ? by_type : NULL;
	traced_begin(&t, path, MANY, &options);
	watch = evrec_broadcaster_start_recording_to_sink(t.b, sink, &options, NULL);
	for (int i = 0; i < 1000; i++) {
		char reason[16], note[16];

		(void)snprintf(reason, sizeof(reason), "R%d", (int)(unit_random(seed) % 5));
		(void)snprintf(note, sizeof(note), "m%d", (int)(unit_random(seed) % 15));
		evrec_clock_set(t.clock,
		                evrec_clock_now(t.clock) + (int64_t)(unit_random(seed) % 20) * EVREC_SECOND / 7);
		traced_record(&t, unit_random(seed) % 20, reason, note);
		if (unit_random(seed) % 50 == 0) {
			evrec_broadcaster_poll(t.b);
		}
	}
	assert_int_equal(evrec_broadcaster_flush(t.b, SOON, NULL), 0);
	assert_true(evrec_watch_get_sink_stats(watch, &stats));
	options.key_func = NULL;
	options.spam_key_func = NULL;
	traced_replay(path, &options, &trace, &result);
	assert_int_equal(trace.occurrences, 1000);
	assert_int_equal(result.tally.rate_limited, why[EVREC_RATE_LIMITED]);
	assert_int_equal(result.tally.aggregated, why[EVREC_AGGREGATED]);
	assert_int_equal(result.tally.created + result.tally.patched,
	                 why[EVREC_NEW] + why[EVREC_DUPLICATE] + why[EVREC_AGGREGATED]);
	assert_int_equal(result.buckets, stats.correlator.buckets);
	evrec_watch_free(watch);
	traced_end(&t);
	evrec_sink_release(sink);
}

static void test_replay_decides_as_the_correlator_did(void **state)
{
	uint64_t seed = unit_seed();

	for (int i = 0; i < 40; i++) {
		check_random(tmpdir_path(*state, "trace"), &seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_file_is_private_and_has_all_events),
		TMPDIR_TEST(test_full_outbox_is_a_gap),
		TMPDIR_TEST(test_thread_writes_or_tells_of_all),
		TMPDIR_TEST(test_ids_are_used_again),
		TMPDIR_TEST(test_file_stops_at_max_bytes),
		TMPDIR_TEST(test_other_files_are_left_alone),
		TMPDIR_TEST(test_an_earlier_trace_is_replaced),
		TMPDIR_TEST(test_replay_decides_as_the_correlator_did),
	};

	return cmocka_run_group_tests_name("recorder: traces", tests, NULL, NULL);
}

/* The store sink: events become rows, old rows go by the clock, and a store that cannot be written is told and tried again. */
#define _GNU_SOURCE

#include "recorder_fixture.h"
#include "store_fixture.h"

#include "base/clock.h"

#include <sys/stat.h>
#include <time.h>

#define EVENTS "SELECT count(*) FROM events"
#define OCCURRENCES "SELECT ifnull(sum(count), 0) FROM occurrences"
#define LIMITED "SELECT ifnull(sum(count), 0) FROM suppressions WHERE stage = 'rate_limited'"

/* A broadcaster under a fake clock that is polled, with a store sink. */
struct life {
	evrec_clock *clock;
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_recorder *r;
	unsigned errors;
	char error[256], name[32]; /* the last one */
	bool told_notes;           /* on_error had the name "notes" */
};

static void on_error(void *ctx, const char *message, const char *name)
{
	struct life *life = ctx;

	life->errors++;
	(void)snprintf(life->error, sizeof(life->error), "%s", message);
	(void)snprintf(life->name, sizeof(life->name), "%s", name);
	if (strcmp(name, "notes") == 0) {
		unit_check_contains(message, "could not be written; notes_lost counts them");
		life->told_notes = true;
	}
}

static void begin_by(struct life *life, const evrec_store_options *store, const evrec_sink_options *options,
                     enum evrec_drive drive)
{
	const evrec_recorder_options source = { .component = EVREC_STR("kubelet"), .host = EVREC_STR("node-1") };
	evrec_broadcaster_options how;
	evrec_error err;
	evrec_sink *sink = evrec_sink_store(store, options, &err);

	assert_non_null(sink);
	*life = (struct life){ .clock = evrec_clock_fake(T0) };
	evrec_broadcaster_options_init(&how);
	how.clock = life->clock;
	how.drive = drive;
	how.on_error = on_error;
	how.ctx = life;
	life->b = evrec_broadcaster_new(&how, &err);
	life->watch = evrec_broadcaster_start_recording_to_sink(life->b, sink, NULL, &err);
	life->r = evrec_recorder_new(life->b, &source, &err);
	assert_true(life->b != NULL && life->watch != NULL && life->r != NULL);
	evrec_sink_release(sink);
}

static void begin(struct life *life, const evrec_store_options *store, const evrec_sink_options *options)
{
	begin_by(life, store, options, EVREC_DRIVE_POLL);
}

static void end(struct life *life)
{
	(void)evrec_broadcaster_shutdown(life->b, 0, NULL);
	(void)stats_check_equations(life->b);
	evrec_recorder_free(life->r);
	evrec_watch_free(life->watch);
	evrec_broadcaster_free(life->b);
	evrec_clock_release(life->clock);
}

static evrec_store_options options_of(const char *path)
{
	evrec_store_options options;

	evrec_store_options_init(&options);
	options.path = evrec_string(path);
	return options;
}

static void record(struct life *life, const char *pod, const char *reason)
{
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"),
		                            .api_version = EVREC_STR("v1"),
		                            .name = evrec_string(pod),
		                            .ns = EVREC_STR("shop") };
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &regarding;
	emit.type = EVREC_STR("Normal");
	emit.reason = evrec_string(reason);
	emit.action = evrec_string(reason);
	emit.note = EVREC_STR("a note");
	assert_int_equal(evrec_recorder_emit(life->r, &emit, NULL), 0);
}

static void poll_at(struct life *life, int64_t now)
{
	evrec_clock_set(life->clock, now);
	evrec_broadcaster_poll(life->b);
}

static void test_occurrences_of_an_event_are_one_row(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_store_options options = options_of(path);
	struct life life;

	begin(&life, &options, NULL);
	record(&life, "web-0", "Started");
	assert_int_equal(access(path, F_OK), -1); /* the file is made by the first write */
	evrec_broadcaster_poll(life.b);
	assert_int_equal(access(path, F_OK), 0);
	evrec_clock_set(life.clock, T0 + EVREC_SECOND);
	record(&life, "web-0", "Started");
	record(&life, "web-1", "Started");
	poll_at(&life, T0 + EVREC_SECOND);
	assert_int_equal(store_fixture_ask(path, EVENTS), 2);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events WHERE body LIKE '%\"count\":2%' AND "
	                                         "last = 1700000001000000000 AND first = 1700000000000000000"),
	                 1);
	assert_int_equal(life.errors, 0);
	end(&life);
}

static void test_a_series_ends_as_one_row_with_its_last_time(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_store_options options = options_of(path);
	evrec_sink_options common;
	struct life life;

	evrec_sink_options_init(&common);
	common.api = EVREC_SINK_EVENTS_V1;
	begin(&life, &options, &common);
	for (int i = 0; i < 3; i++) {
		evrec_clock_set(life.clock, T0 + i * EVREC_SECOND);
		record(&life, "web-0", "Started");
		evrec_broadcaster_poll(life.b);
	}
	poll_at(&life, T0 + 1000 * EVREC_SECOND);
	assert_int_equal(store_fixture_ask(path, EVENTS), 1);
	assert_int_equal(store_fixture_ask(path, "SELECT last FROM events"), T0 + 2 * EVREC_SECOND);
	assert_int_equal(store_fixture_ask(path, "SELECT body LIKE '%\"state\":\"Finished\"%' FROM events"), 1);
	end(&life);
}

static void test_events_expire_by_the_clock(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	evrec_store_options options = options_of(path);
	struct life life;

	options.keep = 3600 * EVREC_SECOND;
	begin(&life, &options, NULL);
	record(&life, "web-0", "Started");
	poll_at(&life, T0);
	poll_at(&life, T0 + options.keep);
	assert_int_equal(store_fixture_ask(path, EVENTS), 1);
	/* Nothing else has to be recorded for that. */
	poll_at(&life, T0 + options.keep + 61 * EVREC_SECOND);
	assert_int_equal(store_fixture_ask(path, EVENTS), 0);
	end(&life);
}

static void test_a_missing_folder_is_told_and_tried_again(void **state)
{
	const char *folder = tmpdir_path(*state, "missing"), *path = tmpdir_path(*state, "missing/events.db");
	const evrec_store_options options = options_of(path);
	struct life life;

	begin(&life, &options, NULL);
	record(&life, "web-0", "Started");
	poll_at(&life, T0);
	poll_at(&life, T0);
	assert_string_equal(life.name, "store");
	unit_check_contains(life.error, "missing/events.db: No such file or directory");
	assert_int_equal(mkdir(folder, 0755), 0);
	poll_at(&life, T0 + 10 * EVREC_SECOND);
	assert_int_equal(store_fixture_ask(path, EVENTS), 1);
	end(&life);
}

static void test_a_store_that_stays_damaged_drops_by_max_age(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_store_options options = options_of(path);
	evrec_sink_options common;
	evrec_sink_stats stats;
	struct life life;

	tmpdir_write_file(path, "This is no database, but a text of some length, longer than the header of one, which "
	                        "has 100 bytes.");
	evrec_sink_options_init(&common);
	common.limits.max_age = 60 * EVREC_SECOND;
	begin(&life, &options, &common);
	record(&life, "web-0", "Started");
	for (int i = 0; i <= 60; i += 5) {
		poll_at(&life, T0 + i * EVREC_SECOND);
	}
	assert_int_equal(life.errors, 1);
	unit_check_contains(life.error, "is not an event store of evrec");
	poll_at(&life, T0 + 62 * EVREC_SECOND);
	poll_at(&life, T0 + 62 * EVREC_SECOND);
	assert_true(evrec_watch_get_sink_stats(life.watch, &stats));
	assert_int_equal(stats.dropped[EVREC_CAUSE_EXPIRED], 1);
	assert_int_equal(stats.pending, 0);
	end(&life);
}

static evrec_store_options options_of_notes(const char *path)
{
	evrec_store_options options = options_of(path);

	options.occurrences = options.suppressions = true;
	return options;
}

static void test_notes_wait_for_a_store_that_cannot_be_written(void **state)
{
	const char *folder = tmpdir_path(*state, "missing"), *path = tmpdir_path(*state, "missing/events.db");
	const evrec_store_options options = options_of_notes(path);
	struct life life;

	begin(&life, &options, NULL);
	for (int i = 0; i < 100; i++) {
		record(&life, "web-0", "Started");
		poll_at(&life, T0 + i * EVREC_SECOND / 10);
	}
	assert_int_equal(mkdir(folder, 0755), 0);
	poll_at(&life, T0 + 60 * EVREC_SECOND);
	assert_int_equal(store_fixture_ask(path, EVENTS), 1);
	assert_int_equal(store_fixture_ask(path, OCCURRENCES), 100);
	/* client-go's burst is 25. */
	assert_int_equal(store_fixture_ask(path, LIMITED), 75);
	end(&life);
}

static void test_the_end_writes_the_notes_that_wait(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_store_options options = options_of_notes(path);
	struct life life;

	begin(&life, &options, NULL);
	record(&life, "web-0", "Started");
	poll_at(&life, T0);
	for (int i = 0; i < 3000; i++) {
		record(&life, "web-0", "Started");
	}
	end(&life);
	assert_int_equal(store_fixture_ask(path, OCCURRENCES), 3001);
	assert_int_equal(store_fixture_ask(path, LIMITED), 3001 - 25);
}

static void test_notes_that_the_end_cannot_write_are_lost(void **state)
{
	const char *path = tmpdir_path(*state, "missing/events.db");
	const evrec_store_options options = options_of_notes(path);
	evrec_sink_stats stats;
	struct life life;

	begin(&life, &options, NULL);
	for (int i = 0; i < 30; i++) {
		record(&life, "web-0", "Started");
	}
	(void)evrec_broadcaster_shutdown(life.b, 0, NULL);
	assert_true(evrec_watch_get_sink_stats(life.watch, &stats));
	/* 30 occurrences, 5 of which had no token, and the drop of those that waited. */
	assert_int_equal(stats.notes_lost, 30 + 5 + 25);
	assert_true(life.told_notes);
	/* The reason is the last error, which flush and shutdown tell. */
	assert_string_equal(life.name, "store");
	unit_check_contains(life.error, "No such file or directory");
	end(&life);
}

static void test_a_thread_writes_notes_that_no_event_goes_with(void **state)
{
	const struct timespec moment = { 0, EVREC_SECOND / 100 };
	const int64_t deadline = unit_mono() + SOON;
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_store_options options = options_of_notes(path);
	struct life life;

	begin_by(&life, &options, NULL, EVREC_DRIVE_THREAD);
	for (int i = 0; i < 25; i++) {
		record(&life, "web-0", "Started");
	}
	assert_int_equal(evrec_broadcaster_flush(life.b, SOON, NULL), 0);
	for (int i = 0; i < 25; i++) {
		record(&life, "web-0", "Started");
	}
	evrec_clock_set(life.clock, T0 + 2 * EVREC_SECOND);
	while (store_fixture_ask(path, LIMITED) != 25 && unit_mono() < deadline) {
		(void)nanosleep(&moment, NULL);
	}
	assert_int_equal(store_fixture_ask(path, LIMITED), 25);
	end(&life);
}

static void test_wrong_options_are_refused(void **state)
{
	static const struct {
		const char *path;
		int64_t keep;
		size_t keep_bytes;
		const char *why;
	} wrong[] = {
		{ "", EVREC_SECOND, 0, "path: must be the name of a file" },
		{ "x", EVREC_SECOND - 1, 0, "keep: must be at least 1 s" },
		{ "x", EVREC_SECOND, 1000, "keep_bytes: must be at least 1048576" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		evrec_store_options options = options_of(wrong[i].path);
		evrec_error err;

		options.keep = wrong[i].keep;
		options.keep_bytes = wrong[i].keep_bytes;
		assert_null(evrec_sink_store(&options, NULL, &err));
		assert_int_equal(err.code, EVREC_EINVALID);
		assert_string_equal(err.message, wrong[i].why);
	}
}

/* A sink's thread writes; the child that is forked meanwhile writes what it records itself. */
static void test_a_forked_child_writes_its_own(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_store_options options = options_of(path);
	struct life life;
	pid_t child;

	begin(&life, &options, NULL);
	record(&life, "web-0", "Started");
	evrec_broadcaster_poll(life.b);
	child = fork();
	if (child == 0) {
		record(&life, "web-1", "Started");
		_exit(evrec_broadcaster_shutdown(life.b, SOON, NULL) == 0 ? 0 : 1);
	}
	assert_int_equal(unit_wait(child), 0);
	record(&life, "web-2", "Started");
	evrec_broadcaster_poll(life.b);
	assert_int_equal(store_fixture_ask(path, EVENTS), 3);
	end(&life);
}

/* At the end of the time of a clock, which a fake one may reach, the store's work is due then, and not in the past. */
static void test_work_is_due_later_at_the_end_of_time(void **state)
{
	evrec_store_options options = options_of(tmpdir_path(*state, "events.db"));
	struct life life;

	options.occurrences = true;
	begin(&life, &options, NULL);
	poll_at(&life, INT64_MAX - EVREC_SECOND / 2);
	for (int i = 0; i < 2; i++) {
		record(&life, "web-0", "Started");
		evrec_broadcaster_poll(life.b);
		evrec_broadcaster_poll(life.b);
		assert_true(evrec_broadcaster_poll_delay(life.b) > EVREC_SECOND / 100);
	}
	assert_int_equal(life.errors, 0);
	end(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_occurrences_of_an_event_are_one_row),
		TMPDIR_TEST(test_a_series_ends_as_one_row_with_its_last_time),
		TMPDIR_TEST(test_events_expire_by_the_clock),
		TMPDIR_TEST(test_a_missing_folder_is_told_and_tried_again),
		TMPDIR_TEST(test_a_store_that_stays_damaged_drops_by_max_age),
		TMPDIR_TEST(test_notes_wait_for_a_store_that_cannot_be_written),
		TMPDIR_TEST(test_the_end_writes_the_notes_that_wait),
		TMPDIR_TEST(test_notes_that_the_end_cannot_write_are_lost),
		TMPDIR_TEST(test_a_thread_writes_notes_that_no_event_goes_with),
		TMPDIR_TEST(test_wrong_options_are_refused),
		TMPDIR_TEST(test_a_forked_child_writes_its_own),
		TMPDIR_TEST(test_work_is_due_later_at_the_end_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A sink with a minimum interval: answers that come late, its own thread, a restart, no memory, and random times. */
#include "recorder_fixture.h"
#include "tmpdir.h"

#include "alloc_failure.h"
#include "no_memory_recorder.h"

#include "outbox/entry.h"
#include "sender/sender.h"
#include "sink/sink.h"

#define S EVREC_SECOND
#define INTERVAL (60 * S)

static void start(struct recorder_fixture *f)
{
	evrec_correlator_options options;
	evrec_watch *watch;

	evrec_correlator_options_init(&options);
	options.burst_size = 1000000;
	f->sink->min_interval = INTERVAL;
	watch = evrec_broadcaster_start_recording_to_sink(f->b, f->sink, &options, NULL);
	assert_non_null(watch);
	evrec_watch_free(watch);
}

static void record(struct recorder_fixture *f, const char *object)
{
	assert_int_equal(recorder_fixture_record(f, object, "R", "m"), 0);
}

/* Polls at T0 + `after` ns. */
static void poll_at(struct recorder_fixture *f, int64_t after)
{
	evrec_clock_set(f->clock, T0 + after);
	checked_poll(f->b);
}

/* ---- a sink that answers when it is told to ---- */

struct slow_sink {
	evrec_sink base;
	struct outcome outcome; /* of the next answer */
	bool answers;
	unsigned sent;
	enum verb verb; /* of the last write that was sent, */
	int32_t count;  /* its count, */
	char name[64];  /* name, */
	char resource_version[16];
};

struct slow_protocol {
	struct protocol base;
	struct slow_sink *sink;
	struct entry *held;
};

static void slow_send(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n)
{
	struct slow_protocol *slow = (struct slow_protocol *)p;
	const evrec_fields fields = write_fields(entries[0]->item, BODY_WHOLE);
	struct slow_sink *sink = slow->sink;

	(void)s;
	assert_int_equal(n, 1);
	slow->held = entries[0];
	sink->sent++;
	sink->verb = entries[0]->verb;
	sink->count = fields.count;
	(void)snprintf(sink->name, sizeof(sink->name), "%.*s", (int)fields.name.len, fields.name.data);
	(void)snprintf(sink->resource_version, sizeof(sink->resource_version), "%.*s", (int)fields.resource_version.len,
	               fields.resource_version.len != 0 ? fields.resource_version.data : "");
}

static void slow_step(struct protocol *p, struct sender *s, int64_t timeout)
{
	struct slow_protocol *slow = (struct slow_protocol *)p;
	struct entry *entry = slow->held;

	(void)timeout;
	if (entry != NULL && slow->sink->answers) {
		slow->held = NULL;
		sender_answered(s, entry, &slow->sink->outcome);
		sender_request_ended(s, REQUEST_SUCCEEDED, 0);
	}
}

static void slow_free(struct protocol *p)
{
	evrec_sink_release(&((struct slow_protocol *)p)->sink->base);
	mem_free(p);
}

static struct protocol *slow_open(evrec_sink *sink, evrec_error *err)
{
	static const struct protocol_ops ops = { .send = slow_send, .step = slow_step, .free = slow_free };
	struct slow_protocol *slow = mem_zalloc(sizeof(*slow));

	(void)err;
	slow->base = (struct protocol){ .ops = &ops, .max_batch = 1, .max_in_flight = 1 };
	slow->sink = (struct slow_sink *)evrec_sink_retain(sink);
	return &slow->base;
}

static struct slow_sink *start_slow(struct recorder_fixture *f)
{
	struct slow_sink *sink = sink_new(sizeof(*sink), NULL, NULL);

	assert_non_null(sink);
	sink->base.kind = "slow";
	sink->base.open = slow_open;
	evrec_sink_release(f->sink);
	f->sink = &sink->base;
	start(f);
	return sink;
}

/* The event is created under another name than it was sent with. */
static void test_a_deferred_write_has_the_name_of_the_answer(void **state)
{
	struct recorder_fixture *f = *state;
	struct slow_sink *sink = start_slow(f);
	evrec_sink_stats s;

	record(f, "a");
	checked_poll(f->b);
	poll_at(f, 10 * S);
	record(f, "a");
	checked_poll(f->b);
	s = stats_check_equations(f->b);
	assert_true(sink->sent == 1 && s.pending == 1 && s.counted == 1);
	sink->answers = true;
	memcpy(sink->outcome.name, "by-server", sizeof("by-server"));
	memcpy(sink->outcome.resource_version, "7", sizeof("7"));
	poll_at(f, 20 * S);
	s = stats_check_equations(f->b);
	assert_true(s.created == 1 && s.pending == 0 && s.counted == 1);
	record(f, "a");
	poll_at(f, INTERVAL);
	checked_poll(f->b);
	assert_true(sink->sent == 2 && sink->verb == VERB_PATCH && sink->count == 3);
	assert_string_equal(sink->name, "by-server");
	/* The first write that is made after the answer has its resource version, too. */
	record(f, "a");
	poll_at(f, 2 * INTERVAL);
	checked_poll(f->b);
	assert_true(sink->sent == 3 && sink->count == 4);
	assert_string_equal(sink->name, "by-server");
	assert_string_equal(sink->resource_version, "7");
}

/* The create that it follows was dropped, so it creates the event. */
static void test_a_deferred_write_behind_a_dropped_create_is_a_create(void **state)
{
	struct recorder_fixture *f = *state;
	struct slow_sink *sink = start_slow(f);
	evrec_sink_stats s;

	record(f, "a");
	checked_poll(f->b);
	record(f, "a");
	sink->answers = true;
	sink->outcome = (struct outcome){ .verdict = VERDICT_DROP, .cause = EVREC_CAUSE_REJECTED };
	checked_poll(f->b);
	s = stats_check_equations(f->b);
	assert_true(s.dropped[EVREC_CAUSE_REJECTED] == 1 && s.counted == 1);
	sink->outcome = (struct outcome){ 0 };
	poll_at(f, INTERVAL);
	checked_poll(f->b);
	assert_true(sink->sent == 2 && sink->verb == VERB_CREATE && sink->count == 2);
}

/* A write that is tried again takes in what was counted while it was under way. */
static void test_a_retry_takes_in_what_is_counted(void **state)
{
	struct recorder_fixture *f = *state;
	struct slow_sink *sink = start_slow(f);
	evrec_sink_stats s;

	record(f, "a");
	checked_poll(f->b);
	record(f, "a");
	sink->answers = true;
	sink->outcome = (struct outcome){ .verdict = VERDICT_RETRY };
	checked_poll(f->b);
	s = stats_check_equations(f->b);
	assert_true(s.pending == 2 && s.pending_writes == 1 && s.counted == 0);
	sink->outcome = (struct outcome){ 0 };
	poll_at(f, 30 * S);
	checked_poll(f->b);
	assert_true(sink->sent == 2 && sink->verb == VERB_CREATE && sink->count == 2);
	poll_at(f, 2 * INTERVAL);
	checked_poll(f->b);
	assert_int_equal(sink->sent, 2);
}

/* ---- a thread, and a restart ---- */

static void wait_for(const struct recorder_fixture *f, uint64_t created, uint64_t patched)
{
	const int64_t deadline = unit_mono() + SOON;
	evrec_sink_stats s;

	do {
		s = stats_check_equations(f->b);
		assert_true(unit_mono() < deadline);
		(void)usleep(500);
	} while (s.created != created || s.patched != patched);
}

/* The embedder's thread calls nothing that writes from the second occurrence on. */
static void test_a_thread_writes_in_time(void **state)
{
	struct recorder_fixture *f = *state;

	evrec_sink_release(f->sink);
	f->sink = evrec_sink_file(EVREC_STR("/dev/null"), NULL, NULL);
	start(f);
	record(f, "a");
	wait_for(f, 1, 0);
	record(f, "a");
	assert_int_equal(stats_check_equations(f->b).counted, 1);
	evrec_clock_set(f->clock, T0 + INTERVAL);
	wait_for(f, 1, 1);
}

static void record_to_file(struct recorder_fixture *f, evrec_str path)
{
	evrec_sink_options common;

	evrec_sink_options_init(&common);
	common.state_file = path;
	evrec_sink_release(f->sink);
	f->sink = evrec_sink_new(&recorder_fixture_sink_ops, f, &common, NULL);
	start(f);
	record(f, "a");
	checked_poll(f->b);
}

/* The count survives, the time does not. */
static void test_after_a_restart_the_first_count_is_written_at_once(void **state)
{
	struct recorder_fixture *lives[2];
	const evrec_str path = str_from(tmpdir_path(*state, "state"));

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(recorder_fixture_setup((void **)&lives[i]), 0);
		record_to_file(lives[i], path);
		assert_int_equal(lives[i]->last_count, i == 0 ? 1 : 3);
		record(lives[i], "a");
		checked_poll(lives[i]->b);
		assert_int_equal(stats_check_equations(lives[i]->b).counted, 1);
		assert_int_equal(checked_shutdown(lives[i]->b, S), 0);
		assert_int_equal(lives[i]->last_count, i == 0 ? 2 : 4);
		(void)recorder_fixture_teardown((void **)&lives[i]);
	}
}

/* ---- memory, and chance ---- */

static void without_memory(void)
{
	struct recorder_fixture f = { .status = 201 };
	struct no_memory_recorder base = { 0 };
	evrec_broadcaster_options options;
	uint64_t dropped = 0;
	evrec_error err;

	evrec_broadcaster_options_init(&options);
	alloc_failure_arm();
	if (no_memory_recorder_open(&base, &options)) {
		evrec_sink *sink = evrec_sink_new(&recorder_fixture_sink_ops, &f, NULL, &err);

		alloc_failure_check_error(sink != NULL, &err);
		if (sink != NULL) {
			sink->min_interval = INTERVAL;
			evrec_watch_free(no_memory_recorder_start(&base, sink, NULL));
			evrec_sink_release(sink);
		}
		for (int i = 0; i < 12; i++) {
			const int code = no_memory_recorder_record(&base, EVREC_STR("a"), EVREC_STR("m"), &err);
			const uint64_t lost = stats_check_equations(base.b).dropped[EVREC_CAUSE_MEMORY];

			alloc_failure_check(code == 0 && lost == dropped);
			dropped = lost;
			evrec_clock_set(base.clock, T0 + i * 15 * S);
			checked_poll(base.b);
		}
		(void)checked_flush(base.b, 0);
		alloc_failure_disarm();
		assert_int_equal(no_memory_recorder_record(&base, EVREC_STR("a"), EVREC_STR("m"), &err), 0);
		(void)checked_shutdown(base.b, 0);
		assert_int_equal(stats_check_equations(base.b).pending, 0);
	}
	no_memory_recorder_close(&base);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(without_memory, 20);
}

/* Each second is polled. An event is written at most once in the interval, but for flushes, and all of it in the end. */
static void test_random_times(void **state)
{
	static const char *const objects[] = { "a", "b", "c" };
	struct recorder_fixture *f = *state;
	uint64_t random = unit_seed();
	int32_t counts[3] = { 0 };
	int64_t earliest[3] = { 0 };
	bool waits[3] = { false };

	start(f);
	for (int64_t second = 0; second < 20000; second++) {
		const unsigned at = (unsigned)(unit_random(&random) % 3);
		const bool flushes = unit_random(&random) % 300 == 0;
		unsigned due = 0;

		evrec_clock_set(f->clock, T0 + second * S);
		if (unit_random(&random) % (1 + (uint64_t)at * 40) == 0) {
			record(f, objects[at]);
			counts[at]++;
			waits[at] = true;
		}
		f->creates = f->patches = 0;
		(void)(flushes ? checked_flush(f->b, 0) : (checked_poll(f->b), 0));
		for (unsigned i = 0; i < 3; i++) {
			if (waits[i] && (flushes || second >= earliest[i])) {
				due++;
				earliest[i] = second + 60;
				waits[i] = false;
			}
		}
		assert_int_equal(f->creates + f->patches, due);
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(checked_flush(f->b, 0), 0);
		record(f, objects[i]);
		assert_int_equal(checked_flush(f->b, 0), 0);
		assert_int_equal(f->last_count, counts[i] + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First, as a thread of an earlier test may still free memory while this one changes the allocator. */
		cmocka_unit_test(test_no_memory),
		RECORDER_TEST(test_a_deferred_write_has_the_name_of_the_answer),
		RECORDER_TEST(test_a_deferred_write_behind_a_dropped_create_is_a_create),
		RECORDER_TEST(test_a_retry_takes_in_what_is_counted),
		RECORDER_TEST(test_a_thread_writes_in_time),
		TMPDIR_TEST(test_after_a_restart_the_first_count_is_written_at_once),
		RECORDER_TEST(test_random_times),
	};

	return cmocka_run_group_tests_name("min_interval_life", tests, NULL, NULL);
}

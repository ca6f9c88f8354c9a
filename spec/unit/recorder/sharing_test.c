/* Two broadcasters of one process that share one recorder, driven by polls: the first is the owner. */
#include "sharing_fixture.h"

#include <poll.h>
#include <pthread.h>

#include "alloc_failure.h"
#include "recorder/sharing_inner.h"

static void test_drops_are_told_where_the_event_was_recorded(void **state)
{
	struct sharing_fixture f;

	sharing_fixture_open(&f, tmpdir_path(*state, "events"), 1);
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	assert_int_equal(side_record(&f.sides[1], "b"), 0);
	sharing_fixture_poll(&f, 6);
	assert_int_equal(f.sides[1].drops, 1);
	assert_string_equal(f.sides[1].why, "rate_limited");
	assert_int_equal(f.sides[0].drops, 0);
	assert_int_equal(side_stats(&f.sides[1]).forwarded, 1);
	assert_int_equal(side_stats(&f.sides[1]).rate_limited, 1);
	assert_int_equal(side_stats(&f.sides[1]).received, 2);
	/* The owner's own are told to the owner. */
	assert_int_equal(side_record(&f.sides[0], "c"), 0);
	sharing_fixture_poll(&f, 2);
	assert_int_equal(f.sides[0].drops, 1);
	assert_int_equal(f.sides[1].drops, 1);
	sharing_fixture_close(&f);
}

/* An owner, and a process that has recorded an event, and whose options differ. */
static void open_refused(struct sharing_fixture *f, const char *path)
{
	sharing_fixture_init(f);
	for (unsigned i = 0; i < 2; i++) {
		const evrec_broadcaster_options options = sharing_fixture_options(f, i, &f->sides[i]);

		assert_true(side_open(&f->sides[i], &options, path, 25 - i));
		if (i == 0) {
			evrec_broadcaster_poll(f->sides[0].b);
		}
	}
	assert_int_equal(side_record(&f->sides[1], "a"), 0);
	sharing_fixture_poll(f, 6);
}

static void test_process_with_other_options_is_refused(void **state)
{
	struct sharing_fixture f;

	open_refused(&f, tmpdir_path(*state, "events"));
	assert_int_equal(f.sides[1].errors, 1);
	assert_string_equal(f.sides[1].error_name, "share_refused");
	unit_check_contains(f.sides[1].error, "option 'burst_size' differs");
	assert_int_equal(side_stats(&f.sides[1]).pending, 1);
	assert_int_equal(evrec_broadcaster_flush(f.sides[1].b, 1, NULL), EVREC_ETIMEOUT);
	sharing_fixture_close(&f);
}

/* The owner has other options, as of a configuration that was read later or before. */
static void test_refused_process_that_is_shut_down_writes(void **state)
{
	struct sharing_fixture f;

	open_refused(&f, tmpdir_path(*state, "events"));
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[1].b, SOON, NULL), 0);
	assert_int_equal(side_stats(&f.sides[1]).created, 1);
	assert_int_equal(f.sides[1].drops, 0);
	sharing_fixture_close(&f);
}

/* No process has written it, and the one that has recorded it becomes the owner. */
static void test_event_of_a_sink_that_was_stopped_is_told(void **state)
{
	evrec_broadcaster_options options;
	struct sharing_fixture f;

	sharing_fixture_init(&f);
	options = sharing_fixture_options(&f, 0, &f.sides[0]);
	options.share_client_only = true;
	assert_true(side_open(&f.sides[0], &options, tmpdir_path(*state, "events"), 25));
	assert_int_equal(side_record(&f.sides[0], "a"), 0);
	evrec_watch_stop(f.sides[0].watch);
	evrec_broadcaster_may_own(f.sides[0].b);
	for (unsigned i = 0; i < 6; i++) {
		evrec_broadcaster_poll(f.sides[0].b);
	}
	assert_int_equal(f.sides[0].drops, 1);
	assert_string_equal(f.sides[0].why, "closed");
	sharing_fixture_close(&f);
}

/* Nobody writes: a worker keeps as much as its sinks would. */
static void test_limits_of_a_sink_bound_a_worker(void **state)
{
	evrec_broadcaster_options options;
	evrec_sink_options common;
	struct sharing_fixture f;

	sharing_fixture_init(&f);
	evrec_sink_options_init(&common);
	common.limits.max_pending = 3;
	options = sharing_fixture_options(&f, 0, &f.sides[0]);
	options.share_client_only = true;
	assert_true(side_open_limited(&f.sides[0], &options, tmpdir_path(*state, "events"), &common));
	for (char note[] = "a"; note[0] <= 'e'; note[0]++) {
		assert_int_equal(side_record(&f.sides[0], note), 0);
	}
	assert_int_equal(side_stats(&f.sides[0]).pending, 3);
	assert_int_equal(side_stats(&f.sides[0]).dropped[EVREC_CAUSE_QUEUE_FULL], 2);
	assert_int_equal(f.sides[0].drops, 2);
	side_close(&f.sides[0]);
}

static void test_share_is_the_name_of_a_broadcaster_without_one(void **state)
{
	struct sharing_fixture f;
	evrec_broadcaster_options options;

	sharing_fixture_init(&f);
	for (size_t i = 0; i < 2; i++) {
		options = sharing_fixture_options(&f, i, &f.sides[i]);
		options.name = (evrec_str){ NULL, 0 };
		assert_true(side_open(&f.sides[i], &options, tmpdir_path(*state, "events"), 25));
		assert_int_equal(side_record(&f.sides[i], "a"), 0);
	}
	sharing_fixture_poll(&f, 3);
	assert_int_equal(side_stats(&f.sides[0]).created, 1);
	assert_int_equal(side_stats(&f.sides[0]).coalesced, 1);
	assert_int_equal(side_stats(&f.sides[1]).received, 2);
	sharing_fixture_close(&f);
}

static void test_worker_shut_down_alone_drops_and_tells(void **state)
{
	struct sharing_fixture f;

	sharing_fixture_open(&f, tmpdir_path(*state, "events"), 25);
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[1].b, 0, NULL), EVREC_ELOST);
	assert_int_equal(side_stats(&f.sides[1]).dropped[EVREC_CAUSE_CLOSED], 1);
	assert_int_equal(f.sides[1].drops, 1);
	assert_int_equal(side_record(&f.sides[1], "a"), EVREC_ECLOSED);
	sharing_fixture_close(&f);
}

struct busy {
	const struct side *side;
	atomic_uint recorded;
	atomic_bool stops;
};

static void *keep_recording(void *ctx)
{
	struct busy *busy = ctx;

	while (!atomic_load(&busy->stops)) {
		(void)side_record(busy->side, "a");
		atomic_fetch_add(&busy->recorded, 1);
	}
	return NULL;
}

/* Recording calls have their turn while an owner records many occurrences that a worker has handed over at once. */
static void test_recording_calls_do_not_wait_for_those_of_workers(void **state)
{
	struct busy busy = { .recorded = 0 };
	struct frame_event event = { .sinks = 0 };
	struct share_event e = { .event = &event, .n = 100000, .first = T0, .last = T0 };
	evrec_broadcaster_options options;
	struct sharing_fixture f;
	pthread_t thread;
	unsigned before;

	sharing_fixture_init(&f);
	options = sharing_fixture_options(&f, 0, &f.sides[0]);
	assert_true(side_open(&f.sides[0], &options, tmpdir_path(*state, "events"), 25));
	evrec_broadcaster_poll(f.sides[0].b);
	busy.side = &f.sides[0];
	evrec_fields_init(&event.fields);
	event.fields.regarding =
		(evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("p"), .ns = EVREC_STR("n") };
	event.fields.ns = EVREC_STR("n");
	event.fields.type = EVREC_STR("Normal");
	event.fields.reason = EVREC_STR("R");
	event.fields.note = EVREC_STR("b");
	assert_int_equal(pthread_create(&thread, NULL, keep_recording, &busy), 0);
	while (atomic_load(&busy.recorded) == 0) {
		(void)poll(NULL, 0, 1);
	}
	before = atomic_load(&busy.recorded);
	sharing_ops.record(f.sides[0].b->hub, &e);
	before = atomic_load(&busy.recorded) - before;
	atomic_store(&busy.stops, true);
	(void)pthread_join(thread, NULL);
	assert_true(before >= 20);
	side_close(&f.sides[0]);
}

/* ---- series ---- */

static void poll_three(struct sharing_fixture *f, const struct side *third, unsigned times)
{
	while (times-- > 0) {
		sharing_fixture_poll(f, 1);
		evrec_broadcaster_poll(third->b);
	}
}

/* One event goes on in an owner and two workers. */
static void test_series_goes_on_through_two_workers(void **state)
{
	static const unsigned turns[] = { 1, 2, 1, 0, 2, 2, 1 };
	const char *path = tmpdir_path(*state, "events");
	evrec_sink_options common;
	evrec_sink_stats s;
	struct side third;
	struct sharing_fixture f;

	sharing_fixture_init(&f);
	evrec_sink_options_init(&common);
	common.api = EVREC_SINK_EVENTS_V1;
	for (size_t i = 0; i < 3; i++) {
		struct side *side = i < 2 ? &f.sides[i] : &third;
		evrec_broadcaster_options options;

		*side = (struct side){ .b = NULL };
		options = sharing_fixture_options(&f, i, side);
		assert_true(side_open_limited(side, &options, path, &common));
		evrec_broadcaster_poll(side->b);
	}
	for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
		assert_int_equal(side_record(turns[i] < 2 ? &f.sides[turns[i]] : &third, "a"), 0);
		poll_three(&f, &third, 3);
	}
	s = side_stats(&f.sides[0]);
	assert_int_equal(s.received, 7);
	/* The first two are written at once; the series counts the rest. */
	assert_int_equal(s.created, 1);
	assert_int_equal(s.counted, 5);
	assert_int_equal(side_stats(&f.sides[1]).pending + side_stats(&third).pending, 4);
	assert_int_equal(tmpdir_last_number(path, "\"series\":{\"count\":"), 2);
	/* A worker's flush writes what is counted of all. */
	for (unsigned i = 0; i < 1000 && evrec_broadcaster_flush(third.b, 1, NULL) != 0; i++) {
		poll_three(&f, &third, 1);
		(void)poll(NULL, 0, 1);
	}
	poll_three(&f, &third, 3);
	s = side_stats(&f.sides[0]);
	assert_int_equal(s.counted + s.pending, 0);
	assert_int_equal(s.created + s.patched + s.coalesced, 7);
	assert_int_equal(tmpdir_last_number(path, "\"series\":{\"count\":"), 7);
	assert_int_equal(side_stats(&f.sides[1]).forwarded, 3);
	assert_int_equal(side_stats(&third).forwarded, 3);
	assert_int_equal(side_stats(&f.sides[1]).pending + side_stats(&third).pending, 0);
	side_close(&third);
	sharing_fixture_close(&f);
}

/* ---- memory ---- */

static const char *memory_path;

/* Whatever fails, each recorded event ends somewhere. */
static void scenario(void)
{
	struct sharing_fixture f;
	bool ok = true;
	uint64_t recorded = 0;

	sharing_fixture_init(&f);
	alloc_failure_arm();
	for (size_t i = 0; i < 2 && ok; i++) {
		const evrec_broadcaster_options options = sharing_fixture_options(&f, i, &f.sides[i]);

		ok = side_open(&f.sides[i], &options, memory_path, 25);
		alloc_failure_check(ok);
		if (ok) {
			evrec_broadcaster_poll(f.sides[i].b);
		}
	}
	if (ok) {
		sharing_fixture_poll(&f, 3);
		recorded = side_record(&f.sides[1], "a") == 0;
		recorded += side_record(&f.sides[1], "a") == 0;
		sharing_fixture_poll(&f, 4);
		alloc_failure_ignore();
	}
	alloc_failure_disarm();
	if (ok) {
		evrec_sink_stats s;

		/* A worker whose connection could not be made tries again after some real time; what it has may be dropped. */
		(void)evrec_broadcaster_shutdown(f.sides[1].b, 0, NULL);
		s = side_stats(&f.sides[1]);
		assert_int_equal(s.pending, 0);
		assert_true(s.received >= recorded);
		/* Else what it has not written is written in the background. */
		(void)evrec_broadcaster_shutdown(f.sides[0].b, 0, NULL);
	}
	alloc_failure_ignore();
	sharing_fixture_close(&f);
}

static void test_no_memory(void **state)
{
	memory_path = tmpdir_path(*state, "events");
	alloc_failure_run(scenario, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_drops_are_told_where_the_event_was_recorded),
		TMPDIR_TEST(test_process_with_other_options_is_refused),
		TMPDIR_TEST(test_refused_process_that_is_shut_down_writes),
		TMPDIR_TEST(test_event_of_a_sink_that_was_stopped_is_told),
		TMPDIR_TEST(test_limits_of_a_sink_bound_a_worker),
		TMPDIR_TEST(test_share_is_the_name_of_a_broadcaster_without_one),
		TMPDIR_TEST(test_worker_shut_down_alone_drops_and_tells),
		TMPDIR_TEST(test_recording_calls_do_not_wait_for_those_of_workers),
		TMPDIR_TEST(test_series_goes_on_through_two_workers),
		TMPDIR_TEST(test_no_memory),
	};

	return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}

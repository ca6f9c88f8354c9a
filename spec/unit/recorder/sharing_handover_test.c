/* The owner of a shared recorder ends in order: what the next one has of it, and what is left to the workers. */
#include "sharing_fixture.h"

#include <poll.h>
#include <sys/stat.h>

#include "alloc_failure.h"
#include "base/file.h"

static void check_in_file(const char *path, const char *words)
{
	struct buf text = { 0 };

	assert_true(file_read(path, 1 << 20, &text));
	unit_check_contains(buf_cstr(&text), words);
	buf_free(&text);
}

static void end_owner(struct sharing_fixture *f)
{
	assert_int_equal(evrec_broadcaster_shutdown(f->sides[0].b, SOON, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		evrec_broadcaster_poll(f->sides[1].b);
	}
}

/* A worker still has the event that an owner could not write before its end. */
static void test_owner_that_ends_leaves_what_it_cannot_write(void **state)
{
	struct sharing_fixture f;

	sharing_fixture_open(&f, "/dev/full", 25);
	(void)state;
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	sharing_fixture_poll(&f, 6);
	assert_int_equal(side_stats(&f.sides[1]).pending, 1);
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[0].b, 0, NULL), 0);
	assert_int_equal(side_stats(&f.sides[0]).forwarded, 1);
	assert_int_equal(side_stats(&f.sides[0]).dropped[EVREC_CAUSE_CLOSED], 0);
	sharing_fixture_poll(&f, 6);
	assert_int_equal(f.sides[0].drops + f.sides[1].drops, 0);
	assert_int_equal(side_stats(&f.sides[1]).pending, 1);
	sharing_fixture_close(&f);
}

/* One write has occurrences of both: the owner's own are lost with it, and only they are told. */
static void test_owner_that_ends_loses_its_part_of_a_write(void **state)
{
	struct sharing_fixture f;

	sharing_fixture_open(&f, "/dev/full", 25);
	(void)state;
	assert_int_equal(side_record(&f.sides[0], "a"), 0);
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	sharing_fixture_poll(&f, 6);
	assert_int_equal(side_record(&f.sides[0], "a"), 0);
	assert_int_equal(side_stats(&f.sides[0]).pending, 3);
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[0].b, 0, NULL), EVREC_ELOST);
	assert_int_equal(side_stats(&f.sides[0]).forwarded, 1);
	assert_int_equal(side_stats(&f.sides[0]).dropped[EVREC_CAUSE_CLOSED], 2);
	assert_int_equal(f.sides[0].drops, 1);
	assert_string_equal(f.sides[0].why, "closed");
	sharing_fixture_poll(&f, 6);
	assert_int_equal(f.sides[1].drops, 0);
	assert_int_equal(side_stats(&f.sides[1]).pending, 1);
	sharing_fixture_close(&f);
}

static void test_the_next_owner_counts_on(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	struct sharing_fixture f;

	sharing_fixture_open(&f, path, 25);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(side_record(&f.sides[0], "a"), 0);
		sharing_fixture_poll(&f, 2);
	}
	end_owner(&f);
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	assert_int_equal(evrec_broadcaster_flush(f.sides[1].b, SOON, NULL), 0);
	assert_int_equal(side_stats(&f.sides[1]).created, 0);
	assert_int_equal(side_stats(&f.sides[1]).patched, 1);
	check_in_file(path, "\"count\":6");
	sharing_fixture_close(&f);
}

static void test_the_next_owner_has_no_new_tokens(void **state)
{
	struct sharing_fixture f;

	sharing_fixture_open(&f, tmpdir_path(*state, "events"), 2);
	assert_int_equal(side_record(&f.sides[0], "a"), 0);
	assert_int_equal(side_record(&f.sides[0], "b"), 0);
	end_owner(&f);
	assert_int_equal(side_record(&f.sides[1], "c"), 0);
	assert_int_equal(side_stats(&f.sides[1]).rate_limited, 1);
	assert_string_equal(f.sides[1].why, "rate_limited");
	sharing_fixture_close(&f);
}

static const char *memory_path;

/* The next owner goes on, if only with counts of its own. */
static void hand_over(void)
{
	struct sharing_fixture f;

	sharing_fixture_open(&f, memory_path, 25);
	assert_int_equal(side_record(&f.sides[0], "a"), 0);
	sharing_fixture_poll(&f, 2);
	alloc_failure_arm();
	(void)evrec_broadcaster_shutdown(f.sides[0].b, SOON, NULL);
	for (unsigned i = 0; i < 4; i++) {
		evrec_broadcaster_poll(f.sides[1].b);
	}
	alloc_failure_disarm();
	alloc_failure_ignore();
	assert_int_equal(side_record(&f.sides[1], "a"), 0);
	assert_int_equal(evrec_broadcaster_flush(f.sides[1].b, SOON, NULL), 0);
	assert_int_equal(side_stats(&f.sides[1]).created + side_stats(&f.sides[1]).patched, 1);
	sharing_fixture_close(&f);
}

static void test_no_memory_to_hand_over(void **state)
{
	memory_path = tmpdir_path(*state, "events");
	alloc_failure_run(hand_over, 5);
}

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

static void wait_for_size(const char *path, off_t more_than)
{
	const int64_t deadline = unit_mono() + SOON;

	while (size_of(path) <= more_than && unit_mono() < deadline) {
		(void)poll(NULL, 0, 1);
	}
	assert_true(size_of(path) > more_than);
}

/* The sink's thread goes on for a while, and writes the state when the share has been freed. */
static void test_owner_freed_while_its_state_is_to_be_written(void **state)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	const char *path = tmpdir_path(*state, "state");
	evrec_kubernetes_options server;
	evrec_broadcaster_options options;
	struct side side = { .b = NULL };
	struct sharing_fixture f;
	evrec_sink *sink;
	off_t before;

	sharing_fixture_init(&f);
	options = sharing_fixture_options(&f, 0, &side);
	evrec_kubernetes_options_init(&server);
	server.server = EVREC_STR("http://127.0.0.1:1");
	server.common.state_file = str_from(path);
	sink = evrec_sink_kubernetes(&server, NULL);
	side.b = evrec_broadcaster_new(&options, NULL);
	assert_non_null(side.b);
	side.watch = evrec_broadcaster_start_recording_to_sink(side.b, sink, NULL, NULL);
	side.r = evrec_recorder_new(side.b, &source, NULL);
	evrec_sink_release(sink);
	assert_int_equal(side_record(&side, "a"), 0);
	wait_for_size(path, 0);
	before = size_of(path);
	assert_int_equal(side_record(&side, "b"), 0);
	side_close(&side);
	wait_for_size(path, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_owner_that_ends_leaves_what_it_cannot_write),
		TMPDIR_TEST(test_owner_that_ends_loses_its_part_of_a_write),
		TMPDIR_TEST(test_the_next_owner_counts_on),
		TMPDIR_TEST(test_the_next_owner_has_no_new_tokens),
		TMPDIR_TEST(test_no_memory_to_hand_over),
		/* The last one, as a thread goes on after it, which allocates. */
		TMPDIR_TEST(test_owner_freed_while_its_state_is_to_be_written),
	};

	return cmocka_run_group_tests_name("sharing_handover", tests, NULL, NULL);
}

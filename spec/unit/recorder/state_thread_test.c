/* A state file that the sink's own thread writes, while the embedder's thread records as fast as it can. */
#include "state_life.h"
#include "tmpdir.h"

#include <time.h>
#include <unistd.h>

#define EVENTS 30000

static evrec_sink *file_sink(const char *path, const char *state_file)
{
	evrec_sink_options options;
	evrec_sink *sink;

	evrec_sink_options_init(&options);
	options.state_file = str_from(state_file);
	options.limits.max_pending = EVENTS;
	sink = evrec_sink_file(str_from(path), &options, NULL);
	assert_non_null(sink);
	return sink;
}

static void record(struct state_life *life, const char *object, const char *note)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = str_from(object), .ns = EVREC_STR("shop") };
	const evrec_emit emit = { .regarding = &pod,
		                  .type = EVREC_STR("Normal"),
		                  .reason = EVREC_STR("R"),
		                  .note = str_from(note),
		                  .timestamp = EVREC_UNSET };

	assert_int_equal(evrec_recorder_emit(life->r, &emit, NULL), 0);
}

static void wait_for_size(const char *path, off_t more_than)
{
	const struct timespec moment = { 0, EVREC_SECOND / 1000 };
	int64_t deadline = unit_mono() + SOON;

	while (state_life_size(path) <= more_than && unit_mono() < deadline) {
		(void)nanosleep(&moment, NULL);
	}
	assert_true(state_life_size(path) > more_than);
}

/* The embedder's thread never comes back. */
static void test_written_without_a_poll(void **state)
{
	const char *path = tmpdir_path(*state, "state"), *out = tmpdir_path(*state, "out");
	struct state_life life = { 0 };
	off_t size, out_size;

	state_life_begin_with(&life, file_sink(out, path), T0);
	record(&life, "a", "m");
	wait_for_size(path, 0);
	wait_for_size(out, 0);
	size = state_life_size(path);
	out_size = state_life_size(out);
	record(&life, "b", "m");
	wait_for_size(out, out_size);
	evrec_clock_set(life.clock, T0 + EVREC_SECOND);
	wait_for_size(path, size);
	state_life_end(&life);
	assert_int_equal(life.errors, 0);
}

/* Under the real clock a thread with nothing else to do sleeps until the state is due, a second after the last write. */
static void test_the_thread_wakes_for_the_state_alone(void **state)
{
	const char *path = tmpdir_path(*state, "state"), *out = tmpdir_path(*state, "out");
	struct state_life life = { 0 };
	off_t size, out_size;

	state_life_begin_under(&life, file_sink(out, path), evrec_clock_real());
	record(&life, "a", "m");
	wait_for_size(path, 0);
	wait_for_size(out, 0);
	size = state_life_size(path);
	out_size = state_life_size(out);
	record(&life, "b", "m");
	wait_for_size(out, out_size);
	wait_for_size(path, size);
	state_life_end(&life);
	assert_int_equal(life.errors, 0);
}

static void test_written_while_events_are_recorded(void **state)
{
	const char *path = tmpdir_path(*state, "state"), *out = tmpdir_path(*state, "out");
	struct state_life life = { 0 };
	char object[32], note[32];
	int64_t now = T0;

	state_life_begin_with(&life, file_sink(out, path), now);
	for (int i = 0; i < EVENTS; i++) {
		(void)snprintf(object, sizeof(object), "object-%d", i % 500);
		(void)snprintf(note, sizeof(note), "note %d", i % 7);
		record(&life, object, note);
		now += EVREC_SECOND / 50;
		evrec_clock_set(life.clock, now);
	}
	record(&life, "last", "m");
	state_life_end(&life);
	assert_int_equal(life.errors, 0);
	for (int n = 2; n < 5; n++) {
		life = (struct state_life){ 0 };
		state_life_begin_with(&life, file_sink(out, path), now);
		record(&life, "last", "m");
		state_life_end(&life);
		assert_int_equal(life.errors, 0);
		assert_int_equal(tmpdir_last_number(out, "\"count\":"), n);
	}
}

/* Freed while it still writes: the thread goes on alone, and owns the correlator. */
static void test_freed_without_a_shutdown(void **state)
{
	const char *path = tmpdir_path(*state, "state"), *out = tmpdir_path(*state, "out");
	struct state_life life = { 0 };
	int64_t deadline = unit_mono() + SOON;

	state_life_begin_with(&life, file_sink(out, path), T0);
	for (int i = 0; i < 1000; i++) {
		record(&life, "a", "m");
	}
	state_life_free(&life);
	do {
		life = (struct state_life){ 0 };
		state_life_begin_with(&life, file_sink(out, path), T0);
		record(&life, "a", "m");
		state_life_end(&life);
		/* The thread may not have given up the file yet. */
	} while (life.errors != 0 && unit_mono() < deadline);
	assert_int_equal(tmpdir_last_number(out, "\"count\":"), 1001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_written_without_a_poll),
		TMPDIR_TEST(test_the_thread_wakes_for_the_state_alone),
		TMPDIR_TEST(test_written_while_events_are_recorded),
		TMPDIR_TEST(test_freed_without_a_shutdown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

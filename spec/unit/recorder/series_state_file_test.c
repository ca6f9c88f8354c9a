/* A state file of a sink that combines events by series. */
#define _GNU_SOURCE

#include "state_life.h"
#include "tmpdir.h"

#include <signal.h>

#define FINISHED (720 * EVREC_SECOND) /* after the last occurrence, at the latest */

static char last_state[16];
static unsigned finished;

static void written(const evrec_fields *event)
{
	(void)snprintf(last_state, sizeof(last_state), "%.*s", (int)event->series_state.len, event->series_state.data);
	finished += strcmp(last_state, "Finished") == 0;
}

static void record(struct state_life *life, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		state_life_record(life, "a");
	}
}

static evrec_series_stats stats_of(const struct state_life *life)
{
	evrec_sink_stats stats;

	assert_true(evrec_broadcaster_get_sink_stats(life->b, 1, &stats));
	return stats.series;
}

/* A whole life, which ends in order, and leaves the event's name. */
static void live_once(const char *path, unsigned n, char name[64])
{
	struct state_life life;

	state_life_begin_series(&life, path, T0);
	record(&life, n);
	state_life_end(&life);
	assert_int_equal(life.count, n);
	assert_int_equal(life.errors, 0);
	memcpy(name, life.name, sizeof(life.name));
}

static void test_goes_on_after_an_end_in_order(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;
	char name[64];

	live_once(path, 5, name);
	state_life_begin_series(&life, path, T0 + 60 * EVREC_SECOND);
	assert_int_equal(stats_of(&life).ongoing, 1);
	record(&life, 1);
	assert_int_equal(life.creates, 0);
	assert_int_equal(life.patches, 1);
	assert_int_equal(life.count, 6);
	assert_string_equal(life.name, name);
	/* It is not Unknown any more: the next ones are counted. */
	record(&life, 3);
	assert_int_equal(life.patches, 1);
	state_life_end(&life);
	assert_int_equal(life.patches, 2);
	assert_int_equal(life.count, 9);
	assert_int_equal(life.errors, 0);
}

/* All was written before: nothing more is, and the end is told. */
static void test_not_seen_again(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;
	char name[64];

	live_once(path, 5, name);
	finished = 0;
	state_life_begin_series(&life, path, T0 + 60 * EVREC_SECOND);
	life.written = written;
	state_life_advance(&life, FINISHED);
	assert_int_equal(stats_of(&life).finished, 1);
	/* This sink shows states. */
	assert_int_equal(finished, 1);
	assert_int_equal(life.patches, 1);
	assert_int_equal(life.count, 5);
	state_life_end(&life);
	state_life_begin_series(&life, path, T0 + 60 * EVREC_SECOND + FINISHED);
	assert_int_equal(stats_of(&life).series, 0);
	state_life_end(&life);
	assert_int_equal(life.patches + life.creates, 0);
}

/* A life that counts more than it writes, and is killed once that is in its file. */
static void live_and_be_killed(const char *path, unsigned n)
{
	pid_t child = fork();

	if (child == 0) {
		struct state_life life;

		state_life_begin_series(&life, path, T0);
		record(&life, n);
		assert_int_equal(life.count, 2);
		state_life_advance(&life, EVREC_SECOND);
		(void)kill(getpid(), SIGKILL);
	}
	assert_int_equal(WTERMSIG(unit_wait(child)), SIGKILL);
}

static void test_counts_of_a_killed_process_are_written(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	live_and_be_killed(path, 7);
	finished = 0;
	state_life_begin_series(&life, path, T0 + 2 * EVREC_SECOND);
	life.written = written;
	assert_int_equal(life.patches, 0);
	state_life_advance(&life, FINISHED);
	assert_int_equal(life.creates, 0);
	assert_int_equal(life.patches, 1);
	assert_int_equal(life.count, 7);
	assert_int_equal(finished, 1);
	state_life_end(&life);
	assert_int_equal(life.patches, 1);
}

static void test_the_next_occurrence_of_a_killed_process(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	live_and_be_killed(path, 7);
	state_life_begin_series(&life, path, T0 + 2 * EVREC_SECOND);
	record(&life, 1);
	assert_int_equal(life.creates, 0);
	assert_int_equal(life.patches, 1);
	assert_int_equal(life.count, 8);
	state_life_advance(&life, FINISHED);
	state_life_end(&life);
	assert_int_equal(life.count, 8);
}

/* The end of a process with what was counted by the last one alone. */
static void test_a_flush_writes_what_the_last_process_counted(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	live_and_be_killed(path, 4);
	state_life_begin_series(&life, path, T0 + 2 * EVREC_SECOND);
	state_life_end(&life);
	assert_int_equal(life.patches, 1);
	assert_int_equal(life.count, 4);
	state_life_begin_series(&life, path, T0 + 3 * EVREC_SECOND);
	state_life_end(&life);
	assert_int_equal(life.patches, 0);
}

/* Occurrences that are dropped at the end are in the count that the next process writes. */
static void test_a_server_that_fails_at_the_end(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	state_life_begin_series(&life, path, T0);
	record(&life, 2);
	life.fails = true;
	record(&life, 3);
	assert_int_not_equal(evrec_broadcaster_shutdown(life.b, 0, NULL), 0);
	state_life_free(&life);
	state_life_begin_series(&life, path, T0 + EVREC_SECOND);
	state_life_end(&life);
	assert_int_equal(life.creates, 0);
	assert_int_equal(life.count, 5);
}

/* A file of a sink with the record style has nothing for series, and the other way round. */
static void test_a_file_of_the_other_style(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;

	state_life_live_once(path, T0);
	state_life_begin_series(&life, path, T0 + EVREC_SECOND);
	record(&life, 1);
	assert_int_equal(life.creates, 1);
	state_life_end(&life);
	assert_int_equal(life.errors, 0);
	state_life_check_next(path, T0 + EVREC_SECOND, 1);
}

/* In a child the file is the parent's; its series begin anew. */
static void test_a_forked_child(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct state_life life;
	pid_t child;

	state_life_begin_series(&life, path, T0);
	record(&life, 3);
	child = fork();
	if (child == 0) {
		life.creates = life.patches = 0;
		record(&life, 2);
		assert_int_equal(life.creates, 1);
		assert_int_equal(life.count, 2);
		state_life_end(&life);
		_exit(0);
	}
	assert_int_equal(unit_wait(child), 0);
	state_life_end(&life);
	assert_int_equal(life.count, 3);
	state_life_begin_series(&life, path, T0);
	record(&life, 1);
	assert_int_equal(life.count, 4);
	state_life_end(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_goes_on_after_an_end_in_order),
		TMPDIR_TEST(test_not_seen_again),
		TMPDIR_TEST(test_counts_of_a_killed_process_are_written),
		TMPDIR_TEST(test_the_next_occurrence_of_a_killed_process),
		TMPDIR_TEST(test_a_flush_writes_what_the_last_process_counted),
		TMPDIR_TEST(test_a_server_that_fails_at_the_end),
		TMPDIR_TEST(test_a_file_of_the_other_style),
		TMPDIR_TEST(test_a_forked_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

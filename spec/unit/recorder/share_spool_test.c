/* A shared recorder with a spool and no state file, while the server is away: nothing is lost, or counted twice. */
#include "sharing_fixture.h"

#include <jansson.h>
#include <poll.h>
#include <sys/stat.h>

#include "recorder/sharing_inner.h"

#define MANY 10 /* together with some more, fewer than there are tokens */

struct world {
	struct sharing_fixture f;
	char folder[256], path[280], spool[256]; /* until `folder` is made, no write succeeds */
	evrec_sink_options common;
	int64_t deadline;
};

static struct world *make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	sharing_fixture_init(&w->f);
	(void)snprintf(w->folder, sizeof(w->folder), "%s", tmpdir_path(*state, "folder"));
	(void)snprintf(w->path, sizeof(w->path), "%s/events", w->folder);
	(void)snprintf(w->spool, sizeof(w->spool), "%s", tmpdir_path(*state, "spool"));
	evrec_sink_options_init(&w->common);
	w->common.spool = str_from(w->spool);
	w->common.spool_after = 0;
	w->deadline = unit_mono() + SOON;
	return w;
}

static void finish(struct world *w)
{
	sharing_fixture_close(&w->f);
	free(w);
}

static struct side *open_side(struct world *w, size_t i)
{
	const evrec_broadcaster_options options = sharing_fixture_options(&w->f, i, &w->f.sides[i]);

	assert_true(side_open_limited(&w->f.sides[i], &options, w->path, &w->common));
	return &w->f.sides[i];
}

static void record(const struct side *side, unsigned n)
{
	while (n-- > 0) {
		assert_int_equal(side_record(side, "no server is up"), 0);
	}
}

/* Nothing here happens at once, as the disk takes its time. */
static void poll_sides(const struct world *w)
{
	assert_true(unit_mono() < w->deadline);
	for (size_t i = 0; i < 2; i++) {
		if (w->f.sides[i].b != NULL) {
			evrec_broadcaster_poll(w->f.sides[i].b);
		}
	}
	(void)poll(NULL, 0, 1);
}

static enum evrec_share_role role(const struct side *side)
{
	return sharing_role(side->b->hub);
}

/* One event with that count, which never went back. */
static void check_written(const struct world *w, json_int_t count)
{
	FILE *file = fopen(w->path, "r");
	json_t *names = json_object();
	json_int_t last = 0;
	char line[8192];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		json_t *event = json_loads(line, 0, NULL), *metadata = json_object_get(event, "metadata");
		const json_int_t n = json_integer_value(json_object_get(event, "count"));

		(void)json_object_set(names, json_string_value(json_object_get(metadata, "name")), json_true());
		assert_true(n >= last);
		last = n;
		json_decref(event);
	}
	(void)fclose(file);
	assert_int_equal(json_object_size(names), 1);
	json_decref(names);
	assert_int_equal(last, count);
}

/* The server is back. */
static void check_at_last(struct world *w, const struct side *side, json_int_t count)
{
	assert_int_equal(mkdir(w->folder, 0700), 0);
	assert_int_equal(evrec_broadcaster_flush(side->b, SOON, NULL), 0);
	check_written(w, count);
}

/* ---- the owner is killed ---- */

static bool state_has_all(const struct side *side)
{
	const struct pipeline *pipeline = sharing_sink_at(side->b->hub, 0)->pipeline;

	return pipeline_state_has(pipeline, pipeline_state_changes(pipeline));
}

/*
 * Records `before`, and after the state has those and MANY of the worker, `after`; and is killed. `acks`: only once the
 * worker was told that the spool has its occurrences.
 */
static void own_until_killed(struct world *w, int ready, int told, unsigned before, unsigned after)
{
	struct side *side = open_side(w, 0);
	struct pollfd polled = { .fd = told, .events = POLLIN };

	(void)alarm(60); /* the test may have failed meanwhile */
	while (role(side) != EVREC_SHARE_OWNER) {
		evrec_broadcaster_poll(side->b);
	}
	record(side, before);
	evrec_broadcaster_poll(side->b);
	(void)!write(ready, "r", 1);
	while (side_stats(side).received < before + MANY || !state_has_all(side)) {
		evrec_broadcaster_poll(side->b);
	}
	while (told >= 0 && poll(&polled, 1, 1) == 0) {
		evrec_broadcaster_poll(side->b);
	}
	record(side, after);
	(void)kill(getpid(), SIGKILL);
}

/* `waits`: the worker waits for its acknowledgements before the owner is killed. Returns the worker, now the owner. */
static const struct side *hand_over_and_kill(struct world *w, unsigned before, unsigned after, bool waits)
{
	const struct side *side;
	int ready[2], told[2], status = 0;
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		own_until_killed(w, ready[1], waits ? told[0] : -1, before, after);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	side = open_side(w, 1);
	record(side, MANY);
	while (waits && side_stats(side).forwarded < MANY) {
		poll_sides(w);
	}
	assert_int_equal(write(told[1], "t", 1), 1);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		poll_sides(w);
	}
	(void)close(told[0]);
	(void)close(told[1]);
	assert_true(WIFSIGNALED(status));
	while (role(side) != EVREC_SHARE_OWNER) {
		poll_sides(w);
	}
	return side;
}

static void test_killed_owner_leaves_each_occurrence_once(void **state)
{
	struct world *w = make(state);
	const struct side *side;

	w->common.spool_after = 3600 * EVREC_SECOND;
	side = hand_over_and_kill(w, 0, 0, false);
	record(side, 2);
	check_at_last(w, side, MANY + 2);
	assert_string_not_equal(side->error_name, "share");
	finish(w);
}

static void test_killed_owner_leaves_what_the_spool_has(void **state)
{
	struct world *w = make(state);
	const struct side *side = hand_over_and_kill(w, 0, 0, true);

	record(side, 2);
	check_at_last(w, side, MANY + 2);
	finish(w);
}

/* Some occurrences of the killed owner are in no state, no row and no other process. The journal has them. */
static void check_own_occurrences(struct world *w)
{
	const struct side *side;

	w->common.spool_after = 3600 * EVREC_SECOND;
	side = hand_over_and_kill(w, 3, 4, false);
	record(side, 2);
	check_at_last(w, side, 3 + MANY + 4 + 2);
	finish(w);
}

static void test_killed_owner_leaves_what_it_had_recorded_itself(void **state)
{
	check_own_occurrences(make(state));
}

/* A shared sink with a state file alone has a spool beside it. */
static void test_killed_owner_with_a_state_file_leaves_what_it_had_recorded_itself(void **state)
{
	struct world *w = make(state);
	char path[280];

	(void)snprintf(path, sizeof(path), "%s", tmpdir_path(*state, "known"));
	w->common.spool = (evrec_str){ NULL, 0 };
	w->common.state_file = str_from(path);
	check_own_occurrences(w);
}

/* ---- the owner lives, or ends in order ---- */

static void start_both(struct world *w)
{
	(void)open_side(w, 0);
	evrec_broadcaster_poll(w->f.sides[0].b);
	(void)open_side(w, 1);
	while (role(&w->f.sides[1]) != EVREC_SHARE_WORKER) {
		poll_sides(w);
	}
	record(&w->f.sides[1], MANY);
}

static void await_acknowledgements(struct world *w)
{
	while (side_stats(&w->f.sides[1]).forwarded < MANY) {
		poll_sides(w);
	}
}

static void test_spooled_occurrences_are_acknowledged(void **state)
{
	struct world *w = make(state);

	start_both(w);
	await_acknowledgements(w);
	assert_int_equal(side_stats(&w->f.sides[0]).pending, MANY);
	/* The worker has nothing to wait for, and nothing to tell when it ends, although the server is away. */
	assert_int_equal(evrec_broadcaster_flush(w->f.sides[1].b, SOON, NULL), 0);
	assert_int_equal(evrec_broadcaster_shutdown(w->f.sides[1].b, SOON, NULL), 0);
	assert_true(unit_mono() < w->deadline);
	check_at_last(w, &w->f.sides[0], MANY);
	finish(w);
}

static void test_owner_that_ends_leaves_its_count(void **state)
{
	struct world *w = make(state);
	const struct side *next = &w->f.sides[1];

	start_both(w);
	await_acknowledgements(w);
	assert_int_equal(evrec_broadcaster_shutdown(w->f.sides[0].b, 0, NULL), EVREC_ETIMEOUT);
	side_close(&w->f.sides[0]);
	while (role(next) != EVREC_SHARE_OWNER) {
		poll_sides(w);
	}
	record(next, 1);
	check_at_last(w, next, MANY + 1);
	assert_string_not_equal(next->error_name, "share");
	finish(w);
}

static void free_owner(void **state, enum evrec_drive drive)
{
	struct world *w = make(state);
	evrec_broadcaster_options options = sharing_fixture_options(&w->f, 0, &w->f.sides[0]);
	const struct side *next = &w->f.sides[1];

	options.drive = drive;
	assert_true(side_open_with(&w->f.sides[0], &options, w->path, &w->common));
	evrec_broadcaster_poll(w->f.sides[0].b);
	while (role(&w->f.sides[0]) != EVREC_SHARE_OWNER) {
		poll_sides(w);
	}
	(void)open_side(w, 1);
	record(next, MANY);
	await_acknowledgements(w);
	record(&w->f.sides[0], 2);
	side_close(&w->f.sides[0]);
	while (role(next) != EVREC_SHARE_OWNER) {
		poll_sides(w);
	}
	record(next, 1);
	check_at_last(w, next, MANY + 2 + 1);
	assert_string_not_equal(next->error_name, "share");
	finish(w);
}

/* Nobody polls it any more, and no server takes what it has: it does not keep the share until its time is up. */
static void test_owner_that_is_freed_leaves_its_count(void **state)
{
	free_owner(state, EVREC_DRIVE_POLL);
}

static void test_owner_with_threads_that_is_freed_leaves_its_count(void **state)
{
	free_owner(state, EVREC_DRIVE_AUTO);
}

/* Its own spool is not where its events go. */
static void test_worker_that_is_freed_hands_all_over(void **state)
{
	struct world *w = make(state);
	const struct side *owner = open_side(w, 0);
	struct side *worker = &w->f.sides[1];
	evrec_broadcaster_options options = sharing_fixture_options(&w->f, 1, worker);

	while (role(owner) != EVREC_SHARE_OWNER) {
		poll_sides(w);
	}
	options.drive = EVREC_DRIVE_AUTO;
	assert_true(side_open_with(worker, &options, w->path, &w->common));
	record(worker, MANY);
	side_close(worker);
	while (side_stats(owner).received < MANY) {
		poll_sides(w);
	}
	check_at_last(w, owner, MANY);
	finish(w);
}

/* How many files of the spool's state meet the conditions, which are words of find. */
static int state_files(const struct world *w, const char *conditions)
{
	char command[400], line[32] = "";
	FILE *found;

	(void)snprintf(command, sizeof(command), "find %s -name 'share-*.state*' %s | wc -l", w->spool, conditions);
	found = popen(command, "r"); /* NOLINT(bugprone-command-processor,cert-env33-c) */
	assert_non_null(found);
	assert_non_null(fgets(line, sizeof(line), found));
	assert_int_equal(pclose(found), 0);
	return atoi(line); /* NOLINT(cert-err34-c): wc writes a number */
}

static void test_state_lies_in_the_spool(void **state)
{
	struct world *w = make(state);
	struct stat st;

	start_both(w);
	await_acknowledgements(w);
	assert_int_equal(stat(w->spool, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(state_files(w, "-perm 600"), 2);
	finish(w);
}

/* As in HAProxy, which forks once its configuration is read. */
static void test_owner_that_was_forked_writes_its_state(void **state)
{
	struct world *w = make(state);
	struct side *side = open_side(w, 0);
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(60);
		while (role(side) != EVREC_SHARE_OWNER) {
			evrec_broadcaster_poll(side->b);
		}
		record(side, 2);
		while (state_files(w, "-size +0") != 1) {
			evrec_broadcaster_poll(side->b);
		}
		_exit(0);
	}
	assert_int_equal(unit_wait(pid), 0);
	finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_killed_owner_leaves_each_occurrence_once),
		TMPDIR_TEST(test_killed_owner_leaves_what_the_spool_has),
		TMPDIR_TEST(test_killed_owner_leaves_what_it_had_recorded_itself),
		TMPDIR_TEST(test_killed_owner_with_a_state_file_leaves_what_it_had_recorded_itself),
		TMPDIR_TEST(test_spooled_occurrences_are_acknowledged),
		TMPDIR_TEST(test_owner_that_ends_leaves_its_count),
		TMPDIR_TEST(test_owner_that_is_freed_leaves_its_count),
		TMPDIR_TEST(test_owner_with_threads_that_is_freed_leaves_its_count),
		TMPDIR_TEST(test_worker_that_is_freed_hands_all_over),
		TMPDIR_TEST(test_state_lies_in_the_spool),
		TMPDIR_TEST(test_owner_that_was_forked_writes_its_state),
	};

	return cmocka_run_group_tests_name("share_spool", tests, NULL, NULL);
}

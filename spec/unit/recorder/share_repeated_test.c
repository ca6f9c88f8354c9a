/* Occurrences that a process hands over again, after their owner was killed or ended: each is counted once. */
#include "tmpdir.h"

#include <jansson.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "recorder/broadcaster.h"
#include "recorder/sharing_inner.h"
#include "share/share_inner.h"

#define MANY 20 /* fewer than there are tokens */
#define SINKS 2

struct side {
	evrec_broadcaster *b;
	evrec_watch *watches[SINKS];
	evrec_recorder *r;
	unsigned errors;
	char error[256], error_name[64];
};

struct world {
	char share[64];
	char folder[256]; /* of the second file: until it is made, no write to it succeeds */
	char paths[SINKS][280], states[SINKS][280];
	bool has_states;
	size_t sinks;
	int64_t deadline;
	struct side owner, worker;
};

static void on_error(void *ctx, const char *message, const char *name)
{
	struct side *side = ctx;

	if (strcmp(name, "share") == 0) {
		side->errors++;
		(void)snprintf(side->error, sizeof(side->error), "%s", message);
	}
}

static struct world *make(void **state, bool has_states, size_t sinks)
{
	static unsigned number;
	struct world *w = calloc(1, sizeof(*w));

	(void)snprintf(w->share, sizeof(w->share), "@evrec-repeated-%ld-%u", (long)getpid(), number++);
	(void)snprintf(w->folder, sizeof(w->folder), "%s", tmpdir_path(*state, "folder"));
	(void)snprintf(w->paths[0], sizeof(w->paths[0]), "%s/events", w->folder);
	(void)snprintf(w->paths[1], sizeof(w->paths[1]), "%s", tmpdir_path(*state, "open"));
	for (size_t i = 0; i < SINKS; i++) {
		(void)snprintf(w->states[i], sizeof(w->states[i]), "%s-state-%zu", w->folder, i);
	}
	w->has_states = has_states;
	w->sinks = sinks;
	w->deadline = unit_mono() + SOON;
	return w;
}

static void open_side(const struct world *w, struct side *side, const char *name)
{
	const evrec_recorder_options source = { .component = EVREC_STR("lb") };
	evrec_broadcaster_options options;
	char own[sizeof(w->share) + 16];

	(void)snprintf(own, sizeof(own), "%s of %s", name, w->share);
	*side = (struct side){ .errors = 0 };
	evrec_broadcaster_options_init(&options);
	options.share = str_from(w->share);
	options.name = str_from(own);
	options.drive = EVREC_DRIVE_POLL;
	options.on_error = on_error;
	options.ctx = side;
	side->b = evrec_broadcaster_new(&options, NULL);
	for (size_t i = 0; i < w->sinks; i++) {
		evrec_sink_options common;
		evrec_sink *sink;

		evrec_sink_options_init(&common);
		common.name = i == 0 ? EVREC_STR("waits") : EVREC_STR("open");
		common.state_file = w->has_states ? str_from(w->states[i]) : common.state_file;
		sink = evrec_sink_file(str_from(w->paths[i]), &common, NULL);
		side->watches[i] = evrec_broadcaster_start_recording_to_sink(side->b, sink, NULL, NULL);
		assert_non_null(side->watches[i]);
		evrec_sink_release(sink);
	}
	side->r = evrec_recorder_new(side->b, &source, NULL);
	assert_non_null(side->r);
}

static void close_side(struct side *side)
{
	for (size_t i = 0; i < SINKS; i++) {
		evrec_watch_free(side->watches[i]);
	}
	evrec_recorder_free(side->r);
	evrec_broadcaster_free(side->b);
	*side = (struct side){ .b = NULL };
}

static void record(const struct side *side, unsigned n)
{
	const evrec_reference service = { .kind = EVREC_STR("Service"),
		                          .name = EVREC_STR("web"),
		                          .ns = EVREC_STR("shop") };
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &service;
	emit.type = EVREC_STR("Warning");
	emit.reason = EVREC_STR("Failed");
	emit.note = EVREC_STR("no server is up");
	while (n-- > 0) {
		assert_int_equal(evrec_recorder_emit(side->r, &emit, NULL), 0);
	}
}

static evrec_sink_stats stats(const struct side *side, size_t number)
{
	evrec_sink_stats s = { .number = 0 };

	assert_true(evrec_broadcaster_get_sink_stats(side->b, number, &s));
	return s;
}

static enum evrec_share_role role(const struct side *side)
{
	return sharing_role(side->b->hub);
}

/* The names and the highest count of what was written. */
static void check_written(const char *path, size_t names, json_int_t count)
{
	FILE *file = fopen(path, "r");
	json_t *all = json_object();
	json_int_t most = 0;
	char line[8192];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		json_t *event = json_loads(line, 0, NULL), *metadata = json_object_get(event, "metadata");
		const json_int_t n = json_integer_value(json_object_get(event, "count"));

		(void)json_object_set(all, json_string_value(json_object_get(metadata, "name")), json_true());
		most = n > most ? n : most;
		json_decref(event);
	}
	(void)fclose(file);
	assert_int_equal(json_object_size(all), names);
	json_decref(all);
	assert_int_equal(most, count);
}

/* The folder is there: the writes succeed. */
static void let_write(const struct world *w, const struct side *side)
{
	assert_int_equal(mkdir(w->folder, 0700), 0);
	assert_int_equal(evrec_broadcaster_flush(side->b, SOON, NULL), 0);
}

static void poll_one(const struct world *w, const struct side *side)
{
	assert_true(unit_mono() < w->deadline);
	evrec_broadcaster_poll(side->b);
}

static void poll_both(const struct world *w)
{
	poll_one(w, &w->owner);
	poll_one(w, &w->worker);
}

/* ---- another process is the owner, and is killed ---- */

static bool state_has_all(const struct side *side)
{
	const struct pipeline *pipeline = sharing_sink_at(side->b->hub, 0)->pipeline;

	return pipeline_state_has(pipeline, pipeline_state_changes(pipeline));
}

/* The state says that all is acknowledged, and the worker was not told. */
static bool is_about_to_acknowledge(const struct side *side)
{
	const struct sharing *sh = side->b->hub->sharing;
	const struct pipeline *pipeline = sharing_sink_at(side->b->hub, 0)->pipeline;

	return sh->marked && sh->unsettled == 0 && pipeline_state_has(pipeline, sh->changes[0]);
}

/* The worker was told, and no state says that. */
static bool has_acknowledged(const struct side *side)
{
	const struct sharing *sh = side->b->hub->sharing;

	return sh->unsettled == 0 && sh->settled.len == 0 && !sh->marked && share_has_sent_batch(sh->share, 1);
}

static void own_until_killed(struct world *w, int ready, bool (*is_time)(const struct side *side))
{
	struct side *side = &w->owner;

	(void)alarm(60); /* the test may have failed meanwhile */
	open_side(w, side, "owner");
	while (role(side) != EVREC_SHARE_OWNER) {
		evrec_broadcaster_poll(side->b);
	}
	(void)!write(ready, "r", 1);
	while (stats(side, 1).received < MANY || !is_time(side)) {
		evrec_broadcaster_poll(side->b);
	}
	(void)kill(getpid(), SIGKILL);
}

/* The owner has recorded all that the worker has handed over, and is killed at that time. */
static void hand_over_and_kill_when(struct world *w, bool (*is_time)(const struct side *side))
{
	int ready[2], status = 0;
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		own_until_killed(w, ready[1], is_time);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	open_side(w, &w->worker, "worker");
	record(&w->worker, MANY);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		poll_one(w, &w->worker);
	}
	assert_true(WIFSIGNALED(status));
	while (role(&w->worker) != EVREC_SHARE_OWNER) {
		poll_one(w, &w->worker);
	}
}

/* It has written nothing. */
static void hand_over_and_kill(struct world *w)
{
	hand_over_and_kill_when(w, state_has_all);
}

static void check_killed(void **state, bool (*is_time)(const struct side *side))
{
	struct world *w = make(state, true, 1);

	assert_int_equal(mkdir(w->folder, 0700), 0);
	hand_over_and_kill_when(w, is_time);
	record(&w->worker, 3);
	assert_int_equal(evrec_broadcaster_flush(w->worker.b, SOON, NULL), 0);
	check_written(w->paths[0], 1, MANY + 3);
	assert_int_equal(w->worker.errors, 0);
	close_side(&w->worker);
	free(w);
}

static void test_killed_owner_has_not_sent_its_acknowledgements(void **state)
{
	check_killed(state, is_about_to_acknowledge);
}

static void test_killed_owner_has_sent_its_acknowledgements(void **state)
{
	check_killed(state, has_acknowledged);
}

static void test_killed_owner_has_counted_it(void **state)
{
	struct world *w = make(state, true, 1);

	hand_over_and_kill(w);
	assert_int_equal(stats(&w->worker, 1).received, MANY);
	record(&w->worker, 2);
	let_write(w, &w->worker);
	check_written(w->paths[0], 1, MANY + 2);
	assert_int_equal(w->worker.errors, 0);
	close_side(&w->worker);
	free(w);
}

static void test_what_may_be_counted_twice_is_told(void **state)
{
	struct world *w = make(state, false, 1);

	hand_over_and_kill(w);
	while (w->worker.errors == 0) {
		poll_one(w, &w->worker);
	}
	assert_non_null(strstr(w->worker.error, "did not end in order: 20 occurrences at most are counted twice"));
	let_write(w, &w->worker);
	assert_int_equal(w->worker.errors, 1);
	close_side(&w->worker);
	free(w);
}

/* The next owner ends before it has waited for more of them. */
static void test_what_may_be_counted_twice_is_told_at_the_end(void **state)
{
	struct world *w = make(state, false, 1);

	hand_over_and_kill(w);
	let_write(w, &w->worker);
	assert_int_equal(evrec_broadcaster_shutdown(w->worker.b, SOON, NULL), 0);
	assert_int_equal(w->worker.errors, 1);
	assert_non_null(strstr(w->worker.error, "did not end in order: 20 occurrences at most are counted twice"));
	close_side(&w->worker);
	free(w);
}

/* ---- the owner lives ---- */

static void start_both(struct world *w)
{
	open_side(w, &w->owner, "owner");
	evrec_broadcaster_poll(w->owner.b);
	open_side(w, &w->worker, "worker");
	while (role(&w->worker) != EVREC_SHARE_WORKER) {
		poll_both(w);
	}
	record(&w->worker, MANY);
	while (stats(&w->owner, 1).received < MANY) {
		poll_both(w);
	}
}

static void break_connection(struct world *w)
{
	(void)shutdown(w->worker.b->hub->sharing->share->link.line.fd, SHUT_RDWR);
	while (stats(&w->owner, 1).received < 2 * MANY) {
		poll_both(w);
	}
}

static void test_connection_that_breaks(void **state)
{
	struct world *w = make(state, false, 1);

	start_both(w);
	break_connection(w);
	break_connection(w);
	record(&w->worker, 3);
	assert_int_equal(mkdir(w->folder, 0700), 0);
	while (!sharing_is_settled(w->worker.b->hub)) {
		poll_both(w);
	}
	assert_int_equal(evrec_broadcaster_flush(w->owner.b, SOON, NULL), 0);
	check_written(w->paths[0], 1, MANY + 3);
	assert_int_equal(stats(&w->worker, 1).forwarded, MANY + 3);
	assert_int_equal(w->owner.errors, 0);
	close_side(&w->worker);
	close_side(&w->owner);
	free(w);
}

/* One sink has acknowledged all, the other one nothing: only that one gets it again. */
static void test_sink_that_has_acknowledged_gets_nothing_again(void **state)
{
	struct world *w = make(state, false, 2);

	start_both(w);
	while (stats(&w->worker, 2).forwarded < MANY) {
		poll_both(w);
	}
	break_connection(w);
	assert_int_equal(mkdir(w->folder, 0700), 0);
	while (!sharing_is_settled(w->worker.b->hub)) {
		poll_both(w);
	}
	assert_int_equal(stats(&w->owner, 2).received, MANY);
	check_written(w->paths[0], 1, MANY);
	check_written(w->paths[1], 1, MANY);
	close_side(&w->worker);
	close_side(&w->owner);
	free(w);
}

/* ---- the owner ends in order, with writes that have not succeeded ---- */

static void check_ended(void **state, bool has_states)
{
	struct world *w = make(state, has_states, 1);

	start_both(w);
	assert_int_equal(stats(&w->worker, 1).pending, MANY);
	(void)evrec_broadcaster_shutdown(w->owner.b, 0, NULL);
	while (role(&w->worker) != EVREC_SHARE_OWNER) {
		poll_one(w, &w->worker);
	}
	record(&w->worker, 1);
	let_write(w, &w->worker);
	check_written(w->paths[0], 1, MANY + 1);
	assert_int_equal(w->worker.errors, 0);
	close_side(&w->owner);
	close_side(&w->worker);
	(void)unlink(w->paths[0]);
	(void)rmdir(w->folder);
	free(w);
}

static void test_owner_that_ends_hands_over_its_count(void **state)
{
	check_ended(state, false);
}

static void test_owner_that_ends_leaves_its_count_in_the_file(void **state)
{
	check_ended(state, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_killed_owner_has_counted_it),
		TMPDIR_TEST(test_killed_owner_has_not_sent_its_acknowledgements),
		TMPDIR_TEST(test_killed_owner_has_sent_its_acknowledgements),
		TMPDIR_TEST(test_what_may_be_counted_twice_is_told),
		TMPDIR_TEST(test_what_may_be_counted_twice_is_told_at_the_end),
		TMPDIR_TEST(test_connection_that_breaks),
		TMPDIR_TEST(test_sink_that_has_acknowledged_gets_nothing_again),
		TMPDIR_TEST(test_owner_that_ends_hands_over_its_count),
		TMPDIR_TEST(test_owner_that_ends_leaves_its_count_in_the_file),
	};

	return cmocka_run_group_tests_name("share_repeated", tests, NULL, NULL);
}

/* Processes of several users that share one recorder: root and user 65534. Needs root, to make a process of another user. */
#include "tmpdir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/broadcaster.h"

#define NOBODY 65534
#define OTHER 65533

static const unsigned nobody[] = { NOBODY };

struct told {
	unsigned errors;
	char error[256], error_name[64];
};

struct world {
	char share[64];
	const char *path;
};

static void on_error(void *ctx, const char *message, const char *name)
{
	struct told *told = ctx;

	told->errors++;
	(void)snprintf(told->error, sizeof(told->error), "%s", message);
	(void)snprintf(told->error_name, sizeof(told->error_name), "%s", name);
}

static evrec_broadcaster_options options_of(const struct world *w, struct told *told)
{
	evrec_broadcaster_options options;

	evrec_broadcaster_options_init(&options);
	options.share = str_from(w->share);
	options.drive = EVREC_DRIVE_POLL;
	options.on_error = on_error;
	options.ctx = told;
	return options;
}

static evrec_broadcaster *open_broadcaster(const struct world *w, const evrec_broadcaster_options *options)
{
	evrec_broadcaster *b = evrec_broadcaster_new(options, NULL);
	evrec_sink *sink = evrec_sink_file(str_from(w->path), NULL, NULL);
	evrec_watch *watch;

	assert_non_null(b);
	watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, NULL);
	assert_non_null(watch);
	evrec_watch_free(watch);
	evrec_sink_release(sink);
	return b;
}

static void record(evrec_broadcaster *b)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("p"), .ns = EVREC_STR("n") };
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	evrec_recorder *r = evrec_recorder_new(b, &source, NULL);
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &pod;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("R");
	assert_int_equal(evrec_recorder_emit(r, &emit, NULL), 0);
	evrec_recorder_free(r);
}

/* An owner of user 65534, which says when it is one, and ends when the pipe does. */
static void own(const struct world *w, int ready, int lives)
{
	struct told told = { .errors = 0 };
	const evrec_broadcaster_options options = options_of(w, &told);
	evrec_broadcaster *b;
	evrec_stats stats = { .recorded = 0 };
	char byte;

	if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
		_exit(1);
	}
	b = open_broadcaster(w, &options);
	while (stats.share_role != EVREC_SHARE_OWNER) {
		evrec_broadcaster_poll(b);
		evrec_broadcaster_get_stats(b, &stats);
	}
	(void)!write(ready, "", 1);
	(void)fcntl(lives, F_SETFL, O_NONBLOCK);
	while (read(lives, &byte, 1) < 0) {
		evrec_broadcaster_poll(b);
		(void)usleep(1000);
	}
	_exit(evrec_broadcaster_shutdown(b, SOON, NULL) == 0 ? 0 : 2);
}

static pid_t start_owner(const struct world *w, int *lives)
{
	int ready[2], ends[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		(void)close(ends[1]);
		own(w, ready[1], ends[0]);
	}
	(void)close(ready[1]);
	(void)close(ends[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	*lives = ends[1];
	return child;
}

/* False: the test cannot be made. */
static bool make_world(struct world *w, void **state)
{
	static unsigned number;
	char folder[256];

	if (geteuid() != 0) {
		return false;
	}
	(void)snprintf(w->share, sizeof(w->share), "@evrec-users-%ld-%u", (long)getpid(), number++);
	w->path = tmpdir_path(*state, "events");
	(void)snprintf(folder, sizeof(folder), "%s", tmpdir_path(*state, ""));
	assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
	return true;
}

/* As nginx's master, which is root and records in init_by_lua, and its workers. */
static void test_root_hands_over_to_a_listed_user(void **state)
{
	struct told told = { .errors = 0 };
	evrec_broadcaster_options options;
	evrec_sink_stats stats;
	evrec_broadcaster *b;
	struct world w;
	pid_t child;
	int lives;

	if (!make_world(&w, state)) {
		skip();
	}
	child = start_owner(&w, &lives);
	options = options_of(&w, &told);
	options.share_client_only = true;
	options.share_users = nobody;
	options.share_users_len = 1;
	b = open_broadcaster(&w, &options);
	record(b);
	assert_int_equal(evrec_broadcaster_flush(b, SOON, NULL), 0);
	assert_true(evrec_broadcaster_get_sink_stats(b, 1, &stats));
	assert_int_equal(stats.forwarded, 1);
	assert_int_equal(told.errors, 0);
	evrec_broadcaster_free(b);
	(void)close(lives);
	assert_int_equal(unit_wait(child), 0);
}

static void test_root_refuses_an_owner_that_is_not_listed(void **state)
{
	struct told told = { .errors = 0 };
	evrec_broadcaster_options options;
	evrec_sink_stats stats;
	evrec_broadcaster *b;
	char words[64];
	struct world w;
	pid_t child;
	int lives;

	if (!make_world(&w, state)) {
		skip();
	}
	child = start_owner(&w, &lives);
	options = options_of(&w, &told);
	b = open_broadcaster(&w, &options);
	record(b);
	for (unsigned i = 0; i < 10; i++) {
		evrec_broadcaster_poll(b);
	}
	assert_int_equal(told.errors, 1);
	assert_string_equal(told.error_name, "share_refused");
	(void)snprintf(words, sizeof(words), "the process %ld at the other end", (long)child);
	unit_check_contains(told.error, words);
	unit_check_contains(told.error, "is of user 65534");
	/* The event waits. */
	assert_true(evrec_broadcaster_get_sink_stats(b, 1, &stats));
	assert_int_equal(stats.pending, 1);
	assert_int_equal(evrec_broadcaster_shutdown(b, 0, NULL), EVREC_ELOST);
	evrec_broadcaster_free(b);
	(void)close(lives);
	assert_int_equal(unit_wait(child), 0);
}

/* A worker of user OTHER, which sends what it is told. */
static void work(const struct world *w, int tells)
{
	struct told told = { .errors = 0 };
	evrec_broadcaster_options options = options_of(w, &told);
	const int64_t deadline = unit_mono() + SOON;
	evrec_broadcaster *b;

	options.share_users = nobody;
	options.share_users_len = 1;
	if (setgid(OTHER) != 0 || setuid(OTHER) != 0) {
		_exit(1);
	}
	b = open_broadcaster(w, &options);
	record(b);
	while (told.errors == 0 && unit_mono() < deadline) {
		evrec_broadcaster_poll(b);
		(void)usleep(1000);
	}
	(void)!write(tells, &told, sizeof(told));
	_exit(0);
}

static void test_worker_is_told_that_the_owner_refuses_its_user(void **state)
{
	struct told told = { .errors = 0 };
	int lives, tells[2];
	pid_t owner, worker;
	struct world w;

	if (!make_world(&w, state)) {
		skip();
	}
	owner = start_owner(&w, &lives);
	assert_int_equal(pipe(tells), 0);
	worker = fork();
	if (worker == 0) {
		work(&w, tells[1]);
	}
	(void)close(tells[1]);
	assert_int_equal(read(tells[0], &told, sizeof(told)), sizeof(told));
	(void)close(tells[0]);
	assert_int_equal(told.errors, 1);
	assert_string_equal(told.error_name, "share_refused");
	unit_check_contains(told.error, "the owner refuses this process: user 65533 is not one of its share_users");
	assert_int_equal(unit_wait(worker), 0);
	(void)close(lives);
	assert_int_equal(unit_wait(owner), 0);
}

static void test_handles_list_the_same_users(void **state)
{
	static const unsigned others[] = { 1 };
	struct told told = { .errors = 0 };
	struct world w = { .share = "@evrec-users-handles" };
	evrec_broadcaster_options options = options_of(&w, &told);
	evrec_broadcaster *first, *second;
	evrec_error err = { 0 };

	(void)state;
	options.share_users = nobody;
	options.share_users_len = 1;
	first = evrec_broadcaster_new(&options, &err);
	second = evrec_broadcaster_new(&options, &err);
	assert_non_null(first);
	assert_non_null(second);
	options.share_users = others;
	assert_null(evrec_broadcaster_new(&options, &err));
	unit_check_contains(err.message, "share_users: another handle");
	options.share = (evrec_str){ NULL, 0 };
	assert_null(evrec_broadcaster_new(&options, &err));
	unit_check_contains(err.message, "share_users: without the option 'share'");
	options.share_users_len = 65;
	assert_null(evrec_broadcaster_new(&options, &err));
	unit_check_contains(err.message, "share_users: more than 64");
	evrec_broadcaster_free(first);
	evrec_broadcaster_free(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_root_hands_over_to_a_listed_user),
		TMPDIR_TEST(test_root_refuses_an_owner_that_is_not_listed),
		TMPDIR_TEST(test_worker_is_told_that_the_owner_refuses_its_user),
		cmocka_unit_test(test_handles_list_the_same_users),
	};

	return cmocka_run_group_tests_name("share_users", tests, NULL, NULL);
}

/* Broadcasters with a name in forked children. */
#include "named.h"

#include <pthread.h>
#include <stdatomic.h>

/* Of a handle: it may have a share in the place of a name. */
struct fixture {
	evrec_broadcaster_options options;
	evrec_sink *sink;
};

static evrec_broadcaster *open_of(const struct fixture *f)
{
	evrec_broadcaster *b = evrec_broadcaster_new(&f->options, NULL);

	assert_non_null(b);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(b, f->sink, NULL, NULL));
	return b;
}

/* As nginx's worker does if each request has a Lua state: the state that was made before the fork has a handle, too. */
static void live_with_unused_handle(const struct fixture *f, evrec_broadcaster *unused)
{
	for (int i = 0; i < 3; i++) {
		evrec_broadcaster *of_request = open_of(f);

		if (named_emit(of_request, "Request") != 0) {
			_exit(1);
		}
		evrec_broadcaster_free(of_request);
	}
	if (named_emit(unused, "End") != 0 || named_stats(unused).recorded != 4 ||
	    evrec_broadcaster_shutdown(unused, SOON, NULL) != 0) {
		_exit(2);
	}
	evrec_broadcaster_free(unused);
	_exit(0);
}

static void check_unused_handle(const struct fixture *f)
{
	evrec_broadcaster *b = open_of(f);

	for (int i = 0; i < 2; i++) {
		const pid_t child = fork();

		if (child == 0) {
			live_with_unused_handle(f, b);
		}
		assert_int_equal(unit_wait(child), 0);
	}
	assert_int_equal(named_stats(b).recorded, 0);
	evrec_broadcaster_free(b);
}

static void test_a_handle_that_a_child_has_not_used_keeps_the_broadcaster(void **state)
{
	struct fixture f;
	char share[256];

	if (UNDER_TSAN) {
		skip(); /* it takes the ended threads of the parent for threads that the child has not joined */
	}
	f.sink = named_file_sink(*state, "events");
	f.options = named_options("unused");
	check_unused_handle(&f);
	evrec_broadcaster_options_init(&f.options);
	(void)snprintf(share, sizeof(share), "@%s", tmpdir_path(*state, "share"));
	f.options.share = evrec_string(share);
	check_unused_handle(&f);
	evrec_sink_release(f.sink);
}

static void live_in_child(evrec_broadcaster *b, const evrec_watch *watch)
{
	const bool empty = named_stats(b).recorded == 0;
	evrec_broadcaster *another;
	int code;

	code = named_emit(b, "Child");
	another = named_open("fork");
	code = code != 0 ? code : named_emit(another, "Child");
	evrec_broadcaster_free(another);
	if (!empty || code != 0 || named_stats(b).recorded != 2 || named_received(watch) != 2 ||
	    evrec_broadcaster_shutdown(b, SOON, NULL) != 0) {
		_exit(1);
	}
	evrec_broadcaster_free(b);
	_exit(0);
}

/* Opens a handle of a process that only forks others; `max` is an option that may differ. NULL: another one is bound. */
static evrec_broadcaster *open_master(const char *name, size_t max)
{
	evrec_broadcaster_options options = named_options(name);

	options.share_client_only = true;
	options.max_message_bytes = max;
	return evrec_broadcaster_new(&options, NULL);
}

static void live_in_worker(void)
{
	evrec_broadcaster *same = open_master("master", 100);
	const bool refused = open_master("master", 200) == NULL;

	_exit(refused && same != NULL && named_emit(same, "Worker") == 0 ? 0 : 1);
}

static void test_a_master_that_has_forked_opens_another(void **state)
{
	evrec_broadcaster *first, *next, *second;
	pid_t child;

	(void)state;
	if (UNDER_TSAN) {
		skip(); /* it takes the ended threads of the parent for threads that the child has not joined */
	}
	first = open_master("master", 100);
	assert_null(open_master("master", 200));
	child = fork();
	if (child == 0) {
		live_in_worker();
	}
	assert_int_equal(unit_wait(child), 0);
	next = open_master("master", 200);
	assert_non_null(next);
	assert_int_equal(named_emit(next, "Next"), 0);
	assert_int_equal(named_stats(first).recorded, 0);
	second = open_master("master", 200);
	assert_null(open_master("master", 100));
	assert_int_equal(named_stats(second).recorded, 1);
	/* Of a configuration that is refused after all: the first one is the only one again. */
	evrec_broadcaster_free(next);
	evrec_broadcaster_free(second);
	child = fork();
	if (child == 0) {
		live_in_worker();
	}
	assert_int_equal(unit_wait(child), 0);
	/* A process that polls is no such master. */
	evrec_broadcaster_may_own(first);
	assert_null(open_master("master", 200));
	evrec_broadcaster_free(first);
}

/* The other handles' threads use the hub all the time. */
struct user {
	atomic_bool stop;
};

static void *use(void *ctx)
{
	struct user *user = ctx;
	evrec_broadcaster *b = named_open("fork");

	while (!user->stop) {
		(void)named_emit(b, "Other");
		evrec_broadcaster_poll(b);
	}
	evrec_broadcaster_free(b);
	return NULL;
}

static void test_a_child_goes_on_while_other_threads_use_the_broadcaster(void **state)
{
	struct user user = { .stop = false };
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_sink *sink;
	pthread_t threads[3];

	/*
	 * gcc 12's TSan takes a child's first thread for one that the parent has. Its ASan leaves the lock of its allocator
	 * as it is over a fork, so the child waits for ever if another thread has the lock.
	 */
	if (UNDER_TSAN || UNDER_ASAN) {
		skip();
	}
	b = named_open("fork");
	sink = named_file_sink(*state, "events");
	watch = evrec_broadcaster_start_recording_to_sink(b, sink, NULL, NULL);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, use, &user), 0);
	}
	for (int i = 0; i < 20; i++) {
		pid_t child;

		assert_int_equal(named_emit(b, "Parent"), 0);
		child = fork();
		if (child == 0) {
			live_in_child(b, watch);
		}
		assert_int_equal(unit_wait(child), 0);
	}
	user.stop = true;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	assert_int_equal(evrec_broadcaster_shutdown(b, SOON, NULL), 0);
	stats_check_equations(b);
	evrec_broadcaster_free(b);
	evrec_watch_free(watch);
	evrec_sink_release(sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_handle_that_a_child_has_not_used_keeps_the_broadcaster),
		TMPDIR_TEST(test_a_master_that_has_forked_opens_another),
		TMPDIR_TEST(test_a_child_goes_on_while_other_threads_use_the_broadcaster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

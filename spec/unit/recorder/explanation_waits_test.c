/* A worker that asks its owner what it has suppressed: how long it waits, and for whom. */
#include "sides.h"
#include "tmpdir.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define SHORT (EVREC_SECOND / 50)

static void check_fails(const struct side *side, int64_t timeout, int code, const char *message)
{
	evrec_error err = { 0 };

	assert_null(evrec_explanation_new(side->b, NULL, timeout, &err));
	assert_int_equal(err.code, code);
	assert_string_equal(err.message, message);
}

static void test_worker_without_an_owner_waits_no_longer_than_told(void **state)
{
	struct sides w;
	struct side *side = &w.sides[1];
	evrec_broadcaster_options options;

	sides_name(&w);
	evrec_broadcaster_options_init(&options);
	options.share = str_from(w.share);
	options.share_client_only = true;
	options.drive = EVREC_DRIVE_POLL;
	side->b = evrec_broadcaster_new(&options, NULL);
	/* Without a sink there is nothing to ask for. */
	evrec_explanation_free(sides_explain(side, NULL));
	{
		evrec_sink *sink = evrec_sink_file(str_from(tmpdir_path(*state, "events")), NULL, NULL);

		side->watch = evrec_broadcaster_start_recording_to_sink(side->b, sink, NULL, NULL);
		evrec_sink_release(sink);
	}
	check_fails(side, SHORT, EVREC_ETIMEOUT, "share: no owner was found within 20 ms");
	check_fails(side, 0, EVREC_ETIMEOUT, "share: no owner was found within 0 ms");
	check_fails(side, -1, EVREC_ETIMEOUT, "share: no owner was found within 0 ms");
	/* Once it may, it is the owner itself. */
	evrec_broadcaster_may_own(side->b);
	evrec_explanation_free(sides_explain(side, NULL));
	assert_int_equal(sides_role(side), EVREC_SHARE_OWNER);
	sides_close_one(side);
}

struct poller {
	pthread_t thread;
	evrec_broadcaster *b;
	atomic_bool stops;
};

static void *poll_on(void *ctx)
{
	struct poller *poller = ctx;

	while (!atomic_load(&poller->stops)) {
		evrec_broadcaster_poll(poller->b);
	}
	return NULL;
}

/* It greets, and then does not poll for a while. */
static void test_silent_owner_is_not_waited_for(void **state)
{
	struct poller poller = { .b = NULL };
	struct sides w;

	sides_name(&w);
	for (size_t i = 0; i < 2; i++) {
		assert_true(sides_open_one(&w.sides[i], w.share, i == 0 ? "owner" : "worker", EVREC_DRIVE_POLL,
		                           tmpdir_path(*state, "events")));
		for (unsigned n = 0; n < 4; n++) {
			evrec_broadcaster_poll(w.sides[0].b);
			if (i == 1) {
				evrec_broadcaster_poll(w.sides[1].b);
			}
		}
	}
	assert_int_equal(sides_role(&w.sides[1]), EVREC_SHARE_WORKER);
	check_fails(&w.sides[1], SHORT, EVREC_ETIMEOUT, "share: the owner did not answer within 20 ms");
	poller.b = w.sides[0].b;
	assert_int_equal(pthread_create(&poller.thread, NULL, poll_on, &poller), 0);
	evrec_explanation_free(sides_explain(&w.sides[1], NULL));
	atomic_store(&poller.stops, true);
	(void)pthread_join(poller.thread, NULL);
	sides_close_one(&w.sides[1]);
	sides_close_one(&w.sides[0]);
}

/* While a worker waits for the answer of an owner that goes away, it takes its place. */
static void test_worker_whose_owner_goes_away_answers_itself(void **state)
{
	const evrec_explanation *e;
	struct sides w;

	sides_open(&w, EVREC_DRIVE_POLL, tmpdir_path(*state, "events"));
	sides_record(&w.sides[1], "a");
	evrec_explanation_free(sides_explain(&w.sides[1], NULL));
	assert_int_equal(evrec_broadcaster_shutdown(w.sides[0].b, SIDES_LONG, NULL), 0);
	assert_int_equal(sides_role(&w.sides[1]), EVREC_SHARE_WORKER);
	for (unsigned i = 0; i < 3; i++) {
		sides_record(&w.sides[1], "a");
	}
	e = sides_explain(&w.sides[1], NULL);
	assert_int_equal(sides_role(&w.sides[1]), EVREC_SHARE_OWNER);
	assert_int_equal(e->sinks[0].suppressed_len, 1);
	evrec_explanation_free(e);
	sides_close(&w);
}

static void test_worker_that_is_shut_down_asks_nobody(void **state)
{
	struct sides w;

	sides_open(&w, EVREC_DRIVE_POLL, tmpdir_path(*state, "events"));
	evrec_explanation_free(sides_explain(&w.sides[1], NULL));
	assert_int_equal(evrec_broadcaster_shutdown(w.sides[1].b, SIDES_LONG, NULL), 0);
	check_fails(&w.sides[1], SIDES_LONG, EVREC_ECLOSED, "the broadcaster is shut down");
	/* The owner knows what it knew. */
	assert_int_equal(evrec_broadcaster_shutdown(w.sides[0].b, SIDES_LONG, NULL), 0);
	evrec_explanation_free(sides_explain(&w.sides[0], NULL));
	sides_close(&w);
}

/* A call that waits is refused inside of a callback; the owner's does not wait. */
static void test_worker_does_not_wait_inside_a_callback(void **state)
{
	struct sides w;

	sides_open(&w, EVREC_DRIVE_POLL, tmpdir_path(*state, "events"));
	for (size_t i = 0; i < 2; i++) {
		struct side *side = &w.sides[i];

		side->explains = true;
		for (unsigned n = 0; n < 3; n++) {
			sides_record(side, "a");
		}
		assert_int_equal(evrec_broadcaster_flush(side->b, SIDES_LONG, NULL), 0);
		assert_false(side->explains);
	}
	assert_non_null(w.sides[0].inner);
	assert_null(w.sides[1].inner);
	assert_int_equal(w.sides[1].inner_err.code, EVREC_EINVALID);
	unit_check_contains(w.sides[1].inner_err.message, "inside a callback");
	sides_close(&w);
}

/* A child asks the owner by a connection of its own, and never its parent's. */
static void check_child(void **state, enum evrec_drive drive)
{
	struct sides w;
	int status = -1;
	pid_t pid;

	sides_open(&w, drive, tmpdir_path(*state, "events"));
	for (unsigned i = 0; i < 3; i++) {
		sides_record(&w.sides[1], "a");
	}
	evrec_explanation_free(sides_explain(&w.sides[1], NULL));
	pid = fork();
	if (pid == 0) {
		const evrec_explanation *e = evrec_explanation_new(w.sides[1].b, NULL, SIDES_LONG, NULL);

		_exit(e != NULL && e->sinks_len == 1 && e->sinks[0].suppressed_len == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sides_close(&w);
}

static void test_child_of_a_worker_asks_the_owner(void **state)
{
	check_child(state, EVREC_DRIVE_POLL);
}

static void test_child_of_a_worker_with_a_thread_asks_the_owner(void **state)
{
	/* gcc 12's ASan leaves the lock of its allocator as it is over a fork: the child waits for ever if a thread has it. */
	if (UNDER_ASAN) {
		skip();
	}
	check_child(state, EVREC_DRIVE_THREAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_worker_without_an_owner_waits_no_longer_than_told),
		TMPDIR_TEST(test_silent_owner_is_not_waited_for),
		TMPDIR_TEST(test_worker_whose_owner_goes_away_answers_itself),
		TMPDIR_TEST(test_worker_that_is_shut_down_asks_nobody),
		TMPDIR_TEST(test_worker_does_not_wait_inside_a_callback),
		TMPDIR_TEST(test_child_of_a_worker_asks_the_owner),
		TMPDIR_TEST(test_child_of_a_worker_with_a_thread_asks_the_owner),
	};

	return cmocka_run_group_tests_name("explanation waits", tests, NULL, NULL);
}

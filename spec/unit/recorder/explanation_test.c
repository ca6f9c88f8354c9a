/* What the sinks have suppressed, as a copy; in a process that shares them, as their owner tells it. */
#include "tmpdir.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "alloc_failure.h"
#include "base/clock.h"
#include "recorder/broadcaster.h"
#include "share/endpoint.h"

#define LONG (10 * EVREC_SECOND) /* never waited for to its end */
#define SHORT (EVREC_SECOND / 50)

struct side {
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_recorder *r;
	const evrec_explanation *inner; /* made in on_drop */
	evrec_error inner_err;
	bool explains; /* in on_drop */
};

struct world {
	char share[64];
	struct side sides[2];
};

static const evrec_reference pod = { .kind = { "Pod", 3 }, .name = { "p", 1 }, .ns = { "n", 1 } };

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct side *side = ctx;

	(void)event;
	(void)why;
	if (side->explains) {
		side->explains = false;
		side->inner = evrec_explanation_new(side->b, NULL, LONG, &side->inner_err);
	}
}

static bool open_side(struct side *side, const char *share, const char *name, enum evrec_drive drive, const char *path)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	evrec_broadcaster_options options;
	evrec_correlator_options correlator;
	evrec_sink *sink;

	*side = (struct side){ .b = NULL };
	evrec_broadcaster_options_init(&options);
	options.share = str_from(share);
	options.name = str_from(name);
	options.drive = drive;
	options.on_drop = on_drop;
	options.ctx = side;
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 2;
	correlator.qps = 0;
	side->b = evrec_broadcaster_new(&options, NULL);
	sink = evrec_sink_file(str_from(path), NULL, NULL);
	if (side->b != NULL && sink != NULL) {
		side->watch = evrec_broadcaster_start_recording_to_sink(side->b, sink, &correlator, NULL);
		side->r = evrec_recorder_new(side->b, &source, NULL);
	}
	evrec_sink_release(sink);
	return side->watch != NULL && side->r != NULL;
}

static void close_side(struct side *side)
{
	evrec_explanation_free(side->inner);
	evrec_watch_free(side->watch);
	evrec_recorder_free(side->r);
	evrec_broadcaster_free(side->b);
	*side = (struct side){ .b = NULL };
}

static void name_share(struct world *w)
{
	static unsigned number;

	*w = (struct world){ .share = "" };
	(void)snprintf(w->share, sizeof(w->share), "@evrec-explanation-%ld-%u", (long)getpid(), number++);
}

static enum evrec_share_role role_of(const struct side *side)
{
	evrec_stats stats;

	evrec_broadcaster_get_stats(side->b, &stats);
	return stats.share_role;
}

/* The owner has a thread, so that it answers while the worker waits. */
static void open_both(struct world *w, enum evrec_drive worker, const char *path)
{
	name_share(w);
	assert_true(open_side(&w->sides[0], w->share, "owner", EVREC_DRIVE_THREAD, path));
	while (role_of(&w->sides[0]) != EVREC_SHARE_OWNER) {
		evrec_broadcaster_poll(w->sides[0].b);
	}
	assert_true(open_side(&w->sides[1], w->share, "worker", worker, path));
}

static void close_both(struct world *w)
{
	close_side(&w->sides[1]);
	(void)evrec_broadcaster_shutdown(w->sides[0].b, LONG, NULL);
	close_side(&w->sides[0]);
}

static void record_about(const struct side *side, const evrec_reference *object, const char *note)
{
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = object;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("R");
	emit.note = str_from(note);
	assert_int_equal(evrec_recorder_emit(side->r, &emit, NULL), 0);
}

static void record(const struct side *side, const char *note)
{
	record_about(side, &pod, note);
}

static const evrec_explanation *explain(const struct side *side, const evrec_reference *object)
{
	evrec_error err = { 0 };
	const evrec_explanation *e = evrec_explanation_new(side->b, object, LONG, &err);

	if (e == NULL) {
		fail_msg("%s", err.message);
	}
	return e;
}

static void check_fails(const struct side *side, int64_t timeout, int code, const char *message)
{
	evrec_error err = { 0 };

	assert_null(evrec_explanation_new(side->b, NULL, timeout, &err));
	assert_int_equal(err.code, code);
	assert_string_equal(err.message, message);
}

static void check_equal(const evrec_explanation *a, const evrec_explanation *b)
{
	assert_int_equal(a->sinks_len, b->sinks_len);
	for (size_t i = 0; i < a->sinks_len; i++) {
		assert_int_equal(a->sinks[i].number, b->sinks[i].number);
		assert_true(str_eq(a->sinks[i].name, b->sinks[i].name));
		assert_int_equal(a->sinks[i].suppressed_len, b->sinks[i].suppressed_len);
		for (size_t j = 0; j < a->sinks[i].suppressed_len; j++) {
			const evrec_suppressed *one = &a->sinks[i].suppressed[j], *other = &b->sinks[i].suppressed[j];

			assert_int_equal(one->stage, other->stage);
			assert_int_equal(one->count, other->count);
			assert_int_equal(one->first, other->first);
			assert_int_equal(one->last, other->last);
			assert_int_equal(one->next_token, other->next_token);
			assert_true(one->tokens == other->tokens);
			assert_true(str_eq(one->message, other->message));
			assert_true(str_eq(one->regarding.name, other->regarding.name));
			assert_true(str_eq(one->component, other->component));
		}
	}
}

/* ---- a process by itself ---- */

struct seen {
	const evrec_explanation *e;
	size_t n;
};

static bool see(void *ctx, const evrec_suppressed *s)
{
	struct seen *seen = ctx;
	const evrec_suppressed *copy = &seen->e->sinks[0].suppressed[seen->n++];

	assert_int_equal(copy->stage, s->stage);
	assert_int_equal(copy->count, s->count);
	assert_true(str_eq(copy->message, s->message));
	assert_true(str_eq(copy->regarding.name, s->regarding.name));
	return true;
}

static void test_explanation_is_a_copy(void **state)
{
	evrec_reference other = pod;
	struct seen seen = { 0 };
	struct side side;
	const evrec_explanation *e;

	other.name = EVREC_STR("other");
	assert_true(open_side(&side, "", "", EVREC_DRIVE_POLL, tmpdir_path(*state, "events")));
	for (unsigned i = 0; i < 4; i++) {
		record(&side, "a");
		record_about(&side, &other, "b");
	}
	e = explain(&side, NULL);
	assert_int_equal(e->sinks_len, 1);
	assert_int_equal(e->sinks[0].number, 1);
	assert_str(e->sinks[0].name, "file");
	assert_int_equal(e->sinks[0].suppressed_len, 2);
	seen.e = e;
	evrec_broadcaster_explain(side.b, 1, NULL, see, &seen);
	assert_int_equal(seen.n, 2);
	/* It does not change. */
	record(&side, "c");
	assert_int_equal(e->sinks[0].suppressed[1].count, 2);
	evrec_explanation_free(e);
	e = explain(&side, &other);
	assert_int_equal(e->sinks[0].suppressed_len, 1);
	assert_str(e->sinks[0].suppressed[0].regarding.name, "other");
	evrec_explanation_free(e);
	evrec_explanation_free(NULL);
	close_side(&side);
}

/* ---- an owner and a worker ---- */

static void check_worker_gets_the_owners(void **state, enum evrec_drive drive)
{
	const evrec_explanation *worker, *owner;
	struct world w;

	open_both(&w, drive, tmpdir_path(*state, "events"));
	/* Two of each: alone neither would be limited. */
	record(&w.sides[0], "a");
	record(&w.sides[0], "a");
	record(&w.sides[1], "a");
	record(&w.sides[1], "a");
	worker = explain(&w.sides[1], &pod);
	owner = explain(&w.sides[0], &pod);
	assert_int_equal(role_of(&w.sides[1]), EVREC_SHARE_WORKER);
	assert_int_equal(owner->sinks[0].suppressed_len, 1);
	assert_int_equal(owner->sinks[0].suppressed[0].stage, EVREC_STAGE_RATE_LIMITED);
	assert_int_equal(owner->sinks[0].suppressed[0].count, 2);
	check_equal(worker, owner);
	evrec_explanation_free(worker);
	evrec_explanation_free(owner);
	close_both(&w);
}

static void test_worker_that_polls_gets_the_owners_explanation(void **state)
{
	check_worker_gets_the_owners(state, EVREC_DRIVE_POLL);
}

static void test_worker_with_a_thread_gets_the_owners_explanation(void **state)
{
	check_worker_gets_the_owners(state, EVREC_DRIVE_THREAD);
}

/* More than a frame takes. */
static void test_explanation_of_many_objects(void **state)
{
	const evrec_explanation *worker, *owner;
	struct world w;
	char name[700];

	open_both(&w, EVREC_DRIVE_POLL, tmpdir_path(*state, "events"));
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (unsigned i = 0; i < 3 * 128; i++) {
		evrec_reference object = pod;

		name[0] = (char)('a' + i / 3 % 26);
		name[1] = (char)('a' + i / 3 / 26);
		object.name = str_from(name);
		record_about(&w.sides[1], &object, "a");
	}
	worker = explain(&w.sides[1], NULL);
	owner = explain(&w.sides[0], NULL);
	assert_int_equal(owner->sinks[0].suppressed_len, 128);
	check_equal(worker, owner);
	evrec_explanation_free(worker);
	evrec_explanation_free(owner);
	close_both(&w);
}

struct asker {
	pthread_t thread;
	struct side side;
	bool ok;
};

static void *ask_often(void *ctx)
{
	struct asker *asker = ctx;

	asker->ok = true;
	for (unsigned i = 0; i < 20 && asker->ok; i++) {
		const evrec_explanation *e = evrec_explanation_new(asker->side.b, &pod, LONG, NULL);

		asker->ok = e != NULL && e->sinks_len == 1 && e->sinks[0].suppressed_len == 1;
		evrec_explanation_free(e);
	}
	return NULL;
}

/* Handles of one broadcaster, in threads: each gets its own answer. */
static void test_threads_ask_at_once(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	struct asker askers[3];
	struct world w;

	open_both(&w, EVREC_DRIVE_POLL, path);
	for (unsigned i = 0; i < 3; i++) {
		record(&w.sides[1], "a");
	}
	for (size_t i = 0; i < 3; i++) {
		assert_true(open_side(&askers[i].side, w.share, "worker", EVREC_DRIVE_POLL, path));
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
	}
	for (size_t i = 0; i < 3; i++) {
		(void)pthread_join(askers[i].thread, NULL);
		assert_true(askers[i].ok);
		close_side(&askers[i].side);
	}
	close_both(&w);
}

static void test_worker_without_an_owner_waits_no_longer_than_told(void **state)
{
	struct world w;
	struct side *side = &w.sides[1];
	evrec_broadcaster_options options;

	name_share(&w);
	evrec_broadcaster_options_init(&options);
	options.share = str_from(w.share);
	options.share_client_only = true;
	options.drive = EVREC_DRIVE_POLL;
	side->b = evrec_broadcaster_new(&options, NULL);
	/* Without a sink there is nothing to ask for. */
	evrec_explanation_free(explain(side, NULL));
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
	evrec_explanation_free(explain(side, NULL));
	assert_int_equal(role_of(side), EVREC_SHARE_OWNER);
	close_side(side);
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
	struct world w;

	name_share(&w);
	for (size_t i = 0; i < 2; i++) {
		assert_true(open_side(&w.sides[i], w.share, i == 0 ? "owner" : "worker", EVREC_DRIVE_POLL,
		                      tmpdir_path(*state, "events")));
		for (unsigned n = 0; n < 4; n++) {
			evrec_broadcaster_poll(w.sides[0].b);
			if (i == 1) {
				evrec_broadcaster_poll(w.sides[1].b);
			}
		}
	}
	assert_int_equal(role_of(&w.sides[1]), EVREC_SHARE_WORKER);
	check_fails(&w.sides[1], SHORT, EVREC_ETIMEOUT, "share: the owner did not answer within 20 ms");
	poller.b = w.sides[0].b;
	assert_int_equal(pthread_create(&poller.thread, NULL, poll_on, &poller), 0);
	evrec_explanation_free(explain(&w.sides[1], NULL));
	atomic_store(&poller.stops, true);
	(void)pthread_join(poller.thread, NULL);
	close_side(&w.sides[1]);
	close_side(&w.sides[0]);
}

/* While a worker waits for the answer of an owner that goes away, it takes its place. */
static void test_worker_whose_owner_goes_away_answers_itself(void **state)
{
	const evrec_explanation *e;
	struct world w;

	open_both(&w, EVREC_DRIVE_POLL, tmpdir_path(*state, "events"));
	record(&w.sides[1], "a");
	evrec_explanation_free(explain(&w.sides[1], NULL));
	assert_int_equal(evrec_broadcaster_shutdown(w.sides[0].b, LONG, NULL), 0);
	assert_int_equal(role_of(&w.sides[1]), EVREC_SHARE_WORKER);
	for (unsigned i = 0; i < 3; i++) {
		record(&w.sides[1], "a");
	}
	e = explain(&w.sides[1], NULL);
	assert_int_equal(role_of(&w.sides[1]), EVREC_SHARE_OWNER);
	assert_int_equal(e->sinks[0].suppressed_len, 1);
	evrec_explanation_free(e);
	close_both(&w);
}

static void test_worker_that_is_shut_down_asks_nobody(void **state)
{
	struct world w;

	open_both(&w, EVREC_DRIVE_POLL, tmpdir_path(*state, "events"));
	evrec_explanation_free(explain(&w.sides[1], NULL));
	assert_int_equal(evrec_broadcaster_shutdown(w.sides[1].b, LONG, NULL), 0);
	check_fails(&w.sides[1], LONG, EVREC_ECLOSED, "the broadcaster is shut down");
	/* The owner knows what it knew. */
	assert_int_equal(evrec_broadcaster_shutdown(w.sides[0].b, LONG, NULL), 0);
	evrec_explanation_free(explain(&w.sides[0], NULL));
	close_both(&w);
}

/* A call that waits is refused inside of a callback; the owner's does not wait. */
static void test_worker_does_not_wait_inside_a_callback(void **state)
{
	struct world w;

	open_both(&w, EVREC_DRIVE_POLL, tmpdir_path(*state, "events"));
	for (size_t i = 0; i < 2; i++) {
		struct side *side = &w.sides[i];

		side->explains = true;
		for (unsigned n = 0; n < 3; n++) {
			record(side, "a");
		}
		assert_int_equal(evrec_broadcaster_flush(side->b, LONG, NULL), 0);
		assert_false(side->explains);
	}
	assert_non_null(w.sides[0].inner);
	assert_null(w.sides[1].inner);
	assert_int_equal(w.sides[1].inner_err.code, EVREC_EINVALID);
	unit_check_contains(w.sides[1].inner_err.message, "inside a callback");
	close_both(&w);
}

/* A child asks the owner by a connection of its own, and never its parent's. */
static void check_child(void **state, enum evrec_drive drive)
{
	struct world w;
	int status = -1;
	pid_t pid;

	open_both(&w, drive, tmpdir_path(*state, "events"));
	for (unsigned i = 0; i < 3; i++) {
		record(&w.sides[1], "a");
	}
	evrec_explanation_free(explain(&w.sides[1], NULL));
	pid = fork();
	if (pid == 0) {
		const evrec_explanation *e = evrec_explanation_new(w.sides[1].b, NULL, LONG, NULL);

		_exit(e != NULL && e->sinks_len == 1 && e->sinks[0].suppressed_len == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close_both(&w);
}

static void test_child_of_a_worker_asks_the_owner(void **state)
{
	check_child(state, EVREC_DRIVE_POLL);
}

static void test_child_of_a_worker_with_a_thread_asks_the_owner(void **state)
{
	check_child(state, EVREC_DRIVE_THREAD);
}

/* ---- memory ---- */

static const char *memory_path;

static void scenario(void)
{
	const evrec_explanation *e;
	evrec_error err = { 0 };
	struct side side;

	assert_true(open_side(&side, "", "", EVREC_DRIVE_POLL, memory_path));
	for (unsigned i = 0; i < 3; i++) {
		record(&side, "a");
	}
	alloc_failure_arm();
	e = evrec_explanation_new(side.b, NULL, LONG, &err);
	alloc_failure_check_error(e != NULL, &err);
	alloc_failure_disarm();
	evrec_explanation_free(e);
	(void)evrec_broadcaster_shutdown(side.b, LONG, NULL);
	close_side(&side);
}

static void test_no_memory(void **state)
{
	memory_path = tmpdir_path(*state, "events");
	alloc_failure_run(scenario, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_explanation_is_a_copy),
		TMPDIR_TEST(test_no_memory),
		TMPDIR_TEST(test_worker_that_polls_gets_the_owners_explanation),
		TMPDIR_TEST(test_worker_with_a_thread_gets_the_owners_explanation),
		TMPDIR_TEST(test_explanation_of_many_objects),
		TMPDIR_TEST(test_threads_ask_at_once),
		TMPDIR_TEST(test_worker_without_an_owner_waits_no_longer_than_told),
		TMPDIR_TEST(test_silent_owner_is_not_waited_for),
		TMPDIR_TEST(test_worker_whose_owner_goes_away_answers_itself),
		TMPDIR_TEST(test_worker_that_is_shut_down_asks_nobody),
		TMPDIR_TEST(test_worker_does_not_wait_inside_a_callback),
		TMPDIR_TEST(test_child_of_a_worker_asks_the_owner),
		TMPDIR_TEST(test_child_of_a_worker_with_a_thread_asks_the_owner),
	};

	return cmocka_run_group_tests_name("explanation", tests, NULL, NULL);
}

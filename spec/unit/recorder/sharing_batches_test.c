/*
 * Which occurrences of a worker an owner notes in a batch of acknowledgements: the next owner counts none of them twice if this
 * one is killed as it ends, or has no memory.
 */
#include "sharing_fixture.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "alloc_failure.h"
#include "recorder/sharing_inner.h"
#include "share/share_inner.h"
#include "sink/sink.h"

/* Of the worker: in a batch that was sent, and recorded later. */
#define FIRST 2
#define LATER 3

#define COUNT "\"count\":"

static enum evrec_share_role role(const struct side *side)
{
	return sharing_role(side->b->hub);
}

static void record(const struct side *side, unsigned n)
{
	while (n-- > 0) {
		assert_int_equal(side_record(side, "a"), 0);
	}
}

/* ---- an owner that is killed as it ends ---- */

struct world {
	struct sharing_fixture f;
	char path[256], state[256];
	int phases[2]; /* a pipe: the owner has a byte for each phase that begins */
};

static struct side *open_side(struct world *w, size_t i)
{
	const evrec_broadcaster_options options = sharing_fixture_options(&w->f, i, &w->f.sides[i]);
	evrec_sink_options common;

	evrec_sink_options_init(&common);
	common.state_file = str_from(w->state);
	assert_true(side_open_limited(&w->f.sides[i], &options, w->path, &common));
	return &w->f.sides[i];
}

static void begin_phase(const struct world *w)
{
	(void)!write(w->phases[1], "p", 1);
}

/* The worker, if there is one yet, goes on meanwhile. */
static void await_phase(const struct world *w, const struct side *worker)
{
	struct pollfd polled = { .fd = w->phases[0], .events = POLLIN };
	const int64_t deadline = unit_mono() + SOON;
	char c;

	while (poll(&polled, 1, 1) == 0) {
		assert_true(unit_mono() < deadline);
		if (worker != NULL) {
			evrec_broadcaster_poll(worker->b);
		}
	}
	assert_int_equal(read(w->phases[0], &c, 1), 1);
}

static void read_all(const struct side *side, uint64_t n)
{
	while (side_stats(side).received < n) {
		share_step(side->b->hub->sharing->share, unit_mono(), 0);
	}
}

/* Without a step of the share. */
static void write_all(const struct side *side)
{
	struct sharing *sh = side->b->hub->sharing;
	const struct pipeline *pipeline = sharing_sink_at(side->b->hub, 0)->pipeline;

	atomic_store(&sh->stepping, true);
	while (sh->unsettled != 0 || !pipeline_state_has(pipeline, pipeline_state_changes(pipeline))) {
		evrec_broadcaster_poll(side->b);
	}
	atomic_store(&sh->stepping, false);
}

/* Answers come after the last step, which has sent a batch, and before the last batch. That one is not sent. */
static void own_until_killed(struct world *w)
{
	struct side *side = open_side(w, 0);
	struct hub *hub = side->b->hub;

	(void)alarm(60); /* the test may have failed meanwhile */
	while (role(side) != EVREC_SHARE_OWNER) {
		evrec_broadcaster_poll(side->b);
	}
	begin_phase(w);
	read_all(side, FIRST);
	write_all(side);
	(void)sharing_take_answers(hub);
	write_all(side);
	(void)sharing_take_answers(hub);
	begin_phase(w);
	read_all(side, FIRST + LATER);
	atomic_store(&hub->sharing->stops, true);
	write_all(side);
	atomic_store(&hub->sharing->stops, false);
	(void)sharing_stop(hub, 0);
	write_all(side);
	(void)kill(getpid(), SIGKILL);
}

static void test_owner_is_killed_before_it_sends_its_last_batch(void **state)
{
	const int64_t deadline = unit_mono() + SOON;
	struct world w = { .path = "" };
	const struct side *side;
	int status = 0;
	pid_t pid;

	sharing_fixture_init(&w.f);
	(void)snprintf(w.path, sizeof(w.path), "%s", tmpdir_path(*state, "events"));
	(void)snprintf(w.state, sizeof(w.state), "%s", tmpdir_path(*state, "state"));
	assert_int_equal(pipe(w.phases), 0);
	pid = fork();
	if (pid == 0) {
		own_until_killed(&w);
	}
	await_phase(&w, NULL);
	side = open_side(&w, 1);
	record(side, FIRST);
	await_phase(&w, side);
	record(side, LATER);
	while ((waitpid(pid, &status, WNOHANG) == 0 || role(side) != EVREC_SHARE_OWNER) && unit_mono() < deadline) {
		evrec_broadcaster_poll(side->b);
	}
	assert_true(WIFSIGNALED(status));
	assert_int_equal(role(side), EVREC_SHARE_OWNER);
	assert_int_equal(side_stats(side).forwarded, FIRST);
	record(side, 1);
	assert_int_equal(evrec_broadcaster_flush(side->b, SOON, NULL), 0);
	assert_int_equal(tmpdir_last_number(w.path, COUNT), FIRST + LATER + 1);
	(void)close(w.phases[0]);
	(void)close(w.phases[1]);
	sharing_fixture_close(&w.f);
}

/* ---- memory ---- */

static const char *memory_path;

static void open_pair(struct sharing_fixture *f)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };

	sharing_fixture_init(f);
	for (size_t i = 0; i < 2; i++) {
		struct side *side = &f->sides[i];
		evrec_broadcaster_options options = sharing_fixture_options(f, i, side);
		evrec_sink *sink = evrec_sink_file(str_from(memory_path), NULL, NULL);

		options.drive = EVREC_DRIVE_POLL;
		sink->min_interval = 3600 * EVREC_SECOND;
		side->b = evrec_broadcaster_new(&options, NULL);
		side->watch = evrec_broadcaster_start_recording_to_sink(side->b, sink, NULL, NULL);
		side->r = evrec_recorder_new(side->b, &source, NULL);
		evrec_sink_release(sink);
		evrec_broadcaster_poll(side->b);
	}
	sharing_fixture_poll(f, 4);
}

/* The worker has sent a second occurrence, which waits, when the first one gets into a batch: only the first is forgotten. */
static void begin_batch(void)
{
	struct sharing_fixture f;
	struct side *owner = &f.sides[0], *worker = &f.sides[1];
	struct hub *hub, *other;

	(void)unlink(memory_path);
	open_pair(&f);
	hub = owner->b->hub;
	other = worker->b->hub;
	record(worker, 1);
	evrec_broadcaster_poll(worker->b);
	evrec_broadcaster_poll(owner->b);
	assert_true(hub->sharing->settled.len != 0);
	record(worker, 1);
	evrec_broadcaster_poll(worker->b);
	share_step(hub->sharing->share, unit_mono(), 0);
	assert_int_equal(side_stats(owner).received, 2);
	alloc_failure_arm();
	(void)sharing_take_answers(hub);
	alloc_failure_ignore();
	alloc_failure_disarm();
	sharing_fixture_poll(&f, 4);
	if (side_stats(owner).received == 2) {
		/* The worker has got the batch, and its connection has not ended for want of memory. */
		assert_int_equal(side_stats(worker).forwarded, 1);
		(void)shutdown(other->sharing->share->link.line.fd, SHUT_RDWR);
		sharing_fixture_poll(&f, 8);
		assert_int_equal(side_stats(owner).received, 3);
		assert_int_equal(evrec_broadcaster_flush(owner->b, SOON, NULL), 0);
		assert_int_equal(tmpdir_last_number(memory_path, COUNT), 2);
	}
	assert_int_equal(evrec_broadcaster_flush(owner->b, SOON, NULL), 0);
	sharing_fixture_poll(&f, 8);
	assert_true(sharing_is_settled(other));
	sharing_fixture_close(&f);
}

static void test_no_memory_for_a_batch(void **state)
{
	memory_path = tmpdir_path(*state, "events");
	alloc_failure_run(begin_batch, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_owner_is_killed_before_it_sends_its_last_batch),
		TMPDIR_TEST(test_no_memory_for_a_batch),
	};

	return cmocka_run_group_tests_name("sharing_batches", tests, NULL, NULL);
}

/*
 * An owner of a shared recorder that ends without a shutdown: what it has counted of its workers, the next owner does not
 * count again.
 */
#include "sharing_fixture.h"

#include <fcntl.h>
#include <poll.h>

#define EVENTS 3 /* of the worker, that the owner has counted and not acknowledged */

static enum evrec_share_role role_of(const struct side *side)
{
	evrec_stats stats;

	evrec_broadcaster_get_stats(side->b, &stats);
	return stats.share_role;
}

static void poll_until(const struct side *side, enum evrec_share_role role)
{
	const int64_t deadline = unit_mono() + SOON;

	while (role_of(side) != role && unit_mono() < deadline) {
		evrec_broadcaster_poll(side->b);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(role_of(side), role);
}

/* The worker is the owner by now. One more occurrence adds one to the count that the last owner wrote. */
static void check_counts_on(const struct side *side)
{
	evrec_sink_stats s;

	assert_int_equal(side_record(side, "a"), 0);
	assert_int_equal(evrec_broadcaster_flush(side->b, SOON, NULL), 0);
	s = side_stats(side);
	assert_int_equal(s.forwarded, EVENTS);
	assert_int_equal(s.created, 0);
	assert_int_equal(s.patched + s.coalesced, 1);
	assert_int_equal(side->errors, 0);
}

static void record_some(const struct side *side)
{
	for (unsigned i = 0; i < EVENTS; i++) {
		assert_int_equal(side_record(side, "a"), 0);
	}
	evrec_broadcaster_poll(side->b);
}

/* Without a thread, polls of other broadcasters go on with it. */
static void test_owner_that_is_freed_hands_over(void **state)
{
	struct sharing_fixture f;

	sharing_fixture_open(&f, tmpdir_path(*state, "events"), 25);
	record_some(&f.sides[1]);
	evrec_broadcaster_poll(f.sides[0].b);
	assert_int_equal(side_stats(&f.sides[0]).received, EVENTS);
	side_close(&f.sides[0]);
	poll_until(&f.sides[1], EVREC_SHARE_OWNER);
	check_counts_on(&f.sides[1]);
	sharing_fixture_close(&f);
}

/* Once it ends, an owner takes no more events: they are the next owner's. */
static void test_owner_that_is_freed_leaves_what_it_has_not_read(void **state)
{
	struct sharing_fixture f;

	sharing_fixture_open(&f, tmpdir_path(*state, "events"), 25);
	record_some(&f.sides[1]);
	side_close(&f.sides[0]);
	poll_until(&f.sides[1], EVREC_SHARE_OWNER);
	assert_int_equal(evrec_broadcaster_flush(f.sides[1].b, SOON, NULL), 0);
	assert_int_equal(side_stats(&f.sides[1]).created, 1);
	assert_int_equal(side_stats(&f.sides[1]).coalesced + side_stats(&f.sides[1]).patched, EVENTS - 1);
	assert_int_equal(f.sides[1].errors, 0);
	sharing_fixture_close(&f);
}

/* ---- the end of a process ---- */

enum ending { BY_EXIT, BY_SIGNAL, BY_FREE, ENDINGS };

struct life {
	const struct sharing_fixture *f;
	const char *path;
	int ready; /* a pipe: a byte says that the process is the owner */
	bool threads;
	enum ending ending;
};

/* The process of an owner: ends as soon as it has counted the events of its worker. */
static int live(const struct life *l)
{
	static const int signals[] = { SIGTERM };
	static struct side side; /* static, as exit() comes before all is freed, and what is left must not be a leak */
	const evrec_broadcaster_options options = sharing_fixture_options(l->f, 0, &side);
	const enum evrec_drive drive = l->threads ? EVREC_DRIVE_AUTO : EVREC_DRIVE_POLL;

	if (!side_open_driven(&side, &options, l->path, 25, drive) || evrec_on_signal(signals, 1, SOON, NULL) != 0) {
		return 1;
	}
	poll_until(&side, EVREC_SHARE_OWNER);
	if (write(l->ready, "", 1) != 1) {
		return 2;
	}
	while (side_stats(&side).received < EVENTS) {
		evrec_broadcaster_poll(side.b);
	}
	if (l->ending == BY_SIGNAL) {
		(void)raise(SIGTERM);
		(void)pause();
	}
	if (l->ending == BY_FREE) {
		side_close(&side);
	}
	return 0;
}

static void end_owner(void **state, bool threads, enum ending ending)
{
	struct life l = { .threads = threads, .ending = ending };
	struct sharing_fixture f;
	evrec_broadcaster_options options;
	char path[256], byte;
	int ends[2];
	pid_t child;

	sharing_fixture_init(&f);
	(void)snprintf(path, sizeof(path), "%s-%d-%d", tmpdir_path(*state, "events"), threads, ending);
	assert_int_equal(pipe(ends), 0);
	l.f = &f;
	l.path = path;
	l.ready = ends[1];
	child = fork();
	if (child == 0) {
		exit(live(&l));
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	options = sharing_fixture_options(&f, 1, &f.sides[1]);
	assert_true(side_open(&f.sides[1], &options, path, 25));
	poll_until(&f.sides[1], EVREC_SHARE_WORKER);
	record_some(&f.sides[1]);
	poll_until(&f.sides[1], EVREC_SHARE_OWNER);
	check_counts_on(&f.sides[1]);
	assert_int_equal(unit_wait(child), ending == BY_SIGNAL ? SIGTERM : 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
	sharing_fixture_close(&f);
}

static void test_owner_whose_process_ends_hands_over(void **state)
{
	if (UNDER_TSAN) {
		skip(); /* it supports no threads in the child of a process that has some */
	}
	for (int threads = 0; threads <= 1; threads++) {
		for (enum ending ending = 0; ending < ENDINGS; ending++) {
			end_owner(state, threads == 1, ending);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_owner_that_is_freed_hands_over),
		TMPDIR_TEST(test_owner_that_is_freed_leaves_what_it_has_not_read),
		TMPDIR_TEST(test_owner_whose_process_ends_hands_over),
	};

	return cmocka_run_group_tests_name("sharing_owner_end", tests, NULL, NULL);
}

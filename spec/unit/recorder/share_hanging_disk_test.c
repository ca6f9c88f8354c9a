/*
 * A share with a state file on a disk that hangs: if its thread waits for the file, the broadcaster's end is bounded, and tells;
 * if a sink's thread does, the owner acknowledges nothing that the file lacks. read() and write() are this file's: one of
 * the state file lasts until the test lets it go on.
 */
#include "sharing_fixture.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw_connection.h"
#include "recorder/sharing.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hangs, is_hanging;
static bool hangs_written; /* it is a write() that hangs */
static bool awaits_event;  /* nothing hangs before an event is written */
static bool has_event;     /* one was */

static bool is_in(int fd, const char *words)
{
	char link[64], path[512];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	return strstr(path, words) != NULL;
}

static bool does_hang(bool written)
{
	return hangs && hangs_written == written && (has_event || !awaits_event);
}

static void hang(int fd, bool written)
{
	if (is_in(fd, "/state")) {
		(void)pthread_mutex_lock(&lock);
		is_hanging = is_hanging || does_hang(written);
		(void)pthread_cond_broadcast(&changed);
		while (does_hang(written)) {
			(void)pthread_cond_wait(&changed, &lock);
		}
		(void)pthread_mutex_unlock(&lock);
	}
}

/* In place of the C library's. */
ssize_t read(int fd, void *data, size_t size)
{
	hang(fd, false);
	return syscall(SYS_read, fd, data, size);
}

ssize_t write(int fd, const void *data, size_t size)
{
	hang(fd, true);
	if (is_in(fd, "/events")) {
		(void)pthread_mutex_lock(&lock);
		has_event = true;
		(void)pthread_mutex_unlock(&lock);
	}
	return syscall(SYS_write, fd, data, size);
}

static void set_hangs(bool value, bool written)
{
	(void)pthread_mutex_lock(&lock);
	hangs = value;
	hangs_written = written;
	is_hanging = has_event = awaits_event = false;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
}

/* write() hangs once an event is written. */
static void hang_after_event(void)
{
	(void)pthread_mutex_lock(&lock);
	hangs = hangs_written = awaits_event = true;
	is_hanging = has_event = false;
	(void)pthread_mutex_unlock(&lock);
}

static void await_hanging(void)
{
	(void)pthread_mutex_lock(&lock);
	while (!is_hanging) {
		(void)pthread_cond_wait(&changed, &lock);
	}
	(void)pthread_mutex_unlock(&lock);
}

/* A process that is about to be the owner, whose thread hangs, and that has recorded an event. */
static void open_hanging(struct sharing_fixture *f, void **state)
{
	struct side *side = &f->sides[0];
	evrec_broadcaster_options options;
	evrec_sink_options common;

	sharing_fixture_init(f);
	options = sharing_fixture_options(f, 0, side);
	options.drive = EVREC_DRIVE_AUTO;
	evrec_sink_options_init(&common);
	common.state_file = str_from(tmpdir_path(*state, "state"));
	assert_true(side_open_with(side, &options, tmpdir_path(*state, "events"), &common));
	set_hangs(true, false);
	assert_int_equal(side_record(side, "a"), 0);
	await_hanging();
}

/* The disk works again: the thread lets go of the rest. */
static void let_go(const struct sharing_fixture *f)
{
	const int64_t deadline = unit_mono() + SOON;
	int fd;

	set_hangs(false, false);
	while ((fd = raw_connect(f->share)) >= 0) {
		(void)close(fd);
		assert_true(unit_mono() < deadline);
		(void)usleep(1000);
	}
}

static void test_shutdown_is_bounded_and_tells(void **state)
{
	struct sharing_fixture f;
	struct side *side = &f.sides[0];
	int64_t before;

	open_hanging(&f, state);
	before = unit_mono();
	assert_int_equal(evrec_broadcaster_shutdown(side->b, EVREC_SECOND / 10, NULL), EVREC_ELOST);
	assert_true(unit_mono() - before < SOON);
	assert_int_equal(side->drops, 1);
	assert_string_equal(side->why, "closed");
	assert_int_equal(side_stats(side).dropped[EVREC_CAUSE_CLOSED], 1);
	assert_int_equal(side->errors, 1);
	assert_string_equal(side->error_name, "share");
	unit_check_contains(side->error, "did not end in time");
	side_close(side);
	let_go(&f);
}

static void test_disk_that_works_again_before_the_free(void **state)
{
	struct sharing_fixture f;

	open_hanging(&f, state);
	assert_int_equal(evrec_broadcaster_shutdown(f.sides[0].b, 0, NULL), EVREC_ELOST);
	set_hangs(false, false);
	(void)usleep(EVREC_SECOND / 20 / 1000);
	side_close(&f.sides[0]);
	let_go(&f);
}

#define MANY 25 /* as many as there are tokens */

static void await(const struct sharing_fixture *f, enum evrec_share_role role, uint64_t ended)
{
	const struct side *worker = &f->sides[1];
	const int64_t deadline = unit_mono() + SOON;

	while (sharing_role(worker->b->hub) != role || side_stats(worker).forwarded < ended) {
		assert_true(unit_mono() < deadline);
		evrec_broadcaster_poll(worker->b);
		(void)usleep(1000);
	}
}

/* The first side, which has a thread, is the owner, and the second its worker. */
static void open_both(struct sharing_fixture *f, void **state, enum evrec_sink_api api)
{
	const int64_t deadline = unit_mono() + SOON;
	evrec_sink_options common;

	sharing_fixture_init(f);
	evrec_sink_options_init(&common);
	common.state_file = str_from(tmpdir_path(*state, "state"));
	common.api = api;
	for (size_t i = 0; i < 2; i++) {
		evrec_broadcaster_options options = sharing_fixture_options(f, i, &f->sides[i]);

		options.drive = i == 0 ? EVREC_DRIVE_AUTO : EVREC_DRIVE_POLL;
		assert_true(side_open_with(&f->sides[i], &options, tmpdir_path(*state, "events"), &common));
		while (i == 0 && sharing_role(f->sides[0].b->hub) != EVREC_SHARE_OWNER) {
			assert_true(unit_mono() < deadline);
			evrec_broadcaster_poll(f->sides[0].b);
		}
	}
	await(f, EVREC_SHARE_WORKER, 0);
}

/* An occurrence without a token has ended at once, and no state file has it. */
static void test_owner_acknowledges_nothing_that_its_state_lacks(void **state)
{
	const int64_t deadline = unit_mono() + SOON;
	struct sharing_fixture f;
	const struct side *owner = &f.sides[0], *worker = &f.sides[1];

	open_both(&f, state, EVREC_SINK_CORE_V1);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(side_record(worker, "a"), 0);
	}
	await(&f, EVREC_SHARE_WORKER, MANY);
	set_hangs(true, true);
	assert_int_equal(side_record(worker, "a"), 0);
	while (side_stats(owner).rate_limited == 0) {
		assert_true(unit_mono() < deadline);
		evrec_broadcaster_poll(worker->b);
	}
	await_hanging();
	(void)evrec_broadcaster_shutdown(owner->b, EVREC_SECOND / 10, NULL);
	evrec_broadcaster_poll(worker->b);
	assert_int_equal(side_stats(worker).rate_limited, 0);
	assert_int_equal(side_stats(worker).pending, 1);
	/* The disk works again: the next owner reads what the last one writes at its end. */
	side_close(&f.sides[0]);
	set_hangs(false, false);
	await(&f, EVREC_SHARE_OWNER, MANY);
	assert_int_equal(side_stats(worker).rate_limited, 1);
	assert_int_equal(worker->errors, 0);
	sharing_fixture_close(&f);
}

/* A state has no note of which occurrences of a series will come again: the next owner tells that it may count some twice. */
static void test_series_that_may_be_counted_twice_are_told(void **state)
{
	const int64_t deadline = unit_mono() + SOON;
	struct sharing_fixture f;
	const struct side *owner = &f.sides[0], *worker = &f.sides[1];

	open_both(&f, state, EVREC_SINK_EVENTS_V1);
	hang_after_event();
	assert_int_equal(side_record(worker, "a"), 0);
	while (side_stats(owner).created == 0) {
		assert_true(unit_mono() < deadline);
		evrec_broadcaster_poll(worker->b);
	}
	await_hanging();
	(void)evrec_broadcaster_shutdown(owner->b, EVREC_SECOND / 10, NULL);
	evrec_broadcaster_poll(worker->b);
	assert_int_equal(side_stats(worker).pending, 1);
	side_close(&f.sides[0]);
	set_hangs(false, true);
	await(&f, EVREC_SHARE_OWNER, 0);
	assert_int_equal(evrec_broadcaster_shutdown(worker->b, SOON, NULL), 0);
	assert_int_equal(worker->errors, 1);
	assert_string_equal(worker->error_name, "share");
	unit_check_contains(worker->error, "1 occurrences at most are counted twice");
	sharing_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_shutdown_is_bounded_and_tells),
		TMPDIR_TEST(test_disk_that_works_again_before_the_free),
		TMPDIR_TEST(test_owner_acknowledges_nothing_that_its_state_lacks),
		TMPDIR_TEST(test_series_that_may_be_counted_twice_are_told),
	};

	return cmocka_run_group_tests_name("share_hanging_disk", tests, NULL, NULL);
}

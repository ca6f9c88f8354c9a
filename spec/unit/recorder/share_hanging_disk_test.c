/*
 * A share whose thread waits for a state file on a disk that hangs: the broadcaster's end is bounded, and tells. read() is this
 * file's: one of the state file lasts until the test lets it go on.
 */
#include "sharing_fixture.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw_connection.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hangs, is_hanging;

static bool is_state(int fd)
{
	char link[64], path[512];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	return strstr(path, "/state") != NULL;
}

/* In place of the C library's. */
ssize_t read(int fd, void *data, size_t size)
{
	if (is_state(fd)) {
		(void)pthread_mutex_lock(&lock);
		is_hanging = hangs;
		(void)pthread_cond_broadcast(&changed);
		while (hangs) {
			(void)pthread_cond_wait(&changed, &lock);
		}
		(void)pthread_mutex_unlock(&lock);
	}
	return syscall(SYS_read, fd, data, size);
}

static void set_hangs(bool value)
{
	(void)pthread_mutex_lock(&lock);
	hangs = value;
	is_hanging = false;
	(void)pthread_cond_broadcast(&changed);
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
	set_hangs(true);
	assert_int_equal(side_record(side, "a"), 0);
	await_hanging();
}

/* The disk works again: the thread lets go of the rest. */
static void let_go(const struct sharing_fixture *f)
{
	const int64_t deadline = unit_mono() + SOON;
	int fd;

	set_hangs(false);
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
	set_hangs(false);
	(void)usleep(EVREC_SECOND / 20 / 1000);
	side_close(&f.sides[0]);
	let_go(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_shutdown_is_bounded_and_tells),
		TMPDIR_TEST(test_disk_that_works_again_before_the_free),
	};

	return cmocka_run_group_tests_name("share_hanging_disk", tests, NULL, NULL);
}

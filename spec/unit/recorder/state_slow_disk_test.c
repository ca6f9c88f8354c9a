/*
 * A sink with a state file on a slow disk, in a broadcaster with a name: calls of other threads do not wait for its last write;
 * nor, in a share, for it to be opened. read() and write() are this file's: one of the state file lasts until another
 * handle was used.
 */
#define _GNU_SOURCE /* pthread_timedjoin_np */

#include "tmpdir.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder/broadcaster.h"

struct side {
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_recorder *r;
};

static struct side first, other;
static bool armed;
static unsigned waits, blocked;

static int record(const struct side *side, const char *name)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = str_from(name), .ns = EVREC_STR("n") };
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &pod;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("R");
	return evrec_recorder_emit(side->r, &emit, NULL);
}

/* Takes the lock, as a recording call does. */
static void *use_other(void *ctx)
{
	evrec_stats stats;

	(void)ctx;
	evrec_broadcaster_get_stats(other.b, &stats);
	return NULL;
}

static bool is_state(int fd)
{
	char link[64], path[512];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	return strstr(path, "/state") != NULL;
}

static void use_disk(int fd)
{
	struct timespec until;
	pthread_t thread;

	if (!armed || !is_state(fd)) {
		return;
	}
	armed = false;
	waits++;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SOON / EVREC_SECOND;
	assert_int_equal(pthread_create(&thread, NULL, use_other, NULL), 0);
	if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
		blocked++;
		(void)pthread_detach(thread);
	}
	armed = true;
}

ssize_t write(int fd, const void *data, size_t size)
{
	use_disk(fd);
	return syscall(SYS_write, fd, data, size);
}

ssize_t read(int fd, void *data, size_t size)
{
	use_disk(fd);
	return syscall(SYS_read, fd, data, size);
}

static void open_side(struct side *side, const char *share, const char *out, const char *state_file)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	evrec_broadcaster_options options;
	evrec_sink_options common;
	evrec_sink *sink;

	evrec_broadcaster_options_init(&options);
	options.name = EVREC_STR("slow-disk");
	options.share = str_from(share);
	options.drive = EVREC_DRIVE_POLL;
	evrec_sink_options_init(&common);
	common.state_file = str_from(state_file);
	side->b = evrec_broadcaster_new(&options, NULL);
	sink = evrec_sink_file(str_from(out), &common, NULL);
	assert_non_null(side->b);
	assert_non_null(sink);
	side->watch = evrec_broadcaster_start_recording_to_sink(side->b, sink, NULL, NULL);
	side->r = evrec_recorder_new(side->b, &source, NULL);
	assert_non_null(side->watch);
	assert_non_null(side->r);
	evrec_sink_release(sink);
}

static void close_side(struct side *side)
{
	armed = false;
	evrec_watch_free(side->watch);
	evrec_recorder_free(side->r);
	evrec_broadcaster_free(side->b);
	*side = (struct side){ .b = NULL };
}

static void open_both(void **state, const char *share)
{
	const char *out = tmpdir_path(*state, "out"), *state_file = tmpdir_path(*state, "state");

	waits = blocked = 0;
	open_side(&first, share, out, state_file);
	open_side(&other, share, out, state_file);
}

static void close_both(void)
{
	assert_true(waits >= 1);
	assert_int_equal(blocked, 0);
	close_side(&first);
	close_side(&other);
}

static void record_twice(void)
{
	assert_int_equal(record(&first, "a"), 0);
	evrec_broadcaster_poll(first.b);
	assert_int_equal(record(&first, "a"), 0);
}

static void test_stopped_sink(void **state)
{
	open_both(state, "");
	record_twice();
	evrec_watch_stop(other.watch);
	evrec_watch_stop(first.watch);
	armed = true;
	for (unsigned i = 0; i < 10; i++) {
		evrec_broadcaster_poll(first.b);
	}
	close_both();
}

static void test_shutdown_of_the_last_handle(void **state)
{
	open_both(state, "");
	record_twice();
	assert_int_equal(evrec_broadcaster_shutdown(other.b, SOON, NULL), 0);
	assert_int_equal(record(&first, "c"), 0);
	armed = true;
	assert_int_equal(evrec_broadcaster_shutdown(first.b, SOON, NULL), 0);
	close_both();
}

static void test_owner_that_begins(void **state)
{
	char share[64];

	(void)snprintf(share, sizeof(share), "@evrec-slow-disk-%ld", (long)getpid());
	open_both(state, share);
	armed = true;
	assert_int_equal(record(&first, "a"), 0);
	evrec_broadcaster_poll(first.b);
	armed = false;
	assert_int_equal(evrec_broadcaster_shutdown(other.b, SOON, NULL), 0);
	assert_int_equal(evrec_broadcaster_shutdown(first.b, SOON, NULL), 0);
	close_both();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_stopped_sink),
		TMPDIR_TEST(test_shutdown_of_the_last_handle),
		TMPDIR_TEST(test_owner_that_begins),
	};

	return cmocka_run_group_tests_name("state_slow_disk", tests, NULL, NULL);
}

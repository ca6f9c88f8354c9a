#define _GNU_SOURCE

#include "items.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128];

/* A sender without a thread, so that each step is the test's. */
struct fixture {
	struct outbox *ob;
	struct sender *sender;
	evrec_clock *clock;
};

static struct fixture open_at(const char *where)
{
	struct fixture f = { .ob = items_outbox(1000), .clock = evrec_clock_fake(0) };
	struct sender_options options = { .max_in_flight = 1, .clock = f.clock, .threadless = true };
	evrec_error err;

	f.sender = sender_new(f.ob, file_transport_new(where, item_encode, &err), &options);
	assert_non_null(f.sender);
	return f;
}

static void close_fixture(struct fixture *f)
{
	(void)sender_join(f->sender, 0);
	assert_equation(f->ob);
	sender_release(f->sender);
	evrec_clock_release(f->clock);
	assert_int_equal(items_alive, 0);
}

static void step_at(struct fixture *f, int64_t now)
{
	evrec_clock_set(f->clock, now);
	sender_step(f->sender);
}

static uint64_t pending(struct fixture *f)
{
	struct outbox_stats stats;

	outbox_get_stats(f->ob, &stats);
	return stats.pending;
}

static void assert_file(const char *expected)
{
	char text[1024] = { 0 };
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, expected);
}

static void assert_report(struct fixture *f, const char *expected)
{
	struct outbox_report report;

	assert_true(outbox_next_report(f->ob, &report));
	assert_string_equal(report.name, "transport");
	if (strstr(report.message, expected) == NULL) {
		fail_msg("\"%s\" is not in \"%s\"", expected, report.message);
	}
}

static void test_lines(void **state)
{
	struct fixture f = open_at(path);
	struct stat st;

	(void)state;
	sender_step(f.sender);
	assert_int_equal(access(path, F_OK), -1); /* nothing is made before it is needed */
	item_submit(f.ob, 1, 1);
	item_submit(f.ob, 2, 1);
	sender_step(f.sender);
	item_submit(f.ob, 1, 2);
	sender_step(f.sender);
	assert_int_equal(pending(&f), 0);
	close_fixture(&f);
	/* Another one appends. */
	f = open_at(path);
	item_submit(f.ob, 3, 1);
	sender_step(f.sender);
	close_fixture(&f);
	assert_file("{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n2\",\"count\":1}\n{\"name\":\"n1\",\"count\":2}\n"
	            "{\"name\":\"n3\",\"count\":1}\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777 & ~0644u, 0);
}

static void test_missing_folder_is_tried_again(void **state)
{
	char missing[96], file[128];
	struct fixture f;

	(void)state;
	snprintf(missing, sizeof(missing), "%s/missing", folder);
	snprintf(file, sizeof(file), "%s/log", missing);
	f = open_at(file);
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_report(&f, "No such file or directory");
	assert_int_equal(pending(&f), 1);
	assert_int_equal(mkdir(missing, 0755), 0);
	step_at(&f, EVREC_SECOND);
	assert_int_equal(pending(&f), 0);
	unlink(file);
	rmdir(missing);
	close_fixture(&f);
}

static void test_folder_is_no_file(void **state)
{
	struct fixture f = open_at(folder);

	(void)state;
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_report(&f, "Is a directory");
	close_fixture(&f);
}

/* A disk with room for `bytes` in a file. */
static void limit(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_full_disk_and_fragments(void **state)
{
	struct fixture f = open_at(path);
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);

	(void)state;
	item_submit(f.ob, 1, 1);
	sender_step(f.sender); /* 24 bytes */
	limit(24);
	item_submit(f.ob, 2, 1);
	step_at(&f, 0);
	assert_report(&f, "File too large");
	assert_file("{\"name\":\"n1\",\"count\":1}\n");
	/* Room for a part of the line: the next try does not glue to it, nor do the others. */
	limit(34);
	step_at(&f, EVREC_SECOND);
	assert_file("{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n");
	limit(35);
	step_at(&f, 3 * EVREC_SECOND);
	assert_file("{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n\n");
	limit(RLIM_INFINITY);
	item_submit(f.ob, 3, 1);
	step_at(&f, 60 * EVREC_SECOND);
	assert_file("{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n\n{\"name\":\"n2\",\"count\":1}\n{\"name\":\"n3\","
	            "\"count\":1}\n");
	assert_int_equal(pending(&f), 0);
	close_fixture(&f);
	signal(SIGXFSZ, old);
}

static void test_file_is_opened_anew_after_an_error(void **state)
{
	struct fixture f = open_at(path);
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);

	(void)state;
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	limit(24);
	item_submit(f.ob, 2, 1);
	sender_step(f.sender);
	/* Whoever made room did so by taking the file away. */
	unlink(path);
	limit(RLIM_INFINITY);
	step_at(&f, EVREC_SECOND);
	assert_file("{\"name\":\"n2\",\"count\":1}\n");
	close_fixture(&f);
	signal(SIGXFSZ, old);
}

static void test_pipe(void **state)
{
	struct fixture f;
	char text[128];
	ssize_t len;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(path, 0644), 0);
	f = open_at(path);
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_report(&f, "No such device or address"); /* nobody reads; and no waiting for it */
	fd = open(path, O_RDONLY | O_NONBLOCK);
	step_at(&f, EVREC_SECOND);
	len = read(fd, text, sizeof(text));
	assert_int_equal(len, 24);
	assert_memory_equal(text, "{\"name\":\"n1\",\"count\":1}\n", 24);
	/* The reader goes: no signal, an error; and comes back. */
	close(fd);
	item_submit(f.ob, 1, 2);
	step_at(&f, EVREC_SECOND);
	assert_report(&f, "Broken pipe");
	fd = open(path, O_RDONLY | O_NONBLOCK);
	step_at(&f, 3 * EVREC_SECOND);
	assert_int_equal(read(fd, text, sizeof(text)), 24);
	assert_int_equal(pending(&f), 0);
	close(fd);
	close_fixture(&f);
}

static void test_standard_output(void **state)
{
	int saved = dup(STDOUT_FILENO), fd;
	struct fixture f = open_at("-");

	(void)state;
	fflush(stdout);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	dup2(fd, STDOUT_FILENO);
	close(fd);
	item_submit(f.ob, 1, 1);
	sender_step(f.sender);
	close(STDOUT_FILENO);
	item_submit(f.ob, 2, 1);
	sender_step(f.sender);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_report(&f, "-: Bad file descriptor");
	assert_file("{\"name\":\"n1\",\"count\":1}\n");
	close_fixture(&f);
	assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0); /* it is not ours to close */
}

static void test_thread(void **state)
{
	struct fixture f = { .ob = items_outbox(1000) };
	struct sender_options options = { .max_in_flight = 1, .clock = evrec_clock_real() };
	struct outbox_stats stats;

	(void)state;
	f.sender = sender_new(f.ob, file_transport_new(path, item_encode, NULL), &options);
	for (unsigned i = 1; i <= 100; i++) {
		item_submit(f.ob, i, 1);
	}
	assert_true(sender_join(f.sender, clock_monotonic(evrec_clock_real()) + 10 * EVREC_SECOND));
	outbox_get_stats(f.ob, &stats);
	assert_int_equal(stats.created, 100);
	close_fixture(&f);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), P_tmpdir "/evrec-file-XXXXXX");
	if (mkdtemp(folder) == NULL) {
		return -1;
	}
	snprintf(path, sizeof(path), "%s/log", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	limit(RLIM_INFINITY);
	unlink(path);
	return rmdir(folder);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_lines),
		test(test_missing_folder_is_tried_again),
		test(test_folder_is_no_file),
		test(test_full_disk_and_fragments),
		test(test_file_is_opened_anew_after_an_error),
		test(test_pipe),
		test(test_standard_output),
		test(test_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

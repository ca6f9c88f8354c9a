/*
 * The file sink and what can be full: pipes, sockets and terminals, its own or shared. It never waits in a write, loses
 * nothing, and cuts no line but the last one.
 */
#define _GNU_SOURCE

#include "folder.h"
#include "items.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES 20
#define SOON (20 * EVREC_SECOND)
#define STUCK 60 /* seconds after which a test that waits in a write is killed */

#define LINE 5000 /* more than is ever written at once */

static size_t line_len;

struct fixture {
	struct outbox *ob;
	struct sender *sender;
	evrec_clock *clock;
	const char *path;
	int fd;          /* the reader's end */
	struct buf text; /* what it has read */
};

static int64_t mono(void)
{
	return clock_monotonic(evrec_clock_real());
}

/* "n1 xxx...", of line_len bytes with its newline. */
static bool encode(const void *item, enum body body, struct request *request)
{
	const struct item *it = item;
	struct buf line = { 0 };

	(void)body;
	buf_printf(&line, "%s ", it->name);
	while (line.len < line_len - 1) {
		buf_put(&line, "x", 1);
	}
	*request = (struct request){ .body = line.data, .body_len = line.len };
	return !line.failed;
}

static void open_sink(struct fixture *f, const char *path, bool threadless)
{
	struct sender_options options = { .max_in_flight = 1, .threadless = threadless };

	f->clock = options.clock = threadless ? evrec_clock_fake(0) : evrec_clock_retain(evrec_clock_real());
	f->ob = items_outbox(1000);
	f->sender = sender_new(f->ob, file_transport_new(path, encode, NULL), &options);
	assert_non_null(f->sender);
}

/* A pipe that holds less than a line, and a reader that does not read. */
static void open_fifo(struct fixture *f, void **state, bool threadless)
{
	*f = (struct fixture){ .path = in_folder(*state, "fifo") };
	assert_int_equal(mkfifo(f->path, 0644), 0);
	f->fd = open(f->path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(fcntl(f->fd, F_SETPIPE_SZ, 4096), 4096);
	open_sink(f, f->path, threadless);
}

static struct outbox_stats stats_of(struct fixture *f)
{
	struct outbox_stats stats;

	assert_equation(f->ob);
	outbox_get_stats(f->ob, &stats);
	return stats;
}

static void submit_all(struct fixture *f)
{
	for (unsigned i = 1; i <= LINES; i++) {
		assert_true(item_submit(f->ob, i, 1));
	}
}

static void read_some(struct fixture *f)
{
	char bytes[4096];
	ssize_t len;

	while ((len = read(f->fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < len; i++) {
			if (bytes[i] != '\r') { /* a terminal's */
				buf_put(&f->text, bytes + i, 1);
			}
		}
	}
}

static void assert_line(const char *line, unsigned n)
{
	char begin[16];
	size_t len = (size_t)snprintf(begin, sizeof(begin), "n%u ", n);

	assert_memory_equal(line, begin, len);
	assert_int_equal(strspn(line + len, "x"), line_len - 1 - len);
	assert_int_equal(line[line_len - 1], '\n');
}

/* All were read, whole and in order. */
static void assert_all(const struct fixture *f)
{
	assert_int_equal(f->text.len, LINES * line_len);
	for (unsigned i = 0; i < LINES; i++) {
		assert_line(f->text.data + i * line_len, i + 1);
	}
}

/* Nothing left that blocked, and nothing lost; then the reader reads. */
static void step_until_all_is_read(struct fixture *f)
{
	struct outbox_stats stats;

	for (unsigned i = 0; i < 3; i++) {
		sender_step(f->sender);
		stats = stats_of(f);
		assert_int_equal(stats.in_flight, 1);
		assert_int_equal(stats.pending + stats.created, LINES);
	}
	for (unsigned rounds = 0; !outbox_empty(f->ob); rounds++) {
		assert_true(rounds < 1000);
		read_some(f);
		sender_step(f->sender);
		(void)stats_of(f);
	}
	read_some(f);
	assert_int_equal(stats_of(f).created, LINES);
	assert_int_equal(stats_of(f).retries, 0);
	assert_all(f);
}

static void close_sink(struct fixture *f)
{
	(void)sender_join(f->sender, 0);
	assert_equation(f->ob);
	sender_release(f->sender);
	evrec_clock_release(f->clock);
	assert_int_equal(items_alive, 0);
	buf_free(&f->text);
	close(f->fd);
	if (f->path != NULL) {
		unlink(f->path);
	}
}

static void test_full_pipe(void **state)
{
	struct fixture f;

	open_fifo(&f, state, true);
	submit_all(&f);
	step_until_all_is_read(&f);
	close_sink(&f);
}

static void test_full_pipe_with_a_thread(void **state)
{
	int64_t deadline = mono() + SOON;
	struct fixture f;

	open_fifo(&f, state, false);
	submit_all(&f);
	while (stats_of(&f).pending != 0) {
		assert_true(mono() < deadline);
		read_some(&f);
		usleep(1000);
	}
	read_some(&f);
	assert_all(&f);
	close_sink(&f);
}

/* The line that is cut off counts as dropped, with those behind it. */
static void end_while_full(void **state, bool threadless)
{
	struct outbox_stats stats;
	struct fixture f;
	int64_t start;

	open_fifo(&f, state, threadless);
	submit_all(&f);
	while (!threadless && stats_of(&f).in_flight == 0) {
		usleep(1000);
	}
	start = mono();
	assert_false(sender_join(f.sender, start + EVREC_SECOND / 20));
	assert_true(mono() - start < SOON);
	stats = stats_of(&f);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], LINES);
	assert_int_equal(stats.in_flight, 0);
	read_some(&f);
	assert_int_equal(f.text.len, 4096);
	/* Its thread has come back: nothing stays behind, which would be alive. */
	close_sink(&f);
}

static void test_end_while_full(void **state)
{
	end_while_full(state, true);
	end_while_full(state, false);
}

static void exit_while_full(void **state, bool threadless)
{
	int64_t start = mono();
	struct fixture f;
	pid_t child = fork();

	if (child == 0) {
		open_fifo(&f, state, threadless);
		submit_all(&f);
		exit(0);
	}
	assert_int_equal(unit_wait(child), 0);
	assert_true(mono() - start < SOON);
	unlink(in_folder(*state, "fifo"));
}

static void test_exit_while_full(void **state)
{
	exit_while_full(state, true);
	exit_while_full(state, false);
}

static void test_released_while_full(void **state)
{
	int64_t deadline = mono() + SOON;
	struct fixture f;

	open_fifo(&f, state, false);
	submit_all(&f);
	sender_release(f.sender);
	while (__atomic_load_n(&items_alive, __ATOMIC_SEQ_CST) != 0) {
		assert_true(mono() < deadline);
		read_some(&f);
		usleep(1000);
	}
	read_some(&f);
	assert_all(&f);
	open_sink(&f, f.path, true);
	close_sink(&f);
}

static void test_reader_goes_in_the_middle_of_a_line(void **state)
{
	struct outbox_report report;
	struct fixture f;

	open_fifo(&f, state, true);
	assert_true(item_submit(f.ob, 1, 1));
	sender_step(f.sender);
	close(f.fd);
	sender_step(f.sender);
	assert_true(outbox_next_report(f.ob, &report));
	assert_non_null(strstr(report.message, "Broken pipe"));
	assert_int_equal(stats_of(&f).pending, 1);
	/* What it had read is a fragment: the line that comes now is not glued to it. */
	f.fd = open(f.path, O_RDONLY | O_NONBLOCK);
	evrec_clock_set(f.clock, EVREC_SECOND);
	for (unsigned i = 0; i < 3; i++) {
		sender_step(f.sender);
		read_some(&f);
	}
	assert_int_equal(stats_of(&f).created, 1);
	assert_int_equal(f.text.len, 1 + line_len);
	assert_int_equal(f.text.data[0], '\n');
	assert_line(f.text.data + 1, 1);
	close_sink(&f);
}

/* Standard output is `fd`, in blocking mode, and belongs to others too: its flags stay as they are. */
static void write_to_stdout(int reader, int fd)
{
	int saved = dup(STDOUT_FILENO), flags = fcntl(fd, F_GETFL), flags_then;
	struct fixture f = { .fd = reader };

	assert_int_equal(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	open_sink(&f, "-", true);
	submit_all(&f);
	sender_step(f.sender);
	flags_then = fcntl(fd, F_GETFL);
	step_until_all_is_read(&f);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_false(flags & O_NONBLOCK);
	assert_int_equal(flags_then, flags);
	assert_int_equal(fcntl(fd, F_GETFL), flags);
	close(fd);
	close_sink(&f);
}

static void test_standard_output_is_a_pipe(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
	write_to_stdout(ends[0], ends[1]);
}

/* As a service has it whose output goes to the journal. */
static void test_standard_output_is_a_socket(void **state)
{
	int ends[2], size = 4096;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	write_to_stdout(ends[0], ends[1]);
}

/* Of many lengths, as it has room for so many bytes, or one less. */
static void test_standard_output_is_a_terminal(void **state)
{
	int ends[2];

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		line_len = LINE + 37 * i;
		if (openpty(&ends[0], &ends[1], NULL, NULL, NULL) != 0) {
			print_message("no terminal is to be had: %s (is /dev/pts mounted?)\n", strerror(errno));
			skip();
		}
		write_to_stdout(ends[0], ends[1]);
	}
}

/* Where no descriptor is left, nothing can wake its thread, which looks now and then. */
static void test_no_descriptor_to_wake_it(void **state)
{
	struct rlimit old, none;
	int64_t deadline = mono() + SOON;
	struct fixture f;

	open_fifo(&f, state, false);
	close_sink(&f);
	getrlimit(RLIMIT_NOFILE, &old);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	f = (struct fixture){ .fd = -1 };
	open_sink(&f, in_folder(*state, "log"), false);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(item_submit(f.ob, i, 1));
		while (!outbox_wait(f.ob, mono() + EVREC_SECOND / 100)) {
			assert_true(mono() < deadline);
		}
	}
	close_sink(&f);
}

static int set_up(void **state)
{
	line_len = LINE;
	(void)alarm(STUCK);
	return make_folder(state);
}

static int tear_down(void **state)
{
	(void)alarm(0);
	return remove_folder(state);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_full_pipe),
		test(test_full_pipe_with_a_thread),
		test(test_end_while_full),
		test(test_exit_while_full),
		test(test_released_while_full),
		test(test_reader_goes_in_the_middle_of_a_line),
		test(test_standard_output_is_a_pipe),
		test(test_standard_output_is_a_socket),
		test(test_standard_output_is_a_terminal),
		test(test_no_descriptor_to_wake_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

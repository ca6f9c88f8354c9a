/*
 * The file sink and files that can be full: pipes, sockets and terminals, its own or standard output. A write never blocks,
 * no event is lost, and no line but the last is cut.
 */
#define _GNU_SOURCE

#include "fake_write.h"
#include "tmpdir.h"

#include "base/clock.h"
#include "sink/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES 20
#define STUCK 60 /* seconds after which a test that blocks in a write is killed */

#define LINE 5000 /* bytes; more than one write takes */

static size_t line_len; /* of each line; global, because an encode function has no context */

struct pipe_fixture {
	struct outbox *ob;
	struct sender *sender;
	evrec_clock *clock;
	const char *path;
	int fd;           /* end of the reader */
	struct buf text;  /* that it has read */
	bool is_terminal; /* the kernel takes bytes out of it a moment later: a step may end between two lines */
};

/* Makes "n1 xxx...", of line_len bytes with the newline. */
static bool encode(const void *item, enum body body, enum evrec_api api, enum reader reader, struct encoded *request)
{
	const struct fake_write *it = item;
	struct buf line = { 0 };

	(void)body;
	(void)api;
	(void)reader;
	buf_printf(&line, "%s ", it->name);
	while (line.len < line_len - 1) {
		buf_put(&line, "x", 1);
	}
	*request = (struct encoded){ .body = line.data, .body_len = line.len };
	return !line.failed;
}

static void open_sink(struct pipe_fixture *f, const char *path, bool threadless)
{
	struct sender_options options = { .drive = threadless ? EVREC_DRIVE_POLL : EVREC_DRIVE_AUTO };

	f->clock = options.clock = threadless ? evrec_clock_fake(0) : evrec_clock_retain(evrec_clock_real());
	f->ob = fake_write_outbox(1000);
	f->sender = sender_new(f->ob, file_protocol_new(path, EVREC_CORE_V1, encode, NULL), &options);
	assert_non_null(f->sender);
}

/* Opens a pipe that holds less than a line; nobody reads yet. */
static void open_fifo(struct pipe_fixture *f, void **state, bool threadless)
{
	*f = (struct pipe_fixture){ .path = tmpdir_path(*state, "fifo") };
	assert_int_equal(mkfifo(f->path, 0644), 0);
	f->fd = open(f->path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(fcntl(f->fd, F_SETPIPE_SZ, 4096), 4096);
	open_sink(f, f->path, threadless);
}

static struct outbox_stats stats_of(struct pipe_fixture *f)
{
	struct outbox_stats stats;

	outbox_check_equation(f->ob);
	outbox_get_stats(f->ob, &stats);
	return stats;
}

static void submit_all(struct pipe_fixture *f)
{
	for (unsigned i = 1; i <= LINES; i++) {
		assert_true(fake_write_submit(f->ob, i, 1));
	}
}

static void read_some(struct pipe_fixture *f)
{
	char bytes[4096];
	ssize_t len;

	while ((len = read(f->fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < len; i++) {
			if (bytes[i] != '\r') { /* added by a terminal */
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

/* All lines were read, whole and in order. */
static void assert_all(const struct pipe_fixture *f)
{
	assert_int_equal(f->text.len, LINES * line_len);
	for (unsigned i = 0; i < LINES; i++) {
		assert_line(f->text.data + i * line_len, i + 1);
	}
}

/* Steps do not block or lose anything while nobody reads; then all lines are read. */
static void step_until_all_is_read(struct pipe_fixture *f)
{
	struct outbox_stats stats;

	for (unsigned i = 0; i < 3; i++) {
		do {
			sender_step(f->sender);
			stats = stats_of(f);
		} while (f->is_terminal && stats.in_flight == 0);
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

static void close_sink(struct pipe_fixture *f)
{
	(void)sender_join(f->sender, 0);
	outbox_check_equation(f->ob);
	sender_release(f->sender);
	evrec_clock_release(f->clock);
	assert_int_equal(fake_writes.alive, 0);
	buf_free(&f->text);
	close(f->fd);
	if (f->path != NULL) {
		unlink(f->path);
	}
}

static void test_full_pipe_does_not_block_a_step(void **state)
{
	struct pipe_fixture f;

	open_fifo(&f, state, true);
	submit_all(&f);
	step_until_all_is_read(&f);
	close_sink(&f);
}

static void test_thread_writes_on_as_a_full_pipe_is_read(void **state)
{
	int64_t deadline = unit_mono() + SOON;
	struct pipe_fixture f;

	open_fifo(&f, state, false);
	submit_all(&f);
	while (stats_of(&f).pending != 0) {
		assert_true(unit_mono() < deadline);
		read_some(&f);
		usleep(1000);
	}
	read_some(&f);
	assert_all(&f);
	close_sink(&f);
}

/* The line that is cut off counts as dropped, and so do the lines after it. */
static void end_while_full(void **state, bool threadless)
{
	struct outbox_stats stats;
	struct pipe_fixture f;
	int64_t start;

	open_fifo(&f, state, threadless);
	submit_all(&f);
	while (!threadless && stats_of(&f).in_flight == 0) {
		usleep(1000);
	}
	start = unit_mono();
	assert_false(sender_join(f.sender, start + EVREC_SECOND / 20));
	assert_true(unit_mono() - start < SOON);
	stats = stats_of(&f);
	assert_int_equal(stats.dropped[EVREC_CAUSE_CLOSED], LINES);
	assert_int_equal(stats.in_flight, 0);
	read_some(&f);
	assert_int_equal(f.text.len, 4096);
	/* The thread has ended: no fake write is left. */
	close_sink(&f);
}

static void test_end_drops_at_its_deadline_while_full(void **state)
{
	end_while_full(state, true);
	end_while_full(state, false);
}

static void exit_while_full(void **state, bool threadless)
{
	int64_t start = unit_mono();
	struct pipe_fixture f;
	pid_t child = fork();

	if (child == 0) {
		open_fifo(&f, state, threadless);
		submit_all(&f);
		exit(0);
	}
	assert_int_equal(unit_wait(child), 0);
	assert_true(unit_mono() - start < SOON);
	unlink(tmpdir_path(*state, "fifo"));
}

static void test_exit_does_not_hang_while_full(void **state)
{
	exit_while_full(state, true);
	exit_while_full(state, false);
}

static void test_released_thread_writes_on_as_the_pipe_is_read(void **state)
{
	int64_t deadline = unit_mono() + SOON;
	struct pipe_fixture f;

	open_fifo(&f, state, false);
	submit_all(&f);
	sender_release(f.sender);
	while (__atomic_load_n(&fake_writes.alive, __ATOMIC_SEQ_CST) != 0) {
		assert_true(unit_mono() < deadline);
		read_some(&f);
		usleep(1000);
	}
	read_some(&f);
	assert_all(&f);
	open_sink(&f, f.path, true);
	close_sink(&f);
}

static void test_line_is_sent_anew_after_its_reader_left(void **state)
{
	struct outbox_message message;
	struct pipe_fixture f;

	open_fifo(&f, state, true);
	assert_true(fake_write_submit(f.ob, 1, 1));
	sender_step(f.sender);
	close(f.fd);
	sender_step(f.sender);
	assert_true(outbox_next_message(f.ob, &message));
	assert_non_null(strstr(message.message, "Broken pipe"));
	assert_int_equal(stats_of(&f).pending, 1);
	/* The reader has a fragment: the next line begins after a newline. */
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

/* Makes `fd` standard output, in blocking mode. Other processes may share it, so its flags must not change. */
static void write_to_stdout(int reader, int fd)
{
	int saved = dup(STDOUT_FILENO), flags = fcntl(fd, F_GETFL), flags_between;
	struct pipe_fixture f = { .fd = reader, .is_terminal = isatty(fd) };

	assert_int_equal(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	open_sink(&f, "-", true);
	submit_all(&f);
	sender_step(f.sender);
	flags_between = fcntl(fd, F_GETFL);
	step_until_all_is_read(&f);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_false(flags & O_NONBLOCK);
	assert_int_equal(flags_between, flags);
	assert_int_equal(fcntl(fd, F_GETFL), flags);
	close(fd);
	close_sink(&f);
}

static void test_full_pipe_as_standard_output_does_not_block(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
	write_to_stdout(ends[0], ends[1]);
}

/* The output of a service that systemd connects to its journal is such a socket. */
static void test_full_socket_as_standard_output_does_not_block(void **state)
{
	int ends[2], size = 4096;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	write_to_stdout(ends[0], ends[1]);
}

/* Lines of many lengths: the room that a terminal reports may be one byte too large. */
static void test_full_terminal_as_standard_output_does_not_block(void **state)
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

/* Without a free descriptor nothing can wake the thread: it polls instead. */
static void test_thread_polls_without_a_descriptor(void **state)
{
	struct rlimit old, none;
	int64_t deadline = unit_mono() + SOON;
	struct pipe_fixture f;

	open_fifo(&f, state, false);
	close_sink(&f);
	getrlimit(RLIMIT_NOFILE, &old);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	f = (struct pipe_fixture){ .fd = -1 };
	open_sink(&f, tmpdir_path(*state, "log"), false);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(fake_write_submit(f.ob, i, 1));
		while (!outbox_wait(f.ob, unit_mono() + EVREC_SECOND / 100)) {
			assert_true(unit_mono() < deadline);
		}
	}
	close_sink(&f);
}

static int set_up(void **state)
{
	line_len = LINE;
	(void)alarm(STUCK);
	return tmpdir_setup(state);
}

static int tear_down(void **state)
{
	(void)alarm(0);
	return tmpdir_teardown(state);
}

#define PIPE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PIPE_TEST(test_full_pipe_does_not_block_a_step),
		PIPE_TEST(test_thread_writes_on_as_a_full_pipe_is_read),
		PIPE_TEST(test_end_drops_at_its_deadline_while_full),
		PIPE_TEST(test_exit_does_not_hang_while_full),
		PIPE_TEST(test_released_thread_writes_on_as_the_pipe_is_read),
		PIPE_TEST(test_line_is_sent_anew_after_its_reader_left),
		PIPE_TEST(test_full_pipe_as_standard_output_does_not_block),
		PIPE_TEST(test_full_socket_as_standard_output_does_not_block),
		PIPE_TEST(test_full_terminal_as_standard_output_does_not_block),
		PIPE_TEST(test_thread_polls_without_a_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

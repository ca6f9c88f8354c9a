/* The file sink: one line for each write, appended to a file that is opened anew after an error. */
#define _GNU_SOURCE

#include "fake_write.h"
#include "file_limit.h"
#include "tmpdir.h"

#include "sink/sink.h"

#include "base/clock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A sender without a thread, which the test steps. */
struct file_fixture {
	struct outbox *ob;
	struct sender *sender;
	evrec_clock *clock;
};

static struct file_fixture file_fixture_open(const char *path)
{
	struct file_fixture f = { .ob = fake_write_outbox(1000), .clock = evrec_clock_fake(0) };
	struct sender_options options = { .clock = f.clock, .drive = EVREC_DRIVE_POLL };
	evrec_error err;

	f.sender = sender_new(f.ob, file_protocol_new(path, EVREC_CORE_V1, fake_write_encode, &err), &options);
	assert_non_null(f.sender);
	return f;
}

static void file_fixture_close(struct file_fixture *f)
{
	(void)sender_join(f->sender, 0);
	outbox_check_equation(f->ob);
	sender_release(f->sender);
	evrec_clock_release(f->clock);
	assert_int_equal(fake_writes.alive, 0);
}

static void step_at(struct file_fixture *f, int64_t now)
{
	evrec_clock_set(f->clock, now);
	sender_step(f->sender);
}

static uint64_t pending(struct file_fixture *f)
{
	struct outbox_stats stats;

	outbox_get_stats(f->ob, &stats);
	return stats.pending;
}

static void assert_file(const char *path, const char *expected)
{
	char text[1024] = { 0 };
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, expected);
}

static void assert_message(struct file_fixture *f, const char *expected)
{
	struct outbox_message message;

	assert_true(outbox_next_message(f->ob, &message));
	assert_string_equal(message.name, "transport");
	unit_check_contains(message.message, expected);
}

static void test_each_write_appends_a_line(void **state)
{
	const char *path = tmpdir_path(*state, "log");
	struct file_fixture f = file_fixture_open(path);
	struct stat st;

	sender_step(f.sender);
	assert_int_equal(access(path, F_OK), -1); /* the file is created by the first write */
	fake_write_submit(f.ob, 1, 1);
	fake_write_submit(f.ob, 2, 1);
	sender_step(f.sender);
	fake_write_submit(f.ob, 1, 2);
	sender_step(f.sender);
	assert_int_equal(pending(&f), 0);
	file_fixture_close(&f);
	/* Another sink appends. */
	f = file_fixture_open(path);
	fake_write_submit(f.ob, 3, 1);
	sender_step(f.sender);
	file_fixture_close(&f);
	assert_file(path,
	            "{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n2\",\"count\":1}\n{\"name\":\"n1\",\"count\":2}\n"
	            "{\"name\":\"n3\",\"count\":1}\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777 & ~0644u, 0);
}

static void test_missing_directory_is_retried(void **state)
{
	const char *missing = tmpdir_path(*state, "missing"), *file = tmpdir_path(*state, "missing/log");
	struct file_fixture f = file_fixture_open(file);

	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_message(&f, "No such file or directory");
	assert_int_equal(pending(&f), 1);
	assert_int_equal(mkdir(missing, 0755), 0);
	step_at(&f, EVREC_SECOND);
	assert_int_equal(pending(&f), 0);
	unlink(file);
	rmdir(missing);
	file_fixture_close(&f);
}

static void test_directory_is_no_file(void **state)
{
	struct file_fixture f = file_fixture_open(tmpdir_path(*state, ""));

	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_message(&f, "Is a directory");
	file_fixture_close(&f);
}

static void test_fragment_of_a_full_disk_ends_its_line(void **state)
{
	const char *path = tmpdir_path(*state, "log");
	struct file_fixture f = file_fixture_open(path);
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);

	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender); /* 24 bytes */
	file_limit_set(24);
	fake_write_submit(f.ob, 2, 1);
	step_at(&f, 0);
	assert_message(&f, "File too large");
	assert_file(path, "{\"name\":\"n1\",\"count\":1}\n");
	/* With room for a part of the line, a fragment is written; the next line begins after a newline. */
	file_limit_set(34);
	step_at(&f, EVREC_SECOND);
	assert_file(path, "{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n");
	file_limit_set(35);
	step_at(&f, 3 * EVREC_SECOND);
	assert_file(path, "{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n\n");
	file_limit_set(RLIM_INFINITY);
	fake_write_submit(f.ob, 3, 1);
	step_at(&f, 60 * EVREC_SECOND);
	assert_file(path,
	            "{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n\n{\"name\":\"n2\",\"count\":1}\n{\"name\":\"n3\","
	            "\"count\":1}\n");
	assert_int_equal(pending(&f), 0);
	file_fixture_close(&f);
	signal(SIGXFSZ, old);
}

/* An earlier process has left it. */
static void test_fragment_that_is_there_ends_its_line(void **state)
{
	const char *path = tmpdir_path(*state, "log");
	struct file_fixture f = file_fixture_open(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "{\"name\":\"n", 10), 10);
	close(fd);
	fake_write_submit(f.ob, 1, 1);
	fake_write_submit(f.ob, 2, 1);
	sender_step(f.sender);
	assert_file(path, "{\"name\":\"n\n{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n2\",\"count\":1}\n");
	file_fixture_close(&f);
}

/* As logrotate does. */
static void test_renamed_file_is_made_anew(void **state)
{
	const char *path = tmpdir_path(*state, "log"), *rotated = tmpdir_path(*state, "log.1");
	struct file_fixture f = file_fixture_open(path);

	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_int_equal(rename(path, rotated), 0);
	fake_write_submit(f.ob, 2, 1);
	sender_step(f.sender);
	assert_file(rotated, "{\"name\":\"n1\",\"count\":1}\n");
	assert_file(path, "{\"name\":\"n2\",\"count\":1}\n");
	/* Somebody makes the new one. */
	assert_int_equal(rename(path, rotated), 0);
	tmpdir_write_file(path, "{\"name\":\"n");
	fake_write_submit(f.ob, 3, 1);
	sender_step(f.sender);
	assert_file(path, "{\"name\":\"n\n{\"name\":\"n3\",\"count\":1}\n");
	assert_int_equal(pending(&f), 0);
	file_fixture_close(&f);
	unlink(rotated);
}

/* Nothing may count as written that is nowhere. */
static void test_removed_file_that_cannot_be_made_anew_is_an_error(void **state)
{
	const char *folder = tmpdir_path(*state, "logs"), *path = tmpdir_path(*state, "logs/log");
	struct file_fixture f;

	assert_int_equal(mkdir(folder, 0700), 0);
	f = file_fixture_open(path);
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	fake_write_submit(f.ob, 2, 1);
	sender_step(f.sender);
	assert_message(&f, "No such file or directory");
	assert_int_equal(pending(&f), 1);
	file_fixture_close(&f);
}

/* As after chroot, or if the process may enter the folder no more. */
static void test_file_that_cannot_be_made_anew_stays_open(void **state)
{
	const char *folder = tmpdir_path(*state, "logs"), *path = tmpdir_path(*state, "logs/log");
	const char *moved = tmpdir_path(*state, "moved");
	struct file_fixture f;

	assert_int_equal(mkdir(folder, 0700), 0);
	f = file_fixture_open(path);
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_int_equal(rename(folder, moved), 0);
	fake_write_submit(f.ob, 2, 1);
	sender_step(f.sender);
	assert_int_equal(pending(&f), 0);
	file_fixture_close(&f);
	path = tmpdir_path(*state, "moved/log");
	assert_file(path, "{\"name\":\"n1\",\"count\":1}\n{\"name\":\"n2\",\"count\":1}\n");
	unlink(path);
	rmdir(moved);
}

static void test_file_is_opened_anew_after_an_error(void **state)
{
	const char *path = tmpdir_path(*state, "log");
	struct file_fixture f = file_fixture_open(path);
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);

	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	file_limit_set(24);
	fake_write_submit(f.ob, 2, 1);
	sender_step(f.sender);
	/* Somebody deletes the file to make room. */
	unlink(path);
	file_limit_set(RLIM_INFINITY);
	step_at(&f, EVREC_SECOND);
	assert_file(path, "{\"name\":\"n2\",\"count\":1}\n");
	file_fixture_close(&f);
	signal(SIGXFSZ, old);
}

/* The file is renamed while it is not open, as its last line was cut. */
static void test_fragment_of_a_renamed_file_ends_no_line_of_the_new_one(void **state)
{
	const char *path = tmpdir_path(*state, "log"), *rotated = tmpdir_path(*state, "log.1");
	struct file_fixture f = file_fixture_open(path);
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);

	file_limit_set(10);
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_file(path, "{\"name\":\"n");
	file_limit_set(RLIM_INFINITY);
	assert_int_equal(rename(path, rotated), 0);
	step_at(&f, EVREC_SECOND);
	assert_file(path, "{\"name\":\"n1\",\"count\":1}\n");
	assert_int_equal(pending(&f), 0);
	file_fixture_close(&f);
	unlink(rotated);
	signal(SIGXFSZ, old);
}

static void test_pipe_without_a_reader_is_retried(void **state)
{
	const char *path = tmpdir_path(*state, "log");
	struct file_fixture f;
	char text[128];
	ssize_t len;
	int fd;

	assert_int_equal(mkfifo(path, 0644), 0);
	f = file_fixture_open(path);
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	assert_message(&f, "No such device or address"); /* nobody reads: opening does not wait */
	fd = open(path, O_RDONLY | O_NONBLOCK);
	step_at(&f, EVREC_SECOND);
	len = read(fd, text, sizeof(text));
	assert_int_equal(len, 24);
	assert_memory_equal(text, "{\"name\":\"n1\",\"count\":1}\n", 24);
	/* The reader leaves: an error, and no SIGPIPE. Then it returns. */
	close(fd);
	fake_write_submit(f.ob, 1, 2);
	step_at(&f, EVREC_SECOND);
	assert_message(&f, "Broken pipe");
	fd = open(path, O_RDONLY | O_NONBLOCK);
	step_at(&f, 3 * EVREC_SECOND);
	assert_int_equal(read(fd, text, sizeof(text)), 24);
	assert_int_equal(pending(&f), 0);
	close(fd);
	file_fixture_close(&f);
}

static void test_standard_output_is_not_closed(void **state)
{
	const char *path = tmpdir_path(*state, "log");
	int saved = dup(STDOUT_FILENO), fd;
	struct file_fixture f = file_fixture_open("-");

	fflush(stdout);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	dup2(fd, STDOUT_FILENO);
	close(fd);
	fake_write_submit(f.ob, 1, 1);
	sender_step(f.sender);
	close(STDOUT_FILENO);
	fake_write_submit(f.ob, 2, 1);
	sender_step(f.sender);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_message(&f, "-: Bad file descriptor");
	assert_file(path, "{\"name\":\"n1\",\"count\":1}\n");
	file_fixture_close(&f);
	assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0); /* the sink does not close it */
}

static void test_join_writes_all(void **state)
{
	struct file_fixture f = { .ob = fake_write_outbox(1000) };
	struct sender_options options = { .clock = evrec_clock_real() };
	struct outbox_stats stats;

	f.sender = sender_new(
		f.ob, file_protocol_new(tmpdir_path(*state, "log"), EVREC_CORE_V1, fake_write_encode, NULL), &options);
	for (unsigned i = 1; i <= 100; i++) {
		fake_write_submit(f.ob, i, 1);
	}
	assert_true(sender_join(f.sender, unit_mono() + SOON));
	outbox_get_stats(f.ob, &stats);
	assert_int_equal(stats.created, 100);
	file_fixture_close(&f);
}

static int tear_down(void **state)
{
	bool only_log;

	file_limit_set(RLIM_INFINITY);
	(void)unlink(tmpdir_path(*state, "log"));
	only_log = tmpdir_is_empty(*state);
	return tmpdir_teardown(state) + !only_log;
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, tmpdir_setup, tear_down)

static bool encode_api(const void *item, enum body body, enum evrec_api api, enum reader reader,
                       struct encoded *request)
{
	struct buf text = { 0 };

	(void)item;
	buf_printf(&text, "%d %d %d", (int)body, (int)api, (int)reader);
	*request = (struct encoded){ .body = text.data, .body_len = text.len };
	return !text.failed;
}

/* Lines are in the API of the sink's option, for readers who may know of states. */
static void test_lines_have_the_api_of_the_option(void **state)
{
	const char *path = tmpdir_path(*state, "log");
	struct file_fixture f = { .ob = fake_write_outbox(1000), .clock = evrec_clock_fake(0) };
	struct sender_options options = { .clock = f.clock, .drive = EVREC_DRIVE_POLL };
	evrec_sink_options common;
	char expected[32];

	evrec_sink_options_init(&common);
	assert_int_equal(sink_api(&common), EVREC_CORE_V1);
	common.api = EVREC_SINK_AUTO;
	assert_int_equal(sink_api(&common), EVREC_EVENTS_V1);
	common.api = EVREC_SINK_EVENTS_V1;
	assert_int_equal(sink_api(&common), EVREC_EVENTS_V1);
	f.sender = sender_new(f.ob, file_protocol_new(path, EVREC_EVENTS_V1, encode_api, NULL), &options);
	fake_write_submit(f.ob, 1, 1);
	step_at(&f, 0);
	(void)snprintf(expected, sizeof(expected), "%d %d %d\n", (int)BODY_WHOLE, (int)EVREC_EVENTS_V1,
	               (int)READER_ANY);
	assert_file(path, expected);
	file_fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(test_each_write_appends_a_line),
		FILE_TEST(test_missing_directory_is_retried),
		FILE_TEST(test_directory_is_no_file),
		FILE_TEST(test_fragment_of_a_full_disk_ends_its_line),
		FILE_TEST(test_fragment_that_is_there_ends_its_line),
		FILE_TEST(test_renamed_file_is_made_anew),
		FILE_TEST(test_removed_file_that_cannot_be_made_anew_is_an_error),
		FILE_TEST(test_file_that_cannot_be_made_anew_stays_open),
		FILE_TEST(test_file_is_opened_anew_after_an_error),
		FILE_TEST(test_fragment_of_a_renamed_file_ends_no_line_of_the_new_one),
		FILE_TEST(test_pipe_without_a_reader_is_retried),
		FILE_TEST(test_standard_output_is_not_closed),
		FILE_TEST(test_join_writes_all),
		FILE_TEST(test_lines_have_the_api_of_the_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

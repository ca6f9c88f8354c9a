/* Queries and watches of lines: a last line without a line feed, pipes, and standard input. */
#include "tmpdir.h"

#include "evrec_read.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHORT (EVREC_SECOND / 20)

/* An event of this name, on a line without its end. */
#define EVENT(name) "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\"},\"reason\":\"R\"}"

static evrec_reader *open_reader(const char *path, bool watch)
{
	evrec_source *source = evrec_source_lines(str_from(path), NULL);
	evrec_query query;
	evrec_reader *reader;

	evrec_query_init(&query);
	query.order = EVREC_OLDEST;
	assert_non_null(source);
	reader = watch ? evrec_source_watch(source, &query, NULL) : evrec_source_query(source, &query, NULL);
	assert_non_null(reader);
	evrec_source_release(source);
	return reader;
}

static void check_next(evrec_reader *reader, const char *name)
{
	evrec_found found;

	assert_int_equal(evrec_reader_next(reader, SOON, &found, NULL), EVREC_READ_EVENT);
	assert_true(str_eq(evrec_event_fields(found.event)->name, str_from(name)));
}

static void check_result(evrec_reader *reader, int expected)
{
	evrec_found found;

	assert_int_equal(evrec_reader_next(reader, expected == EVREC_READ_WAIT ? SHORT : SOON, &found, NULL), expected);
}

/* The reader fails because of this line, and is freed. */
static void check_refused(evrec_reader *reader, const char *line)
{
	evrec_found found;
	evrec_error err;
	int result;

	while ((result = evrec_reader_next(reader, SOON, &found, &err)) == EVREC_READ_EVENT) {
	}
	assert_int_equal(result, EVREC_EINVALID);
	unit_check_contains(err.message, line);
	evrec_reader_free(reader);
}

/* A reader of a pipe that has this text, and ends. */
static evrec_reader *open_pipe(const char *path, const char *text, bool watch)
{
	evrec_reader *reader;
	int fd;

	(void)unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open_reader(path, watch);
	fd = open(path, O_WRONLY);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
	return reader;
}

static void test_a_last_line_that_is_whole_and_no_event_is_an_error(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	static const char pod[] = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}";

	tmpdir_write_file(path, pod);
	check_refused(open_reader(path, false), "line 1 is no event");
	tmpdir_write_file(path, EVENT("a") "\n\n{\"items\":[]}");
	check_refused(open_reader(path, false), "line 3 is no event");
	check_refused(open_pipe(tmpdir_path(*state, "pipe"), pod, false), "line 1 is no event");
	check_refused(open_pipe(tmpdir_path(*state, "pipe"), pod, true), "line 1 is no event");
}

static void test_a_watch_tells_the_last_line_of_a_pipe(void **state)
{
	const char *path = tmpdir_path(*state, "pipe");
	evrec_reader *reader = open_pipe(path, EVENT("a") "\n" EVENT("b"), true);

	check_next(reader, "a");
	check_next(reader, "b");
	check_result(reader, EVREC_READ_END);
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
	reader = open_pipe(path, EVENT("a") "\n{\"metadata\":{\"na", true);
	check_next(reader, "a");
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
}

static void test_a_watch_of_standard_input_leaves_its_place_to_a_query(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	const int terminal = dup(STDIN_FILENO);
	evrec_reader *watch, *query;
	int fd;

	tmpdir_write_file(path, EVENT("a") "\n" EVENT("b") "\n");
	fd = open(path, O_RDWR | O_APPEND);
	assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	watch = open_reader("-", true);
	query = open_reader("-", false);
	check_next(query, "a");
	check_next(query, "b");
	check_result(query, EVREC_READ_END);
	check_result(watch, EVREC_READ_WAIT);
	assert_int_equal(write(fd, EVENT("c") "\n", strlen(EVENT("c")) + 1), strlen(EVENT("c")) + 1);
	check_next(watch, "c");
	evrec_reader_free(query);
	evrec_reader_free(watch);
	assert_int_equal(dup2(terminal, STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(close(terminal), 0);
	assert_int_equal(close(fd), 0);
}

static void test_a_message_names_standard_input(void **state)
{
	const int terminal = dup(STDIN_FILENO), folder = open(tmpdir_path(*state, "."), O_RDONLY);
	evrec_source *source = evrec_source_lines(EVREC_STR("-"), NULL);
	evrec_query query;
	evrec_error err;

	evrec_query_init(&query);
	assert_int_equal(dup2(folder, STDIN_FILENO), STDIN_FILENO);
	assert_null(evrec_source_query(source, &query, &err));
	assert_string_equal(err.message, "standard input: Is a directory");
	assert_null(evrec_source_watch(source, &query, &err));
	assert_string_equal(err.message, "standard input: Is a directory");
	evrec_source_release(source);
	assert_int_equal(dup2(terminal, STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(close(terminal), 0);
	assert_int_equal(close(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_last_line_that_is_whole_and_no_event_is_an_error),
		TMPDIR_TEST(test_a_watch_tells_the_last_line_of_a_pipe),
		TMPDIR_TEST(test_a_watch_of_standard_input_leaves_its_place_to_a_query),
		TMPDIR_TEST(test_a_message_names_standard_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

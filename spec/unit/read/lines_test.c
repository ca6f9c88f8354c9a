/* Queries and watches of a file that a file sink writes. */
#define _GNU_SOURCE /* preadv */

#include "tmpdir.h"

#include "evrec_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define SHORT (EVREC_SECOND / 20)

/* The object of an event, behind its metadata. */
#define OBJECT ",\"involvedObject\":{\"kind\":\"Pod\"}"

/* A line of an event with this name, whose last occurrence is `last` s behind T0. */
#define LINE(name, last, reason)                                                                                       \
	"{\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\",\"x\":1}" OBJECT            \
	",\"reason\":\"" reason "\",\"lastTimestamp\":\"2023-11-14T22:13:" last "Z\"}\n"

static void append(const char *path, const char *text)
{
	FILE *file = fopen(path, "a");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* The next call of stat() finds that the file was written to, and that another one has taken its place. */
static const char *rotated_by_stat;

int stat(const char *restrict path, struct stat *restrict st)
{
	const char *old = rotated_by_stat;

	rotated_by_stat = NULL;
	if (old != NULL) {
		append(path, LINE("late", "01", "R"));
		assert_int_equal(rename(path, old), 0);
		append(path, LINE("new", "01", "R"));
	}
	return fstatat(AT_FDCWD, path, st, 0);
}

/* A signal interrupts so many calls of pread(), one of two. */
static unsigned interruptions;

ssize_t pread(int fd, void *data, size_t n, off_t offset)
{
	const struct iovec part = { data, n };

	if (interruptions % 2 != 0) {
		interruptions--;
		errno = EINTR;
		return -1;
	}
	interruptions -= interruptions != 0;
	return preadv(fd, &part, 1, offset);
}

static evrec_query all(void)
{
	evrec_query q;

	evrec_query_init(&q);
	return q;
}

static evrec_reader *open_reader(const char *path, const evrec_query *query, bool watch)
{
	evrec_source *source = evrec_source_lines(str_from(path), NULL);
	evrec_error err;
	evrec_reader *reader;

	assert_non_null(source);
	reader = watch ? evrec_source_watch(source, query, &err) : evrec_source_query(source, query, &err);
	if (reader == NULL) {
		fail_msg("%s", err.message);
	}
	evrec_source_release(source);
	return reader;
}

/* The reader gives an event of this name. */
static void check_next(evrec_reader *reader, const char *name)
{
	evrec_found found;
	evrec_error err;
	int result = evrec_reader_next(reader, SOON, &found, &err);

	if (result < 0) {
		fail_msg("%s", err.message);
	}
	assert_int_equal(result, EVREC_READ_EVENT);
	assert_true(str_eq(evrec_event_fields(found.event)->name, str_from(name)));
	assert_false(found.deleted);
}

static void check_result(evrec_reader *reader, int expected)
{
	evrec_found found;

	assert_int_equal(evrec_reader_next(reader, expected == EVREC_READ_WAIT ? SHORT : SOON, &found, NULL), expected);
}

static void check_error(evrec_reader *reader, int code, const char *why)
{
	evrec_found found;
	evrec_error err;

	assert_int_equal(evrec_reader_next(reader, SOON, &found, &err), code);
	unit_check_contains(err.message, why);
	assert_int_equal(evrec_reader_next(reader, SOON, &found, &err), code);
	evrec_reader_free(reader);
}

static void test_the_last_line_of_an_event_is_its_present_state(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	evrec_query q = all();
	evrec_found found;
	evrec_reader *reader;

	tmpdir_write_file(path, LINE("a", "01", "Old") LINE("b", "02", "Old") LINE("a", "03", "New"));
	reader = open_reader(path, &q, false);
	assert_int_equal(evrec_reader_begin(reader, 0, NULL), 0);
	assert_int_equal(evrec_reader_next(reader, SOON, &found, NULL), EVREC_READ_EVENT);
	assert_str(evrec_event_fields(found.event)->reason, "New");
	assert_int_equal(strlen(found.json.data), found.json.len);
	unit_check_contains(found.json.data, "\"x\":1");
	check_next(reader, "b");
	check_result(reader, EVREC_READ_END);
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);

	/* The filter applies to that state. */
	q.reason = EVREC_STR("Old");
	reader = open_reader(path, &q, false);
	check_next(reader, "b");
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
}

static void test_order_and_limit(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	evrec_query q = all();
	evrec_reader *reader;

	tmpdir_write_file(path, LINE("a", "02", "R") LINE("b", "01", "R") LINE("c", "03", "R"));
	q.limit = 2;
	reader = open_reader(path, &q, false);
	check_next(reader, "c");
	check_next(reader, "a");
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
	q.order = EVREC_OLDEST;
	reader = open_reader(path, &q, false);
	check_next(reader, "b");
	check_next(reader, "a");
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
}

static void test_names_are_of_a_namespace(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	const evrec_query q = all();
	evrec_reader *reader;

	tmpdir_write_file(path, "{\"metadata\":{\"name\":\"bc\",\"namespace\":\"a\"}" OBJECT "}\n"
	                        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ab\"}" OBJECT "}\n");
	reader = open_reader(path, &q, false);
	/* Of the same time the one that was written later is the newer one. */
	check_next(reader, "c");
	check_next(reader, "bc");
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
}

static void test_an_unfinished_line_is_no_error(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	const evrec_query q = all();
	evrec_reader *reader;

	tmpdir_write_file(path, LINE("a", "01", "R") "{\"metadata\":{\"na\n\n" LINE("b", "00", "R") "{\"meta");
	reader = open_reader(path, &q, false);
	check_next(reader, "a");
	check_next(reader, "b");
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
}

static void test_a_last_line_without_a_newline_counts_if_it_is_whole(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	const evrec_query q = all();
	evrec_reader *reader;

	tmpdir_write_file(path, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}" OBJECT "}");
	reader = open_reader(path, &q, false);
	check_next(reader, "a");
	evrec_reader_free(reader);
}

static void test_another_line_is_an_error_with_its_number(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	const evrec_query q = all();
	evrec_reader *reader;

	tmpdir_write_file(path, LINE("a", "01", "R") "{}\n");
	check_error(open_reader(path, &q, false), EVREC_EINVALID, "events: line 2 is no event");
	tmpdir_write_file(path, LINE("a", "01", "R") LINE("a", "01", "R") "hello\n" LINE("a", "01", "R"));
	check_error(open_reader(path, &q, false), EVREC_EINVALID, "events: line 3 is no event");
	tmpdir_write_file(path, "");
	reader = open_reader(path, &q, true);
	append(path, "hello\n");
	check_error(reader, EVREC_EINVALID, "events: line 1 is no event");
}

static void test_an_object_that_is_no_event_is_an_error(void **state)
{
	static const char *const others[] = {
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"namespace\":\"default\"}}\n",
		"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"namespace\":\"default\"},\"involvedObject\":[]}\n",
		"{\"metadata\":{\"name\":\"web\",\"namespace\":\"default\"},\"involvedObject\":{}}\n",
	};
	const char *path = tmpdir_path(*state, "events");
	const evrec_query q = all();

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		tmpdir_write_file(path, others[i]);
		check_error(open_reader(path, &q, false), EVREC_EINVALID, "events: line 1 is no event");
	}
}

static void test_an_event_needs_no_whole_reference(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	const evrec_query q = all();
	evrec_reader *reader;

	/* An API server takes events whose object has no kind. */
	tmpdir_write_file(path,
	                  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"},\"involvedObject\":{\"namespace\":\"b\"},"
	                  "\"lastTimestamp\":\"2023-11-14T22:13:00Z\"}\n"
	                  "{\"apiVersion\":\"events.k8s.io/v1\",\"metadata\":{\"name\":\"c\",\"namespace\":\"b\"},"
	                  "\"regarding\":{\"kind\":\"Pod\"}}\n");
	reader = open_reader(path, &q, false);
	check_next(reader, "a");
	check_next(reader, "c");
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
}

static void test_signals_interrupt_no_reading(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	const evrec_query q = all();
	evrec_reader *reader;

	tmpdir_write_file(path, LINE("a", "01", "R") LINE("b", "00", "R"));
	interruptions = 9;
	reader = open_reader(path, &q, false);
	check_next(reader, "a");
	check_next(reader, "b");
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
	assert_true(interruptions < 6);
	interruptions = 9;
	reader = open_reader(path, &q, true);
	assert_true(interruptions < 7);
	append(path, LINE("c", "01", "R"));
	check_next(reader, "c");
	evrec_reader_free(reader);
	interruptions = 0;
}

static void test_an_error_of_a_line_names_the_file(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	const evrec_query q = all();
	FILE *file = fopen(path, "w");
	evrec_reader *reader;

	assert_non_null(file);
	for (size_t i = 0; i < 9 << 20; i++) {
		assert_int_equal(fputc('x', file), 'x');
	}
	assert_int_equal(fclose(file), 0);
	check_error(open_reader(path, &q, false), EVREC_EINVALID, "events: line 1 is longer than 8 MiB");
	tmpdir_write_file(path, LINE("a", "01", "R"));
	reader = open_reader(path, &q, false);
	assert_int_equal(evrec_reader_begin(reader, SOON, NULL), 0);
	tmpdir_write_file(path, "");
	check_error(reader, EVREC_ESYSTEM, "events: the file was changed while it was read");
}

static void test_a_missing_file_is_an_error(void **state)
{
	evrec_source *source = evrec_source_lines(str_from(tmpdir_path(*state, "none")), NULL);
	const evrec_query q = all();
	evrec_error err;

	assert_null(evrec_source_query(source, &q, &err));
	assert_int_equal(err.code, EVREC_ESYSTEM);
	unit_check_contains(err.message, "No such file");
	assert_null(evrec_source_watch(source, &q, &err));
	evrec_source_release(source);
	assert_null(evrec_source_lines(EVREC_STR(""), &err));
	assert_int_equal(err.code, EVREC_EINVALID);
}

static void test_a_pipe_is_read_once(void **state)
{
	const char *path = tmpdir_path(*state, "pipe");
	const evrec_query q = all();
	evrec_reader *reader;
	FILE *pipe;

	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open_reader(path, &q, false);
	check_result(reader, EVREC_READ_WAIT);
	pipe = fopen(path, "w");
	assert_true(fputs(LINE("a", "01", "R") LINE("b", "02", "R") LINE("a", "03", "R"), pipe) >= 0);
	assert_int_equal(fflush(pipe), 0);
	check_result(reader, EVREC_READ_WAIT);
	assert_int_equal(fclose(pipe), 0);
	check_next(reader, "a");
	check_next(reader, "b");
	check_result(reader, EVREC_READ_END);
	evrec_reader_free(reader);
}

static void test_a_watch_tells_whole_lines_from_now_on(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	evrec_query q = all();
	evrec_reader *reader;

	tmpdir_write_file(path, LINE("a", "01", "R") "{\"metadata\":{\"name\":\"b\",");
	q.ns = EVREC_STR("shop");
	reader = open_reader(path, &q, true);
	check_result(reader, EVREC_READ_WAIT);
	append(path, "\"namespace\":\"shop\"}" OBJECT "}\n{\"metadata\":{\"name\":\"c\",\"namespace\":\"other\"}" OBJECT
	             "}\n");
	check_next(reader, "b");
	append(path, LINE("a", "01", "R") LINE("a", "01", "R"));
	check_next(reader, "a");
	check_next(reader, "a");
	check_result(reader, EVREC_READ_WAIT);
	evrec_reader_free(reader);
}

static void test_a_watch_survives_rotation_and_truncation(void **state)
{
	const char *path = tmpdir_path(*state, "events"), *old = tmpdir_path(*state, "events.1");
	const evrec_query q = all();
	evrec_reader *reader;

	tmpdir_write_file(path, "");
	reader = open_reader(path, &q, true);
	append(path, LINE("a", "01", "R"));
	assert_int_equal(rename(path, old), 0);
	check_next(reader, "a");
	check_result(reader, EVREC_READ_WAIT);
	append(old, LINE("b", "01", "R"));
	append(path, LINE("c", "01", "R"));
	check_next(reader, "b");
	check_next(reader, "c");
	append(path, LINE("d", "01", "R") LINE("d2", "01", "R"));
	check_next(reader, "d");
	check_next(reader, "d2");
	assert_int_equal(truncate(path, 0), 0);
	append(path, LINE("e", "01", "R"));
	check_next(reader, "e");
	evrec_reader_free(reader);
}

static void test_a_watch_reads_the_old_file_to_its_end(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	const evrec_query q = all();
	evrec_reader *reader;

	tmpdir_write_file(path, "");
	reader = open_reader(path, &q, true);
	rotated_by_stat = tmpdir_path(*state, "events.1");
	check_next(reader, "late");
	check_next(reader, "new");
	check_result(reader, EVREC_READ_WAIT);
	evrec_reader_free(reader);
}

static void test_an_event_store_is_no_file_of_lines(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	evrec_source *source = evrec_source_lines(str_from(path), NULL);
	const evrec_query q = all();
	evrec_error err;
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite("SQLite format 3\0\20\0", 1, 18, file), 18);
	assert_int_equal(fclose(file), 0);
	assert_null(evrec_source_query(source, &q, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, "events is an event store, not lines of events");
	assert_null(evrec_source_watch(source, &q, &err));
	evrec_source_release(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_the_last_line_of_an_event_is_its_present_state),
		TMPDIR_TEST(test_order_and_limit),
		TMPDIR_TEST(test_names_are_of_a_namespace),
		TMPDIR_TEST(test_an_unfinished_line_is_no_error),
		TMPDIR_TEST(test_a_last_line_without_a_newline_counts_if_it_is_whole),
		TMPDIR_TEST(test_another_line_is_an_error_with_its_number),
		TMPDIR_TEST(test_an_object_that_is_no_event_is_an_error),
		TMPDIR_TEST(test_an_event_needs_no_whole_reference),
		TMPDIR_TEST(test_signals_interrupt_no_reading),
		TMPDIR_TEST(test_an_error_of_a_line_names_the_file),
		TMPDIR_TEST(test_a_missing_file_is_an_error),
		TMPDIR_TEST(test_a_pipe_is_read_once),
		TMPDIR_TEST(test_a_watch_tells_whole_lines_from_now_on),
		TMPDIR_TEST(test_a_watch_survives_rotation_and_truncation),
		TMPDIR_TEST(test_a_watch_reads_the_old_file_to_its_end),
		TMPDIR_TEST(test_an_event_store_is_no_file_of_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

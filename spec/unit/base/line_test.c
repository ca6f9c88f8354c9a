/* Lines for people: control characters are escaped, secrets are hidden, and standard error never blocks. */
#define _GNU_SOURCE

#include "unit.h"

#include "base/line.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void test_control_characters_are_escaped(void **state)
{
	const struct {
		evrec_str text;
		const char *shown;
	} rows[] = {
		{ EVREC_STR("plain \xC3\xA4 \xF0\x9F\x98\x80"), "plain \xC3\xA4 \xF0\x9F\x98\x80" },
		{ EVREC_STR("a\nevrec: b\tc\r"), "a\\nevrec: b\\tc\\x0D" },
		{ EVREC_STR("\x1B[31m\x7F\x00."), "\\x1B[31m\\x7F\\x00." },
		{ EVREC_STR("\xC2\x9B"
		            "31m \xC2\xA0"),
		  "\\xC2\\x9B31m \xC2\xA0" },                       /* C1, as UTF-8 */
		{ EVREC_STR("\x9B \xE2\x82"), "\\x9B \\xE2\\x82" }, /* no UTF-8 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct line line = { .len = 0 };

		line_put_escaped(&line, rows[i].text);
		assert_string_equal(line.text, rows[i].shown);
		assert_int_equal(line.len, strlen(rows[i].shown));
	}
}

static void test_a_full_line_is_cut_between_characters(void **state)
{
	struct line line = { .len = 0 };
	size_t i;

	(void)state;
	for (i = 0; i < EVREC_LINE_SIZE; i++) {
		line_put_escaped(&line, EVREC_STR("\xC3\xA4"));
	}
	assert_int_equal(line.len, (EVREC_LINE_SIZE - 1) / 2 * 2);
	line_put_escaped(&line, EVREC_STR("\n"));
	assert_true(line.text[line.len] == '\0' && line.text[line.len - 1] == '\xA4');
	line_printf(&line, "%s", "much more");
	assert_int_equal(line.len, EVREC_LINE_SIZE - 1);
	line_printf(&line, "%s", "and more");
	assert_int_equal(strlen(line.text), EVREC_LINE_SIZE - 1);
}

static void test_secrets_are_hidden(void **state)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "Bearer secret-1, secret-1", "Bearer ********, ********" },
		{ "nothing here", "nothing here" },
		{ "cut off: secre", "cut off: *****" },
		{ "cut off: sec", "cut off: sec" }, /* too little to be known */
		{ "secret-1secret-", "***************" },
		{ "", "" },
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memcpy(text, rows[i].text, strlen(rows[i].text) + 1);
		secret_hide(text, EVREC_STR("secret-1"));
		assert_string_equal(text, rows[i].shown);
	}
	memcpy(text, "text", sizeof("text"));
	secret_hide(text, (evrec_str){ NULL, 0 });
	secret_hide(text, EVREC_STR("t"));
	assert_string_equal(text, "text");
}

/* Standard error, while it is a pipe. */
struct stderr_pipe {
	int ends[2], before;
};

static void open_pipe(struct stderr_pipe *p)
{
	p->before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(pipe2(p->ends, O_CLOEXEC), 0);
	assert_true(dup2(p->ends[1], STDERR_FILENO) >= 0);
	close(p->ends[1]);
}

static void close_pipe(struct stderr_pipe *p)
{
	assert_true(dup2(p->before, STDERR_FILENO) >= 0);
	close(p->before);
	close(p->ends[0]);
}

static void test_messages_are_lines_on_standard_error(void **state)
{
	static const char expected[] = "evrec: spool: in use\\nby another\n";
	struct stderr_pipe p;
	char text[128] = "";
	ssize_t len;

	(void)state;
	open_pipe(&p);
	evrec_log_stderr(NULL, "in use\nby another", "spool");
	len = read(p.ends[0], text, sizeof(text) - 1);
	close_pipe(&p);
	assert_int_equal(len, sizeof(expected) - 1);
	assert_string_equal(text, expected);
}

/* Nobody reads the pipe. Its flags stay as they were: a write() of the embedder's may block. */
static void test_a_full_pipe_does_not_block(void **state)
{
	struct stderr_pipe p;
	bool told = true, told_again;
	unsigned lines;
	int flags;

	(void)state;
	open_pipe(&p);
	for (lines = 0; told && lines < 1000000; lines++) {
		told = evrec_line_to_stderr("a line");
	}
	told_again = evrec_line_to_stderr("another");
	flags = fcntl(STDERR_FILENO, F_GETFL);
	close_pipe(&p);
	assert_true(!told && !told_again && lines > 100);
	assert_int_equal(flags & O_NONBLOCK, 0);
}

static void test_a_pipe_without_a_reader_raises_no_signal(void **state)
{
	struct stderr_pipe p;
	bool told;

	(void)state;
	(void)signal(SIGPIPE, SIG_DFL);
	open_pipe(&p);
	close(p.ends[0]);
	told = evrec_line_to_stderr("a line");
	p.ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close_pipe(&p);
	assert_false(told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_control_characters_are_escaped),
		cmocka_unit_test(test_a_full_line_is_cut_between_characters),
		cmocka_unit_test(test_secrets_are_hidden),
		cmocka_unit_test(test_messages_are_lines_on_standard_error),
		cmocka_unit_test(test_a_full_pipe_does_not_block),
		cmocka_unit_test(test_a_pipe_without_a_reader_raises_no_signal),
	};

	return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}

/* Runs of commands: what they are given, and how they end. The limits are reached by the time that a step is told. */
#define _GNU_SOURCE

#include "tmpdir.h"

#include "exec/process.h"

#include <errno.h>
#include <fcntl.h>

static char *const environment[] = { "PATH=/usr/bin:/bin", NULL };

static void start(struct process *p, char *const *argv)
{
	const struct process_command command = { argv[0], argv, environment };
	evrec_error err = { 0 };

	assert_int_equal(process_start(p, &command, 0, &err), 0);
}

/* Steps at the time 0 until the run has ended. */
static void run_to_end(struct process *p)
{
	int64_t deadline = unit_mono() + SOON;

	while (!process_step(p, 0)) {
		assert_true(unit_mono() < deadline);
		usleep(500);
	}
}

/* No process is left to be reaped. */
static void stop(struct process *p)
{
	process_stop(p);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void run(struct process *p, char *const *argv)
{
	start(p, argv);
	run_to_end(p);
}

static void run_script(struct process *p, const char *script)
{
	run(p, (char *const[]){ "/bin/sh", "-c", (char *)script, NULL });
}

static void check_output(struct process *p, const char *text)
{
	assert_string_equal(buf_cstr(&p->output), text);
}

static void check_line(const struct process *p, const char *text)
{
	assert_int_equal(p->line_len, strlen(text));
	assert_memory_equal(p->line, text, p->line_len);
}

static void test_arguments_are_untouched(void **state)
{
	struct process p = { 0 };

	(void)state;
	run(&p, (char *const[]){ "/usr/bin/printf", "<%s>", "a  b", "$(id)", "'\"`;|&", "*", "", "\\n", NULL });
	assert_int_equal(p.end, PROCESS_EXITED);
	assert_int_equal(p.status, 0);
	check_output(&p, "<a  b><$(id)><'\"`;|&><*><><\\n>");
	stop(&p);
}

static void test_only_standard_descriptors_are_open(void **state)
{
	struct process p = { 0 };
	int fd = fcntl(STDERR_FILENO, F_DUPFD, 50); /* not closed by exec */

	(void)state;
	assert_true(fd >= 50);
	/* 3 is the folder, while it is read. */
	run_script(&p, "cd /proc/self/fd && echo * && readlink 0 && cat");
	check_output(&p, "0 1 2 3\n/dev/null\n");
	(void)close(fd);
	stop(&p);
}

static void test_the_environment_is_the_given_one(void **state)
{
	struct process p = { 0 };

	(void)state;
	run(&p, (char *const[]){ "/usr/bin/env", NULL });
	check_output(&p, "PATH=/usr/bin:/bin\n");
	stop(&p);
}

static void test_signals_are_default_and_unblocked(void **state)
{
	struct process p = { 0 };
	sigset_t term, old;

	(void)state;
	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, &old);
	run_script(&p, "kill -TERM $$; echo alive");
	assert_int_equal(p.end, PROCESS_SIGNALED);
	assert_int_equal(p.status, SIGTERM);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)signal(SIGINT, SIG_IGN);
	run_script(&p, "kill -INT $$; echo alive");
	assert_int_equal(p.end, PROCESS_SIGNALED);
	assert_int_equal(p.status, SIGINT);
	(void)signal(SIGINT, SIG_DFL);
	stop(&p);
}

static void test_there_is_no_terminal(void **state)
{
	struct process p = { 0 };

	(void)state;
	run_script(&p,
	           "(: </dev/tty) 2>/dev/null || echo none; [ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo session");
	check_output(&p, "none\nsession\n");
	stop(&p);
}

static void test_the_last_line_of_the_error_is_kept(void **state)
{
	struct process p = { 0 };
	char longest[PROCESS_LINE_MAX + 1];

	(void)state;
	run_script(&p, "printf 'first\\nlast one\\n\\n' >&2; exit 3");
	assert_int_equal(p.status, 3);
	check_line(&p, "last one");
	run_script(&p, "printf 'first\\nwithout end' >&2");
	check_line(&p, "without end");
	assert_false(p.line_cut);
	run_script(&p, "printf '%0500d' 0 >&2");
	memset(longest, '0', PROCESS_LINE_MAX);
	longest[PROCESS_LINE_MAX] = '\0';
	check_line(&p, longest);
	assert_true(p.line_cut);
	run_script(&p, "printf '%0160d' 0 >&2");
	check_line(&p, longest);
	assert_false(p.line_cut);
	run_script(&p, "printf '%0500d\\nlast one' 0 >&2");
	check_line(&p, "last one");
	assert_false(p.line_cut);
	stop(&p);
}

static bool is_alive(pid_t pid)
{
	char path[64], state = 'Z';
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (file == NULL) {
		return false;
	}
	assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
	(void)fclose(file);
	return state != 'Z' && state != 'X';
}

static void check_dies(pid_t pid)
{
	int64_t deadline = unit_mono() + SOON;

	while (is_alive(pid)) {
		assert_true(unit_mono() < deadline);
		usleep(500);
	}
}

/* Steps at the time 0 until the run has written a whole line, which is a number. */
static pid_t read_pid(struct process *p)
{
	int64_t deadline = unit_mono() + SOON;

	while (memchr(buf_cstr(&p->output), '\n', p->output.len) == NULL) {
		assert_true(unit_mono() < deadline);
		assert_false(process_step(p, 0));
		usleep(500);
	}
	return atoi(buf_cstr(&p->output));
}

static void test_after_30_s_it_is_killed_with_all_that_it_started(void **state)
{
	struct process p = { 0 };
	pid_t started;

	(void)state;
	start(&p, (char *const[]){ "/bin/sh", "-c", "trap '' TERM HUP; sleep 1000 & echo $!; wait", NULL });
	started = read_pid(&p);
	assert_false(process_step(&p, PROCESS_TIME_MAX - 1));
	assert_int_equal(process_next_step(&p, PROCESS_TIME_MAX - 1), PROCESS_TIME_MAX);
	assert_true(process_step(&p, PROCESS_TIME_MAX));
	assert_int_equal(p.end, PROCESS_LATE);
	check_dies(started);
	stop(&p);
	assert_int_equal(process_next_step(&p, 0), INT64_MAX);
}

static void check_is_too_long(const char *script)
{
	struct process p = { 0 };

	run_script(&p, script);
	assert_int_equal(p.end, PROCESS_LONG);
	assert_true(p.output.len <= PROCESS_BYTES_MAX + 16384);
	stop(&p);
}

static void test_more_than_a_mebibyte_is_not_read(void **state)
{
	struct process p = { 0 };

	(void)state;
	check_is_too_long("cat /dev/zero");
	check_is_too_long("yes >&2");
	check_is_too_long("head -c 1048577 /dev/zero");
	run_script(&p, "head -c 1048576 /dev/zero");
	assert_int_equal(p.end, PROCESS_EXITED);
	assert_int_equal(p.output.len, PROCESS_BYTES_MAX);
	stop(&p);
}

static void test_what_it_leaves_running_does_not_hold_it_up(void **state)
{
	struct process p = { 0 };
	pid_t left;

	(void)state;
	run_script(&p, "sleep 1000 & echo $!");
	assert_int_equal(p.end, PROCESS_EXITED);
	left = atoi(buf_cstr(&p.output));
	assert_true(is_alive(left));
	assert_int_equal(kill(left, SIGKILL), 0);
	stop(&p);
}

static void test_it_runs_on_with_its_pipes_closed(void **state)
{
	struct process p = { 0 };
	int fds[2];

	(void)state;
	start(&p, (char *const[]){ "/bin/sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 7", NULL });
	assert_int_equal(process_descriptors(&p, fds), 2);
	run_to_end(&p);
	assert_int_equal(process_descriptors(&p, fds), 0);
	assert_int_equal(p.end, PROCESS_EXITED);
	assert_int_equal(p.status, 7);
	stop(&p);
}

static void test_a_host_that_takes_the_status_leaves_the_output(void **state)
{
	struct process p = { 0 };

	(void)state;
	start(&p, (char *const[]){ "/bin/echo", "done", NULL });
	assert_true(waitpid(-1, NULL, 0) > 0);
	run_to_end(&p);
	assert_int_equal(p.end, PROCESS_REAPED);
	check_output(&p, "done\n");
	(void)signal(SIGCHLD, SIG_IGN);
	run(&p, (char *const[]){ "/bin/echo", "again", NULL });
	assert_int_equal(p.end, PROCESS_REAPED);
	check_output(&p, "again\n");
	(void)signal(SIGCHLD, SIG_DFL);
	stop(&p);
}

static void test_a_host_may_have_no_standard_descriptors(void **state)
{
	struct process p = { 0 };
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		(void)close(STDIN_FILENO);
		(void)close(STDOUT_FILENO);
		(void)close(STDERR_FILENO);
		run_script(&p, "echo out; echo err >&2");
		_exit(p.output.len == 4 && memcmp(p.output.data, "out\n", 4) == 0 && p.line_len == 3 ? 0 : 1);
	}
	assert_int_equal(unit_wait(child), 0);
}

static void test_a_command_that_cannot_be_started(void **state)
{
	const struct process_command command = { "/nowhere/aws", (char *const[]){ "aws", NULL }, environment };
	struct process p = { 0 };
	evrec_error err = { 0 };

	(void)state;
	assert_int_equal(process_start(&p, &command, 0, &err), EVREC_ESYSTEM);
	assert_string_equal(err.message, "cannot be started: No such file or directory");
	assert_true(process_step(&p, 0));
	stop(&p);
}

static void test_a_stop_kills_a_run(void **state)
{
	struct process p = { 0 };
	pid_t started;

	(void)state;
	start(&p, (char *const[]){ "/bin/sh", "-c", "sleep 1000 & echo $!; wait", NULL });
	started = read_pid(&p);
	stop(&p);
	check_dies(started);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments_are_untouched),
		cmocka_unit_test(test_only_standard_descriptors_are_open),
		cmocka_unit_test(test_the_environment_is_the_given_one),
		cmocka_unit_test(test_signals_are_default_and_unblocked),
		cmocka_unit_test(test_there_is_no_terminal),
		cmocka_unit_test(test_the_last_line_of_the_error_is_kept),
		cmocka_unit_test(test_after_30_s_it_is_killed_with_all_that_it_started),
		cmocka_unit_test(test_more_than_a_mebibyte_is_not_read),
		cmocka_unit_test(test_what_it_leaves_running_does_not_hold_it_up),
		cmocka_unit_test(test_it_runs_on_with_its_pipes_closed),
		cmocka_unit_test(test_a_host_that_takes_the_status_leaves_the_output),
		cmocka_unit_test(test_a_host_may_have_no_standard_descriptors),
		cmocka_unit_test(test_a_command_that_cannot_be_started),
		cmocka_unit_test(test_a_stop_kills_a_run),
	};

	return cmocka_run_group_tests_name("exec: process", tests, NULL, NULL);
}

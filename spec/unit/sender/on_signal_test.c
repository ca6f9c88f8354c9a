/* The end of a process by a signal: what waits is written, whatever the embedder's thread does, and the status tells. */
#include "signalled_child.h"

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>

/* ThreadSanitizer does not let a forked child start a thread by default. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

#define LONG (3600 * EVREC_SECOND)    /* if a test waits for it, it hangs */
#define SHORT (EVREC_SECOND * 3 / 10) /* for tests that wait in vain */

static void check_all_written(struct signalled_child c)
{
	int status;

	assert_int_equal(signalled_child_run(c, &status), WRITES);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void test_writes_what_waits(void **state)
{
	(void)state;
	check_all_written((struct signalled_child){ .pastime = SLEEPS });
	check_all_written((struct signalled_child){ .pastime = BLOCKED });
	check_all_written((struct signalled_child){ .pastime = SLEEPS, .threadless = true });
	check_all_written((struct signalled_child){ .pastime = POLLS, .threadless = true });
	check_all_written((struct signalled_child){ .pastime = SLEEPS, .release = true });
	check_all_written((struct signalled_child){ .pastime = SLEEPS, .threadless = true, .release = true });
	check_all_written((struct signalled_child){ .pastime = SLEEPS, .failures = WRITES });
	check_all_written((struct signalled_child){ .pastime = SLEEPS, .threadless = true, .failures = WRITES });
}

static void test_writes_what_is_deferred(void **state)
{
	(void)state;
	check_all_written((struct signalled_child){ .deferred = true, .pastime = SLEEPS });
	check_all_written((struct signalled_child){ .deferred = true, .pastime = SLEEPS, .threadless = true });
	check_all_written((struct signalled_child){ .deferred = true, .pastime = POLLS, .threadless = true });
	check_all_written((struct signalled_child){ .deferred = true, .pastime = SLEEPS, .release = true });
	check_all_written((struct signalled_child){ .deferred = true, .pastime = POLLS, .functions = true });
}

static void test_writes_while_the_embedder_is_busy(void **state)
{
	(void)state;
	if (UNDER_TSAN) {
		skip(); /* it delivers a signal with the next call of the C library */
	}
	check_all_written((struct signalled_child){ .pastime = RUNS });
	check_all_written((struct signalled_child){ .pastime = RUNS, .threadless = true });
}

static void test_waits_for_polls_of_a_sink_of_functions(void **state)
{
	int status;

	(void)state;
	check_all_written((struct signalled_child){ .functions = true, .pastime = POLLS });
	assert_int_equal(
		signalled_child_run((struct signalled_child){ .functions = true, .pastime = BLOCKED, .timeout = SHORT },
	                            &status),
		0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void test_exit_meanwhile_waits_for_the_writes(void **state)
{
	int status;

	(void)state;
	assert_int_equal(signalled_child_run((struct signalled_child){ .pastime = EXITS }, &status), WRITES);
	assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
}

static void test_ends_at_the_timeout_and_interrupts_no_read(void **state)
{
	int status;

	(void)state;
	assert_int_equal(
		signalled_child_run((struct signalled_child){ .hang = true, .pastime = BLOCKED, .timeout = SHORT },
	                            &status),
		0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void test_second_signal_ends_at_once(void **state)
{
	int status;

	(void)state;
	assert_int_equal(signalled_child_run(
				 (struct signalled_child){ .hang = true, .timeout = LONG, .second = SIGTERM }, &status),
	                 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void test_another_signal_changes_nothing(void **state)
{
	(void)state;
	check_all_written((struct signalled_child){ .second = SIGINT });
}

static void test_process_1_exits_with_the_signals_status(void **state)
{
	unsigned written;
	int status;

	(void)state;
	written = signalled_child_run((struct signalled_child){ .init = true }, &status);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 5) {
		print_message("# skipped: this system gives no PID namespace\n");
		skip();
	}
	assert_int_equal(written, WRITES);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
	(void)signalled_child_run(
		(struct signalled_child){ .init = true, .hang = true, .timeout = LONG, .second = SIGTERM }, &status);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
}

static void end_child(int signal)
{
	(void)signal;
}

static void check_refused(int signal, int64_t timeout, const char *part)
{
	const int signals[] = { SIGTERM, signal };
	struct sigaction action;
	evrec_error err;

	assert_int_equal(evrec_on_signal(signals, 2, timeout, &err), EVREC_EINVALID);
	unit_check_contains(err.message, part);
	assert_int_equal(sigaction(SIGTERM, NULL, &action), 0);
	assert_true(action.sa_handler == SIG_DFL);
}

static void test_refuses_what_is_somebody_elses(void **state)
{
	const struct sigaction theirs = { .sa_handler = end_child }, ignored = { .sa_handler = SIG_IGN };
	const struct sigaction none = { .sa_handler = SIG_DFL };
	evrec_error err;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &theirs, NULL), 0);
	assert_int_equal(sigaction(SIGHUP, &ignored, NULL), 0);
	check_refused(SIGUSR1, 0, "has a handler for signal 10");
	check_refused(SIGHUP, 0, "ignores signal 1");
	check_refused(SIGKILL, 0, "signals: 9 ");
	check_refused(SIGCHLD, 0, "signals: 17 ");
	check_refused(-1, 0, "signals: -1 ");
	check_refused(SIGINT, -1, "timeout: ");
	check_refused(SIGINT, INT64_MAX, "timeout: ");
	assert_int_equal(evrec_on_signal(NULL, 0, 0, &err), EVREC_EINVALID);
	assert_int_equal(sigaction(SIGUSR1, &none, NULL), 0);
	assert_int_equal(sigaction(SIGHUP, &none, NULL), 0);
}

/* Status 0: no thread could be started, and the default action still holds. */
static int be_refused_a_thread(void)
{
	const struct rlimit limit = { 0, 0 };
	const int signal = SIGTERM;
	struct sigaction action;
	evrec_error err;

	if (setrlimit(RLIMIT_NPROC, &limit) != 0 || (geteuid() == 0 && setuid(65534) != 0)) {
		return 1;
	}
	if (evrec_on_signal(&signal, 1, 0, &err) != EVREC_ESYSTEM || strstr(err.message, "no thread") == NULL) {
		return 2;
	}
	return sigaction(SIGTERM, NULL, &action) == 0 && action.sa_handler == SIG_DFL ? 0 : 3;
}

static void test_needs_a_thread(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		_exit(be_refused_a_thread());
	}
	assert_int_equal(unit_wait(child), 0);
}

/* The forked child of a process that watches SIGTERM. */
static _Noreturn void be_grandchild(bool watches)
{
	const struct signalled_child quiet = { .pastime = SLEEPS };
	struct sigaction action;

	if (sigaction(SIGTERM, NULL, &action) != 0 || action.sa_handler != SIG_DFL) {
		_exit(5);
	}
	if (watches) {
		signalled_child_live(&quiet, -1);
	}
	(void)raise(SIGTERM);
	_exit(6);
}

/* A child of vfork() has the handler and its parent's memory. True: it dies all the same, and its parent does not. */
static bool vforked_child_dies(void)
{
	pid_t child = vfork();

	if (child == 0) {
		(void)kill(getpid(), SIGTERM);
		_exit(6);
	}
	return unit_wait(child) == SIGTERM;
}

/* Whether this process has a thread with the name. */
static bool has_thread(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	bool found = false;

	while (tasks != NULL && !found && (task = readdir(tasks)) != NULL) {
		char path[300], line[32] = "";
		FILE *comm;

		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		comm = fopen(path, "r");
		found = comm != NULL && fgets(line, sizeof(line), comm) != NULL &&
		        strncmp(line, name, strlen(name)) == 0;
		if (comm != NULL) {
			(void)fclose(comm);
		}
	}
	if (tasks != NULL) {
		(void)closedir(tasks);
	}
	return found;
}

/*
 * AddressSanitizer allocates memory in a thread that begins. A child that is forked at that moment waits for the
 * allocator's lock for ever.
 */
static void await_thread(const char *name)
{
	const int64_t deadline = unit_mono() + SOON;

	while (!has_thread(name)) {
		if (unit_mono() >= deadline) {
			_exit(4);
		}
		(void)nanosleep(&(struct timespec){ 0, EVREC_SECOND / 1000 }, NULL);
	}
}

/* Status 0: the children died by the signal, and the process still watches it. */
static _Noreturn void be_parent(int success_fd)
{
	const struct signalled_child quiet = { .pastime = SLEEPS };
	const int signal = SIGTERM;

	if (evrec_on_signal(&signal, 1, LONG, NULL) != 0) {
		_exit(1);
	}
	await_thread("evrec-signal");
	/* ThreadSanitizer delivers no signal to a handler in a child of a process with threads. */
	for (int watches = 0; watches < (UNDER_TSAN ? 1 : 2); watches++) {
		pid_t child = fork();

		if (child == 0) {
			be_grandchild(watches != 0);
		}
		if (unit_wait(child) != SIGTERM) {
			_exit(2);
		}
	}
	if (!vforked_child_dies()) {
		_exit(3);
	}
	signalled_child_live(&quiet, success_fd);
}

static void test_forked_child_dies_as_any_other(void **state)
{
	char bytes[64];
	unsigned total = 0;
	int ends[2], status;
	pid_t child;
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		be_parent(ends[1]);
	}
	close(ends[1]);
	while ((n = read(ends[0], bytes, sizeof(bytes))) > 0) {
		total += (unsigned)n;
	}
	close(ends[0]);
	status = unit_wait(child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(total, WRITES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes_what_waits),
		cmocka_unit_test(test_writes_what_is_deferred),
		cmocka_unit_test(test_writes_while_the_embedder_is_busy),
		cmocka_unit_test(test_waits_for_polls_of_a_sink_of_functions),
		cmocka_unit_test(test_exit_meanwhile_waits_for_the_writes),
		cmocka_unit_test(test_ends_at_the_timeout_and_interrupts_no_read),
		cmocka_unit_test(test_second_signal_ends_at_once),
		cmocka_unit_test(test_another_signal_changes_nothing),
		cmocka_unit_test(test_process_1_exits_with_the_signals_status),
		cmocka_unit_test(test_refuses_what_is_somebody_elses),
		cmocka_unit_test(test_needs_a_thread),
		cmocka_unit_test(test_forked_child_dies_as_any_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The end of a process by a signal: what waits is written, whatever the embedder's thread does, and the status tells. */
#define _GNU_SOURCE

#include "sender_fixture.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

/* ThreadSanitizer does not let a forked child start a thread by default. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

#define WRITES 30
#define TOO_LONG 60                   /* seconds until SIGALRM ends a child */
#define LONG (3600 * EVREC_SECOND)    /* if a test waits for it, it hangs */
#define SHORT (EVREC_SECOND * 3 / 10) /* for tests that wait in vain */

enum pastime { SLEEPS, RUNS, READS, POLLS, EXITS };
/* ThreadSanitizer delivers no signal to a thread that is in a read. */
#define BLOCKED (UNDER_TSAN ? SLEEPS : READS)

/* A child that records, is sent a signal, and goes on. */
struct scenario {
	bool threadless, functions, release, hang;
	bool deferred;     /* the writes would be due in an hour */
	unsigned failures; /* answers 500 before the first success */
	enum pastime pastime;
	int64_t timeout; /* 0: that of most tests */
	int second;      /* a signal that follows SIGTERM; 0: none */
	bool init;       /* it is process 1 */
};

/* ---- in the child, where a failing assertion would run the remaining tests twice ---- */

/* Status 7: the signal was felt. */
static void pass_time(const struct scenario *c, struct sender_fixture *f)
{
	volatile unsigned turns = 0;
	int ends[2];
	char byte;

	switch (c->pastime) {
	case SLEEPS:
		for (;;) {
			(void)pause();
		}
	case RUNS:
		for (;;) {
			turns++;
		}
	case READS:
		if (pipe(ends) != 0 || read(ends[0], &byte, 1) <= 0) {
			_exit(7);
		}
		break;
	case POLLS:
		for (;;) {
			sender_step(f->sender);
			(void)usleep(1000);
		}
	case EXITS:
		exit(0);
	}
	_exit(8);
}

/* A child that reads is to be sent the signal while it waits for a byte. */
static void send_signal(const struct scenario *c)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM };
	const struct itimerspec in_50_ms = { .it_value = { 0, 50000000 } };
	timer_t timer;

	(void)alarm(TOO_LONG);
	if (c->pastime != READS) {
		(void)kill(getpid(), SIGTERM);
	} else if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
	           timer_settime(timer, 0, &in_50_ms, NULL) != 0) {
		_exit(3);
	}
}

static _Noreturn void live(const struct scenario *c, int success_fd)
{
	const int signals[] = { SIGTERM, SIGINT };
	struct sender_fixture f;

	sender_fixture_open(&f, c->threadless, evrec_clock_real());
	f.protocol->delay = EVREC_SECOND / 1000;
	f.protocol->success_fd = success_fd;
	f.protocol->hangs = c->hang;
	f.protocol->failures = c->failures;
	if (evrec_on_signal(signals, 2, c->timeout != 0 ? c->timeout : SOON, NULL) != 0) {
		_exit(6);
	}
	for (unsigned i = 1; i <= WRITES; i++) {
		(void)(c->deferred ? fake_write_defer : fake_write_submit)(f.ob, i, 1);
	}
	if (c->release) {
		f.protocol->freed = NULL;
		sender_step(f.sender);
		sender_release(f.sender);
	}
	send_signal(c);
	if (c->second != 0) {
		(void)kill(getpid(), c->second);
	}
	pass_time(c, &f);
	_exit(9);
}

/* A sink of the embedder's functions has no fixture of its own: the protocol is told before the sender is made. */
static _Noreturn void live_with_functions(const struct scenario *c, int success_fd)
{
	const struct sender_options options = { .clock = evrec_clock_real() };
	const evrec_limits limits = limits_without_age(1000);
	const int signal = SIGTERM;
	struct sender_fixture f = { .ob = outbox_new(&fake_write_ops, &limits, 1) };

	f.protocol = fake_protocol_new(&f.freed);
	fake_protocol_without_io(f.protocol);
	f.protocol->base.max_batch = 1;
	f.protocol->base.max_in_flight = 8;
	f.protocol->success_fd = success_fd;
	f.sender = sender_new(f.ob, &f.protocol->base, &options);
	if (evrec_on_signal(&signal, 1, c->timeout != 0 ? c->timeout : SOON, NULL) != 0) {
		_exit(6);
	}
	for (unsigned i = 1; i <= WRITES; i++) {
		(void)(c->deferred ? fake_write_defer : fake_write_submit)(f.ob, i, 1);
	}
	send_signal(c);
	pass_time(c, &f);
	_exit(9);
}

/* Process 1 of a new PID namespace. Its parent ends as it does, but with status 5 if there can be no namespace. */
static void become_init(void)
{
	pid_t child;
	int status;

	if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
		_exit(5);
	}
	child = fork();
	if (child == 0) {
		return;
	}
	status = unit_wait(child);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
}

/* ---- in the test ---- */

/* Runs the scenario. Returns how many writes were made; *status is that of waitpid. */
static unsigned end_by_signal(struct scenario c, int *status)
{
	char bytes[64];
	unsigned total = 0;
	int ends[2];
	pid_t child;
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		if (c.init) {
			become_init();
		}
		if (c.functions) {
			live_with_functions(&c, ends[1]);
		}
		live(&c, ends[1]);
	}
	close(ends[1]);
	while ((n = read(ends[0], bytes, sizeof(bytes))) > 0) {
		total += (unsigned)n;
	}
	close(ends[0]);
	*status = unit_wait(child);
	return total;
}

static void check_all_written(struct scenario c)
{
	int status;

	assert_int_equal(end_by_signal(c, &status), WRITES);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void test_writes_what_waits(void **state)
{
	(void)state;
	check_all_written((struct scenario){ .pastime = SLEEPS });
	check_all_written((struct scenario){ .pastime = BLOCKED });
	check_all_written((struct scenario){ .pastime = SLEEPS, .threadless = true });
	check_all_written((struct scenario){ .pastime = POLLS, .threadless = true });
	check_all_written((struct scenario){ .pastime = SLEEPS, .release = true });
	check_all_written((struct scenario){ .pastime = SLEEPS, .threadless = true, .release = true });
	check_all_written((struct scenario){ .pastime = SLEEPS, .failures = WRITES });
	check_all_written((struct scenario){ .pastime = SLEEPS, .threadless = true, .failures = WRITES });
}

static void test_writes_what_is_deferred(void **state)
{
	(void)state;
	check_all_written((struct scenario){ .deferred = true, .pastime = SLEEPS });
	check_all_written((struct scenario){ .deferred = true, .pastime = SLEEPS, .threadless = true });
	check_all_written((struct scenario){ .deferred = true, .pastime = POLLS, .threadless = true });
	check_all_written((struct scenario){ .deferred = true, .pastime = SLEEPS, .release = true });
	check_all_written((struct scenario){ .deferred = true, .pastime = POLLS, .functions = true });
}

static void test_writes_while_the_embedder_is_busy(void **state)
{
	(void)state;
	if (UNDER_TSAN) {
		skip(); /* it delivers a signal with the next call of the C library */
	}
	check_all_written((struct scenario){ .pastime = RUNS });
	check_all_written((struct scenario){ .pastime = RUNS, .threadless = true });
}

static void test_waits_for_polls_of_a_sink_of_functions(void **state)
{
	int status;

	(void)state;
	check_all_written((struct scenario){ .functions = true, .pastime = POLLS });
	assert_int_equal(
		end_by_signal((struct scenario){ .functions = true, .pastime = BLOCKED, .timeout = SHORT }, &status),
		0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void test_exit_meanwhile_waits_for_the_writes(void **state)
{
	int status;

	(void)state;
	assert_int_equal(end_by_signal((struct scenario){ .pastime = EXITS }, &status), WRITES);
	assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
}

static void test_ends_at_the_timeout_and_interrupts_no_read(void **state)
{
	int status;

	(void)state;
	assert_int_equal(
		end_by_signal((struct scenario){ .hang = true, .pastime = BLOCKED, .timeout = SHORT }, &status), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void test_second_signal_ends_at_once(void **state)
{
	int status;

	(void)state;
	assert_int_equal(end_by_signal((struct scenario){ .hang = true, .timeout = LONG, .second = SIGTERM }, &status),
	                 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void test_another_signal_changes_nothing(void **state)
{
	(void)state;
	check_all_written((struct scenario){ .second = SIGINT });
}

static void test_process_1_exits_with_the_signals_status(void **state)
{
	unsigned written;
	int status;

	(void)state;
	written = end_by_signal((struct scenario){ .init = true }, &status);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 5) {
		print_message("# skipped: this system gives no PID namespace\n");
		skip();
	}
	assert_int_equal(written, WRITES);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
	(void)end_by_signal((struct scenario){ .init = true, .hang = true, .timeout = LONG, .second = SIGTERM },
	                    &status);
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
	const struct scenario quiet = { .pastime = SLEEPS };
	struct sigaction action;

	if (sigaction(SIGTERM, NULL, &action) != 0 || action.sa_handler != SIG_DFL) {
		_exit(5);
	}
	if (watches) {
		live(&quiet, -1);
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

/* Status 0: the children died by the signal, and the process still watches it. */
static _Noreturn void be_parent(int success_fd)
{
	const struct scenario quiet = { .pastime = SLEEPS };
	const int signal = SIGTERM;

	if (evrec_on_signal(&signal, 1, LONG, NULL) != 0) {
		_exit(1);
	}
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
	live(&quiet, success_fd);
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

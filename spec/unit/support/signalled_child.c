#define _GNU_SOURCE

#include "signalled_child.h"

#include <sched.h>
#include <time.h>

#define TOO_LONG 60 /* seconds until SIGALRM ends a child */

/* ---- in the child, where a failing assertion would run the remaining tests twice ---- */

/* Status 7: the signal was felt. */
static void pass_time(const struct signalled_child *c, struct sender_fixture *f)
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
static void send_signal(const struct signalled_child *c)
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

_Noreturn void signalled_child_live(const struct signalled_child *c, int success_fd)
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
static _Noreturn void live_with_functions(const struct signalled_child *c, int success_fd)
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

unsigned signalled_child_run(struct signalled_child c, int *status)
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
		signalled_child_live(&c, ends[1]);
	}
	close(ends[1]);
	while ((n = read(ends[0], bytes, sizeof(bytes))) > 0) {
		total += (unsigned)n;
	}
	close(ends[0]);
	*status = unit_wait(child);
	return total;
}

#define _GNU_SOURCE /* pthread_setname_np */

#include "sender/last_words.h"
#include "sender/sender_inner.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MAX (86400 * EVREC_SECOND)

/* Signals by which a process is asked to end. */
static const int known[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };
#define KNOWN (sizeof(known) / sizeof(known[0]))

/* One for the process, as signals are process-wide. */
static struct {
	pthread_mutex_t lock; /* one call of evrec_on_signal at a time */
	_Atomic pid_t owner;  /* the process whose thread waits for `arrived`; 0: none */
	_Atomic int64_t timeout;
	sem_t arrived;
	atomic_int first; /* the signal that ends the process; 0: none came */
	atomic_uint seen; /* a bit for each signal that came */
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void set_action(int signal, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	(void)sigfillset(&action.sa_mask);
	(void)sigaction(signal, &action, NULL);
}

/* Ends the process as the signal would without a handler. Any thread, also in a handler. */
static _Noreturn void die(int signal)
{
	sigset_t only;

	(void)sigemptyset(&only);
	(void)sigaddset(&only, signal);
	set_action(signal, SIG_DFL);
	(void)pthread_sigmask(SIG_UNBLOCK, &only, NULL);
	(void)raise(signal);
	/* The kernel ignores default actions for process 1 of a container. */
	_exit(128 + signal);
}

/*
 * Runs on any of the embedder's threads, at any moment. In a child of vfork() or fork() the waiting thread does not
 * exist. A repeated signal, while the first one is acted on, asks for an immediate end.
 */
static void on_signal(int signal)
{
	int error = errno, none = 0;
	unsigned bit = 1U << signal;

	if (getpid() != atomic_load(&watch.owner) || (atomic_fetch_or(&watch.seen, bit) & bit) != 0) {
		die(signal);
	}
	if (atomic_compare_exchange_strong(&watch.first, &none, signal)) {
		(void)sem_post(&watch.arrived);
	}
	errno = error;
}

static void *wait_for_signal(void *ctx)
{
	(void)ctx;
	(void)pthread_setname_np(pthread_self(), "evrec-signal");
	while (sem_wait(&watch.arrived) != 0) {
	}
	senders_end_for_signal(atomic_load(&watch.timeout));
	last_words_tell();
	die(atomic_load(&watch.first));
}

static bool is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == on_signal;
}

static void make_new(void)
{
	atomic_store(&watch.owner, 0);
	atomic_store(&watch.first, 0);
	atomic_store(&watch.seen, 0);
	(void)sem_init(&watch.arrived, 0, 0);
}

/* A forked child has the handlers, but not the thread: it dies at once, as if there were no handlers. */
static void forked(void)
{
	(void)pthread_mutex_init(&watch.lock, NULL);
	make_new();
	for (size_t i = 0; i < KNOWN; i++) {
		struct sigaction action;

		if (sigaction(known[i], NULL, &action) == 0 && is_ours(&action)) {
			set_action(known[i], SIG_DFL);
		}
	}
}

static void init(void)
{
	make_new();
	(void)pthread_atfork(NULL, NULL, forked);
}

static bool is_known(int signal)
{
	for (size_t i = 0; i < KNOWN; i++) {
		if (known[i] == signal) {
			return true;
		}
	}
	return false;
}

static int check(const int *signals, size_t n, int64_t timeout, evrec_error *err)
{
	if (n == 0) {
		return error_set(err, EVREC_EINVALID, "signals: none is given");
	}
	if (timeout < 0 || timeout > TIMEOUT_MAX) {
		return error_set(err, EVREC_EINVALID, "timeout: must be 0 to 86400 s");
	}
	for (size_t i = 0; i < n; i++) {
		struct sigaction action;

		if (!is_known(signals[i])) {
			return error_set(err, EVREC_EINVALID, "signals: %d is not one of the allowed signals",
			                 signals[i]);
		}
		(void)sigaction(signals[i], NULL, &action);
		if (is_ours(&action)) {
			continue;
		}
		if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) {
			return error_set(err, EVREC_EINVALID, "signals: the process already %s signal %d",
			                 action.sa_handler == SIG_IGN ? "ignores" : "has a handler for", signals[i]);
		}
	}
	return 0;
}

static int start_thread(evrec_error *err)
{
	pthread_t thread;
	int error;

	if (atomic_load(&watch.owner) == getpid()) {
		return 0;
	}
	error = sender_create_thread(&thread, wait_for_signal, NULL);
	if (error != 0) {
		char text[64];

		return error_set(err, EVREC_ESYSTEM, "no thread could be started: %s",
		                 strerror_r(error, text, sizeof(text)));
	}
	(void)pthread_detach(thread);
	atomic_store(&watch.owner, getpid());
	return 0;
}

int evrec_on_signal(const int *signals, size_t n, int64_t timeout, evrec_error *err)
{
	int code;

	(void)pthread_once(&once, init);
	(void)pthread_mutex_lock(&watch.lock);
	code = check(signals, n, timeout, err);
	if (code == 0) {
		code = start_thread(err);
	}
	if (code == 0) {
		atomic_store(&watch.timeout, timeout);
		for (size_t i = 0; i < n; i++) {
			set_action(signals[i], on_signal);
		}
	}
	(void)pthread_mutex_unlock(&watch.lock);
	return code;
}

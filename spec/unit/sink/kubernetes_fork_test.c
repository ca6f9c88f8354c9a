/*
 * A process forks while another of its threads is inside libcurl and the TLS library, which are being used for the first
 * time. The child records one event, which must arrive, and exits.
 *
 * EVREC_FORKS (40) such processes for each way to drive their sender; `make full` has 300.
 */
#define _GNU_SOURCE

#include "tls_server.h"

#include "base/clock.h"

#define AT_ONCE 4
#define WAITING 16
#define CHILD_MAX 20U                             /* s; more than any machine needs */
#define FORK_AFTER ((uint64_t)EVREC_SECOND / 100) /* at most; the first request takes that long */

/* A sanitizer has locks of its own, which gcc 12's do not hold at a fork. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#define SANITIZED (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer))
#else
#define SANITIZED false
#endif

struct host {
	evrec_sink *sink;
	evrec_broadcaster *b;
	evrec_recorder *r;
	unsigned recorded;
};

static void open_host(struct host *host, const struct tls_server *server, bool threadless)
{
	evrec_broadcaster_options of_broadcaster;
	evrec_kubernetes_options options;

	evrec_broadcaster_options_init(&of_broadcaster);
	of_broadcaster.drive = threadless ? EVREC_DRIVE_POLL : EVREC_DRIVE_AUTO;
	evrec_kubernetes_options_init(&options);
	options.server = str_from(server->url);
	options.ca = str_from(PEM_CERTIFICATE);
	*host = (struct host){ .sink = evrec_sink_kubernetes(&options, NULL),
		               .b = evrec_broadcaster_new(&of_broadcaster, NULL) };
	host->r = evrec_recorder_new(
		host->b, &(evrec_recorder_options){ .component = EVREC_STR("test"), .host = EVREC_STR("host") }, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(host->b, host->sink, NULL, NULL));
}

static void close_host(struct host *host)
{
	(void)evrec_broadcaster_shutdown(host->b, 0, NULL);
	evrec_broadcaster_free(host->b);
	evrec_recorder_free(host->r);
	evrec_sink_release(host->sink);
}

static int record(struct host *host, const char *kind, unsigned number)
{
	char name[64];
	const evrec_reference regarding = { .kind = EVREC_STR("Pod"), .ns = EVREC_STR("shop") };
	evrec_emit what = { .type = EVREC_STR("Normal"), .reason = EVREC_STR("Forked"), .timestamp = EVREC_UNSET };
	evrec_reference object = regarding;

	snprintf(name, sizeof(name), "%s-%u", kind, number);
	object.name = str_from(name);
	what.regarding = &object;
	return evrec_recorder_emit(host->r, &what, NULL);
}

/* Records until much waits, each event about another object. */
static void keep_busy(struct host *host)
{
	evrec_sink_stats stats;

	for (;;) {
		evrec_broadcaster_poll(host->b);
		(void)evrec_broadcaster_get_sink_stats(host->b, 1, &stats);
		if (stats.pending_writes >= WAITING) {
			return;
		}
		(void)record(host, "parent", host->recorded++);
	}
}

/* ---- processes ---- */

/* The exit statuses of a test process. */
enum { FINE, NOT_WRITTEN, HUNG };

struct world {
	struct tls_server server;
	void (*live)(const struct world *w, unsigned number, int64_t fork_at); /* one such process; does not return */
	unsigned running, hung, not_written;
};

static _Noreturn void live_in_child(struct host *host, unsigned number)
{
	int code;

	(void)alarm(CHILD_MAX);
	code = record(host, "visitor", number);
	if (code == 0) {
		code = evrec_broadcaster_flush(host->b, CHILD_MAX / 2 * EVREC_SECOND, NULL);
	}
	exit(code == 0 ? FINE : NOT_WRITTEN);
}

/* With a host of its own: the parent's is another thread's. */
static _Noreturn void live_in_child_anew(const struct world *w, unsigned number, bool threadless)
{
	struct host host;

	open_host(&host, &w->server, threadless);
	live_in_child(&host, number);
}

static int end_of(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) < 0) {
		return NOT_WRITTEN;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
		return HUNG;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_WRITTEN;
}

static bool is_before(int64_t time)
{
	return clock_monotonic(evrec_clock_real()) < time;
}

/* ---- the ways to drive the sender ---- */

static void live_with_a_thread(const struct world *w, unsigned number, int64_t fork_at)
{
	struct host host;
	pid_t child;

	open_host(&host, &w->server, false);
	do {
		keep_busy(&host);
	} while (is_before(fork_at));
	child = fork();
	if (child == 0) {
		live_in_child(&host, number);
	}
	exit(end_of(child));
}

struct other_thread {
	pthread_t thread;
	const struct tls_server *server;
	atomic_bool stop;
};

static void *poll_until_stopped(void *ctx)
{
	struct other_thread *other = ctx;
	struct host host;

	open_host(&host, other->server, true);
	while (!other->stop) {
		keep_busy(&host);
	}
	close_host(&host);
	return NULL;
}

/* Each sender's thread ends with its broadcaster. */
static void *begin_and_end_until_stopped(void *ctx)
{
	struct other_thread *other = ctx;
	struct host host;

	while (!other->stop) {
		open_host(&host, other->server, false);
		(void)record(&host, "parent", 0);
		(void)evrec_broadcaster_flush(host.b, CHILD_MAX * EVREC_SECOND, NULL);
		close_host(&host);
	}
	return NULL;
}

static void live_beside(void *(*run)(void *), const struct world *w, unsigned number, int64_t fork_at)
{
	struct other_thread other = { .server = &w->server };
	pid_t child;
	int code;

	(void)pthread_create(&other.thread, NULL, run, &other);
	while (is_before(fork_at)) {
	}
	child = fork();
	if (child == 0) {
		live_in_child_anew(w, number, run == poll_until_stopped);
	}
	code = end_of(child);
	other.stop = true;
	(void)pthread_join(other.thread, NULL);
	exit(code);
}

static void live_beside_a_poll(const struct world *w, unsigned number, int64_t fork_at)
{
	live_beside(poll_until_stopped, w, number, fork_at);
}

static void live_beside_ends(const struct world *w, unsigned number, int64_t fork_at)
{
	live_beside(begin_and_end_until_stopped, w, number, fork_at);
}

/* ---- all of them ---- */

static void reap(struct world *w)
{
	int code = end_of(-1);

	w->running--;
	w->hung += code == HUNG;
	w->not_written += code == NOT_WRITTEN;
}

static unsigned forks_wanted(void)
{
	const char *text = getenv("EVREC_FORKS");
	unsigned long n = text != NULL ? strtoul(text, NULL, 10) : 40;

	assert_in_range(n, 1, TLS_VISITORS);
	return (unsigned)n;
}

static void start_processes(struct world *w, unsigned n)
{
	uint64_t random = unit_seed();

	for (unsigned i = 0; i < n; i++) {
		int64_t wait = (int64_t)(unit_random(&random) % FORK_AFTER);
		pid_t pid = fork();

		assert_int_not_equal(pid, -1);
		if (pid == 0) {
			w->live(w, i, clock_monotonic(evrec_clock_real()) + wait);
		}
		if (++w->running == AT_ONCE) {
			reap(w);
		}
	}
	while (w->running != 0) {
		reap(w);
	}
}

static void try_drive(void (*live)(const struct world *w, unsigned number, int64_t fork_at))
{
	struct world w = { .live = live };
	const unsigned n = forks_wanted();
	unsigned missing = 0;

	if (SANITIZED) {
		skip();
	}
	tls_server_start(&w.server);
	start_processes(&w, n);
	for (unsigned i = 0; i < n; i++) {
		missing += !w.server.visitors[i];
	}
	tls_server_stop(&w.server);
	if (w.hung + w.not_written + missing != 0) {
		fail_msg("%u children: %u hung, %u could not write, the events of %u are missing", n, w.hung,
		         w.not_written, missing);
	}
}

static void test_a_thread_sends(void **state)
{
	(void)state;
	try_drive(live_with_a_thread);
}

static void test_another_thread_polls(void **state)
{
	(void)state;
	try_drive(live_beside_a_poll);
}

static void test_threads_begin_and_end(void **state)
{
	(void)state;
	try_drive(live_beside_ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_sends),
		cmocka_unit_test(test_another_thread_polls),
		cmocka_unit_test(test_threads_begin_and_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

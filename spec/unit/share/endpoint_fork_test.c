/* A process that another thread forks while a connection is made has no copy of it. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "share/endpoint.h"

#define FORK_TIME (EVREC_SECOND / 20) /* for a fork that need not wait */

/* A thread that forks at a moment between two calls of the system. */
static struct forker {
	bool is_due;
	pthread_t thread;
	sem_t forked;
	int fd;
	int kept; /* of the child: whether it has a copy of fd */
} forker;

static void *fork_once(void *ctx)
{
	struct forker *f = ctx;
	const pid_t child = fork();

	if (child == 0) {
		_exit(fcntl(f->fd, F_GETFD) >= 0);
	}
	(void)sem_post(&f->forked);
	f->kept = unit_wait(child);
	return NULL;
}

/* Lets the thread fork, which either does so or waits for a lock. */
static void fork_now(int fd)
{
	struct timespec until;

	if (!forker.is_due) {
		return;
	}
	forker.is_due = false;
	forker.fd = fd;
	assert_int_equal(pthread_create(&forker.thread, NULL, fork_once, &forker), 0);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += FORK_TIME;
	until.tv_sec += until.tv_nsec / EVREC_SECOND;
	until.tv_nsec %= EVREC_SECOND;
	(void)sem_timedwait(&forker.forked, &until);
}

/* In place of the C library's. */
int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	const int accepted = (int)syscall(SYS_accept4, fd, address, len, flags);

	fork_now(accepted);
	return accepted;
}

/* In place of the C library's. */
int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	const int result = (int)syscall(SYS_connect, fd, address, len);

	fork_now(fd);
	return result;
}

static void make_due(void)
{
	assert_int_equal(sem_init(&forker.forked, 0, 0), 0);
	forker.is_due = true;
}

static void check_no_copy(void)
{
	assert_false(forker.is_due);
	assert_int_equal(pthread_join(forker.thread, NULL), 0);
	assert_int_equal(forker.kept, 0);
	(void)sem_destroy(&forker.forked);
}

static void test_fork_beside_a_connection(void **state)
{
	struct endpoint_copied near_copied, far_copied;
	struct endpoint_peer peer;
	struct endpoint e;
	evrec_error err = { 0 };
	char name[64];
	int near, far;

	(void)state;
	(void)snprintf(name, sizeof(name), "@evrec-fork-test-%ld", (long)getpid());
	assert_int_equal(endpoint_init(&e, str_from(name), &err), 0);
	assert_int_equal(endpoint_bind(&e, &err), ENDPOINT_OK);
	make_due();
	assert_int_equal(endpoint_connect(&e, &near_copied, &near, &err), ENDPOINT_OK);
	check_no_copy();
	make_due();
	assert_true(endpoint_accept(&e, &far_copied, &far, &peer, &err));
	check_no_copy();
	endpoint_copied_end(&near_copied, &near);
	endpoint_copied_end(&far_copied, &far);
	endpoint_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork_beside_a_connection),
	};

	return cmocka_run_group_tests_name("endpoint_fork", tests, NULL, NULL);
}

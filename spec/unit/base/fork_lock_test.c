/* A fork in one thread, while another one uses a library for the first time. */
#include "unit.h"

#include "base/fork_lock.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static atomic_bool inside;
static sem_t entered;

/* Stays inside for a moment, in which a fork that does not wait has happened. */
static void *use_library(void *ctx)
{
	(void)ctx;
	fork_lock_enter();
	inside = true;
	(void)sem_post(&entered);
	(void)nanosleep(&(struct timespec){ 0, EVREC_SECOND / 20 }, NULL);
	inside = false;
	fork_lock_leave();
	return NULL;
}

/* Runs when fork() has begun. */
static void before_fork(void)
{
	pthread_t thread;

	(void)pthread_create(&thread, NULL, use_library, NULL);
	(void)pthread_detach(thread);
	while (sem_wait(&entered) != 0) {
	}
}

static void test_a_fork_waits_for_a_first_use_that_begins_meanwhile(void **state)
{
	pid_t child;

	(void)state;
	(void)sem_init(&entered, 0, 0);
	assert_int_equal(pthread_atfork(before_fork, NULL, NULL), 0);
	child = fork();
	if (child == 0) {
		_exit(inside ? 1 : 0);
	}
	assert_int_equal(unit_wait(child), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_fork_waits_for_a_first_use_that_begins_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

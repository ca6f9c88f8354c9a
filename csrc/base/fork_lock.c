#include "base/fork_lock.h"

#include "base/clock.h"
#include "base/wait.h"

#include <pthread.h>

/*
 * The thread that forks, in a signal handler or in an embedder's allocator, may have a lock for which a thread between
 * enter and leave waits. After this time the fork goes on, as it would without this lock.
 */
#define FORK_WAITS_MAX EVREC_SECOND

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held by the thread that forks, from before to after */
static pthread_cond_t changed;
static unsigned entered; /* threads between enter and leave */
static unsigned forking; /* threads that fork, or wait to */
static _Thread_local bool is_inside;

/* Of a thread that ends: whether other libraries' destructors have run. */
static pthread_key_t ending;
static bool has_key;
static const bool not_yet = false, yes = true;

static void after_fork_in_child(void)
{
	wait_init(&changed);
	entered = is_inside ? 1 : 0;
	forking = 0;
	(void)pthread_mutex_unlock(&mutex);
}

/* From now on no thread enters, so that busy threads cannot delay the fork in turns. */
static void before_fork(void)
{
	const int64_t deadline = clock_monotonic(evrec_clock_real()) + FORK_WAITS_MAX;
	const unsigned own = is_inside ? 1 : 0;

	(void)pthread_mutex_lock(&mutex);
	forking++;
	while (entered > own && wait_until(&changed, &mutex, deadline)) {
	}
}

static void after_fork(void)
{
	forking--;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&mutex);
}

/* The destructors of all keys run in rounds, for as long as a value is set; in the first one in any order. */
static void leave_at_end(void *value)
{
	if (value == &not_yet) {
		(void)pthread_setspecific(ending, &yes);
	} else {
		fork_lock_leave();
	}
}

static AT_LOAD(LOAD_FORK_LOCK) void init(void)
{
	wait_init(&changed);
	has_key = pthread_key_create(&ending, leave_at_end) == 0;
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void fork_lock_enter(void)
{
	(void)pthread_mutex_lock(&mutex);
	while (forking != 0) {
		(void)pthread_cond_wait(&changed, &mutex);
	}
	entered++;
	is_inside = true;
	(void)pthread_mutex_unlock(&mutex);
}

void fork_lock_leave(void)
{
	(void)pthread_mutex_lock(&mutex);
	is_inside = false;
	entered--;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&mutex);
}

void fork_lock_enter_until_thread_ends(void)
{
	if (has_key && pthread_setspecific(ending, &not_yet) == 0) {
		fork_lock_enter();
	}
}

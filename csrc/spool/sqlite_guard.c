#include "spool/sqlite_guard.h"

#include "base/fork_lock.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint inside; /* threads */
static atomic_bool is_locked;

static void after_fork_in_child(void)
{
	if (atomic_exchange(&inside, 0) != 0) {
		atomic_store(&is_locked, true);
	}
}

static AT_LOAD(LOAD_INNER_LOCKS) void init(void)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

void sqlite_guard_enter(void)
{
	fork_lock_enter();
	atomic_fetch_add(&inside, 1);
}

void sqlite_guard_leave(void)
{
	atomic_fetch_sub(&inside, 1);
	fork_lock_leave();
}

bool sqlite_guard_is_locked(void)
{
	return atomic_load(&is_locked);
}

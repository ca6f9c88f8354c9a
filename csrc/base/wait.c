#include "base/wait.h"

#include <time.h>

void wait_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
}

bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline)
{
	struct timespec until = { .tv_sec = (time_t)(deadline / EVREC_SECOND),
		                  .tv_nsec = (long)(deadline % EVREC_SECOND) };

	return pthread_cond_timedwait(cond, lock, &until) == 0;
}

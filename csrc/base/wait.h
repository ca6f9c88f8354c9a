/*
 * wait.h - condition variables whose deadlines are CLOCK_MONOTONIC in ns, which no one can step. Any thread.
 */
#ifndef EVREC_WAIT_H
#define EVREC_WAIT_H

#include "base/base.h"

#include <pthread.h>

#pragma GCC visibility push(hidden)

/* Cannot fail on Linux. */
void wait_init(pthread_cond_t *cond);
/* With `lock` held. False where the deadline has come; true may be spurious: look at what was waited for. */
bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline);

#pragma GCC visibility pop

#endif

/* wait.h - condition variables whose deadlines are ns of CLOCK_MONOTONIC, which cannot be set. Any thread. */
#ifndef EVREC_WAIT_H
#define EVREC_WAIT_H

#include "base/base.h"

#include <pthread.h>

#pragma GCC visibility push(hidden)

/* Cannot fail on Linux. */
void wait_init(pthread_cond_t *cond);
/* Waits, with `lock` held. False: the deadline has passed. True: signalled, or woken without a reason. */
bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline);

#pragma GCC visibility pop

#endif

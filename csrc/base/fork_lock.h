/*
 * fork_lock.h - makes fork() wait until no thread is inside a library that is not fork-safe.
 *
 * libcurl, the TLS library below it, and SQLite have process-wide locks; jansson initializes itself in its first call.
 * In a forked child a lock that another thread held at the moment of the fork stays locked for ever. So calls of these
 * libraries run between fork_lock_enter and fork_lock_leave, and fork() waits until no thread is in between, for a
 * second at most. vfork and posix_spawn do not wait: their child runs another program.
 */
#ifndef EVREC_FORK_LOCK_H
#define EVREC_FORK_LOCK_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/*
 * Waits while another thread forks. Any number of threads may be between the two calls, each once, and for a bounded
 * time: they must not wait for the network, nor for a lock whose holder may fork or call fork_lock_enter. A fork by a
 * thread between the two calls waits only for the other threads.
 */
void fork_lock_enter(void);
void fork_lock_leave(void);
/*
 * Enters, and leaves when the thread has ended: libraries then free their thread-local data, under their locks. Must be
 * the last call of the thread.
 */
void fork_lock_enter_until_thread_ends(void);

#pragma GCC visibility pop

#endif

/*
 * fork_lock.h - keeps fork() apart from libraries that are not made for it.
 *
 * libcurl, the TLS library below it, and SQLite have locks for the whole process; jansson sets itself up in its first call. In
 * a forked child a lock that another thread held at the moment of the fork stays locked for ever. So such a call runs
 * between fork_lock_enter and fork_lock_leave, and fork() waits until no thread is in between, for a second at most.
 * vfork and posix_spawn wait for nothing: their child runs another program.
 */
#ifndef EVREC_FORK_LOCK_H
#define EVREC_FORK_LOCK_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* Before the first fork_lock_enter. Idempotent; any thread. */
void fork_lock_init(void);
/*
 * Waits while another thread forks. Any number of threads may be in between, each once, for a bounded time: with no wait
 * for the network, nor for a lock whose holder may fork or call fork_lock_enter. A fork by a thread that is itself in
 * between waits for the others alone.
 */
void fork_lock_enter(void);
void fork_lock_leave(void);
/*
 * Enters, and leaves when the thread has ended: libraries then free what they keep for the thread, under their locks. The
 * last call that the thread makes.
 */
void fork_lock_enter_until_thread_ends(void);

#pragma GCC visibility pop

#endif

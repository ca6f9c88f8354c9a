/*
 * sqlite_guard.h - makes fork() wait for calls of SQLite, whose mutexes are process-wide: a child that was forked while
 * another thread held one would wait for ever.
 *
 * fork() waits until no thread is inside, for a second at most (base/fork_lock.h). After that, if a disk hangs, the
 * child may not use SQLite at all. Any thread.
 */
#ifndef EVREC_SQLITE_GUARD_H
#define EVREC_SQLITE_GUARD_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

void sqlite_guard_enter(void);
void sqlite_guard_leave(void);
/* True in a child that was forked while a thread was inside. */
bool sqlite_guard_is_locked(void);

#pragma GCC visibility pop

#endif

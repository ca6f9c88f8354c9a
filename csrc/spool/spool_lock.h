/*
 * spool_lock.h - a lock between the processes, and between the sinks of one process, that use the same spool: a write
 * lock of an open file description (F_OFD_SETLK) on a file of its own.
 *
 * A POSIX lock would be lost if the host opened and closed the file. This one is held as long as any descriptor of the
 * description is open; a forked child closes its copies, so the lock ends with the process that took it, however that
 * dies. Only the owner may remove the file: a process that has locked a removed file notices it, and treats the lock as
 * in use.
 */
#ifndef EVREC_SPOOL_LOCK_H
#define EVREC_SPOOL_LOCK_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct spool_lock {
	int fd;                         /* -1: not taken */
	struct spool_lock *prev, *next; /* all that are taken in this process */
};

enum spool_lock_result { SPOOL_LOCK_TAKEN, SPOOL_LOCK_IN_USE, SPOOL_LOCK_FAILED };

void spool_lock_init(struct spool_lock *lock);
/* Never waits for another owner. Only SPOOL_LOCK_FAILED sets *err. One thread at a time. */
enum spool_lock_result spool_lock_take(struct spool_lock *lock, const char *path, evrec_error *err);
void spool_lock_release(struct spool_lock *lock); /* does nothing if it is not taken */
/* Somebody has removed its file since it was taken. */
bool spool_lock_is_removed(const struct spool_lock *lock);

/*
 * Closes this process's descriptor; the lock stays with the other process that has a descriptor of it. Does nothing if
 * it is not taken.
 */
void spool_lock_leave(struct spool_lock *lock);
/*
 * Takes over `fd`, the descriptor of a taken lock, from another process, while no fork can begin; the lock owns it from
 * now on. The lock was not taken in this process.
 */
void spool_lock_adopt(struct spool_lock *lock, int fd);

#pragma GCC visibility pop

#endif

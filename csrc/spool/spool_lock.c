#define _GNU_SOURCE /* F_OFD_SETLK */

#include "spool/spool_lock.h"

#include "spool/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

/* Held for a few instructions at a time, never for a system call that may block: fork() waits for it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct spool_lock *taken;
static unsigned long forks;

static void before_fork(void)
{
	(void)pthread_mutex_lock(&mutex);
	forks++;
}

static void after_fork(void)
{
	(void)pthread_mutex_unlock(&mutex);
}

static void after_fork_in_child(void)
{
	for (struct spool_lock *lock = taken; lock != NULL; lock = lock->next) {
		(void)close(lock->fd);
		lock->fd = -1;
	}
	taken = NULL;
	(void)pthread_mutex_unlock(&mutex);
}

static AT_LOAD(LOAD_INNER_LOCKS) void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void spool_lock_init(struct spool_lock *lock)
{
	*lock = (struct spool_lock){ .fd = -1 };
}

static unsigned long count_forks(void)
{
	unsigned long n;

	(void)pthread_mutex_lock(&mutex);
	n = forks;
	(void)pthread_mutex_unlock(&mutex);
	return n;
}

/* With the mutex. */
static void list(struct spool_lock *lock, int fd)
{
	*lock = (struct spool_lock){ .fd = fd, .next = taken };
	if (taken != NULL) {
		taken->prev = lock;
	}
	taken = lock;
}

/* Makes forked children close it. False: a child was forked since there were `before` forks, and keeps a copy. */
static bool add(struct spool_lock *lock, int fd, unsigned long before)
{
	bool ok;

	(void)pthread_mutex_lock(&mutex);
	ok = forks == before;
	if (ok) {
		list(lock, fd);
	}
	(void)pthread_mutex_unlock(&mutex);
	return ok;
}

/* False: see *err. */
static bool open_file(struct spool_lock *lock, const char *path, evrec_error *err)
{
	unsigned long before;
	int fd;

	for (;;) {
		before = count_forks();
		fd = private_file_open(path, err);
		if (fd < 0) {
			return false;
		}
		if (add(lock, fd, before)) {
			private_file_protect(fd);
			return true;
		}
		(void)close(fd);
	}
}

/*
 * Whether the last owner has removed the file since it was opened here: another process may have a new file of this
 * name.
 */
static bool is_removed(int fd)
{
	struct stat st;

	return fstat(fd, &st) != 0 || st.st_nlink == 0;
}

bool spool_lock_is_removed(const struct spool_lock *lock)
{
	return lock->fd >= 0 && is_removed(lock->fd);
}

enum spool_lock_result spool_lock_take(struct spool_lock *lock, const char *path, evrec_error *err)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int error;

	if (!open_file(lock, path, err)) {
		return SPOOL_LOCK_FAILED;
	}
	if (fcntl(lock->fd, F_OFD_SETLK, &whole) != 0) {
		error = errno;
	} else if (is_removed(lock->fd)) {
		error = EAGAIN;
	} else {
		return SPOOL_LOCK_TAKEN;
	}
	spool_lock_release(lock);
	if (error == EAGAIN) {
		return SPOOL_LOCK_IN_USE;
	}
	private_file_set_errno(err, path, error);
	return SPOOL_LOCK_FAILED;
}

/* Takes it off the list. Its descriptor, or -1. */
static int unlist(struct spool_lock *lock)
{
	int fd;

	(void)pthread_mutex_lock(&mutex);
	fd = lock->fd;
	if (fd >= 0) {
		if (lock->prev != NULL) {
			lock->prev->next = lock->next;
		} else {
			taken = lock->next;
		}
		if (lock->next != NULL) {
			lock->next->prev = lock->prev;
		}
		*lock = (struct spool_lock){ .fd = -1 };
	}
	(void)pthread_mutex_unlock(&mutex);
	return fd;
}

void spool_lock_release(struct spool_lock *lock)
{
	struct flock whole = { .l_type = F_UNLCK, .l_whence = SEEK_SET };
	int fd = unlist(lock);

	if (fd >= 0) {
		/* Closing is not enough: a child that was forked just now may not have closed its copy yet. */
		(void)fcntl(fd, F_OFD_SETLK, &whole);
		(void)close(fd);
	}
}

void spool_lock_leave(struct spool_lock *lock)
{
	int fd = unlist(lock);

	if (fd >= 0) {
		(void)close(fd);
	}
}

void spool_lock_adopt(struct spool_lock *lock, int fd)
{
	(void)pthread_mutex_lock(&mutex);
	list(lock, fd);
	(void)pthread_mutex_unlock(&mutex);
}

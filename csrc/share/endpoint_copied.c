#include "share/endpoint_copied.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* Held for a few instructions at a time: fork() waits for it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct endpoint_copied *all;

void endpoint_copied_lock(void)
{
	(void)pthread_mutex_lock(&mutex);
}

void endpoint_copied_unlock(void)
{
	(void)pthread_mutex_unlock(&mutex);
}

static void after_fork_in_child(void)
{
	for (struct endpoint_copied *copied = all; copied != NULL; copied = copied->next) {
		(void)close(*copied->fd);
		*copied->fd = -1;
	}
	all = NULL;
	endpoint_copied_unlock();
}

static AT_LOAD(LOAD_OUTER_LOCKS) void watch_forks(void)
{
	(void)pthread_atfork(endpoint_copied_lock, endpoint_copied_unlock, after_fork_in_child);
}

void endpoint_copied_add(struct endpoint_copied *copied, int *fd)
{
	*copied = (struct endpoint_copied){ .fd = fd, .next = all };
	if (all != NULL) {
		all->prev = copied;
	}
	all = copied;
}

/* With the lock held. */
static void take_out(const struct endpoint_copied *copied)
{
	if (copied->prev != NULL) {
		copied->prev->next = copied->next;
	} else {
		all = copied->next;
	}
	if (copied->next != NULL) {
		copied->next->prev = copied->prev;
	}
}

void endpoint_copied_move(struct endpoint_copied *copied, int *fd, struct endpoint_copied *to, int *to_fd)
{
	endpoint_copied_lock();
	take_out(copied);
	*to_fd = *fd;
	*fd = -1;
	endpoint_copied_add(to, to_fd);
	endpoint_copied_unlock();
}

/* Its descriptor, or -1. */
static int forget(const struct endpoint_copied *copied, int *fd)
{
	int own;

	endpoint_copied_lock();
	own = *fd;
	if (own >= 0) {
		take_out(copied);
		*fd = -1;
	}
	endpoint_copied_unlock();
	return own;
}

void endpoint_copied_leave(const struct endpoint_copied *copied, int *fd)
{
	int own = forget(copied, fd);

	if (own >= 0) {
		(void)close(own);
	}
}

void endpoint_copied_end(const struct endpoint_copied *copied, int *fd)
{
	int own = forget(copied, fd);

	if (own >= 0) {
		/* An unknown process may have a copy: shut the connection down for all copies. */
		(void)shutdown(own, SHUT_RDWR);
		(void)close(own);
	}
}

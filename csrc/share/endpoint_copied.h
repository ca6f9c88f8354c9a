/*
 * endpoint_copied.h - sockets of which a forked child closes its copy, so that the name becomes free when the owner
 * ends, and the peer of a connection sees its end. Any thread.
 */
#ifndef EVREC_ENDPOINT_COPIED_H
#define EVREC_ENDPOINT_COPIED_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* The place of a descriptor. A forked child closes the descriptor, and sets it to -1. */
struct endpoint_copied {
	int *fd;
	struct endpoint_copied *prev, *next; /* all of this process */
};

/* fork() waits meanwhile. */
void endpoint_copied_lock(void);
void endpoint_copied_unlock(void);
/* With the lock, which was taken before *fd was made. */
void endpoint_copied_add(struct endpoint_copied *copied, int *fd);

/* Moves a socket to another place; *fd is -1 from then on. */
void endpoint_copied_move(struct endpoint_copied *copied, int *fd, struct endpoint_copied *to, int *to_fd);
/* Shuts a connection down, for all copies, closes *fd, and sets it to -1; does nothing if it is -1. */
void endpoint_copied_end(const struct endpoint_copied *copied, int *fd);
/* Closes the descriptor, sets *fd to -1, and leaves the socket to other processes; does nothing if it is -1. */
void endpoint_copied_leave(const struct endpoint_copied *copied, int *fd);

#pragma GCC visibility pop

#endif

/*
 * nonblocking.h - writes to a descriptor that other processes may share, without blocking and without changing its
 * flags. Any thread.
 */
#ifndef EVREC_NONBLOCKING_H
#define EVREC_NONBLOCKING_H

#include <stddef.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden)

/*
 * Writes as much as a pipe, a socket or a terminal takes without blocking: returns the number of bytes, or -1 with
 * errno, EAGAIN if there is no room. A file takes all. If poll says that a pipe has room, writing PIPE_BUF bytes does
 * not block, unless other processes write in between. A pipe or socket without a reader raises SIGPIPE: see signals.h.
 */
ssize_t nonblocking_write(int fd, const char *data, size_t len);

#pragma GCC visibility pop

#endif

/*
 * endpoint.h - the socket by which the processes of a host find the one that writes for all: whoever binds it is the
 * owner. An abstract name works in a chroot, and the kernel frees it when its owner is gone. A path lies in a folder
 * of mode 0700 of this user; a lock beside it (PATH.lock) says whether its owner lives, so that a socket that a killed
 * owner has left is replaced.
 *
 * All descriptors are close-on-exec and do not block. A forked child closes its copies, of the bound socket and of
 * connections: so the name is free when the owner ends, and the other side of a connection learns of its end. One thread
 * at a time.
 */
#ifndef EVREC_ENDPOINT_H
#define EVREC_ENDPOINT_H

#include "spool/spool_lock.h"

#include <sys/socket.h>
#include <sys/un.h>

#pragma GCC visibility push(hidden)

/* A descriptor of which a forked child closes its copy. */
struct endpoint_copied {
	int *fd;
	struct endpoint_copied *prev, *next; /* all of this process */
};

struct endpoint {
	const unsigned
		*users; /* besides root and the own one, whose processes are talked to; borrowed; none at first */
	size_t users_len;
	char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct sockaddr_un address;
	socklen_t address_len;
	bool abstract;
	char lock_path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 8];
	struct spool_lock lock;
	int fd; /* bound; -1: not by this process */
	struct endpoint_copied copied;
};

enum endpoint_result {
	ENDPOINT_OK,
	ENDPOINT_IN_USE,  /* bind: another process has it */
	ENDPOINT_NOBODY,  /* connect: nobody has it, or its owner is too busy at the moment */
	ENDPOINT_REFUSED, /* connect: its owner is a process of another user; see *err */
	ENDPOINT_FAILED,  /* see *err */
};

/* The process at the other end of a connection. */
struct endpoint_peer {
	int pid; /* 0: unknown, or of a PID namespace that this process cannot see */
	unsigned user;
};

/* "@name" or an absolute path. 0, or EVREC_EINVALID, with a message that begins with "share". No I/O. */
int endpoint_init(struct endpoint *e, evrec_str name, evrec_error *err);
/* Unbinds it. */
void endpoint_close(struct endpoint *e);

/* Binds the socket and listens, in e->fd. A path in a folder of another one of `users` is in use by that user's. */
enum endpoint_result endpoint_bind(struct endpoint *e, evrec_error *err);
/* Connects; *fd is the caller's. */
enum endpoint_result endpoint_connect(const struct endpoint *e, int *fd, evrec_error *err);
/*
 * The next connection; the caller's. -1: none waits, and then err->code is 0; or see *err, whose code is EVREC_EINVALID
 * if a process of another user was refused: *peer.
 */
int endpoint_accept(const struct endpoint *e, struct endpoint_peer *peer, evrec_error *err);
struct endpoint_peer endpoint_peer_of(int fd);

/* From now on a forked child closes its copy of *fd, and sets *fd to -1. Both must stay where they are. */
void endpoint_copied_begin(struct endpoint_copied *copied, int *fd);
/* Ends the connection, for all copies, and sets *fd to -1; does nothing if it is -1. */
void endpoint_copied_end(struct endpoint_copied *copied, int *fd);

/* A message, whole or not at all. 1: sent. 0: no room at the moment. -1: the connection ended. */
int endpoint_send(int fd, const char *data, size_t len);
/* Its length. 0: none waits. -1: the connection ended, or the message is longer than `size`. */
long endpoint_receive(int fd, char *data, size_t size);

#pragma GCC visibility pop

#endif

/*
 * endpoint.h - the socket by which the processes of a host find the owner: the process that binds it, which writes for
 * all. An abstract name works in a chroot, and the kernel frees it when its owner is gone. A path lies in a folder of
 * mode 0700 of this user or, for a process that connects, of one of the users that it allows. A lock beside it
 * (PATH.lock) shows whether its owner lives, so that the socket of a killed owner is replaced.
 *
 * All descriptors are close-on-exec and do not block. A forked child closes its copies, of the bound socket and of
 * connections. One thread at a time.
 */
#ifndef EVREC_ENDPOINT_H
#define EVREC_ENDPOINT_H

#include "share/endpoint_copied.h"
#include "spool/spool_lock.h"

#include <sys/socket.h>
#include <sys/un.h>

#pragma GCC visibility push(hidden)

#define ENDPOINT_BACKLOG 128 /* connections that wait to be accepted */

struct endpoint {
	const unsigned
		*users; /* users besides root and this one, whose processes are accepted; borrowed; none at first */
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
	ENDPOINT_NOBODY,  /* connect: there is no owner, or its backlog is full */
	ENDPOINT_REFUSED, /* connect: the owner is a process of another user; see *err */
	ENDPOINT_FAILED,  /* see *err */
};

/* The process at the other end of a connection. */
struct endpoint_peer {
	int pid; /* 0: unknown, or of a PID namespace that this process cannot see */
	unsigned user;
};

/* "@name" or an absolute path. 0, or EVREC_EINVALID, with a message that begins with "share: " (only here). No I/O. */
int endpoint_init(struct endpoint *e, evrec_str name, evrec_error *err);
/* Unbinds it. */
void endpoint_close(struct endpoint *e);

/* Binds the socket and listens, in e->fd. A path in the folder of another user in `users` counts as in use. */
enum endpoint_result endpoint_bind(struct endpoint *e, evrec_error *err);
/*
 * Connects. ENDPOINT_OK: the caller ends *fd by endpoint_copied_end, and until then *copied and *fd stay where they are; a
 * forked child closes its copy, and sets *fd to -1. Else *fd is -1.
 */
enum endpoint_result endpoint_connect(const struct endpoint *e, struct endpoint_copied *copied, int *fd,
                                      evrec_error *err);
/*
 * Accepts the next connection; ends as for endpoint_connect. If err->code is EVREC_EINVALID, it comes from a process of
 * another user, *peer, to which only the refusal may be sent. False: none waits, and err->code is 0; or see *err.
 */
bool endpoint_accept(const struct endpoint *e, struct endpoint_copied *copied, int *fd, struct endpoint_peer *peer,
                     evrec_error *err);
struct endpoint_peer endpoint_peer_of(int fd);

/* Sends a whole message or nothing. 1: sent. 0: no room at the moment. -1: the connection ended. */
int endpoint_send(int fd, const char *data, size_t len);
/*
 * Receives a message. Returns its length; 0: none waits; -1: the connection ended, or the message is longer than
 * `size`.
 */
long endpoint_receive(int fd, char *data, size_t size);

/*
 * As endpoint_send, and passes the bound socket (SCM_RIGHTS), so that the name is never free in between. After it was
 * sent, endpoint_leave ends its use by this process.
 */
int endpoint_give(const struct endpoint *e, int fd, const char *data, size_t len);
void endpoint_leave(struct endpoint *e);
/* As endpoint_receive. If the message has the bound socket, e->fd is set to it, and this process is the owner. */
long endpoint_take(struct endpoint *e, int fd, char *data, size_t size);

#pragma GCC visibility pop

#endif

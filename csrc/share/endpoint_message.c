/* Messages over a connection between two processes of a share. */
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */

#include "share/endpoint.h"

#include <errno.h>
#include <unistd.h>

#define GIVEN 2 /* the socket, and the lock of a path */

static bool is_for_now(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* `sent` is what send() or sendmsg() has returned. */
static int is_sent(ssize_t sent)
{
	if (sent >= 0) {
		return 1;
	}
	return is_for_now(errno) || errno == ENOBUFS || errno == ENOMEM ? 0 : -1;
}

/* `len` is what recv() or recvmsg() has returned. */
static long is_received(ssize_t len, size_t size)
{
	if (len < 0) {
		return is_for_now(errno) ? 0 : -1;
	}
	return len == 0 || (size_t)len > size ? -1 : (long)len;
}

/*
 * The peer closed its socket with unread frames. Linux reports this once (ECONNRESET), before the frames that the peer
 * had sent.
 */
static bool is_once(ssize_t len)
{
	return len < 0 && errno == ECONNRESET;
}

int endpoint_send(int fd, const char *data, size_t len)
{
	return is_sent(send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT));
}

long endpoint_receive(int fd, char *data, size_t size)
{
	ssize_t len = recv(fd, data, size, MSG_DONTWAIT | MSG_TRUNC);

	if (is_once(len)) {
		len = recv(fd, data, size, MSG_DONTWAIT | MSG_TRUNC);
	}
	return is_received(len, size);
}

/* ---- the bound socket goes from one process to another ---- */

/* Room for the descriptors that come with a message. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(GIVEN * sizeof(int))];
};

int endpoint_give(const struct endpoint *e, int fd, const char *data, size_t len)
{
	const int given[GIVEN] = { e->fd, e->lock.fd };
	const size_t size = (e->abstract ? 1 : GIVEN) * sizeof(int);
	struct iovec whole = { (void *)(uintptr_t)data, len };
	union control control = { .bytes = "" };
	struct msghdr message = {
		.msg_iov = &whole, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(size)
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(head), given, size);
	return is_sent(sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void endpoint_leave(struct endpoint *e)
{
	endpoint_copied_leave(&e->copied, &e->fd);
	spool_lock_leave(&e->lock);
}

/* Whether it is a socket that listens under the name. */
static bool is_bound(const struct endpoint *e, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNSPEC };
	socklen_t len = sizeof(address), size = sizeof(int);
	int listens = 0;

	return getsockname(fd, (struct sockaddr *)(void *)&address, &len) == 0 && len == e->address_len &&
	       memcmp(&address, &e->address, len) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

/* With the lock of endpoint_copied.h. Closes all descriptors that are not needed. */
static void adopt(struct endpoint *e, struct msghdr *message)
{
	const size_t need = e->abstract ? 1 : GIVEN;
	int given[GIVEN] = { -1, -1 };
	size_t n = 0;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL; head = CMSG_NXTHDR(message, head)) {
		if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
			n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(given, CMSG_DATA(head), n * sizeof(int));
		}
	}
	/* connect() reports the process that called listen() last as the peer. */
	if (e->fd < 0 && n == need && is_bound(e, given[0]) && listen(given[0], ENDPOINT_BACKLOG) == 0) {
		e->fd = given[0];
		endpoint_copied_add(&e->copied, &e->fd);
		if (!e->abstract) {
			spool_lock_adopt(&e->lock, given[1]);
		}
		return;
	}
	while (n > 0) {
		(void)close(given[--n]);
	}
}

static ssize_t receive_message(struct endpoint *e, int fd, char *data, size_t size)
{
	union control control = { .bytes = "" };
	struct iovec whole = { data, size };
	struct msghdr message = {
		.msg_iov = &whole, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t len;

	endpoint_copied_lock();
	len = recvmsg(fd, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	if (len >= 0) {
		adopt(e, &message);
	}
	endpoint_copied_unlock();
	return len;
}

long endpoint_take(struct endpoint *e, int fd, char *data, size_t size)
{
	ssize_t len = receive_message(e, fd, data, size);

	if (is_once(len)) {
		len = receive_message(e, fd, data, size);
	}
	return is_received(len, size);
}

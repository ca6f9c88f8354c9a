#define _GNU_SOURCE /* accept4, struct ucred */

#include "share/endpoint.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool open_socket(struct endpoint_copied *copied, int *fd)
{
	endpoint_copied_lock();
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd >= 0) {
		endpoint_copied_add(copied, fd);
	}
	endpoint_copied_unlock();
	return *fd >= 0;
}

/* The kernel's accept of a socket that does not block. */
static bool accept_socket(int listening, struct endpoint_copied *copied, int *fd)
{
	endpoint_copied_lock();
	*fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (*fd >= 0) {
		endpoint_copied_add(copied, fd);
	}
	endpoint_copied_unlock();
	return *fd >= 0;
}

int endpoint_init(struct endpoint *e, evrec_str name, evrec_error *err)
{
	const size_t room = sizeof(e->address.sun_path) - 1;

	*e = (struct endpoint){ .address = { .sun_family = AF_UNIX }, .fd = -1 };
	spool_lock_init(&e->lock);
	if (name.len < 2 || (name.data[0] != '@' && name.data[0] != '/')) {
		return error_set(err, EVREC_EINVALID, "share: neither \"@name\" nor an absolute path");
	}
	if (memchr(name.data, '\0', name.len) != NULL) {
		return error_set(err, EVREC_EINVALID, "share: has a NUL");
	}
	if (name.len > room) {
		return error_set(err, EVREC_EINVALID, "share: longer than %zu bytes", room);
	}
	e->abstract = name.data[0] == '@';
	memcpy(e->address.sun_path, name.data, name.len);
	memcpy(e->name, name.data, name.len);
	memcpy(e->lock_path, name.data, name.len);
	memcpy(e->lock_path + name.len, ".lock", sizeof(".lock"));
	if (e->abstract) {
		e->address.sun_path[0] = '\0';
	}
	e->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name.len + (e->abstract ? 0 : 1));
	return 0;
}

void endpoint_close(struct endpoint *e)
{
	if (e->fd >= 0 && !e->abstract) {
		(void)unlink(e->address.sun_path);
	}
	endpoint_copied_end(&e->copied, &e->fd);
	spool_lock_release(&e->lock);
}

/* ---- binding ---- */

static enum endpoint_result failed(const struct endpoint *e, const char *what, int error, evrec_error *err)
{
	char text[96];

	error_set(err, EVREC_ESYSTEM, "%s: %s: %s", e->name, what, strerror_r(error, text, sizeof(text)));
	return ENDPOINT_FAILED;
}

static bool is_listed(const struct endpoint *e, unsigned user)
{
	size_t n = e->users_len;

	while (n > 0 && e->users[n - 1] != user) {
		n--;
	}
	return n > 0;
}

/* Checks the folder of a path: it must belong to this user or a listed one, with no access for others. Sets *is_own. */
static bool check_folder(const struct endpoint *e, bool *is_own, evrec_error *err)
{
	char folder[sizeof(e->address.sun_path)];
	char *slash;
	struct stat st;

	memcpy(folder, e->address.sun_path, sizeof(folder));
	slash = strrchr(folder, '/');
	slash[slash == folder ? 1 : 0] = '\0';
	if (lstat(folder, &st) != 0) {
		(void)failed(e, "its folder", errno, err);
		return false;
	}
	*is_own = st.st_uid == geteuid();
	if (S_ISLNK(st.st_mode)) {
		error_set(err, EVREC_ESYSTEM, "%s: its folder is a symbolic link; name the folder that it leads to",
		          e->address.sun_path);
		return false;
	}
	if (!S_ISDIR(st.st_mode) || (!*is_own && !is_listed(e, st.st_uid)) || (st.st_mode & 077) != 0) {
		error_set(err, EVREC_ESYSTEM, "%s: its folder must be this user's%s, with mode 0700",
		          e->address.sun_path, e->users_len == 0 ? "" : " or that of one of share_users");
		return false;
	}
	return true;
}

/* Removes the socket that a killed owner has left, but no other file. The lock is held. */
static bool remove_stale(const struct endpoint *e, evrec_error *err)
{
	struct stat st;

	if (lstat(e->address.sun_path, &st) != 0) {
		return true;
	}
	if (!S_ISSOCK(st.st_mode)) {
		error_set(err, EVREC_ESYSTEM, "%s is no socket", e->address.sun_path);
		return false;
	}
	(void)unlink(e->address.sun_path);
	return true;
}

static enum endpoint_result take_path(struct endpoint *e, evrec_error *err)
{
	bool is_own;

	if (!check_folder(e, &is_own, err)) {
		return ENDPOINT_FAILED;
	}
	if (!is_own) {
		/* The other user's processes could not connect to a socket of this user, or take the lock later. */
		return ENDPOINT_IN_USE;
	}
	switch (spool_lock_take(&e->lock, e->lock_path, err)) {
	case SPOOL_LOCK_IN_USE:
		return ENDPOINT_IN_USE;
	case SPOOL_LOCK_FAILED:
		return ENDPOINT_FAILED;
	case SPOOL_LOCK_TAKEN:
		break;
	}
	return remove_stale(e, err) ? ENDPOINT_OK : ENDPOINT_FAILED;
}

static enum endpoint_result bind_socket(struct endpoint *e, evrec_error *err)
{
	if (!open_socket(&e->copied, &e->fd)) {
		return failed(e, "socket", errno, err);
	}
	/* The mode that bind gives the file. */
	(void)fchmod(e->fd, 0600);
	if (bind(e->fd, (const struct sockaddr *)(const void *)&e->address, e->address_len) != 0) {
		return errno == EADDRINUSE ? ENDPOINT_IN_USE : failed(e, "bind", errno, err);
	}
	return listen(e->fd, ENDPOINT_BACKLOG) == 0 ? ENDPOINT_OK : failed(e, "listen", errno, err);
}

enum endpoint_result endpoint_bind(struct endpoint *e, evrec_error *err)
{
	enum endpoint_result result = e->abstract ? ENDPOINT_OK : take_path(e, err);

	if (result == ENDPOINT_OK) {
		result = bind_socket(e, err);
	}
	if (result != ENDPOINT_OK) {
		endpoint_copied_end(&e->copied, &e->fd);
		spool_lock_release(&e->lock);
	}
	return result;
}

/* ---- connections ---- */

struct endpoint_peer endpoint_peer_of(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(peer);

	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	return (struct endpoint_peer){ peer.pid, peer.uid };
}

/* Whether the other side of the connection is a process of a user that is trusted. */
static bool check_peer(const struct endpoint *e, const struct endpoint_peer *peer, evrec_error *err)
{
	if (peer->user == 0 || peer->user == geteuid() || is_listed(e, peer->user)) {
		return true;
	}
	error_set(err, EVREC_EINVALID,
	          "the process %d at the other end of %s is of user %u, which is not one of share_users", peer->pid,
	          e->name, peer->user);
	return false;
}

enum endpoint_result endpoint_connect(const struct endpoint *e, struct endpoint_copied *copied, int *fd,
                                      evrec_error *err)
{
	enum endpoint_result result = ENDPOINT_OK;
	struct endpoint_peer peer;
	bool is_own;

	*fd = -1;
	if (!e->abstract && !check_folder(e, &is_own, err)) {
		return ENDPOINT_FAILED;
	}
	if (!open_socket(copied, fd)) {
		return failed(e, "socket", errno, err);
	}
	if (connect(*fd, (const struct sockaddr *)(const void *)&e->address, e->address_len) != 0) {
		result = errno == ECONNREFUSED || errno == ENOENT || errno == EAGAIN ? ENDPOINT_NOBODY
		                                                                     : failed(e, "connect", errno, err);
	} else {
		peer = endpoint_peer_of(*fd);
		result = check_peer(e, &peer, err) ? ENDPOINT_OK : ENDPOINT_REFUSED;
	}
	if (result != ENDPOINT_OK) {
		endpoint_copied_end(copied, fd);
	}
	return result;
}

bool endpoint_accept(const struct endpoint *e, struct endpoint_copied *copied, int *fd, struct endpoint_peer *peer,
                     evrec_error *err)
{
	err->code = 0;
	if (!accept_socket(e->fd, copied, fd)) {
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED) {
			(void)failed(e, "accept", errno, err);
		}
		return false;
	}
	*peer = endpoint_peer_of(*fd);
	(void)check_peer(e, peer, err);
	return true;
}

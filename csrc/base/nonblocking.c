#define _GNU_SOURCE /* pwritev2 */

#include "base/nonblocking.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define TERMINAL_PIECE 256

/* The bytes for which a terminal has room if it has any; a newline may become two bytes. */
static size_t terminal_piece(const char *data, size_t len)
{
	const char *newline = memchr(data, '\n', len);

	if (newline != NULL) {
		len = newline == data ? 1 : (size_t)(newline - data);
	}
	return len < TERMINAL_PIECE ? len : TERMINAL_PIECE;
}

/* If the kernel supports it (Linux 6.4, for pipes), does not block even if other processes have just taken the room. */
static ssize_t write_piece(int fd, const char *data, size_t len)
{
	const struct iovec piece = { (char *)data, len };
	ssize_t written = pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);

	return written < 0 && errno != EAGAIN ? write(fd, data, len) : written;
}

ssize_t nonblocking_write(int fd, const char *data, size_t len)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	struct stat st;

	if (fstat(fd, &st) != 0) {
		return -1;
	}
	if (S_ISSOCK(st.st_mode)) {
		return send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	if (S_ISFIFO(st.st_mode)) {
		len = len < PIPE_BUF ? len : PIPE_BUF;
	} else if (S_ISCHR(st.st_mode) && isatty(fd)) {
		len = terminal_piece(data, len);
	} else {
		return write(fd, data, len);
	}
	if (poll(&room, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return write_piece(fd, data, len);
}

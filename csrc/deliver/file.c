#define _GNU_SOURCE /* strerror_r, pwritev2 */

#include "base/clock.h"
#include "base/utf8.h"
#include "deliver/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PATH_SHOWN 160           /* bytes of it in a message */
#define LOOK (EVREC_SECOND / 10) /* where nothing can wake a step */
#define TERMINAL_PIECE 256
#define MILLISECOND (EVREC_SECOND / 1000)

struct file {
	struct transport base;
	encode_func *encode;
	char *path;
	int fd;        /* -1: not open */
	int woken;     /* an eventfd; -1: there was none to be had */
	bool fragment; /* the last line was not written whole */
	/* Under way: */
	struct entry *entry; /* or NULL */
	char *line;          /* after a newline, which only a fragment needs */
	size_t len, at;      /* what of it is written, or left out */
};

static struct file *file_of(struct transport *t)
{
	return (struct file *)t;
}

static bool is_stdout(const struct file *file)
{
	return strcmp(file->path, "-") == 0;
}

/* Non-blocking: opening a pipe that nobody reads would hang. 0 or an errno. */
static int open_file(struct file *file)
{
	if (file->fd >= 0) {
		return 0;
	}
	if (is_stdout(file)) {
		file->fd = STDOUT_FILENO;
		return 0;
	}
	file->fd = open(file->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
	return file->fd < 0 ? errno : 0;
}

/* So that the next write opens it anew: a pipe may have a reader again, a file its disk. */
static void close_file(struct file *file, int error)
{
	/* A number that is not open may be somebody else's by now. */
	if (file->fd >= 0 && !is_stdout(file) && error != EBADF) {
		(void)close(file->fd);
	}
	file->fd = -1;
}

/* How much a terminal that has room at all has room for; but of a newline it may make two bytes. */
static size_t terminal_piece(const char *data, size_t len)
{
	const char *newline = memchr(data, '\n', len);

	if (newline != NULL) {
		len = newline == data ? 1 : (size_t)(newline - data);
	}
	return len < TERMINAL_PIECE ? len : TERMINAL_PIECE;
}

/* Not to wait for room that others took a moment ago, where the kernel can do so (Linux 6.4, for pipes). */
static ssize_t write_piece(int fd, char *data, size_t len)
{
	const struct iovec piece = { data, len };
	ssize_t written = pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);

	return written < 0 && errno != EAGAIN ? write(fd, data, len) : written;
}

/*
 * What the descriptor takes at once, without a change of its flags, which are others' too: bytes, or -1 and errno,
 * EAGAIN if nothing. Where poll says that a pipe has room, PIPE_BUF bytes do not block, unless others write in between.
 */
static ssize_t write_some(int fd, char *data, size_t len)
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

/* 0: it is whole; EAGAIN; or another errno. */
static int write_rest(struct file *file)
{
	while (file->at < file->len) {
		ssize_t written = write_some(file->fd, file->line + file->at, file->len - file->at);

		if (written >= 0) {
			file->at += (size_t)written;
		} else if (errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

/* False: there is no memory for it. */
static bool make_line(struct file *file)
{
	struct request request = { 0 };

	file->at = file->fragment ? 0 : 1;
	if (file->encode(file->entry->item, BODY_WHOLE, &request)) {
		file->len = request.body_len + 2;
		file->line = mem_alloc(file->len);
	}
	if (file->line != NULL) {
		file->line[0] = file->line[file->len - 1] = '\n';
		memcpy(file->line + 1, request.body, request.body_len);
	}
	request_free(&request);
	return file->line != NULL;
}

/* The line is whole, or was given up for `error`. */
static void end(struct file *file, struct sender *s, int error)
{
	struct entry *entry = file->entry;
	evrec_answer answer = { .status = 200 };
	int shown = (int)utf8_floor(str_from(file->path), PATH_SHOWN);
	char reason[64];

	file->fragment = error != 0 && file->at != 1;
	if (error != 0) {
		close_file(file, error);
		answer.status = 0;
		answer.unsent = file->at <= 1;
		(void)snprintf(answer.message, sizeof(answer.message), "%.*s: %s", shown, file->path,
		               strerror_r(error, reason, sizeof(reason)));
	}
	mem_free(file->line);
	file->line = NULL;
	file->entry = NULL;
	sender_answered(s, entry, &answer);
}

/* What is full is waited for in a step. */
static void carry_on(struct file *file, struct sender *s)
{
	int error = write_rest(file);

	if (error != EAGAIN) {
		end(file, s, error);
	}
}

static void file_send(struct transport *t, struct sender *s, struct entry *entry)
{
	struct file *file = file_of(t);
	int error;

	file->entry = entry;
	error = make_line(file) ? open_file(file) : ENOMEM;
	if (error != 0) {
		end(file, s, error);
	} else {
		carry_on(file, s);
	}
}

static void file_step(struct transport *t, struct sender *s, int64_t timeout)
{
	struct file *file = file_of(t);
	struct pollfd fds[] = {
		{ .fd = file->woken, .events = POLLIN },
		{ .fd = file->entry == NULL ? -1 : file->fd, .events = POLLOUT },
	};
	eventfd_t wakes;

	if (timeout <= 0 && file->entry == NULL) {
		return;
	}
	if (file->woken < 0 && timeout > LOOK) {
		timeout = LOOK;
	}
	if (poll(fds, 2, timeout <= 0 ? 0 : (int)((timeout + MILLISECOND - 1) / MILLISECOND)) <= 0) {
		return;
	}
	if (fds[0].revents != 0) {
		(void)eventfd_read(file->woken, &wakes);
	}
	if (fds[1].revents != 0) {
		carry_on(file, s);
	}
}

static void file_wake(struct transport *t)
{
	struct file *file = file_of(t);

	if (file->woken >= 0) {
		(void)eventfd_write(file->woken, 1);
	}
}

static void file_free(struct transport *t)
{
	struct file *file = file_of(t);

	close_file(file, 0);
	if (file->woken >= 0) {
		(void)close(file->woken);
	}
	mem_free(file->line);
	mem_free(file->path);
	mem_free(file);
}

static const struct transport_ops file_ops = {
	.threaded = true,
	.send = file_send,
	.step = file_step,
	.wake = file_wake,
	.free = file_free,
};

struct transport *file_transport_new(const char *path, encode_func *encode, evrec_error *err)
{
	struct file *file = mem_zalloc(sizeof(*file));

	if (file != NULL) {
		file->path = str_dup(str_from(path));
	}
	if (file == NULL || file->path == NULL) {
		mem_free(file);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	file->base.ops = &file_ops;
	file->encode = encode;
	file->fd = -1;
	file->woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return &file->base;
}

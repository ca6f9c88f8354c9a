#define _GNU_SOURCE /* strerror_r */

#include "base/clock.h"
#include "base/utf8.h"
#include "base/wait.h"
#include "deliver/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#define PATH_SHOWN 160   /* bytes of it in a message */
#define FULL_WAIT_MS 100 /* for a non-blocking pipe's reader */

struct file {
	struct transport base;
	encode_func *encode;
	char *path;
	int fd;        /* -1: not open */
	bool fragment; /* the last line was not written whole */
	pthread_mutex_t lock;
	pthread_cond_t wakes;
	bool woken;
};

static struct file *file_of(struct transport *t)
{
	return (struct file *)t;
}

static bool is_stdout(const struct file *file)
{
	return strcmp(file->path, "-") == 0;
}

/* Non-blocking for the opening alone: that of a pipe nobody reads would hang. 0 or an errno. */
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
	if (file->fd < 0) {
		return errno;
	}
	(void)fcntl(file->fd, F_SETFL, O_APPEND);
	return 0;
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

static size_t total(const struct iovec *parts, int n)
{
	size_t len = 0;

	for (int i = 0; i < n; i++) {
		len += parts[i].iov_len;
	}
	return len;
}

/* Leaves out the first `len` bytes. */
static void skip(struct iovec *parts, int n, size_t len)
{
	for (int i = 0; i < n; i++) {
		size_t part = len < parts[i].iov_len ? len : parts[i].iov_len;

		parts[i].iov_base = (char *)parts[i].iov_base + part;
		parts[i].iov_len -= part;
		len -= part;
	}
}

/* Writes all of it, in one call where the system does so. 0 or an errno; *written bytes in any case. */
static int write_all(int fd, struct iovec *parts, int n, size_t *written)
{
	*written = 0;
	while (total(parts, n) != 0) {
		struct pollfd full = { .fd = fd, .events = POLLOUT };
		ssize_t len = writev(fd, parts, n);

		if (len >= 0) {
			*written += (size_t)len;
			skip(parts, n, (size_t)len);
		} else if (errno == EAGAIN) {
			if (poll(&full, 1, FULL_WAIT_MS) == 0) {
				return EAGAIN;
			}
		} else if (errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

/* 0 or an errno; *began where any of the line may be in the file. */
static int write_line(struct file *file, const struct request *request, bool *began)
{
	char newline[] = "\n";
	size_t before = file->fragment ? 1 : 0, written;
	struct iovec parts[] = {
		{ newline, before },
		{ request->body, request->body_len },
		{ newline, 1 },
	};
	int error = open_file(file);

	*began = false;
	if (error != 0) {
		return error;
	}
	error = write_all(file->fd, parts, 3, &written);
	if (written != 0) {
		*began = written > before;
		file->fragment = error != 0 && *began;
	}
	if (error != 0) {
		close_file(file, error);
	}
	return error;
}

static void file_send(struct transport *t, struct sender *s, struct entry *entry)
{
	struct file *file = file_of(t);
	struct request request = { 0 };
	evrec_answer answer = { 0 };
	bool began = false;
	char reason[64];
	int error, shown = (int)utf8_floor(str_from(file->path), PATH_SHOWN);

	if (!file->encode(entry->item, BODY_WHOLE, &request)) {
		answer.unsent = true;
		memcpy(answer.message, "no memory for the line", sizeof("no memory for the line"));
	} else {
		error = write_line(file, &request, &began);
		if (error == 0) {
			answer.status = 200;
		} else {
			answer.unsent = !began;
			(void)snprintf(answer.message, sizeof(answer.message), "%.*s: %s", shown, file->path,
			               strerror_r(error, reason, sizeof(reason)));
		}
	}
	request_free(&request);
	sender_answered(s, entry, &answer);
}

/* Nothing is ever under way: waits for work. */
static void file_step(struct transport *t, struct sender *s, int64_t timeout)
{
	struct file *file = file_of(t);
	int64_t deadline = clock_monotonic(evrec_clock_real()) + timeout;

	(void)s;
	if (timeout <= 0) {
		return;
	}
	(void)pthread_mutex_lock(&file->lock);
	while (!file->woken && wait_until(&file->wakes, &file->lock, deadline)) {
	}
	file->woken = false;
	(void)pthread_mutex_unlock(&file->lock);
}

static void file_wake(struct transport *t)
{
	struct file *file = file_of(t);

	(void)pthread_mutex_lock(&file->lock);
	file->woken = true;
	(void)pthread_cond_signal(&file->wakes);
	(void)pthread_mutex_unlock(&file->lock);
}

static void file_free(struct transport *t)
{
	struct file *file = file_of(t);

	close_file(file, 0);
	(void)pthread_cond_destroy(&file->wakes);
	(void)pthread_mutex_destroy(&file->lock);
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
	(void)pthread_mutex_init(&file->lock, NULL);
	wait_init(&file->wakes);
	return &file->base;
}

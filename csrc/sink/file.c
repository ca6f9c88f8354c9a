#define _GNU_SOURCE /* strerror_r */

#include "base/clock.h"
#include "base/nonblocking.h"
#include "base/utf8.h"
#include "outbox/outbox.h"
#include "sender/sender.h"
#include "sink/sink.h"
#include "sink/waker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
	struct protocol base;
	encode_func *encode;
	enum evrec_api api;
	char *path;
	int fd; /* -1: not open */
	struct waker waker;
	bool fragment; /* the last line was not written whole */
	/* Under way: */
	struct entry *entry; /* or NULL */
	char *line;          /* after a newline, which only a fragment needs */
	size_t len, at;      /* its bytes, and how many of them were written or skipped */
};

static struct file *file_of(struct protocol *t)
{
	return (struct file *)t;
}

static bool is_stdout(const struct file *file)
{
	return strcmp(file->path, "-") == 0;
}

enum file_end { WHOLE_LINE, FRAGMENT, UNKNOWN };

/*
 * Whether the open file ends in the middle of a line, which an earlier process may have left on a full disk. UNKNOWN
 * for a pipe, and for a file that may not be read.
 */
static enum file_end end_of(const struct file *file)
{
	enum file_end end = UNKNOWN;
	struct stat st;
	char last;
	int fd;

	if (fstat(file->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		return UNKNOWN;
	}
	if (st.st_size == 0) {
		return WHOLE_LINE;
	}
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		return UNKNOWN;
	}
	if (pread(fd, &last, 1, st.st_size - 1) == 1) {
		end = last == '\n' ? WHOLE_LINE : FRAGMENT;
	}
	(void)close(fd);
	return end;
}

/* True if the path no longer names the open file: it was renamed, as log files are rotated, or removed. */
static bool was_moved(const struct file *file)
{
	struct stat named, open;

	if (stat(file->path, &named) != 0) {
		return errno == ENOENT;
	}
	return fstat(file->fd, &open) == 0 && (named.st_dev != open.st_dev || named.st_ino != open.st_ino);
}

/* True if no path names the open file, so that lines written to it are lost. */
static bool was_removed(const struct file *file)
{
	struct stat open;

	return fstat(file->fd, &open) == 0 && S_ISREG(open.st_mode) && open.st_nlink == 0;
}

/* 0 or an errno. A file that was renamed stays open if its path cannot be opened, as after chroot. */
static int open_path(struct file *file)
{
	/* Non-blocking: opening a pipe without a reader would hang. */
	const int fd = open(file->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
	enum file_end end;

	if (fd < 0) {
		const int error = errno;

		return file->fd >= 0 && !was_removed(file) ? 0 : error;
	}
	if (file->fd >= 0) {
		(void)close(file->fd);
		file->fragment = false;
	}
	file->fd = fd;
	end = end_of(file);
	if (end != UNKNOWN) {
		file->fragment = end == FRAGMENT;
	}
	file->at = file->fragment ? 0 : 1;
	return 0;
}

/* Opens the file for a line, of which nothing is written yet. 0 or an errno. */
static int open_file(struct file *file)
{
	if (is_stdout(file)) {
		file->fd = STDOUT_FILENO;
		return 0;
	}
	return file->fd >= 0 && !was_moved(file) ? 0 : open_path(file);
}

/* Closes the file, so that the next write opens it again: a pipe may have a reader then, or the disk may work. */
static void close_file(struct file *file, int error)
{
	/* After EBADF the number may belong to another file by now. */
	if (file->fd >= 0 && !is_stdout(file) && error != EBADF) {
		(void)close(file->fd);
	}
	file->fd = -1;
}

/* Writes the rest of the line. 0: it is complete; EAGAIN; or another errno. */
static int write_rest(struct file *file)
{
	while (file->at < file->len) {
		ssize_t written = nonblocking_write(file->fd, file->line + file->at, file->len - file->at);

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
	struct encoded request = { 0 };

	file->at = file->fragment ? 0 : 1;
	if (file->encode(file->entry->item, BODY_WHOLE, file->api, READER_ANY, &request)) {
		file->len = request.body_len + 2;
		file->line = mem_alloc(file->len);
	}
	if (file->line != NULL) {
		file->line[0] = file->line[file->len - 1] = '\n';
		memcpy(file->line + 1, request.body, request.body_len);
	}
	encoded_free(&request);
	return file->line != NULL;
}

/* Ends the line, which is complete, or was given up for `error`. */
static void end(struct file *file, struct sender *s, int error)
{
	struct entry *entry = file->entry;
	struct outcome outcome = { .verdict = VERDICT_WRITTEN };
	int shown = path_shown(file->path);
	char reason[64];

	file->fragment = error != 0 && file->at != 1;
	if (error != 0) {
		close_file(file, error);
		outcome.verdict = VERDICT_RETRY;
		outcome.unanswered = true;
		outcome.problem = "transport";
		(void)snprintf(outcome.message, sizeof(outcome.message), "%.*s: %s", shown, file->path,
		               strerror_r(error, reason, sizeof(reason)));
	}
	mem_free(file->line);
	file->line = NULL;
	file->entry = NULL;
	sender_answered(s, entry, &outcome);
	sender_request_ended(s, error == 0 ? REQUEST_SUCCEEDED : REQUEST_UNANSWERED, 0);
}

/* Writes the rest of the lines. If the file has no room at the moment, a step continues. */
static void carry_on(struct file *file, struct sender *s)
{
	int error = write_rest(file);

	if (error != EAGAIN) {
		end(file, s, error);
	}
}

static void file_send(struct protocol *t, struct sender *s, struct entry *const *entries, size_t n)
{
	struct file *file = file_of(t);
	int error;

	(void)n;
	file->entry = entries[0];
	error = make_line(file) ? open_file(file) : ENOMEM;
	if (error != 0) {
		end(file, s, error);
	} else {
		carry_on(file, s);
	}
}

static void file_step(struct protocol *t, struct sender *s, int64_t timeout)
{
	struct file *file = file_of(t);
	const int fd = file->entry == NULL ? -1 : file->fd;

	if ((timeout > 0 || file->entry != NULL) && waker_wait(&file->waker, fd, POLLOUT, timeout)) {
		carry_on(file, s);
	}
}

static void file_wake(struct protocol *t)
{
	waker_wake(&file_of(t)->waker);
}

static void file_free(struct protocol *t)
{
	struct file *file = file_of(t);

	close_file(file, 0);
	waker_close(&file->waker);
	mem_free(file->line);
	mem_free(file->path);
	mem_free(file);
}

static const struct protocol_ops file_ops = {
	.does_io = true,
	.send = file_send,
	.step = file_step,
	.wake = file_wake,
	.free = file_free,
};

struct protocol *file_protocol_new(const char *path, enum evrec_api api, encode_func *encode, evrec_error *err)
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
	/* One line at a time, so that lines stay in the order of the events. */
	file->base = (struct protocol){ .ops = &file_ops, .max_batch = 1, .max_in_flight = 1 };
	file->encode = encode;
	file->api = api;
	file->fd = -1;
	waker_open(&file->waker);
	return &file->base;
}

/* ---- the sink ---- */

struct file_sink {
	evrec_sink base;
	char *path;
};

static struct protocol *open_protocol(evrec_sink *sink, evrec_error *err)
{
	const char *path = ((struct file_sink *)sink)->path;

	return file_protocol_new(path, sink_api(&sink->options), write_encode, err);
}

static void add_fingerprint(const evrec_sink *sink, struct fingerprint *f)
{
	fingerprint_add(f, "path", str_from(((const struct file_sink *)sink)->path));
}

static void free_kind(evrec_sink *sink)
{
	mem_free(((struct file_sink *)sink)->path);
}

evrec_sink *evrec_sink_file(evrec_str path, const evrec_sink_options *options, evrec_error *err)
{
	struct file_sink *sink;

	if (path.len == 0 || memchr(path.data, '\0', path.len) != NULL) {
		error_set(err, EVREC_EINVALID, "path: must be the name of a file, or -");
		return NULL;
	}
	sink = sink_new(sizeof(*sink), options, err);
	if (sink == NULL) {
		return NULL;
	}
	sink->base.kind = "file";
	sink->base.shows_states = true;
	sink->base.add_fingerprint = add_fingerprint;
	sink->base.open = open_protocol;
	sink->base.free = free_kind;
	sink->path = str_dup(path);
	if (sink->path == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		evrec_sink_release(&sink->base);
		return NULL;
	}
	return &sink->base;
}

#define _GNU_SOURCE /* strerror_r */

#include "read/line_reader.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#define CHUNK ((size_t)64 * 1024)
#define MILLISECOND (EVREC_SECOND / 1000)

void line_reader_free(struct line_reader *r)
{
	buf_free(&r->text);
}

void line_reader_restart(struct line_reader *r, int fd, uint64_t offset, bool polled)
{
	buf_clear(&r->text);
	r->fd = fd;
	r->used = r->searched = 0;
	r->offset = r->line_offset = offset;
	r->number = 0;
	r->polled = polled;
}

static int system_error(evrec_error *err)
{
	char reason[64];

	return error_set(err, EVREC_ESYSTEM, "reading lines: %s", strerror_r(errno, reason, sizeof(reason)));
}

static int too_long(uint64_t number, evrec_error *err)
{
	return error_set(err, EVREC_EINVALID, "line %llu is longer than 8 MiB", (unsigned long long)number);
}

/* Waits until there are bytes or the end of the file. False: the deadline has passed. */
static bool wait_readable(int fd, int64_t deadline)
{
	struct pollfd waits = { .fd = fd, .events = POLLIN };
	const int64_t left = time_since(deadline, clock_monotonic(evrec_clock_real())) / MILLISECOND;

	return poll(&waits, 1, left < INT_MAX ? (int)left : INT_MAX) > 0;
}

/* Takes the line that ends before text.data[end]. */
static evrec_str take(struct line_reader *r, size_t end, size_t newline)
{
	const evrec_str line = { r->text.data + r->used, end - r->used };

	r->line_offset = r->offset;
	r->offset += line.len + newline;
	r->used = r->searched = end + newline;
	r->number++;
	return line;
}

static bool find_line(struct line_reader *r, evrec_str *line)
{
	const size_t from = r->searched > r->used ? r->searched : r->used;
	const char *newline = r->text.len == from ? NULL : memchr(r->text.data + from, '\n', r->text.len - from);

	r->searched = r->text.len;
	if (newline != NULL) {
		*line = take(r, (size_t)(newline - r->text.data), 1);
	}
	return newline != NULL;
}

/* Moves the bytes that are not told yet to the beginning. */
static void compact(struct line_reader *r)
{
	if (r->used != 0) {
		memmove(r->text.data, r->text.data + r->used, r->text.len - r->used);
		r->text.len -= r->used;
		r->searched -= r->used;
		r->used = 0;
	}
}

int line_reader_next(struct line_reader *r, int64_t deadline, evrec_str *line, evrec_error *err)
{
	ssize_t n;

	while (!find_line(r, line)) {
		compact(r);
		if (r->text.len > LINE_MAX_BYTES) {
			return too_long(r->number + 1, err);
		}
		if (r->polled && !wait_readable(r->fd, deadline)) {
			return LINE_NONE;
		}
		if (!buf_reserve(&r->text, CHUNK)) {
			return error_set(err, EVREC_ENOMEM, "no memory");
		}
		n = read(r->fd, r->text.data + r->text.len, CHUNK);
		if (n < 0) {
			return errno == EINTR || errno == EAGAIN ? LINE_NONE : system_error(err);
		}
		if (n == 0) {
			*line = (evrec_str){ r->text.data, r->text.len };
			r->line_offset = r->offset;
			return LINE_END;
		}
		r->text.len += (size_t)n;
	}
	return LINE_FOUND;
}

ssize_t line_pread(int fd, void *data, size_t n, off_t offset)
{
	ssize_t got;

	do {
		got = pread(fd, data, n, offset);
	} while (got < 0 && errno == EINTR);
	return got;
}

int line_read_at(int fd, uint64_t offset, struct buf *line, evrec_error *err)
{
	const char *newline = NULL;
	ssize_t n = 1;

	while (newline == NULL && n > 0) {
		if (line->len > LINE_MAX_BYTES || !buf_reserve(line, CHUNK)) {
			return error_set(err, EVREC_ENOMEM, "no memory");
		}
		n = line_pread(fd, line->data + line->len, CHUNK, (off_t)(offset + line->len));
		if (n < 0) {
			return system_error(err);
		}
		if (n > 0) {
			newline = memchr(line->data + line->len, '\n', (size_t)n);
			line->len += (size_t)n;
		}
	}
	if (newline != NULL) {
		line->len = (size_t)(newline - line->data);
	}
	return 0;
}

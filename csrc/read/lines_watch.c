/*
 * A watch of a file returns each complete line that is written from now on. If the file was replaced, the old one is
 * first read to its end; if it was truncated, it is read from its beginning.
 */
#define _GNU_SOURCE /* memrchr */

#include "base/clock.h"
#include "event/event.h"
#include "read/line_reader.h"
#include "read/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LOOK (EVREC_SECOND / 5) /* between two looks at a file that has not grown */
#define TAIL 4096

struct lines_watch {
	evrec_reader base;
	const struct filter *filter;
	char *path;
	int fd;
	bool regular, by_path; /* by_path: another file may take its place */
	bool ended;            /* of a pipe: its last line was returned */
	struct line_reader lines;
};

static struct lines_watch *watch_of(evrec_reader *reader)
{
	return (struct lines_watch *)reader;
}

/* ---- the place in the file ---- */

/* The offset after the last newline: a line that is being written is returned once it is complete. -1: see errno. */
static off_t after_last_line(int fd, off_t size)
{
	char tail[TAIL];

	while (size > 0) {
		const off_t from = size > TAIL ? size - TAIL : 0;
		const ssize_t n = line_pread(fd, tail, (size_t)(size - from), from);
		const char *newline;

		if (n <= 0) {
			return n;
		}
		newline = memrchr(tail, '\n', (size_t)n);
		if (newline != NULL) {
			return from + (newline - tail) + 1;
		}
		size = from;
	}
	return 0;
}

static bool move_to(struct lines_watch *w, off_t offset)
{
	line_reader_restart(&w->lines, w->fd, (uint64_t)offset, false);
	return lseek(w->fd, offset, SEEK_SET) == offset;
}

/* True: there is a new file to read, or the old one begins anew. */
static bool look_again(struct lines_watch *w)
{
	/*
	 * First the name, then the size: so a line that was written to the old file before it was replaced is not
	 * missed.
	 */
	struct stat mine, named, st;
	const bool there = w->by_path && stat(w->path, &named) == 0;
	const off_t end = lseek(w->fd, 0, SEEK_CUR);
	int fd;

	if (!w->regular || fstat(w->fd, &mine) != 0) {
		return false;
	}
	if (mine.st_size != end) {
		return mine.st_size > end || move_to(w, 0);
	}
	/* The name may be gone for a moment, and come back. */
	if (!there || (named.st_dev == mine.st_dev && named.st_ino == mine.st_ino)) {
		return false;
	}
	fd = lines_open(w->path, &st, NULL);
	if (fd < 0) {
		return false;
	}
	lines_close(w->fd);
	w->fd = fd;
	w->regular = S_ISREG(st.st_mode);
	line_reader_restart(&w->lines, fd, 0, !w->regular);
	return true;
}

/* ---- telling ---- */

/* EVREC_READ_EVENT, EVREC_READ_WAIT (the line is not wanted), or an error. */
static int tell_line(struct lines_watch *w, evrec_str line, evrec_found *found, evrec_error *err)
{
	evrec_event *event;
	int code = lines_read_event(w->path, line, w->lines.number, &event, err);

	if (event == NULL) {
		return code != 0 ? code : EVREC_READ_WAIT;
	}
	if (!filter_matches(w->filter, evrec_event_fields(event))) {
		evrec_event_release(event);
		return EVREC_READ_WAIT;
	}
	buf_clear(&w->base.json);
	buf_put_str(&w->base.json, line);
	return reader_show(&w->base, event, false, found, err);
}

/*
 * A pipe has ended; `line` is the rest after its last newline. Programs other than a file sink may leave the newline
 * out.
 */
static int tell_end(struct lines_watch *w, evrec_str line, evrec_found *found, evrec_error *err)
{
	int result;

	if (w->ended) {
		return EVREC_READ_END;
	}
	w->ended = true;
	w->lines.number++;
	result = tell_line(w, line, found, err);
	return result == EVREC_READ_WAIT ? EVREC_READ_END : result;
}

static int watch_next(evrec_reader *reader, int64_t deadline, evrec_found *found, evrec_error *err)
{
	struct lines_watch *w = watch_of(reader);
	evrec_str line;
	int news, result;

	for (;;) {
		news = line_reader_next(&w->lines, deadline, &line, err);
		if (news < 0) {
			return lines_failed(w->path, news, err);
		}
		if (news == LINE_FOUND) {
			result = tell_line(w, line, found, err);
			if (result != EVREC_READ_WAIT) {
				return result;
			}
		} else if (news == LINE_END && !w->regular) {
			return tell_end(w, line, found, err);
		} else if (!look_again(w)) {
			if (clock_monotonic(evrec_clock_real()) >= deadline) {
				return EVREC_READ_WAIT;
			}
			if (w->regular) {
				reader_sleep(deadline, LOOK);
			}
		}
	}
}

static void watch_free(evrec_reader *reader)
{
	struct lines_watch *w = watch_of(reader);

	line_reader_free(&w->lines);
	lines_close(w->fd);
	mem_free(w->path);
	mem_free(w);
}

static const struct reader_ops ops = { .next = watch_next, .free = watch_free };

/* Opens standard input again, so that the watch has an offset of its own: a query may begin after it. */
static void reopen_stdin(struct lines_watch *w)
{
	const int fd = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		w->fd = fd;
	}
}

static int begin(struct lines_watch *w, evrec_error *err)
{
	struct stat st;
	off_t offset;

	w->fd = lines_open(w->path, &st, err);
	if (w->fd < 0) {
		return EVREC_ESYSTEM;
	}
	w->regular = S_ISREG(st.st_mode);
	w->by_path = w->fd != STDIN_FILENO;
	if (w->regular && !w->by_path) {
		reopen_stdin(w);
	}
	line_reader_restart(&w->lines, w->fd, 0, !w->regular);
	if (w->regular) {
		offset = after_last_line(w->fd, st.st_size);
		if (offset < 0 || !move_to(w, offset)) {
			return lines_system_error(w->path, err);
		}
	}
	return 0;
}

evrec_reader *lines_watch_open(const char *path, const struct filter *filter, evrec_error *err)
{
	struct lines_watch *w = mem_zalloc(sizeof(*w));

	if (w == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	w->base.ops = &ops;
	w->filter = filter;
	w->fd = -1;
	w->path = str_dup(str_from(path));
	if (w->path == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		watch_free(&w->base);
		return NULL;
	}
	if (begin(w, err) != 0) {
		watch_free(&w->base);
		return NULL;
	}
	return &w->base;
}

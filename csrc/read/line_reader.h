/*
 * line_reader.h - reads a descriptor line by line, in memory for one line. For one thread at a time.
 */
#ifndef EVREC_READ_LINE_READER_H
#define EVREC_READ_LINE_READER_H

#include "base/base.h"

#include <sys/types.h>

#pragma GCC visibility push(hidden)

/* The API server takes events of less than 2 MiB. */
#define LINE_MAX_BYTES ((size_t)8 * 1024 * 1024)

enum line_news {
	LINE_FOUND,
	LINE_NONE, /* no whole line is there now */
	LINE_END,  /* the end of the file; `line` has the bytes after the last newline, and may be empty */
};

struct line_reader {
	int fd;          /* the caller's */
	struct buf text; /* the bytes read; the first `used` were returned */
	size_t used;
	size_t searched; /* how many bytes after `used` are known to have no newline */
	uint64_t offset; /* of text.data[used] from the first byte read */
	uint64_t number; /* of the last line, from 1 */
	uint64_t line_offset;
	bool polled; /* a pipe or a terminal: reading may wait */
};

void line_reader_free(struct line_reader *r); /* does not close the descriptor */
/* Begins again at byte `offset` of the same or another descriptor, which is already positioned there. */
void line_reader_restart(struct line_reader *r, int fd, uint64_t offset, bool polled);
/*
 * The next line, without its newline and valid until the next call; waits for a pipe until `deadline` (monotonic ns). An
 * enum line_news; EVREC_ESYSTEM: it cannot be read; EVREC_EINVALID: a line is longer than LINE_MAX_BYTES; EVREC_ENOMEM.
 */
int line_reader_next(struct line_reader *r, int64_t deadline, evrec_str *line, evrec_error *err);
/* As pread(), and again if a signal interrupts it, as it may on some network file systems. */
ssize_t line_pread(int fd, void *data, size_t n, off_t offset);
/* The bytes of a regular file's line from `offset` on, appended to `line`. 0 or an error as above. */
int line_read_at(int fd, uint64_t offset, struct buf *line, evrec_error *err);

#pragma GCC visibility pop

#endif

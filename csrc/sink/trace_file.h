/* trace_file.h - the file of a trace, which is locked while the trace is written. */
#ifndef EVREC_SINK_TRACE_FILE_H
#define EVREC_SINK_TRACE_FILE_H

#include "base/base.h"

#include <sys/types.h>
#include <time.h>

#pragma GCC visibility push(hidden)

struct trace_file {
	const char *path;     /* borrowed */
	int fd;               /* -1: not open */
	uint64_t len;         /* bytes that were written */
	struct timespec left; /* when the file changed last before its lock was given up; 0: it has the lock */
	off_t left_size;      /* its size then: another trace may take less than a tick of `left` */
};

static inline bool trace_file_is_open(const struct trace_file *file)
{
	return file->fd >= 0;
}

/*
 * Opens the file, locks it and writes the header. An earlier trace is replaced, but no other file, and no trace that is
 * still written. False: *err says why, and the file is not open.
 */
bool trace_file_open(struct trace_file *file, const struct buf *header, evrec_error *err);
/* Appends the lines, all or none of them. 0 or an errno; ENOMEM also if `lines` has failed. */
int trace_file_append(struct trace_file *file, const struct buf *lines);
/* True, with *err: somebody has removed the file, so nobody would read what is written now. */
bool trace_file_is_removed(const struct trace_file *file, evrec_error *err);
/* Gives up the lock of a file that lacks its last gap: the path is free for the next trace. */
void trace_file_leave(struct trace_file *file);
/* Takes the lock again. False, with *err: another trace has replaced this one since trace_file_leave. */
bool trace_file_come_back(struct trace_file *file, evrec_error *err);
void trace_file_close(struct trace_file *file);

#pragma GCC visibility pop

#endif

/*
 * lines.h - a file with an event a line: its source (lines_source.c), which opens the query (lines_query.c) and the
 * watch (lines_watch.c), and helpers of both (lines.c). For one thread at a time.
 */
#ifndef EVREC_READ_LINES_H
#define EVREC_READ_LINES_H

#include "read/source.h"

#include <sys/stat.h>

#pragma GCC visibility push(hidden)

/*
 * A descriptor of the file, or of standard input for "-", and its status. -1 and *err: EVREC_ESYSTEM, or EVREC_EINVALID if
 * the file is an SQLite database.
 */
int lines_open(const char *path, struct stat *st, evrec_error *err);
void lines_close(int fd); /* leaves standard input open; -1 is fine */
/* Sets *err to errno's text, for this path. EVREC_ESYSTEM. */
int lines_system_error(const char *path, evrec_error *err);
/* Puts the path before the message of *err, an error of line_reader.h with this code. Returns the code. */
int lines_failed(const char *path, int code, evrec_error *err);
/*
 * Parses the event of a line; `path` and `number` are for the message. 0: *event is the caller's, or NULL: the line is
 * empty, or was cut short by a full disk or a killed process. EVREC_EINVALID: the line is not an event; EVREC_ENOMEM.
 */
int lines_read_event(const char *path, evrec_str line, uint64_t number, evrec_event **event, evrec_error *err);

/* NULL and *err: EVREC_EINVALID, EVREC_ENOMEM, EVREC_ESYSTEM. `filter` lives longer than the reader. */
evrec_reader *lines_query_open(const char *path, const struct filter *filter, evrec_error *err);
evrec_reader *lines_watch_open(const char *path, const struct filter *filter, evrec_error *err);

#pragma GCC visibility pop

#endif

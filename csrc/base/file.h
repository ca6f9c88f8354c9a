/*
 * file.h - finds and reads small files, such as tokens and certificates.
 */
#ifndef EVREC_FILE_H
#define EVREC_FILE_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/*
 * Appends the bytes of the file to `text`, and stops once `text` has more than `max`. Does not wait for the writer of a
 * pipe. False: see errno. Any thread.
 */
bool file_read(const char *path, size_t max, struct buf *text);
/* Likewise, the rest of an open file. */
bool file_read_from(int fd, size_t max, struct buf *text);

/*
 * Appends `path`, behind the current folder if it is relative, so that a later chdir does not change the file. False:
 * the folder is unknown, and nothing is appended.
 */
bool file_put_absolute(struct buf *out, evrec_str path);

#pragma GCC visibility pop

#endif

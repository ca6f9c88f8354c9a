/*
 * private_file.h - files that only this user may read or write: the spool and its lock.
 *
 * The folder may be one that others write to, such as /tmp: a link, a device or another user's file under the name is
 * refused. Any thread.
 */
#ifndef EVREC_PRIVATE_FILE_H
#define EVREC_PRIVATE_FILE_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* False, with *err: `path` exists and is no regular file of this user or root. Opens nothing. */
bool private_file_check(const char *path, evrec_error *err);
/* Opens such a file for reading and writing, or creates it. The caller's descriptor; -1: see *err. */
int private_file_open(const char *path, evrec_error *err);
/* True: somebody has removed the file, so nobody would find what is written to the descriptor now. -1 has no file. */
bool private_file_is_removed(int fd);
/* Sets *err to the path, cut to 160 bytes, and `reason`, which begins with a space or a colon. */
void private_file_set_error(evrec_error *err, const char *path, const char *reason);
/* Sets *err to the path and the text of errno's value `error`. */
void private_file_set_errno(evrec_error *err, const char *path, int error);
/* Removes all rights of group and others, if the file is this user's and its file system has modes. */
void private_file_protect(int fd);
/* The same for a regular file that must not be opened. Follows no link. False, with *err: that needs /proc. */
bool private_file_protect_path(const char *path, evrec_error *err);

#pragma GCC visibility pop

#endif

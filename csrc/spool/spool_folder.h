/*
 * spool_folder.h - the folder of a spool: creates it, names its files, and finds files without an owner.
 *
 *   folder/<time>-<pid>-<n>.spool        one for each sink of each process that needed one (spool.h)
 *   folder/<time>-<pid>-<n>.spool-wal    while that is open, or its owner was killed
 *   folder/<time>-<pid>-<n>.spool-pending  its journal, likewise (journal.h)
 *   folder/<time>-<pid>-<n>.spool.lock   locked by its owner
 *   folder/share-<hash>.state            a state file, with a lock and perhaps a new file beside it (state_file.h): for a sink
 *                                        of processes that share one recorder, if it names no state file of its own
 *
 * Such a sink needs the state file besides the spool. A row has a count, and workers may record the occurrences in this
 * count again if the owner was killed before it acknowledged them. Only the state names these occurrences
 * (correlate/origins.h). So the state lies beside the rows. If such a sink names only a state file, its folder is
 * "<state file>.spool".
 *
 * Earlier versions had one file in place of the folder. Such a file is renamed to "<folder>.moving", the folder is
 * made, and the file is moved into it as a file without an owner. The lock of the old file is held meanwhile, so no
 * older version uses it. If the process dies in between, the next call continues.
 *
 * The folder must be this user's or root's, and nobody else may write to it. Any thread, one at a time.
 */
#ifndef EVREC_SPOOL_FOLDER_H
#define EVREC_SPOOL_FOLDER_H

#include "spool/spool.h"

#pragma GCC visibility push(hidden)

/* Makes the folder, mode 0700, or checks it. False: see *err. */
bool spool_folder_prepare(const char *path, evrec_error *err);
/* A file with a unique name. It is not created. NULL: no memory. */
struct spool *spool_folder_new_file(const char *path);
/*
 * Calls `func` for the name of each file, even if only its lock exists, until it returns false. A name may come twice.
 * False: the folder cannot be read; see *err.
 */
bool spool_folder_each(const char *path, bool (*func)(void *ctx, const char *name), void *ctx, evrec_error *err);
/* The file of that name. NULL: no memory. */
struct spool *spool_folder_file(const char *path, const char *name);
/* The path of the state file of the sink with the hash `of`, the caller's. NULL: no memory. */
char *spool_folder_state_path(const char *path, uint64_t of);
/* The path of the spool of a sink whose state file is there, the caller's. NULL: no memory. */
char *spool_folder_beside(const char *state_path);

#pragma GCC visibility pop

#endif

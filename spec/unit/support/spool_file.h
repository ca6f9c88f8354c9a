/* spool_file.h - a spool's file seen by other programs, and spools that open it or refuse to. */
#ifndef EVREC_UNIT_SPOOL_FILE_H
#define EVREC_UNIT_SPOOL_FILE_H

#include "tmpdir.h"

#include "spool/spool.h"

/* Runs SQL on the file `path`, behind evrec's back. */
void spool_file_exec(const char *path, const char *sql);

/* How many rows a process that is killed now would leave in a file, which a spool may have open. */
unsigned spool_file_rows(const char *path);

/* How many files the spool in a folder has. */
unsigned spool_file_count(const char *folder);

/* The path of the only file of the spool in a folder. Valid until the next call. */
const char *spool_file_in(const char *folder);

/* Makes the folder, and returns a path of a file in it that may be a spool's. Valid until the next call. */
const char *spool_file_make_folder(const char *folder);

/* An open spool; fails the test if it cannot be opened. The caller frees it. */
struct spool *spool_file_open(const char *path);

/* Fails the test unless opening the spool fails with a message that contains `why`. */
void spool_file_check_refused(const char *path, const char *why);

/* Puts `rows` rows of fake writes into an open file, in one transaction: creates of events "n1", "n2" and so on. */
void spool_file_put_unsent(struct spool *spool, unsigned rows);

#endif

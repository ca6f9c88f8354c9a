/*
 * spool.h - a file that keeps writes from one process to the next: rows of SQLite, whose libraries' functions are called
 * nowhere else. Knows neither events nor an outbox: what a row holds is text to it.
 *
 * SQLite, as what is done to the file in one transaction is done whole or not at all, whenever the process or the
 * machine dies: it has a rollback journal, which needs no file beside it while nobody writes (WAL would need two, and
 * gain nothing for a file that is written once). The lock is held from spool_open to spool_close; the kernel gives it
 * back when a process dies.
 *
 * Calls block on the disk: never from a recording call. One thread at a time. Those that fail say why, in *err.
 */
#ifndef EVREC_SPOOL_H
#define EVREC_SPOOL_H

#include "deliver/retry.h"

#pragma GCC visibility push(hidden)

struct spool;

struct spool_row {
	int64_t seq; /* its place, from 1 on; 0: not in there yet */
	enum verb verb;
	uint32_t count;   /* occurrences in it */
	uint32_t arrived; /* how many of them a try carried that may have arrived; 0: no such try */
	int64_t last;   /* the last one came then, by the clock on the wall, which goes on where there is no process */
	evrec_str item; /* UTF-8 */
};

struct spool *spool_new(evrec_str path); /* no I/O; NULL: no memory */
void spool_free(struct spool *spool);    /* closes it; NULL is fine */

/*
 * Opens the file, or makes it, readable for its owner alone. False where it cannot be had: another process, or sink, has
 * it; it is of another version, or no spool; the disk. True where it is open.
 */
bool spool_open(struct spool *spool, evrec_error *err);
bool spool_is_open(const struct spool *spool);
void spool_close(struct spool *spool);

/* From begin to commit all is done, or nothing: where one of them fails, spool_rollback is what is left to call. */
bool spool_begin(struct spool *spool, evrec_error *err);
bool spool_commit(struct spool *spool, evrec_error *err);
void spool_rollback(struct spool *spool);

/* A new row, or, where row->seq says which, in the place of an old one. */
bool spool_put(struct spool *spool, const struct spool_row *row, evrec_error *err);
bool spool_forget(struct spool *spool, int64_t seq, evrec_error *err);
/*
 * Calls `func` for the `max` rows after `seq`, in order, until it returns false, for one that it leaves alone; what it is
 * given is borrowed. Marks each of those before as one that may have arrived, for whoever reads it next.
 */
bool spool_read(struct spool *spool, int64_t seq, size_t max, bool (*func)(void *ctx, const struct spool_row *row),
                void *ctx, evrec_error *err);

#pragma GCC visibility pop

#endif

/*
 * spool.h - one file of a spool, which keeps writes from one process to the next: an SQLite database. Knows neither
 * events nor an outbox: a row's item is text.
 *
 * SQLite, because a transaction is atomic whenever the process dies. Beside the file lie "<path>-wal" or
 * "<path>-journal" while it is open, and "<path>.lock", which is locked as long as a process uses the file, or until
 * that process dies.
 *
 * Calls block on the disk: never from a recording call. One thread at a time. A call that fails says why, in *err.
 */
#ifndef EVREC_SPOOL_H
#define EVREC_SPOOL_H

#include "outbox/protocol.h"

#pragma GCC visibility push(hidden)

struct spool;

struct spool_row {
	int64_t seq; /* its number, from 1 on; 0: it is not in the file yet */
	enum verb verb;
	uint32_t count;          /* occurrences in it */
	uint32_t maybe_received; /* how many of them were in a try that may have arrived; 0: there was no such try */
	int64_t last;   /* when the last one was recorded, in ns of the wall clock, which two processes share */
	evrec_str item; /* UTF-8 */
	int64_t time;   /* the item's time of the last one, in ns; EVREC_UNSET: the item's text has it (version 1) */
};

struct spool *spool_new(evrec_str path); /* no I/O; NULL: no memory */
/*
 * Closes it; NULL is fine. A forked child never calls it for a spool that its parent has open: SQLite would assume that
 * the child has the parent's locks.
 */
void spool_free(struct spool *spool);

/* How much a commit waits for. */
enum spool_mode {
	SPOOL_MODE_NONE,
	SPOOL_MODE_WAL,   /* rarely for the disk: survives a crash of the machine, except the last commits */
	SPOOL_MODE_QUICK, /* never for the disk: survives only the death of the process */
	SPOOL_MODE_LAST,  /* for the disk each time: no more commits will come */
};

/*
 * Opens or creates the file, and removes all rights of others. True: it is open. False, with *err: another process or
 * sink has it; it is a spool of another version, no spool, no regular file, or another user's; or the disk fails.
 */
bool spool_open(struct spool *spool, enum spool_mode mode, evrec_error *err);
bool spool_set_mode(struct spool *spool, enum spool_mode mode, evrec_error *err);
bool spool_is_open(const struct spool *spool);
void spool_close(struct spool *spool);
const char *spool_path(const struct spool *spool);
const char *spool_pending_path(const struct spool *spool); /* of the journal beside it (journal.h) */
/* Closes an open file that has no rows, and removes it, but not its journal; its lock stays. It can be opened again. */
void spool_shed(struct spool *spool);

/*
 * Takes the lock of a file without an owner, before spool_open. GONE: there was only a lock file, which is removed.
 * Only REFUSED sets *err.
 */
enum spool_claim { SPOOL_CLAIMED, SPOOL_IN_USE, SPOOL_GONE, SPOOL_REFUSED };
enum spool_claim spool_claim(struct spool *spool, evrec_error *err);
/* Takes the lock of a file that is to be opened later, for its journal. Never GONE; IN_USE and REFUSED set *err. */
enum spool_claim spool_reserve(struct spool *spool, evrec_error *err);
/* Removes a file that has its lock and is not open, and its lock; else does nothing. */
void spool_release(struct spool *spool);
/* Closes the file, whose lock was taken, and removes it, the files beside it, and its lock. */
void spool_remove(struct spool *spool);
/* The highest number of a row, 0 if there is none. */
bool spool_last_seq(struct spool *spool, int64_t *seq, evrec_error *err);
/* The file was found damaged since it was made: rows that are written into it may never be read. */
bool spool_is_damaged(const struct spool *spool);
/* False, with *err: somebody has removed the file and its lock, which it holds. Then it counts as damaged. */
bool spool_check_there(struct spool *spool, evrec_error *err);
bool spool_is_empty(struct spool *spool); /* false if that cannot be told */

/* A transaction: after a failure between begin and commit, call spool_rollback. */
bool spool_begin(struct spool *spool, evrec_error *err);
bool spool_commit(struct spool *spool, evrec_error *err);
void spool_rollback(struct spool *spool);

/* A new row if row->seq is 0, else in the place of the old one with that number. */
bool spool_put(struct spool *spool, const struct spool_row *row, evrec_error *err);
bool spool_forget(struct spool *spool, int64_t seq, evrec_error *err); /* deletes it, if it is there */
/*
 * Calls `func` for at most `max` rows after number `seq` and up to number `until`, in order, until it returns false:
 * that row, and all after it, do not count as read. Rows are borrowed for the call. Marks each row that was read as
 * maybe received, for the process that reads it next.
 */
bool spool_read(struct spool *spool, int64_t seq, int64_t until, size_t max,
                bool (*func)(void *ctx, const struct spool_row *row), void *ctx, evrec_error *err);
/* Removes the mark of spool_read from a row. */
bool spool_unmark(struct spool *spool, int64_t seq, evrec_error *err);

#pragma GCC visibility pop

#endif

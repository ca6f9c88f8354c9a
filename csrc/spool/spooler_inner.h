/*
 * spooler_inner.h - the struct and internal functions of a spooler. Its files call each other in this order:
 *
 *   spooler.c        a step, the end; deletes rows that were answered
 *   find.c           files: finds those without an owner, makes the own one
 *   take_up.c        brings rows back into the outbox
 *   save.c           writes entries into the own file: those that are due, and at the end all
 *   keep_journal.c   the outbox's journal, beside the own file
 *   spooler_tools.c  messages, how commits wait, and the time that two processes share
 */
#ifndef EVREC_SPOOLER_INNER_H
#define EVREC_SPOOLER_INNER_H

#include "spool/journal.h"
#include "spool/spool.h"
#include "spool/spooler.h"

#pragma GCC visibility push(hidden)

/* Rows in one transaction: bounds the memory of copies, and the time of a round of the driver. */
#define SPOOL_BATCH 256
#define SPOOL_BATCH_QUICK 32
/*
 * The pause between two searches for files, two tries to open one or to write to it, or to restore a row that the
 * outbox refused.
 */
#define SPOOL_ASK_AGAIN (3 * EVREC_SECOND)

struct spooler {
	char *folder;
	int64_t after;
	struct spool_codec codec;
	struct state_file *state; /* NULL: none */
	bool quick;
	evrec_error refusal, failure; /* the reported errors of opening and of writing a file; empty: none */
	evrec_error forget_failure;   /* of deleting answered rows, likewise */
	int64_t forget_at;            /* monotonic: not before */
	int64_t look_at;              /* monotonic: when to look for files */
	size_t journal_max;           /* the maximum bytes of a journal; 0: make none */
	struct journal *journal;      /* NULL: there is none yet */
	int64_t journal_at;           /* monotonic: not to be made or enlarged before */
	int64_t check_at;             /* monotonic: when to check that it was not removed */
	evrec_error journal_failure;  /* the reported error of making or enlarging it */
	struct spool *own;            /* NULL, or a file that may not be open yet */
	int64_t next_number;          /* of a row in it */
	size_t batch;                 /* twice the rows that the disk took last time; 0: no bound */
	int64_t write_at;             /* monotonic: not before */
	struct spool *found;          /* NULL or open; may be `own` */
	bool found_is_removed;        /* at the end: by somebody, so its rows go into the own file */
	int64_t until;                /* its last row when it was found */
	int64_t cursor;               /* the number of the last row that was restored or cannot be restored */
	int64_t reported;             /* faults of rows up to this number were reported */
	bool read;                    /* it has no more rows to restore */
	int64_t restore_at;           /* monotonic: not before, */
	size_t refused_room;  /* unless there are more bytes of room than this; SIZE_MAX: regardless of the room */
	struct spool **ahead; /* open: journals beside them were imported, and not removed yet */
	size_t ahead_len;
	char **aside; /* names of files that are damaged, or have rows that cannot be restored */
	size_t aside_len;
};

/* The same moment by both clocks: an outbox uses monotonic time, and the next process shares only the wall clock. */
struct spool_moment {
	int64_t monotonic, wall;
};
struct spool_moment spool_moment_now(const evrec_clock *clock);
/* `now` less `age`, INT64_MIN at the least. */
int64_t spool_moment_before(int64_t now, int64_t age);
int64_t spool_ask_again_at(int64_t now);

/* Reports "<what>: <the error's message>" to the outbox. */
void spooler_report(struct outbox *ob, const char *what, const evrec_error *err);
/* Likewise, but only if the error differs from `last`, which remembers it. */
void spooler_report_once(struct outbox *ob, const char *what, const evrec_error *err, evrec_error *last);
enum spool_mode spooler_mode(const struct spooler *sp);
/* How many rows may be in one transaction. */
size_t spooler_batch(const struct spooler *sp);

/* Sets whether commits never wait for the disk. */
void spooler_set_quick(struct spooler *sp, bool quick);
/* Looks for a file without an owner, which becomes `found`. The outbox, and so a flush, waits until there is none. */
void spooler_look(struct spooler *sp, struct outbox *ob, int64_t now);
/* After all rows of `found` that can be restored were answered and deleted: removes the file, or puts it aside. */
void spooler_leave_found(struct spooler *sp);
/* Gives up the damaged own file and its journal: the next row makes a new file. */
void spooler_give_up_own(struct spooler *sp);
/* Makes the outbox's journal if it lacks one, and enlarges it if it is half full. */
void spooler_keep_journal(struct spooler *sp, struct outbox *ob, const evrec_clock *clock);
/* Before the own file is given up: the outbox has no journal any more. */
void spooler_drop_journal(struct spooler *sp, struct outbox *ob);
/*
 * If there is no own file yet: the found file becomes the own file, if possible; else the own file gets a name and its
 * lock, and is not opened. False: see *err.
 */
bool spooler_reserve_own(struct spooler *sp, evrec_error *err);
/* Makes and opens the own file. False: see *err; no file is left, unless there is a journal. */
bool spooler_have_own(struct spooler *sp, enum spool_mode mode, evrec_error *err);
/* The file of a row as in outbox_row, and the row's number there. */
struct spool *spooler_file_of(const struct spooler *sp, int64_t row, int64_t *seq);

/* Reads as many rows as `rows` has room for, and restores them. False: the outbox refused one, or the first needs more room. */
bool spooler_take_up(struct spooler *sp, struct outbox *ob, const struct outbox_rows *rows, const evrec_clock *clock);
/* Begins, commits, or rolls back in both files. */
bool spooler_begin(struct spooler *sp, evrec_error *err);
bool spooler_commit(struct spooler *sp, evrec_error *err);
void spooler_rollback(struct spooler *sp);
/* True: somebody has removed the own file, which is damaged from now on. Reports it. */
bool spooler_own_is_removed(struct spooler *sp, struct outbox *ob);
/* At the end, after the own file: sets found_is_removed, and reports it. Then each restored row is to be kept anew. */
void spooler_check_found(struct spooler *sp, struct outbox *ob);
/* Writes rows that are due, some at a time. */
void spooler_write_rows(struct spooler *sp, struct outbox *ob, const evrec_clock *clock);
/* Reports that kept entries are lost. */
void spooler_report_lost(struct outbox *ob, const evrec_error *err);
/* Writes the outbox's `n` kept entries into the files, as many as fit, and reports the others. */
void spooler_save_kept(struct spooler *sp, struct outbox *ob, size_t n, const evrec_clock *clock);

#pragma GCC visibility pop

#endif

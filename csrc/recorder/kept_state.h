/*
 * kept_state.h - keeps the state of a correlator, or of series, in a file, from which the next process continues: the
 * file of the option state_file, or one in the spool of a share.
 *
 * The embedder's thread observes, and the sender's driver reads the changes, each with the lock. The driver holds the
 * lock for a few entries at a time, and never while it writes; the embedder's thread holds it while it observes one
 * event. That may call the embedder's functions, which may end the process: so the driver waits for the lock for some
 * ms at most, and then tries once every 50 ms.
 */
#ifndef EVREC_KEPT_STATE_H
#define EVREC_KEPT_STATE_H

#include "correlate/correlator.h"
#include "correlate/series.h"
#include "spool/state_file.h"

#pragma GCC visibility push(hidden)

/* An entry that was not used for so long is not taken over: its counts are out of date. */
#define KEPT_STATE_MAX_AGE (12 * 3600 * EVREC_SECOND)

/* One of both is NULL. */
struct kept {
	evrec_correlator *correlator;
	struct series *series;
};

/*
 * Takes the file's lock, reads the file into the correlator or series, which must be new, and from now on notes
 * changes. The returned file owns *kept: state_file_free frees both. NULL: *kept stays the caller's, and the sink goes
 * on without the file. Records that were not read, or the reason for NULL, are reported to the outbox, "state". If
 * another owner has the file, its counts are not read, and this sink gets the file later; but if `in_use` is not NULL,
 * *in_use is set, nothing is reported, and NULL is returned, so that the caller tries again. Owns `file`, the result of
 * kept_state_open for the path.
 */
struct state_file *kept_state_new(evrec_str path, struct state_file *file, const struct kept *kept, int64_t now,
                                  struct outbox *ob, bool *in_use);
/*
 * Opens the file, and so waits for the disk. `folder` is the spool's folder that contains the file, or empty. Any
 * thread. NULL: no memory.
 */
struct state_file *kept_state_open(evrec_str path, evrec_str folder);

#pragma GCC visibility pop

#endif

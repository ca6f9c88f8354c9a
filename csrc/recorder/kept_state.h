/*
 * kept_state.h - a correlator, or a series, whose state is kept in a file, so that the next process counts on: that of the
 * option state_file, or one in the spool of a share.
 *
 * The embedder's thread observes, and the sender's driver reads what has changed, each with the lock. The driver holds it
 * for a few entries at a time, and never while it writes; the embedder's thread, while it observes one event. That may
 * call the embedder's functions, which may end the process: so the driver waits for the lock for some ms at most, and
 * then tries it once every 50 ms.
 */
#ifndef EVREC_KEPT_STATE_H
#define EVREC_KEPT_STATE_H

#include "correlate/correlator.h"
#include "correlate/series.h"
#include "spool/state_file.h"

#pragma GCC visibility push(hidden)

/* An entry that was not used for so long is not taken over: a day's counts are not those of the day before. */
#define KEPT_STATE_MAX_AGE (12 * 3600 * EVREC_SECOND)

/* One of both is NULL. */
struct kept {
	evrec_correlator *correlator;
	struct series *series;
};

/*
 * Takes the file's lock, reads it into the correlator or series, which must be new, and from now on notes what changes.
 * The file owns all of it from here on: state_file_free frees that too. NULL, and then it is the caller's:
 * the sink goes on without the file. What was not read, or why there is no file, is reported to the outbox, "state". If
 * another owner has the file, its counts are not read, and the file is this one's later; but if `in_use` is not NULL,
 * *in_use is set, nothing is reported, and NULL is returned, so that the caller tries again. `file` is owned from here
 * on: what kept_state_open returned for the path.
 */
struct state_file *kept_state_new(evrec_str path, struct state_file *file, const struct kept *kept, int64_t now,
                                  struct outbox *ob, bool *in_use);
/*
 * Opens the file, and so waits for the disk. `folder` is the spool's in which it lies, or empty. Any thread. NULL: no
 * memory.
 */
struct state_file *kept_state_open(evrec_str path, evrec_str folder);

#pragma GCC visibility pop

#endif

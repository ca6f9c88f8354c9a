/*
 * spooler.h - between an outbox and a spool: what an outbox could not write by the end goes into the file, and is taken
 * up by the next that has the file.
 *
 *   outbox_expect(ob, true)      before the first submit: the outbox waits for what the file has, and keeps what it
 *                                would drop at the end
 *   spooler_tend(sp, ob, clock)  the driver, each round: opens the file, takes up what is in there, as far as there is
 *                                room, with the age that it has by now, forgets what was answered
 *   spooler_rest(sp, ob, clock)  after the last round: what is left goes into the file, in one transaction; lets go of
 *                                the file
 *
 * A row is forgotten once it was answered, so what was answered just before a process died is sent again by the next.
 * A PATCH sets the count that it had set; a POST has its old name and finds that taken (409): marked as one that may
 * have arrived, it is done, as any POST is that was tried twice.
 *
 * It lives with the outbox, knowing rows but no events: how an item becomes text is its maker's affair (spool_codec).
 * Belongs to the driver, and after the last round to whoever ended that.
 */
#ifndef EVREC_SPOOLER_H
#define EVREC_SPOOLER_H

#include "deliver/outbox.h"

#pragma GCC visibility push(hidden)

/* The lane's items as text in UTF-8, and back. */
struct spool_codec {
	bool (*freeze)(const void *item, struct buf *out); /* appends; false: no memory */
	/* NULL: no memory, or not understood. Also sets its importance. */
	void *(*thaw)(evrec_str frozen, bool *important);
};

struct spooler;

struct spooler *spooler_new(evrec_str path, const struct spool_codec *codec); /* no I/O; NULL: no memory */
void spooler_free(struct spooler *sp);                                        /* NULL is fine */
/* Errors are reported to the outbox, "spool", and else of no consequence: it goes on without the file. */
void spooler_tend(struct spooler *sp, struct outbox *ob, evrec_clock *clock);
void spooler_rest(struct spooler *sp, struct outbox *ob, evrec_clock *clock);

#pragma GCC visibility pop

#endif

/*
 * spooler.h - writes entries of an outbox to a spool, a folder of files (spool_folder.h), so that they survive the
 * process, and restores the entries of dead processes into the outbox.
 *
 *   outbox_expect(ob, true)      before the first submit: the outbox waits for rows, and at the end keeps entries that it
 *                                would drop. outbox_write_rows_after(ob, after) too
 *   spooler_step(sp, ob, clock)  the driver, each round
 *   spooler_save(sp, ob, clock)  after the last round: pending entries go into the file, or as many as the disk has room
 *                                for; those that do not fit stay pending; closes the files, and removes empty ones
 *
 * A spooler has at most two files, each with its lock, but while it looks ahead (spooler_look_ahead):
 *
 *   own     has a row for each entry that has been pending for longer than `after`, with its present count, at most
 *           CHANGE_WAITS behind (outbox/row_queue.c). It is made when the first such entry is due, so a process whose
 *           writes are answered in time writes nothing to the disk. Only its next owner reads it.
 *   found   a file without an owner. It is read from the first row to the last that it had when it was found. Each row
 *           becomes an entry of the outbox, and stays in the file until that is answered. Then the file is removed, and
 *           the next one is looked for; if there is none, every 3 s.
 *
 * A damaged file, or one that somebody has removed, is neither read nor written any more: entries with rows in such an
 * own file get rows in a new one. At the end entries with rows in a removed `found` get rows in the own file, too.
 *
 * Otherwise rows are never moved between files, so no row is in two. If there is no own file yet, the found file becomes
 * the own file too: a host that crashes repeatedly leaves one file, not many. An entry's row is > 0 in `found`, and < 0
 * in `own` (outbox_row), even if both are the same file.
 *
 * A row is deleted after the answer, at most CHANGE_WAITS later. If the process dies in between, the next one sends it
 * again: a PATCH sets the same count; a POST has its old name, and its 409 counts as success, as rows of a live
 * process, and rows that were read, are marked as maybe received. A process makes one row of an event: an entry's row
 * includes its follow-up. If a process with a state, and so with the names of earlier events, is killed, one event may
 * have a row of that process and rows of earlier ones. These are sent one after the other.
 *
 * With a journal (spooler_use_journal) the process may be killed at any moment: changes that are in no row are in the
 * journal, which becomes rows when the file is found. So the own file has its name and its lock as soon as there is a
 * journal.
 *
 * A forked child has a spooler of its own, and so a file of its own; the parent's stays the parent's.
 *
 * A spooler knows rows but no events: the maker of the items turns them into text (spool_codec). It belongs to the
 * driver, and after the last round to the thread that ended the driver.
 */
#ifndef EVREC_SPOOLER_H
#define EVREC_SPOOLER_H

#include "outbox/outbox.h"
#include "spool/state_file.h"

#pragma GCC visibility push(hidden)

/* The numbers of an item that an occurrence changes while the text stays the same. */
struct spool_changes {
	uint64_t version; /* changes with the rest of the text */
	int64_t last;
	int32_t count;
	int32_t sure; /* how many of the count owners of the share have recorded themselves; 0: none, or not known */
	uint32_t finished;
	uint32_t unused; /* 0, as there is a checksum of all */
};

/* Items as text in UTF-8, and back. */
struct spool_codec {
	bool (*serialize)(const void *item, struct buf *out); /* appends; false: no memory */
	/* A new item, the caller's, and whether it is important. NULL: no memory, or the text is none of an item. */
	void *(*parse)(evrec_str text, bool *important);
	/*
	 * A hash of the event: writes with the same number are sent one after the other. 0: no other write is of this
	 * event.
	 */
	uint64_t (*event_number)(const void *item);
	/* For a journal; of an item together with its follow-up, which is NULL if there is none: */
	bool (*pack)(const void *item, const void *follow_up,
	             struct buf *out);    /* as bytes, for this build of evrec alone */
	void *(*unpack)(evrec_str bytes); /* without its changes. NULL: no memory, or the bytes are none of an item */
	/* Also for a row, whose text may lack the fraction of `last`: */
	void (*get_changes)(const void *item, const void *follow_up, struct spool_changes *changes);
	void (*set_changes)(void *item, const struct spool_changes *changes); /* of a parsed item */
	void (*free)(void *item);                                             /* likewise */
};

struct spooler;

/* `after` ns: see above. No I/O. NULL: no memory. */
struct spooler *spooler_new(evrec_str folder, int64_t after, const struct spool_codec *codec);
void spooler_free(struct spooler *sp); /* NULL is fine */
int64_t spooler_after(const struct spooler *sp);
/*
 * Borrows a state, which is written before rows are, so that after a kill the next owner knows the name of each row.
 * Once, before the first step.
 */
void spooler_use_state(struct spooler *sp, struct state_file *state);
/*
 * From its first step with writes on, the spooler keeps a journal for the outbox (journal.h), of `max_bytes` at most. Once,
 * before the first step.
 */
void spooler_use_journal(struct spooler *sp, size_t max_bytes);
/*
 * Looks for files, restores rows as far as the outbox has room, with their present age; writes rows that are due, and
 * deletes answered ones. `quick`: does a small part at a time, and never waits for the disk: the rows survive the death
 * of the process, but perhaps not a crash of the machine. Otherwise it may wait for the disk. Reports errors to the
 * outbox, "spool"; the outbox goes on without the spool. `clock` is borrowed for the call. The driver's thread.
 */
void spooler_step(struct spooler *sp, struct outbox *ob, evrec_clock *clock, bool quick);
/*
 * Before the first step, if the outbox has a state: imports the journals of processes that were killed, up to 32.
 * Passes the counts in these journals that the state may lack to the outbox (outbox_bring). The journals stay, and
 * their files are this spooler's, until spooler_end_look_ahead: if this process is killed before, the next one finds
 * the counts again. `quick` as in spooler_step.
 */
void spooler_look_ahead(struct spooler *sp, struct outbox *ob, bool quick);
/*
 * Once the state has these counts, or cannot be written: removes the journals. From now on a step may find the files.
 */
void spooler_end_look_ahead(struct spooler *sp, struct outbox *ob);
/*
 * Writes rows of the outbox's kept entries, and waits for the disk. `clock` is borrowed for the call. The driver's
 * thread.
 */
void spooler_save(struct spooler *sp, struct outbox *ob, evrec_clock *clock);
/* When the driver has to call spooler_step again, if nothing else wakes it: monotonic, INT64_MAX if never. */
int64_t spooler_next_due(const struct spooler *sp, struct outbox *ob, int64_t now);
/* True: a step now would do something, so the driver must not wait, even if all writes are answered. */
bool spooler_has_work(const struct spooler *sp, struct outbox *ob, int64_t now);

#pragma GCC visibility pop

#endif

/*
 * journal.h - the journal of an outbox (outbox/journal.h): a mapped file beside the own file of a spooler, "<own
 * file>-pending". If the process is killed, the kernel keeps the pages, and the next process finds them in the file.
 * They do not survive a crash of the machine: nothing is synced.
 *
 *   spooler     makes the journal once writes are pending, enlarges it, and removes it at the end
 *   outbox      notes a write in the recording call that submits it: no system call; a longer text than any before takes
 *               memory
 *   next owner  copies all notes into the SQLite file (journal_import.c), and removes the journal, before it reads that
 *               file's first row
 *
 * The file's blocks have one size. Each note has a head block, and a chain of blocks for the text of the item. An
 * occurrence changes only numbers in the head. The head has two slots of them, and a number that names the valid slot.
 * So a process may die between any two instructions. Checksums detect other damage.
 *
 * A note with the number of a row supersedes that row; an answered note deletes the row. A note without a row number
 * gets one at the first import. So an interrupted import can be repeated, with the same result.
 *
 * If the disk is full, a store to a page without a block on the disk ends the process by SIGBUS. So the file's blocks
 * are allocated (fallocate) before they are mapped, and there is no journal on file systems that write to other blocks
 * than these, or lack the call.
 */
#ifndef EVREC_JOURNAL_H
#define EVREC_JOURNAL_H

#include "spool/spooler.h"

#pragma GCC visibility push(hidden)

#define JOURNAL_BLOCK 256 /* bytes */

struct journal;

/*
 * Makes the file, which must not exist. May wait for the disk. `max_bytes`: the maximum size of the file. The lock of
 * the own file is held until journal_free. NULL: see *err.
 */
struct journal *journal_new(const char *path, size_t max_bytes, const struct spool_codec *codec, evrec_error *err);
/* After outbox_set_journal(ob, NULL). `remove`: the file too. NULL is fine. */
void journal_free(struct journal *journal, bool remove);
struct outbox_journal *journal_of_outbox(struct journal *journal);
/* Sets the wall clock's offset from the monotonic clock, in ns; any thread. */
void journal_set_offset(struct journal *journal, int64_t offset);
/*
 * True: call outbox_set_journal again, as there is more room: the journal was more than half full and was enlarged, or
 * half of it is free again after a write found no room. False with an empty *err: there is nothing to do, or no more
 * room to be had.
 */
bool journal_enlarge(struct journal *journal, evrec_error *err);

#pragma GCC visibility pop

#endif

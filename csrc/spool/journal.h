/*
 * journal.h - the journal of an outbox (outbox/journal.h): memory that is shared with a file beside the own file of a spooler,
 * "<own file>-pending". If the process is killed, the kernel still has the memory, and the next process finds it in the
 * file. It does not outlive the machine: nothing is synced.
 *
 *   spooler     makes the journal once writes are pending, enlarges it, and removes it at the end
 *   outbox      notes a write in the recording call that submits it: no system call; a longer text than any before takes
 *               memory
 *   next owner  copies all notes into the SQLite file (journal_import.c), and removes the journal, before it reads that
 *               file's first row
 *
 * The file's blocks have one size. Each note has one block, its head, and a chain of others for the text of the item. Each
 * occurrence changes numbers alone, which are in the head: twice, with one number to say which of the two holds. So a
 * process may die between any two instructions. Checksums find what was damaged otherwise.
 *
 * A note with the number of a row supersedes that row; a note that was answered stands for the row's end. A note without one
 * gets a number from the first import on. So an import that was cut off is done again, and does the same.
 *
 * A store into memory without a block on the disk would end the process by SIGBUS, if the disk is full. So the file's
 * blocks are allocated before they are mapped, and file systems that write to other blocks than those, or have no such
 * call, get no journal.
 */
#ifndef EVREC_JOURNAL_H
#define EVREC_JOURNAL_H

#include "spool/spooler.h"

#pragma GCC visibility push(hidden)

#define JOURNAL_BLOCK 256 /* bytes */

struct journal;

/*
 * Makes the file, which is not there yet. May wait for the disk. `max_bytes`: how large it may become. The lock of the own file
 * is held until journal_free. NULL: see *err.
 */
struct journal *journal_new(const char *path, size_t max_bytes, const struct spool_codec *codec, evrec_error *err);
/* After outbox_set_journal(ob, NULL). `remove`: the file too. NULL is fine. */
void journal_free(struct journal *journal, bool remove);
struct outbox_journal *journal_of_outbox(struct journal *journal);
/* How much the wall clock is ahead of the monotonic one; any thread. */
void journal_set_offset(struct journal *journal, int64_t offset);
/*
 * True: outbox_set_journal is to be called again, as there is more room: more than half of it was taken, and there is a
 * larger file; or half of it is free again, after a write found no room. False with an empty *err: nothing is to be done,
 * or can be.
 */
bool journal_enlarge(struct journal *journal, evrec_error *err);

#pragma GCC visibility pop

#endif

/*
 * journal.h - the interface of a journal, which outlives a killed process: an outbox notes each pending write in it,
 * before the call that submits the write returns, and deletes the note once the write is settled.
 *
 * The outbox knows no file: these functions are the journal of a spool (spool/journal.h), memory that the next process
 * finds. They are called with the outbox's lock held, and do no I/O.
 *
 * A note says the same as the entry's row in the spool would (struct outbox_row): the entry together with its follow-up.
 * An entry has no note if it was restored, as its row is in a file; if all its occurrences were silent; or if each of
 * its occurrences has a receipt, as the process that holds the receipt submits the occurrence again. The item of an
 * entry with occurrences of both kinds tells the two apart (`sure` of spool/spooler.h).
 */
#ifndef EVREC_OUTBOX_JOURNAL_H
#define EVREC_OUTBOX_JOURNAL_H

#include "outbox/protocol.h"

#pragma GCC visibility push(hidden)

/* The contents of a row: an entry together with its follow-up. */
struct outbox_row {
	int64_t row; /* > 0: in the file that it was restored from; < 0: -row in the own file; 0: it has no number yet */
	enum verb verb;
	uint32_t count, maybe_received;
	int64_t last; /* monotonic */
	void *item;   /* the caller's, to be given to outbox_discard */
};

struct outbox_journal {
	/*
	 * Notes a write. `note`: the number that an earlier call returned for it, 0 if there is none. `follow_up`: the item of
	 * the entry's follow-up, or NULL. `whole`: the items may be others than before. Returns the note's number; 0:
	 * there was no room, and the write has no note.
	 */
	uint32_t (*note)(struct outbox_journal *journal, uint32_t note, const struct outbox_row *row, const void *item,
	                 const void *follow_up, bool whole);
	/* The write was answered; its row, which is still in the own file, is to be deleted. */
	void (*note_answered)(struct outbox_journal *journal, uint32_t note);
	void (*forget)(struct outbox_journal *journal, uint32_t note);
	/* Starts to use the memory that was allocated since the last call. */
	void (*renew)(struct outbox_journal *journal);
};

#pragma GCC visibility pop

#endif

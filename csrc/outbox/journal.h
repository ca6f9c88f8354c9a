/*
 * journal.h - what outlives the process that is killed: an outbox notes each pending write in a journal, before the call that
 * submits it returns, and takes the note back once the write is settled.
 *
 * The outbox knows no file: these functions are the journal of a spool (spool/journal.h), memory that the next process
 * finds. They are called with the outbox's lock held, and do no I/O.
 *
 * A note says the same as the entry's row in the spool would (struct outbox_row): the entry together with its follow-up.
 * An entry has no note if it was restored, as its row is in a file; if all its occurrences were silent; or if each of
 * its occurrences has a receipt, as whoever holds the receipt submits that occurrence again. The item of an entry with
 * occurrences of both kinds tells the two apart (`sure` of spool/spooler.h).
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
	/* The write was answered: what is to be done now is to delete its row, which is still in the own file. */
	void (*note_answered)(struct outbox_journal *journal, uint32_t note);
	void (*forget)(struct outbox_journal *journal, uint32_t note);
	/* Takes into use the memory that was made ready since. */
	void (*renew)(struct outbox_journal *journal);
};

#pragma GCC visibility pop

#endif

/* journal_import.h - what the journal of a dead process has noted becomes rows of the SQLite file beside it. */
#ifndef EVREC_JOURNAL_IMPORT_H
#define EVREC_JOURNAL_IMPORT_H

#include "spool/spool.h"
#include "spool/spooler.h"

#pragma GCC visibility push(hidden)

/*
 * Moves all notes of the journal at `path`, if there is one, into `spool`, which is open, in one transaction, and removes
 * the journal, or empties it. *damaged: how many of them could not be read. False: nothing was moved, or the journal could
 * be neither removed nor emptied; see *err. If the outbox `ob`, which may be NULL, is one with a state
 * (outbox_send_rows_first), it is brought the items whose counts the state may lack.
 */
bool journal_import(const char *path, struct spool *spool, const struct spool_codec *codec, struct outbox *ob,
                    unsigned *damaged, evrec_error *err);

#pragma GCC visibility pop

#endif

/* journal_import.h - turns the notes in the journal of a dead process into rows of the SQLite file beside it. */
#ifndef EVREC_JOURNAL_IMPORT_H
#define EVREC_JOURNAL_IMPORT_H

#include "spool/spool.h"
#include "spool/spooler.h"

#pragma GCC visibility push(hidden)

/*
 * Copies all notes of the journal at `path`, if there is one, into `spool`, which is open, in one transaction. The journal
 * stays: a process that imports it once more, before any of the rows was answered, gets the same rows. *damaged: how
 * many notes could not be read. False: nothing was copied; see *err. If the outbox `ob`, which may be NULL, has a state
 * (outbox_send_rows_first), items whose counts the state may lack are passed to it by outbox_bring.
 */
bool journal_import(const char *path, struct spool *spool, const struct spool_codec *codec, struct outbox *ob,
                    unsigned *damaged, evrec_error *err);
bool journal_is_there(const char *path);
/*
 * Removes an imported journal, if it exists, or else empties it. False: neither is possible; see *err. Then no row may
 * be sent: a later import would restore answered rows.
 */
bool journal_remove(const char *path, evrec_error *err);

#pragma GCC visibility pop

#endif

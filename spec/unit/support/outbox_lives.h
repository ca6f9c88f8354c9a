/*
 * outbox_lives.h - the end of an outbox's life and the begin of the next: pending entries go into a spool, here an array
 * of rows, and are restored as far as the outbox has room.
 */
#ifndef EVREC_UNIT_OUTBOX_LIVES_H
#define EVREC_UNIT_OUTBOX_LIVES_H

#include "outbox_world.h"

/* Removes rows that were answered; the model no longer has any of them. */
void world_forget_rows(struct outbox_world *w);

/*
 * Restores rows in order until the outbox refuses one. Calls `between` before each row, if not NULL: another thread
 * submits while the sender reads the file. True if no row is left.
 */
bool world_restore_rows(struct outbox_world *w, void (*between)(struct outbox_world *w));

/* Ends a life: answers in flight are lost, every pending event becomes one row, and the outbox is freed. */
void world_end_life(struct outbox_world *w);

#endif

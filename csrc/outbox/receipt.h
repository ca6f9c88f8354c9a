/*
 * receipt.h - what an occurrence carries that was recorded on behalf of another process, which is to learn what became of
 * it. An entry has the receipts of all occurrences in it, one for each id, with a number: so a flood of occurrences
 * that fold takes no memory.
 */
#ifndef EVREC_RECEIPT_H
#define EVREC_RECEIPT_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* Opaque to the outbox: who recorded, and which event. */
struct receipt_id {
	uint64_t source, node;
};

/*
 * Of an entry that was collected: `written` occurrences were written, and the other `n` ended as the entry did (dropped
 * or spooled). Until then `n` is how many are pending or counted, and not in a row of the spool yet.
 */
struct receipt {
	struct receipt *next;     /* the first receipt of an entry is the head of this list, and the root of the tree */
	struct receipt *child[2]; /* by the bits of a hash of the id, one at each depth */
	struct receipt_id id;
	uint32_t n;
	uint32_t tried;  /* how many of `n` there were when the entry's `maybe_received` or `acked` was set */
	uint32_t in_row; /* how many of `n` the row has that was given to the spooler last */
	uint32_t written;
};

/* One more occurrence of the receipt's id. `spare` is used if there is no such receipt yet: true. */
bool receipts_add(struct receipt **receipts, struct receipt_id id, struct receipt *spare);
/* Moves all receipts from one entry to another one. */
void receipts_merge(struct receipt **to, struct receipt **from);
/* The occurrences of now are those that `maybe_received` or `acked` counts. */
void receipts_mark_tried(struct receipt *receipts);
/* All occurrences are written, or those that were marked as tried. */
void receipts_written(struct receipt *receipts, bool all);
/* The occurrences of now are in the row that the spooler is about to write; or, if not `in_row`, none is in one. */
void receipts_mark_in_row(struct receipt *receipts, bool in_row);
bool receipts_any_in_row(const struct receipt *receipts);
/*
 * The spooler has written the row of receipts_mark_in_row: moves its occurrences from `receipts` to `spooled`, where they
 * are `n`. If there is no memory, some stay, marked.
 */
void receipts_take_spooled(struct receipt **receipts, struct receipt **spooled);
void receipts_free(struct receipt *receipts); /* NULL is fine */

#pragma GCC visibility pop

#endif

/*
 * receipt.h - marks the occurrences that were recorded for other processes, which are told the outcome. An entry has
 * one receipt for each id, with the number of its occurrences: so a flood of occurrences that fold takes no memory.
 */
#ifndef EVREC_RECEIPT_H
#define EVREC_RECEIPT_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* Opaque to the outbox: the process that recorded, and the event. */
struct receipt_id {
	uint64_t source, node;
};

/*
 * In an entry that was collected, `written` occurrences were written, and the other `n` ended as the entry did (dropped
 * or spooled). Before, `n` is how many are pending or counted, and not in a row of the spool yet.
 */
struct receipt {
	struct receipt *next;     /* the first receipt of an entry is the head of this list, and the root of the tree */
	struct receipt *child[2]; /* by the bits of a hash of the id, one at each depth */
	struct receipt_id id;
	uint32_t n;
	uint32_t tried;  /* the value of `n` when the entry's `maybe_received` or `acked` was set */
	uint32_t in_row; /* how many of `n` are in the row that was given to the spooler last */
	uint32_t written;
};

/* Adds one occurrence of this id. True: the entry had no such receipt, and took `spare`. */
bool receipts_add(struct receipt **receipts, struct receipt_id id, struct receipt *spare);
/* Moves all receipts from one entry to another one. */
void receipts_merge(struct receipt **to, struct receipt **from);
/* Marks the present occurrences as those that `maybe_received` or `acked` counts. */
void receipts_mark_tried(struct receipt *receipts);
/* Counts all occurrences, or those that were marked as tried, as written. */
void receipts_written(struct receipt *receipts, bool all);
/* Marks the present occurrences as in the row that the spooler is about to write; if not `in_row`, none is in a row. */
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

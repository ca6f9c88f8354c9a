/*
 * receipt_tally.h - keeps count of the receipts that an outbox under test has, and of those that came back: each of them
 * once.
 */
#ifndef EVREC_UNIT_RECEIPT_TALLY_H
#define EVREC_UNIT_RECEIPT_TALLY_H

#include "unit.h"

#include "outbox/outbox.h"

#define TALLY_SOURCES 3
#define TALLY_NODES 64

struct receipt_tally {
	unsigned open[TALLY_SOURCES][TALLY_NODES]; /* occurrences of each id that did not come back yet */
	uint64_t given, written, spooled, dropped[EVREC_CAUSES];
};

/* An occurrence with this receipt was accepted. */
void tally_give(struct receipt_tally *tally, struct receipt_id id);
/* An entry was collected. If `whole`, each of its occurrences that the entry still counts must have a receipt. */
void tally_collect(struct receipt_tally *tally, const struct entry *entry, bool whole);
/* All receipts came back. */
void tally_check_none_open(const struct receipt_tally *tally);
/* Every occurrence had a receipt, and they came back as the outbox has counted. */
void tally_check_stats(const struct receipt_tally *tally, struct outbox *ob);

#endif

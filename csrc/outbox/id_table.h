/*
 * id_table.h - entries by id, chained through the entries themselves. Not locked: belongs to an outbox.
 *
 * It grows by some slots now and then (linear hashing, Litwin 1980), never by all at once: that would hold up the one
 * recording call that it falls to, by milliseconds where many entries wait.
 */
#ifndef EVREC_ID_TABLE_H
#define EVREC_ID_TABLE_H

#include "base/tiers.h"
#include "outbox/outbox.h"

#pragma GCC visibility push(hidden)

/*
 * A chain of entries. `marks` has the bit of each entry's id, and perhaps that of one that was removed: without this bit no
 * entry of the chain is looked at. Of a full queue of 10,000 entries, most of which are in no cache of the processor's,
 * this saves 10 % of a new event's time.
 */
struct id_slot {
	struct entry *first;
	uint64_t marks;
};

struct id_table {
	struct tiers slots;
	size_t len, size; /* entries; slots in use */
	size_t half;      /* a power of two: that many slots or more are in use, but not twice as many */
	bool wants_tier;  /* `slots` will need its next tier soon */
};

bool id_table_init(struct id_table *t); /* false: no memory */
void id_table_free(struct id_table *t); /* the slots, not the entries */
struct entry *id_table_find(const struct id_table *t, uint64_t id);
void id_table_insert(struct id_table *t,
                     struct entry *entry); /* its id is not there; where it cannot grow, chains do */
void id_table_remove(struct id_table *t, struct entry *entry); /* nothing where this very entry is not there */

#pragma GCC visibility pop

#endif

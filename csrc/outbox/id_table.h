/*
 * id_table.h - entries by id, chained through the entries themselves. Not locked: belongs to an outbox.
 *
 * It grows by a few slots at a time (linear hashing, Litwin 1980). A full rehash would block one recording call, for
 * milliseconds if many entries wait.
 */
#ifndef EVREC_ID_TABLE_H
#define EVREC_ID_TABLE_H

#include "base/tiers.h"
#include "outbox/outbox.h"

#pragma GCC visibility push(hidden)

/*
 * A chain of entries. `marks` has a bit for each entry's id (and maybe for removed ones), like a Bloom filter: a search
 * without its bit skips the chain. Of a full queue of 10,000 entries, most of which are in no cache of the processor's,
 * this saves 10 % of a new event's time.
 */
struct id_slot {
	struct entry *first;
	uint64_t marks;
};

struct id_table {
	struct tiers slots;
	size_t len, size; /* entries; slots in use */
	size_t half;      /* a power of two; half <= slots in use < 2 * half */
	bool wants_tier;  /* `slots` will need its next tier soon */
};

bool id_table_init(struct id_table *t); /* false: no memory */
void id_table_free(struct id_table *t); /* the slots, not the entries */
struct entry *id_table_find(const struct id_table *t, uint64_t id);
void id_table_insert(struct id_table *t,
                     struct entry *entry); /* its id is not in the table; if the table cannot grow, chains get longer */
void id_table_remove(struct id_table *t, struct entry *entry); /* does nothing if the entry is not in the table */

#pragma GCC visibility pop

#endif

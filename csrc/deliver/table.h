/*
 * table.h - entries by id, chained through the entries themselves. Not locked: belongs to an outbox.
 */
#ifndef EVREC_TABLE_H
#define EVREC_TABLE_H

#include "deliver/outbox.h"

#pragma GCC visibility push(hidden)

struct table {
	struct entry **slots;
	size_t len, size; /* entries, and slots: a power of two */
};

bool table_init(struct table *t); /* false: no memory */
void table_free(struct table *t); /* the slots, not the entries */
struct entry *table_find(const struct table *t, uint64_t id);
void table_insert(struct table *t, struct entry *entry); /* its id is not there; where it cannot grow, chains do */
void table_remove(struct table *t, struct entry *entry); /* nothing where this very entry is not there */

#pragma GCC visibility pop

#endif

/*
 * heap.h - the entries that back off, the first that is due on top. Not locked: belongs to an outbox.
 */
#ifndef EVREC_HEAP_H
#define EVREC_HEAP_H

#include "deliver/outbox.h"

#pragma GCC visibility push(hidden)

/* All zero is an empty heap. */
struct heap {
	struct entry **entries;
	size_t len, cap;
};

bool heap_reserve(struct heap *h, size_t cap);       /* room for `cap` entries in all; false: no memory */
void heap_push(struct heap *h, struct entry *entry); /* by entry->due; the room was reserved */
struct entry *heap_pop(struct heap *h);              /* NULL where it is empty */
void heap_remove(struct heap *h, struct entry *entry);
void heap_reorder(struct heap *h); /* after due times were changed from outside */
void heap_free(struct heap *h);    /* the array, not the entries */

static inline struct entry *heap_top(const struct heap *h)
{
	return h->len == 0 ? NULL : h->entries[0];
}

#pragma GCC visibility pop

#endif

/* heap.h - a binary heap of entries that back off, by their epoch (backoff.h), then by their due. Not locked. */
#ifndef EVREC_HEAP_H
#define EVREC_HEAP_H

#include "base/tiers.h"
#include "outbox/outbox.h"

#pragma GCC visibility push(hidden)

/* All zero is an empty heap. */
struct heap {
	struct tiers entries;
	size_t len;
};

bool heap_reserve(struct heap *h, size_t cap);       /* room for `cap` entries in all; false: no memory */
void heap_push(struct heap *h, struct entry *entry); /* by entry->epoch and due; the room was reserved */
struct entry *heap_pop(struct heap *h);              /* NULL if it is empty */
void heap_remove(struct heap *h, struct entry *entry);
void heap_free(struct heap *h); /* the array, not the entries */

/* In no particular order; i < len. */
static inline struct entry *heap_at(const struct heap *h, size_t i)
{
	return *(struct entry **)tiers_at(&h->entries, i, sizeof(struct entry *));
}

static inline struct entry *heap_top(const struct heap *h)
{
	return h->len == 0 ? NULL : heap_at(h, 0);
}

#pragma GCC visibility pop

#endif

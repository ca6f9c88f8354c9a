/*
 * backoff.h - the entries that back off, one heap for each reason. All entries of one reason can be made due in
 * constant time. Not locked: belongs to an outbox.
 */
#ifndef EVREC_BACKOFF_H
#define EVREC_BACKOFF_H

#include "outbox/heap.h"

#pragma GCC visibility push(hidden)

/* All zero is empty. */
struct backoff {
	struct heap heaps[BACKOFF_WHYS];
	uint64_t epochs[BACKOFF_WHYS]; /* of each heap; entries of an earlier epoch are due */
	size_t len;                    /* entries of all heaps */
};

/* Makes room for `cap` entries in each heap, for backoff_reserve. False: no memory. */
bool backoff_grow(struct backoff *b, size_t cap);
/*
 * Makes room for `cap` entries in each heap. False: no memory. The last heap has the least room, as backoff_grow ends
 * with it.
 */
static inline bool backoff_reserve(struct backoff *b, size_t cap)
{
	return b->heaps[BACKOFF_WHYS - 1].entries.room >= cap || backoff_grow(b, cap);
}
void backoff_push(struct backoff *b, struct entry *entry, enum backoff_why why,
                  int64_t due); /* the room was reserved */
void backoff_remove(struct backoff *b, struct entry *entry);
struct entry *backoff_pop(struct backoff *b); /* removes and returns the entry that is due first; NULL: there is none */
/* When the first entry is due: INT64_MIN: now; INT64_MAX: there is none. */
int64_t backoff_due(const struct backoff *b);
/* The entries that back off for this reason are due now. */
void backoff_make_due_now(struct backoff *b, enum backoff_why why);
static inline bool backoff_empty(const struct backoff *b)
{
	return b->len == 0;
}
void backoff_free(struct backoff *b); /* the arrays, not the entries */

#pragma GCC visibility pop

#endif

/*
 * backoff.h - the entries that back off, each for one of some reasons; what does so for one of them can be made due at
 * once, in the same short time however much that is. Not locked: belongs to an outbox.
 */
#ifndef EVREC_BACKOFF_H
#define EVREC_BACKOFF_H

#include "outbox/heap.h"

#pragma GCC visibility push(hidden)

/* All zero has none. */
struct backoff {
	struct heap heaps[BACKOFF_WHYS];
	uint64_t epochs[BACKOFF_WHYS]; /* one begins when all in there are made due: those are of an earlier one then */
	size_t len;                    /* entries of all heaps */
};

/* Makes room for `cap` entries in each heap, for backoff_reserve. False: no memory. */
bool backoff_grow(struct backoff *b, size_t cap);
/* Room for `cap` entries in all; false: no memory. The last heap has the least room, as backoff_grow ends with it. */
static inline bool backoff_reserve(struct backoff *b, size_t cap)
{
	return b->heaps[BACKOFF_WHYS - 1].entries.room >= cap || backoff_grow(b, cap);
}
void backoff_push(struct backoff *b, struct entry *entry, enum backoff_why why,
                  int64_t due); /* the room was reserved */
void backoff_remove(struct backoff *b, struct entry *entry);
struct entry *backoff_pop(struct backoff *b); /* the first that is due; NULL: there is none */
/* When that is: INT64_MIN for at once, INT64_MAX for never. */
int64_t backoff_due(const struct backoff *b);
/* Whatever backs off for this reason now is due at once. */
void backoff_make_due_now(struct backoff *b, enum backoff_why why);
static inline bool backoff_empty(const struct backoff *b)
{
	return b->len == 0;
}
void backoff_free(struct backoff *b); /* the arrays, not the entries */

#pragma GCC visibility pop

#endif

#include "outbox/backoff.h"

bool backoff_grow(struct backoff *b, size_t cap)
{
	for (int why = 0; why < BACKOFF_WHYS; why++) {
		if (!heap_reserve(&b->heaps[why], cap)) {
			return false;
		}
	}
	return true;
}

void backoff_push(struct backoff *b, struct entry *entry, enum backoff_why why, int64_t due)
{
	entry->why = why;
	entry->epoch = b->epochs[why];
	entry->due = due;
	heap_push(&b->heaps[why], entry);
	b->len++;
}

void backoff_remove(struct backoff *b, struct entry *entry)
{
	heap_remove(&b->heaps[entry->why], entry);
	b->len--;
}

/* When the first entry of this heap is due: entries of earlier epochs, which come first, are due now. */
static int64_t due_of(const struct backoff *b, int why)
{
	const struct entry *top = heap_top(&b->heaps[why]);

	if (top == NULL) {
		return INT64_MAX;
	}
	return top->epoch == b->epochs[why] ? top->due : INT64_MIN;
}

/* The heap with the entry that is due first; an empty heap if all are empty. */
static int first(const struct backoff *b)
{
	int best = 0;

	for (int why = 1; why < BACKOFF_WHYS; why++) {
		if (b->heaps[best].len == 0 || due_of(b, why) < due_of(b, best)) {
			best = why;
		}
	}
	return best;
}

struct entry *backoff_pop(struct backoff *b)
{
	struct entry *entry = heap_pop(&b->heaps[first(b)]);

	b->len -= entry != NULL;
	return entry;
}

int64_t backoff_due(const struct backoff *b)
{
	return due_of(b, first(b));
}

void backoff_make_due_now(struct backoff *b, enum backoff_why why)
{
	b->epochs[why]++;
}

void backoff_free(struct backoff *b)
{
	for (int why = 0; why < BACKOFF_WHYS; why++) {
		heap_free(&b->heaps[why]);
	}
}

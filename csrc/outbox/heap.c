#include "outbox/heap.h"

static void put(struct heap *h, size_t i, struct entry *entry)
{
	*(struct entry **)tiers_at(&h->entries, i, sizeof(struct entry *)) = entry;
	entry->heap_at = i;
}

static bool is_before(const struct entry *a, const struct entry *b)
{
	return a->epoch == b->epoch ? a->due < b->due : a->epoch < b->epoch;
}

static void sift_up(struct heap *h, size_t i)
{
	struct entry *entry = heap_at(h, i);

	while (i > 0) {
		size_t parent = (i - 1) / 2;

		if (!is_before(entry, heap_at(h, parent))) {
			break;
		}
		put(h, i, heap_at(h, parent));
		i = parent;
	}
	put(h, i, entry);
}

static void sift_down(struct heap *h, size_t i)
{
	struct entry *entry = heap_at(h, i);

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= h->len) {
			break;
		}
		if (child + 1 < h->len && is_before(heap_at(h, child + 1), heap_at(h, child))) {
			child++;
		}
		if (!is_before(heap_at(h, child), entry)) {
			break;
		}
		put(h, i, heap_at(h, child));
		i = child;
	}
	put(h, i, entry);
}

bool heap_reserve(struct heap *h, size_t cap)
{
	while (h->entries.room < cap) {
		if (!tiers_grow(&h->entries, sizeof(struct entry *), SIZE_MAX)) {
			return false;
		}
	}
	return true;
}

void heap_push(struct heap *h, struct entry *entry)
{
	put(h, h->len, entry);
	h->len++;
	sift_up(h, h->len - 1);
}

struct entry *heap_pop(struct heap *h)
{
	struct entry *top = heap_top(h);

	if (top != NULL) {
		heap_remove(h, top);
	}
	return top;
}

void heap_remove(struct heap *h, struct entry *entry)
{
	size_t i = entry->heap_at;

	h->len--;
	if (i != h->len) {
		put(h, i, heap_at(h, h->len));
		sift_down(h, i);
		sift_up(h, i);
	}
}

void heap_free(struct heap *h)
{
	tiers_free(&h->entries);
	h->len = 0;
}

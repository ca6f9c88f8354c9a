#include "outbox/heap.h"

static void put(struct heap *h, size_t i, struct entry *entry)
{
	h->entries[i] = entry;
	entry->heap_at = i;
}

static bool is_before(const struct entry *a, const struct entry *b)
{
	return a->epoch == b->epoch ? a->due < b->due : a->epoch < b->epoch;
}

static void sift_up(struct heap *h, size_t i)
{
	struct entry *entry = h->entries[i];

	while (i > 0) {
		size_t parent = (i - 1) / 2;

		if (!is_before(entry, h->entries[parent])) {
			break;
		}
		put(h, i, h->entries[parent]);
		i = parent;
	}
	put(h, i, entry);
}

static void sift_down(struct heap *h, size_t i)
{
	struct entry *entry = h->entries[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= h->len) {
			break;
		}
		if (child + 1 < h->len && is_before(h->entries[child + 1], h->entries[child])) {
			child++;
		}
		if (!is_before(h->entries[child], entry)) {
			break;
		}
		put(h, i, h->entries[child]);
		i = child;
	}
	put(h, i, entry);
}

bool heap_reserve(struct heap *h, size_t cap)
{
	struct entry **entries;
	size_t grown = h->cap < 16 ? 16 : h->cap;

	if (cap <= h->cap) {
		return true;
	}
	while (grown < cap) {
		grown *= 2;
	}
	entries = mem_realloc(h->entries, grown * sizeof(struct entry *));
	if (entries == NULL) {
		return false;
	}
	h->entries = entries;
	h->cap = grown;
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
		put(h, i, h->entries[h->len]);
		sift_down(h, i);
		sift_up(h, i);
	}
}

void heap_free(struct heap *h)
{
	mem_free(h->entries);
	*h = (struct heap){ 0 };
}

#include "deliver/heap.h"

static void sift_up(struct heap *h, size_t i)
{
	struct entry *entry = h->entries[i];

	while (i > 0) {
		size_t parent = (i - 1) / 2;

		if (h->entries[parent]->due <= entry->due) {
			break;
		}
		h->entries[i] = h->entries[parent];
		i = parent;
	}
	h->entries[i] = entry;
}

static void sift_down(struct heap *h, size_t i)
{
	struct entry *entry = h->entries[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= h->len) {
			break;
		}
		if (child + 1 < h->len && h->entries[child + 1]->due < h->entries[child]->due) {
			child++;
		}
		if (entry->due <= h->entries[child]->due) {
			break;
		}
		h->entries[i] = h->entries[child];
		i = child;
	}
	h->entries[i] = entry;
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
	h->entries[h->len] = entry;
	h->len++;
	sift_up(h, h->len - 1);
}

struct entry *heap_pop(struct heap *h)
{
	struct entry *top = heap_top(h);

	if (top != NULL) {
		h->len--;
		if (h->len != 0) {
			h->entries[0] = h->entries[h->len];
			sift_down(h, 0);
		}
	}
	return top;
}

void heap_reorder(struct heap *h)
{
	for (size_t i = h->len / 2; i > 0; i--) {
		sift_down(h, i - 1);
	}
}

void heap_free(struct heap *h)
{
	mem_free(h->entries);
	*h = (struct heap){ 0 };
}

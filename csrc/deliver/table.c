#include "deliver/table.h"

#define FIRST_SIZE 64

/* Ids may be consecutive or differ in high bits alone: a multiplication spreads both. */
static struct entry **slot_of(struct entry **slots, size_t size, uint64_t id)
{
	uint64_t h = (id ^ (id >> 32)) * UINT64_C(0x9e3779b97f4a7c15);

	return &slots[(h >> 32) & (size - 1)];
}

static void grow(struct table *t)
{
	size_t size = t->size * 2;
	struct entry **slots = mem_zalloc(size * sizeof(struct entry *));

	if (slots == NULL) {
		return;
	}
	for (size_t i = 0; i < t->size; i++) {
		struct entry *entry = t->slots[i];

		while (entry != NULL) {
			struct entry *next = entry->hash_next;
			struct entry **slot = slot_of(slots, size, entry->id);

			entry->hash_next = *slot;
			*slot = entry;
			entry = next;
		}
	}
	mem_free(t->slots);
	t->slots = slots;
	t->size = size;
}

bool table_init(struct table *t)
{
	t->slots = mem_zalloc(FIRST_SIZE * sizeof(struct entry *));
	t->size = FIRST_SIZE;
	t->len = 0;
	return t->slots != NULL;
}

void table_free(struct table *t)
{
	mem_free(t->slots);
}

struct entry *table_find(const struct table *t, uint64_t id)
{
	struct entry *entry = *slot_of(t->slots, t->size, id);

	while (entry != NULL && entry->id != id) {
		entry = entry->hash_next;
	}
	return entry;
}

void table_insert(struct table *t, struct entry *entry)
{
	struct entry **slot;

	if (t->len >= t->size) {
		grow(t);
	}
	slot = slot_of(t->slots, t->size, entry->id);
	entry->hash_next = *slot;
	*slot = entry;
	t->len++;
}

void table_remove(struct table *t, struct entry *entry)
{
	for (struct entry **at = slot_of(t->slots, t->size, entry->id); *at != NULL; at = &(*at)->hash_next) {
		if (*at == entry) {
			*at = entry->hash_next;
			t->len--;
			return;
		}
	}
}

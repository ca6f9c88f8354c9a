#include "outbox/id_table.h"

#define FIRST_SIZE 64
#define STEP 16 /* slots that it grows by */

static struct entry **slot_at(const struct id_table *t, size_t i)
{
	return tiers_at(&t->slots, i, sizeof(struct entry *));
}

/*
 * A slot at or above `half` was split from the one `half` below, by one more bit of the hash; where that has still to be
 * done, all of both is in the lower one.
 */
static struct entry **slot_of(const struct id_table *t, uint64_t id)
{
	/* Ids may be consecutive or differ in high bits alone: a multiplication spreads both. */
	uint64_t h = ((id ^ (id >> 32)) * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
	size_t at = h & (2 * t->half - 1);

	return slot_at(t, at < t->size ? at : at - t->half);
}

/* The next slot in turn gives what belongs there to a new one. */
static void split(struct id_table *t)
{
	struct entry **old = slot_at(t, t->size - t->half), *entry = *old;

	*old = NULL;
	*slot_at(t, t->size++) = NULL;
	while (entry != NULL) {
		struct entry *next = entry->hash_next;
		struct entry **slot = slot_of(t, entry->id);

		entry->hash_next = *slot;
		*slot = entry;
		entry = next;
	}
	if (t->size == 2 * t->half) {
		t->half = t->size;
	}
}

static void grow(struct id_table *t)
{
	if (t->size + STEP > t->slots.room && !tiers_grow(&t->slots, sizeof(struct entry *), SIZE_MAX)) {
		return;
	}
	t->wants_tier = t->wants_tier || t->size == t->slots.room / 4 * 3 / STEP * STEP;
	/* Entries that were not looked at for long are fetched all at once, not one after the other. */
	for (size_t i = 0; i < STEP; i++) {
		__builtin_prefetch(*slot_at(t, t->size - t->half + i), 1);
	}
	for (size_t i = 0; i < STEP; i++) {
		split(t);
	}
}

bool id_table_init(struct id_table *t)
{
	*t = (struct id_table){ .size = FIRST_SIZE, .half = FIRST_SIZE };
	while (t->slots.room < FIRST_SIZE) {
		if (!tiers_grow(&t->slots, sizeof(struct entry *), SIZE_MAX)) {
			id_table_free(t);
			return false;
		}
	}
	for (size_t i = 0; i < FIRST_SIZE; i++) {
		*slot_at(t, i) = NULL;
	}
	return true;
}

void id_table_free(struct id_table *t)
{
	tiers_free(&t->slots);
}

struct entry *id_table_find(const struct id_table *t, uint64_t id)
{
	struct entry *entry = *slot_of(t, id);

	while (entry != NULL && entry->id != id) {
		entry = entry->hash_next;
	}
	return entry;
}

void id_table_insert(struct id_table *t, struct entry *entry)
{
	struct entry **slot;

	if (t->len >= t->size) {
		grow(t);
	}
	slot = slot_of(t, entry->id);
	entry->hash_next = *slot;
	*slot = entry;
	t->len++;
}

void id_table_remove(struct id_table *t, struct entry *entry)
{
	for (struct entry **at = slot_of(t, entry->id); *at != NULL; at = &(*at)->hash_next) {
		if (*at == entry) {
			*at = entry->hash_next;
			t->len--;
			return;
		}
	}
}

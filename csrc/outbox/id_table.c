#include "outbox/id_table.h"

#define FIRST_SIZE 64
#define STEP 16 /* slots that it grows by */

static struct id_slot *slot_at(const struct id_table *t, size_t i)
{
	return tiers_at(&t->slots, i, sizeof(struct id_slot));
}

/* Ids may be consecutive or differ in high bits alone: a multiplication spreads both. */
static uint32_t hash_of(uint64_t id)
{
	return (uint32_t)(((id ^ (id >> 32)) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Uses other bits of the hash than the slot's number does, if there are fewer than 2^26 slots. */
static uint64_t mark_of(uint64_t id)
{
	return UINT64_C(1) << (hash_of(id) >> 26);
}

/*
 * A slot at or above `half` was split from the one `half` below, by one more bit of the hash. If it was not split yet,
 * the entries of both are in the lower one.
 */
static struct id_slot *slot_of(const struct id_table *t, uint64_t id)
{
	const size_t at = hash_of(id) & (2 * t->half - 1);

	return slot_at(t, at < t->size ? at : at - t->half);
}

static void put_first(struct id_slot *slot, struct entry *entry)
{
	entry->hash_next = slot->first;
	slot->first = entry;
	slot->marks |= mark_of(entry->id);
}

/* Splits the next slot: moves entries to a new slot. */
static void split(struct id_table *t)
{
	struct id_slot *old = slot_at(t, t->size - t->half);
	struct entry *entry = old->first;

	*old = *slot_at(t, t->size++) = (struct id_slot){ NULL, 0 };
	while (entry != NULL) {
		struct entry *next = entry->hash_next;

		put_first(slot_of(t, entry->id), entry);
		entry = next;
	}
	if (t->size == 2 * t->half) {
		t->half = t->size;
	}
}

static void grow(struct id_table *t)
{
	if (t->size + STEP > t->slots.room && !tiers_grow(&t->slots, sizeof(struct id_slot), SIZE_MAX)) {
		return;
	}
	t->wants_tier = t->wants_tier || t->size == t->slots.room / 4 * 3 / STEP * STEP;
	/* Prefetches entries that are probably in no cache, so that the fetches overlap. */
	for (size_t i = 0; i < STEP; i++) {
		mem_prefetch(slot_at(t, t->size - t->half + i)->first);
	}
	for (size_t i = 0; i < STEP; i++) {
		split(t);
	}
}

bool id_table_init(struct id_table *t)
{
	*t = (struct id_table){ .size = FIRST_SIZE, .half = FIRST_SIZE };
	while (t->slots.room < FIRST_SIZE) {
		if (!tiers_grow(&t->slots, sizeof(struct id_slot), SIZE_MAX)) {
			id_table_free(t);
			return false;
		}
	}
	for (size_t i = 0; i < FIRST_SIZE; i++) {
		*slot_at(t, i) = (struct id_slot){ NULL, 0 };
	}
	return true;
}

void id_table_free(struct id_table *t)
{
	tiers_free(&t->slots);
}

struct entry *id_table_find(const struct id_table *t, uint64_t id)
{
	const struct id_slot *slot = slot_of(t, id);
	struct entry *entry = (slot->marks & mark_of(id)) == 0 ? NULL : slot->first;

	while (entry != NULL && entry->id != id) {
		entry = entry->hash_next;
	}
	return entry;
}

void id_table_insert(struct id_table *t, struct entry *entry)
{
	if (t->len >= t->size) {
		grow(t);
	}
	put_first(slot_of(t, entry->id), entry);
	t->len++;
}

void id_table_remove(struct id_table *t, struct entry *entry)
{
	struct id_slot *slot = slot_of(t, entry->id);

	for (struct entry **at = &slot->first; *at != NULL; at = &(*at)->hash_next) {
		if (*at == entry) {
			*at = entry->hash_next;
			t->len--;
			break;
		}
	}
	if (slot->first == NULL) {
		slot->marks = 0;
	}
}

#include "outbox/outbox_inner.h"

static struct entry *newer_than(const struct ages *ages, const struct entry *entry)
{
	return entry == NULL ? ages->oldest : entry->newer;
}

/* Puts the entry where its last occurrence says. The search begins at `older`; NULL: at the oldest. */
static void age_insert(struct ages *ages, struct entry *entry, struct entry *older)
{
	struct entry *newer;

	while (older != NULL && older->last > entry->last) {
		older = older->older;
	}
	while ((newer = newer_than(ages, older)) != NULL && newer->last <= entry->last) {
		older = newer;
	}
	entry->older = older;
	entry->newer = newer;
	*(older == NULL ? &ages->oldest : &older->newer) = entry;
	*(newer == NULL ? &ages->newest : &newer->older) = entry;
}

static void age_remove(struct ages *ages, struct entry *entry)
{
	if (ages->restored == entry) {
		ages->restored = entry->older;
	}
	if (entry->older == NULL) {
		ages->oldest = entry->newer;
	} else {
		entry->older->newer = entry->newer;
	}
	if (entry->newer == NULL) {
		ages->newest = entry->older;
	} else {
		entry->newer->older = entry->older;
	}
}

void pending_touch_age(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence)
{
	bool important = entry->important || occurrence->important;

	entry->last = occurrence->now;
	if (important == entry->important && entry->newer == NULL) {
		return;
	}
	age_remove(&ob->ages[entry->important], entry);
	entry->important = important;
	age_insert(&ob->ages[important], entry, ob->ages[important].newest);
}

void pending_take_age(struct outbox *ob, struct entry *entry, struct entry *follow_up)
{
	struct ages *ages = &ob->ages[follow_up->important];

	age_remove(&ob->ages[entry->important], entry);
	entry->important = follow_up->important;
	entry->last = follow_up->last;
	entry->older = follow_up;
	entry->newer = follow_up->newer;
	if (entry->newer == NULL) {
		ages->newest = entry;
	} else {
		entry->newer->older = entry;
	}
	follow_up->newer = entry;
}

size_t outbox_item_bytes(const struct outbox *ob, const void *item)
{
	return ENTRY_BYTES + ob->ops.size(item);
}

void pending_recount_bytes(struct outbox *ob, struct entry *entry)
{
	size_t bytes = outbox_item_bytes(ob, entry->item);

	ob->stats.bytes += bytes - entry->bytes;
	entry->bytes = bytes;
}

static void add(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence, struct entry *older)
{
	entry->important = occurrence->important;
	entry->last = occurrence->now;
	age_insert(&ob->ages[entry->important], entry, older);
	ob->stats.writes++;
	ob->stats.bytes += entry->bytes;
}

void pending_add(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence)
{
	add(ob, entry, occurrence, ob->ages[occurrence->important].newest);
}

void pending_add_restored(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence)
{
	struct ages *ages = &ob->ages[occurrence->important];

	add(ob, entry, occurrence, ages->restored);
	ages->restored = entry;
}

void pending_remove(struct outbox *ob, struct entry *entry)
{
	age_remove(&ob->ages[entry->important], entry);
	rows_remove(ob, entry);
	ob->stats.writes--;
	ob->stats.bytes -= entry->bytes;
}

bool outbox_at_rest(struct outbox *ob)
{
	bool at_rest;

	(void)pthread_mutex_lock(&ob->lock);
	at_rest = outbox_idle(ob) && ob->deferred_len == 0 && !outbox_has_news(ob);
	(void)pthread_mutex_unlock(&ob->lock);
	return at_rest;
}

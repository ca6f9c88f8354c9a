#include "outbox/outbox_inner.h"

bool deferred_reserve(struct outbox *ob)
{
	return heap_reserve(&ob->deferred, ob->deferred_len + 1);
}

void deferred_add(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence)
{
	entry->deferred = true;
	entry->important = occurrence->important;
	entry->last = occurrence->now;
	entry->due = occurrence->due;
	ob->deferred_len++;
}

void deferred_follow(struct outbox *ob, struct entry *entry)
{
	entry_enter(entry, ENTRY_FOLLOWING);
	list_append(&ob->deferred_following, entry);
}

void deferred_wait(struct outbox *ob, struct entry *entry)
{
	if (entry->state == ENTRY_FOLLOWING) {
		list_remove(&ob->deferred_following, entry);
	}
	entry_enter(entry, ENTRY_DEFERRED);
	heap_push(&ob->deferred, entry);
}

void deferred_fold(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence)
{
	entry->important = entry->important || occurrence->important;
	if (occurrence->due == 0 || (entry->due <= occurrence->now && occurrence->now < occurrence->due)) {
		deferred_end(ob, entry, occurrence->now);
		return;
	}
	entry->last = occurrence->now;
	if (entry->state == ENTRY_DEFERRED) {
		heap_remove(&ob->deferred, entry);
		entry->due = occurrence->due;
		heap_push(&ob->deferred, entry);
	} else {
		entry->due = occurrence->due;
	}
}

/* The entry, removed from the lists of deferred ones, becomes pending. */
static void become_pending(struct outbox *ob, struct entry *entry, int64_t now)
{
	const struct occurrence now_pending = { .important = entry->important,
		                                .now = now > entry->last ? now : entry->last };

	entry->deferred = false;
	ob->deferred_len--;
	ob->stats.counted -= entry->count;
	ob->stats.pending += entry->count;
	entry->bytes = outbox_item_bytes(ob, entry->item);
	pending_add(ob, entry, &now_pending);
}

void deferred_end(struct outbox *ob, struct entry *entry, int64_t now)
{
	if (entry->state == ENTRY_FOLLOWING) {
		list_remove(&ob->deferred_following, entry);
	} else {
		heap_remove(&ob->deferred, entry);
		entry_enter(entry, ENTRY_WAITING);
		waiting_append(ob, entry, now);
	}
	become_pending(ob, entry, now);
}

void deferred_end_all(struct outbox *ob)
{
	struct entry *entry;

	while ((entry = ob->deferred_following.head) != NULL || (entry = heap_top(&ob->deferred)) != NULL) {
		deferred_end(ob, entry, ob->now);
	}
}

int64_t deferred_due(const struct outbox *ob)
{
	const struct entry *top = heap_top(&ob->deferred);

	return top == NULL ? INT64_MAX : top->due;
}

int64_t deferred_look(const struct outbox *ob)
{
	int64_t look = deferred_due(ob), row = rows_first_due(ob);

	return row < look ? row : look;
}

/* The entry became due, or was released. */
static void on_time(struct outbox *ob, struct entry *entry, int64_t now)
{
	if (ob->ops.on_time != NULL) {
		ob->ops.on_time(entry->item);
		rows_change(ob, entry, now);
		journal_change(ob, entry);
	}
}

struct entry *deferred_take(struct outbox *ob, int64_t now)
{
	struct entry *entry = heap_pop(&ob->deferred);

	on_time(ob, entry, now);
	entry_enter(entry, ENTRY_WAITING);
	become_pending(ob, entry, now);
	return entry;
}

void outbox_release_all(struct outbox *ob, int64_t now)
{
	size_t waited;

	(void)pthread_mutex_lock(&ob->lock);
	ob->now = now;
	waited = ob->gather.len;
	deferred_end_all(ob);
	waiting_end(ob, now);
	outbox_unlock_and_wake(ob, waiting_needs_driver(ob, waited));
}

void outbox_release(struct outbox *ob, uint64_t id, int64_t now)
{
	struct entry *entry;
	size_t waited;

	(void)pthread_mutex_lock(&ob->lock);
	waited = ob->gather.len;
	entry = id_table_find(&ob->table, id);
	if (entry != NULL && entry->follow_up != NULL) {
		entry = entry->follow_up;
	}
	if (entry != NULL && entry->deferred) {
		on_time(ob, entry, now);
		deferred_end(ob, entry, now);
	}
	outbox_unlock_and_wake(ob, waiting_needs_driver(ob, waited));
}

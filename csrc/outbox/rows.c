#include "outbox/outbox_inner.h"

/*
 * The first entry whose row is due. If a follow-up is due, returns the entry that it follows; but if that entry has a
 * row, which includes the follow-up, skips it. NULL: none.
 */
static struct entry *first_due(struct outbox *ob, int64_t now)
{
	static const enum row_queue order[] = { ROW_QUEUE_IMPORTANT, ROW_QUEUE_NORMAL, ROW_QUEUE_CHANGED };

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		struct entry *entry;

		while ((entry = ob->row_queues[order[i]].head) != NULL && entry->row_due <= now) {
			struct entry *followed;

			if (entry->state != ENTRY_FOLLOWING) {
				return entry;
			}
			followed = id_table_find(&ob->table, entry->id);
			if (followed->row == 0) {
				return followed;
			}
			rows_remove(ob, entry);
		}
	}
	return NULL;
}

/*
 * A copy of the item with the occurrences of the entry and of its follow-up, which stay unchanged, as the entry is in
 * flight. NULL: no memory.
 */
static void *copy_both(const struct outbox *ob, const struct entry *entry)
{
	void *copy = ob->ops.copy(entry->item);

	if (copy != NULL && entry->follow_up != NULL && !ob->ops.merge(copy, entry->follow_up->item)) {
		ob->ops.free(copy);
		return NULL;
	}
	return copy;
}

/* ---- occurrences of other processes, which need not keep them once a row has them ---- */

/*
 * Returns the receipts of the occurrences in the written row, in an entry without an item; if there is no memory, with
 * the next row.
 */
static void settle_in_row(struct outbox *ob, struct entry *entry)
{
	struct entry *spooled = receipts_any_in_row(entry->receipts) ? entry_make_for(ob, NULL) : NULL;

	if (spooled == NULL) {
		return;
	}
	receipts_take_spooled(&entry->receipts, &spooled->receipts);
	spooled->id = entry->id;
	spooled->spooled = true;
	entry_enter(spooled, ENTRY_ANSWERED);
	list_append(&ob->answered, spooled);
	atomic_store_explicit(&ob->news, true, memory_order_relaxed);
}

static void settle_both(struct outbox *ob, struct entry *entry)
{
	settle_in_row(ob, entry);
	if (entry->follow_up != NULL) {
		settle_in_row(ob, entry->follow_up);
	}
}

static void mark_both(const struct entry *entry, bool in_row)
{
	receipts_mark_in_row(entry->receipts, in_row);
	if (entry->follow_up != NULL) {
		receipts_mark_in_row(entry->follow_up->receipts, in_row);
	}
}

enum outbox_row_found outbox_next_row(struct outbox *ob, int64_t now, int64_t number, struct outbox_row *row)
{
	enum outbox_row_found found = OUTBOX_NO_ROW;
	struct entry *entry;
	void *item = NULL;

	(void)pthread_mutex_lock(&ob->lock);
	entry = first_due(ob, now);
	if (entry != NULL) {
		item = rows_reserve(ob) ? copy_both(ob, entry) : NULL;
		found = item == NULL ? OUTBOX_NO_MEMORY : OUTBOX_ROW;
	}
	if (found == OUTBOX_ROW) {
		if (entry->row == 0) {
			entry->row = -number;
			ob->rows_own++;
		}
		rows_remove(ob, entry);
		rows_append(ob, entry, ROW_QUEUE_WRITING);
		entry_describe(entry, row);
		row->item = item;
		/* Remaining marks are of an earlier row, which is in the file: the entry has changed since. */
		settle_both(ob, entry);
		mark_both(entry, true);
		journal_change(ob, entry);
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return found;
}

void outbox_rows_written(struct outbox *ob, bool ok)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	for (entry = ob->row_queues[ROW_QUEUE_CHANGED].head; entry != NULL && !ok; entry = entry->row_next) {
		mark_both(entry, false);
	}
	while ((entry = ob->row_queues[ROW_QUEUE_WRITING].tail) != NULL) {
		rows_remove(ob, entry);
		if (ok) {
			settle_both(ob, entry);
		} else {
			mark_both(entry, false);
			rows_prepend(ob, entry, entry->important ? ROW_QUEUE_IMPORTANT : ROW_QUEUE_NORMAL);
		}
	}
	(void)pthread_mutex_unlock(&ob->lock);
}

static void lose_row(struct outbox *ob, struct entry *entry, bool own)
{
	if ((own ? entry->row < 0 : entry->row > 0) &&
	    (entry->row_queue == ROW_QUEUE_NONE || entry->row_queue == ROW_QUEUE_CHANGED)) {
		rows_remove(ob, entry);
		entry->row_due = INT64_MIN;
		rows_prepend(ob, entry, entry->important ? ROW_QUEUE_IMPORTANT : ROW_QUEUE_NORMAL);
	}
}

void outbox_rows_lost(struct outbox *ob, bool own)
{
	(void)pthread_mutex_lock(&ob->lock);
	for (int important = 0; important < 2; important++) {
		for (struct entry *entry = ob->ages[important].oldest; entry != NULL; entry = entry->newer) {
			lose_row(ob, entry, own);
		}
	}
	for (size_t i = 0; i < ob->deferred.len; i++) {
		lose_row(ob, heap_at(&ob->deferred, i), own);
	}
	(void)pthread_mutex_unlock(&ob->lock);
}

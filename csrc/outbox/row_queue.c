#include "outbox/outbox_inner.h"

/* How long a row may be behind its entry. */
#define CHANGE_WAITS (EVREC_SECOND / 4)
#define LOOK_MIN (EVREC_SECOND / 100) /* between two searches for entries without a row */

void rows_append(struct outbox *ob, struct entry *entry, enum row_queue queue)
{
	struct row_list *list = &ob->row_queues[queue];

	entry->row_queue = queue;
	entry->row_next = NULL;
	entry->row_prev = list->tail;
	*(list->tail == NULL ? &list->head : &list->tail->row_next) = entry;
	list->tail = entry;
}

void rows_prepend(struct outbox *ob, struct entry *entry, enum row_queue queue)
{
	struct row_list *list = &ob->row_queues[queue];

	entry->row_queue = queue;
	entry->row_prev = NULL;
	entry->row_next = list->head;
	*(list->head == NULL ? &list->tail : &list->head->row_prev) = entry;
	list->head = entry;
}

void rows_remove(struct outbox *ob, struct entry *entry)
{
	struct row_list *list = &ob->row_queues[entry->row_queue];

	if (entry->row_queue == ROW_QUEUE_NONE) {
		return;
	}
	*(entry->row_prev == NULL ? &list->head : &entry->row_prev->row_next) = entry->row_next;
	*(entry->row_next == NULL ? &list->tail : &entry->row_next->row_prev) = entry->row_prev;
	entry->row_queue = ROW_QUEUE_NONE;
}

void rows_add(struct outbox *ob, struct entry *entry, int64_t now)
{
	if (ob->rows_after != INT64_MAX) {
		entry->row_due = time_after(now, ob->rows_after);
		rows_append(ob, entry, entry->important ? ROW_QUEUE_IMPORTANT : ROW_QUEUE_NORMAL);
	}
}

void rows_queue_change(struct outbox *ob, struct entry *entry, int64_t now)
{
	if (entry->row_queue == ROW_QUEUE_NONE || entry->row_queue == ROW_QUEUE_WRITING) {
		rows_remove(ob, entry);
		entry->row_due = time_after(now, CHANGE_WAITS);
		rows_append(ob, entry, ROW_QUEUE_CHANGED);
	}
}

bool rows_reserve(struct outbox *ob)
{
	size_t need = ob->rows_waiting + ob->rows_own + ob->rows_answered_len + 1;
	size_t cap = ob->rows_cap < 64 ? 64 : ob->rows_cap;
	struct answered_row *rows;

	if (need <= ob->rows_cap) {
		return true;
	}
	while (cap < need) {
		cap *= 2;
	}
	rows = mem_realloc(ob->rows_answered, cap * sizeof(*rows));
	if (rows == NULL) {
		return false;
	}
	ob->rows_answered = rows;
	ob->rows_cap = cap;
	return true;
}

void outbox_write_rows_after(struct outbox *ob, int64_t after)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->rows_after = after;
	(void)pthread_mutex_unlock(&ob->lock);
}

int64_t rows_first_due(const struct outbox *ob)
{
	int64_t due = INT64_MAX;

	for (enum row_queue queue = ROW_QUEUE_NORMAL; queue <= ROW_QUEUE_CHANGED; queue++) {
		const struct entry *head = ob->row_queues[queue].head;

		if (head != NULL && head->row_due < due) {
			due = head->row_due;
		}
	}
	return due;
}

/*
 * The driver is not woken if an entry changes, or is added to waiting ones. So while entries are pending, it checks
 * every `rows_after` for entries that need a row; and if some have rows, every CHANGE_WAITS for changes that are not in
 * their rows. Deferred entries need no check: the driver is woken if one of them changes.
 */
int64_t outbox_rows_due(struct outbox *ob, int64_t now)
{
	const int64_t look = ob->rows_after < LOOK_MIN ? LOOK_MIN : ob->rows_after;
	int64_t due;

	(void)pthread_mutex_lock(&ob->lock);
	due = rows_first_due(ob);
	if (ob->stats.writes != 0 && time_after(now, look) < due) {
		due = time_after(now, look);
	}
	if (ob->stats.writes != 0 && ob->rows_own != 0 && time_after(now, CHANGE_WAITS) < due) {
		due = time_after(now, CHANGE_WAITS);
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return due;
}

#include "outbox/outbox_inner.h"

#define ROWS_AT_ONCE 32

void outbox_expect(struct outbox *ob, bool more)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->keeps = ob->keeps || more;
	ob->more = more;
	(void)pthread_cond_broadcast(&ob->progress);
	(void)pthread_mutex_unlock(&ob->lock);
}

bool outbox_awaits_rows(struct outbox *ob)
{
	bool awaits;

	(void)pthread_mutex_lock(&ob->lock);
	awaits = ob->more || ob->rows_waiting != 0;
	(void)pthread_mutex_unlock(&ob->lock);
	return awaits;
}

void outbox_send_rows_first(struct outbox *ob)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->rows_first = ob->rows_were_first = true;
	ob->rows_until = INT64_MIN;
	(void)pthread_mutex_unlock(&ob->lock);
}

bool outbox_sends_rows_first(struct outbox *ob)
{
	bool first;

	(void)pthread_mutex_lock(&ob->lock);
	first = ob->rows_first;
	(void)pthread_mutex_unlock(&ob->lock);
	return first;
}

/* The entry waits to be taken, or queues behind an earlier row of its event. */
static void enqueue_row(struct outbox *ob, struct entry *entry)
{
	struct entry *first = id_table_find(&ob->table, entry->id);

	if (first != NULL && first->state != ENTRY_ANSWERED) {
		entry_enter(entry, ENTRY_QUEUED);
		list_append(&first->rows_behind, entry);
	} else {
		outbox_enter_table(ob, entry, first);
		waiting_append(ob, entry, INT64_MIN);
	}
}

static void find_room(const struct outbox *ob, struct outbox_rows *rows)
{
	/* If rows go first, held entries must not take the room for them. */
	const unsigned part = ob->rows_first ? 1 : 2;
	const size_t writes = (ob->limits.max_pending + part - 1) / part;
	const size_t bytes = (ob->limits.max_pending_bytes + part - 1) / part;
	size_t room;

	rows->room = rows->room_bytes = 0;
	if (!ob->more || ob->closed || ob->stats.writes >= writes || ob->stats.bytes >= bytes) {
		return;
	}
	room = writes - (size_t)ob->stats.writes;
	/* While rows wait to be sent, reads the next ones in large transactions. */
	if (room >= (writes / 4 < ROWS_AT_ONCE ? writes / 4 : ROWS_AT_ONCE) || ob->rows_waiting == 0) {
		rows->room = room;
		rows->room_bytes = ob->limits.max_pending_bytes - (size_t)ob->stats.bytes;
	}
}

void outbox_get_rows(struct outbox *ob, struct outbox_rows *rows)
{
	(void)pthread_mutex_lock(&ob->lock);
	if (ob->closed) {
		ob->more = false;
	}
	find_room(ob, rows);
	rows->waiting = ob->rows_waiting;
	rows->answered = ob->rows_answered_len;
	rows->own = ob->rows_own;
	rows->answered_at = ob->rows_answered_at;
	rows->kept = ob->kept_len;
	rows->closed = ob->closed;
	(void)pthread_mutex_unlock(&ob->lock);
}

void outbox_leave_rows(struct outbox *ob)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->rows_stay = true;
	(void)pthread_mutex_unlock(&ob->lock);
}

/* A row drops no entry to make room: it is refused if submitted entries took the room since outbox_get_rows. */
static bool may_restore(struct outbox *ob, size_t bytes)
{
	return !ob->closed && ob->stats.writes < ob->limits.max_pending &&
	       ob->stats.bytes + bytes <= ob->limits.max_pending_bytes && rows_reserve(ob) &&
	       backoff_reserve(&ob->backoff, (size_t)ob->stats.writes + ob->deferred_len + 1);
}

/*
 * An entry of this process may overtake a row, and create its event. Its count comes from the state file, and includes the
 * row's. So a conflict of the row's create is a success. If the name is that of another client's event, the row is lost;
 * that is rarer, as names contain nanoseconds.
 */
static void set_doubts(const struct outbox *ob, struct entry *entry, const struct outbox_saved *saved)
{
	if (saved->verb == VERB_PATCH) {
		entry->maybe_late = saved->maybe_received != 0;
		entry->known = true;
	} else if (ob->rows_were_first && saved->maybe_received == 0) {
		entry->maybe_received = saved->count;
	} else {
		entry->maybe_received = saved->maybe_received;
	}
}

static bool restore(struct outbox *ob, const struct outbox_saved *saved)
{
	const struct occurrence occurrence = { .important = saved->important, .now = saved->last };
	size_t bytes = outbox_item_bytes(ob, saved->item);
	struct entry *entry;

	if (!may_restore(ob, bytes)) {
		return false;
	}
	entry = entry_make_for(ob, saved->item);
	if (entry == NULL) {
		return false;
	}
	entry->id = ENTRY_RESTORED | (saved->event != 0 ? saved->event : (uint64_t)saved->row);
	entry->verb = saved->verb;
	entry->count = saved->count;
	set_doubts(ob, entry, saved);
	entry->row = saved->row;
	entry->bytes = bytes;
	pending_add_restored(ob, entry, &occurrence);
	enqueue_row(ob, entry);
	ob->rows_waiting++;
	ob->stats.submitted += entry->count;
	ob->stats.restored += entry->count;
	ob->stats.pending += entry->count;
	return true;
}

bool outbox_restore(struct outbox *ob, const struct outbox_saved *saved)
{
	bool restored;

	(void)pthread_mutex_lock(&ob->lock);
	restored = restore(ob, saved);
	(void)pthread_mutex_unlock(&ob->lock);
	if (!restored) {
		ob->ops.free(saved->item);
	}
	return restored;
}

size_t outbox_max_bytes(const struct outbox *ob)
{
	return ob->limits.max_pending_bytes;
}

void outbox_discard(const struct outbox *ob, void *item)
{
	ob->ops.free(item);
}

size_t outbox_get_answered_rows(struct outbox *ob, size_t from, int64_t *rows, size_t max)
{
	size_t n;

	(void)pthread_mutex_lock(&ob->lock);
	n = ob->rows_answered_len - from < max ? ob->rows_answered_len - from : max;
	for (size_t i = 0; i < n; i++) {
		rows[i] = ob->rows_answered[from + i].row;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return n;
}

void outbox_rows_forgotten(struct outbox *ob, size_t n)
{
	(void)pthread_mutex_lock(&ob->lock);
	for (size_t i = 0; i < n; i++) {
		if (ob->rows_answered[i].note != 0) {
			ob->journal->forget(ob->journal, ob->rows_answered[i].note);
		}
	}
	ob->rows_answered_len -= n;
	if (n != 0) {
		memmove(ob->rows_answered, ob->rows_answered + n, ob->rows_answered_len * sizeof(*ob->rows_answered));
	}
	(void)pthread_mutex_unlock(&ob->lock);
}

/*
 * The important ones first, as the file may not have room for all; each kind by age, which the next outbox inserts
 * fastest.
 */
static void sort_kept(struct outbox *ob)
{
	ob->kept = (struct entry_list){ NULL, NULL };
	for (int important = 1; important >= 0; important--) {
		for (struct entry *entry = ob->ages[important].oldest; entry != NULL; entry = entry->newer) {
			list_append(&ob->kept, entry);
		}
	}
}

void outbox_keep_all_for_spool(struct outbox *ob)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	ob->closed = true;
	ob->more = false;
	deferred_end_all(ob);
	while ((entry = list_shift(&ob->in_flight)) != NULL) {
		ob->stats.in_flight--;
		if (entry->state == ENTRY_GIVEN_UP) {
			outbox_settle(ob, entry);
			continue;
		}
		if (entry->verb == VERB_PATCH) {
			entry->maybe_late = true;
		} else if (entry->maybe_received == 0) {
			entry->maybe_received = entry->count;
		}
		outbox_keep_for_spool(ob, entry);
	}
	while ((entry = backoff_pop(&ob->backoff)) != NULL || (entry = list_shift(&ob->held)) != NULL) {
		outbox_keep_for_spool(ob, entry);
	}
	while ((entry = waiting_shift(ob)) != NULL) {
		outbox_keep_for_spool(ob, entry);
	}
	sort_kept(ob);
	(void)pthread_cond_broadcast(&ob->progress);
	(void)pthread_mutex_unlock(&ob->lock);
}

const struct entry *outbox_next_kept(const struct outbox *ob, const struct entry *entry)
{
	return entry == NULL ? ob->kept.head : entry->next;
}

void outbox_defer_kept(struct outbox *ob)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	entry = list_shift(&ob->kept);
	if (entry != NULL) {
		list_append(&ob->kept, entry);
	}
	(void)pthread_mutex_unlock(&ob->lock);
}

static void count_spooled(struct outbox *ob, struct entry *entry)
{
	ob->stats.spooled += entry->count;
	ob->stats.pending -= entry->count;
	pending_remove(ob, entry);
	ob->rows_waiting -= entry->row > 0;
	ob->rows_own -= entry->row < 0;
	ob->kept_len--;
	journal_forget(ob, entry);
	id_table_remove(&ob->table, entry);
}

static void free_spooled(struct outbox *ob, struct entry *entry)
{
	count_spooled(ob, entry);
	if (entry->receipts == NULL) {
		entry_free(ob, entry);
		return;
	}
	entry_free_item(ob, entry);
	entry->spooled = true;
	entry_enter(entry, ENTRY_ANSWERED);
	list_append(&ob->answered, entry);
	atomic_store_explicit(&ob->news, true, memory_order_relaxed);
}

void outbox_spool_rows(struct outbox *ob)
{
	struct entry *entry, *next;

	(void)pthread_mutex_lock(&ob->lock);
	for (entry = ob->kept.head; entry != NULL; entry = next) {
		next = entry->next;
		if (entry->row != 0 && entry->row_queue == ROW_QUEUE_NONE) {
			list_remove(&ob->kept, entry);
			free_spooled(ob, entry);
		}
	}
	(void)pthread_mutex_unlock(&ob->lock);
}

void outbox_spooled(struct outbox *ob, const struct entry *last)
{
	struct entry *entry;
	bool done = false;

	(void)pthread_mutex_lock(&ob->lock);
	while (!done && (entry = list_shift(&ob->kept)) != NULL) {
		done = entry == last;
		free_spooled(ob, entry);
	}
	(void)pthread_cond_broadcast(&ob->progress);
	(void)pthread_mutex_unlock(&ob->lock);
}

#include "deliver/outbox_inner.h"

/* Ids of the lane's own have this bit clear: they count up to it from 1. */
#define RESTORED (UINT64_C(1) << 63)
#define AT_ONCE 256 /* rows */

void outbox_expect(struct outbox *ob, bool more)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->keeps = ob->keeps || more;
	ob->more = more;
	(void)pthread_cond_broadcast(&ob->progress);
	(void)pthread_mutex_unlock(&ob->lock);
}

static void find_room(const struct outbox *ob, struct outbox_rows *rows)
{
	const size_t writes = (ob->limits.max_pending + 1) / 2, bytes = (ob->limits.max_pending_bytes + 1) / 2;
	size_t room;

	rows->room = rows->room_bytes = 0;
	if (!ob->more || ob->closed || ob->stats.writes >= writes || ob->stats.bytes >= bytes) {
		return;
	}
	room = writes - (size_t)ob->stats.writes;
	/* A turn of the disk for many at once, as long as there are some to send. */
	if (room >= (writes / 4 < AT_ONCE ? writes / 4 : AT_ONCE) || ob->rows_waiting == 0) {
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
	rows->left = ob->left_len;
	(void)pthread_mutex_unlock(&ob->lock);
}

/* Room for every row that waits to be answered one day. */
static bool reserve_row(struct outbox *ob)
{
	size_t need = ob->rows_waiting + ob->rows_answered_len + 1, cap = ob->rows_cap < 64 ? 64 : ob->rows_cap;
	int64_t *rows;

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

/* Nobody has to go for it: where others took the room meanwhile, it stays in the file. */
static bool may_restore(struct outbox *ob, size_t bytes)
{
	return !ob->closed && ob->stats.writes < ob->limits.max_pending &&
	       ob->stats.bytes + bytes <= ob->limits.max_pending_bytes && reserve_row(ob) &&
	       backoff_reserve(&ob->backoff, (size_t)ob->stats.writes + 1);
}

static bool restore(struct outbox *ob, const struct outbox_saved *saved)
{
	const struct occurrence occurrence = { .important = saved->important, .now = saved->last };
	size_t bytes = outbox_item_bytes(ob, saved->item);
	struct entry *entry;

	if (!may_restore(ob, bytes)) {
		return false;
	}
	entry = mem_zalloc(sizeof(*entry));
	if (entry == NULL) {
		return false;
	}
	entry->id = RESTORED | (uint64_t)saved->row;
	entry->state = ENTRY_WAITING;
	entry->verb = saved->verb;
	entry->item = saved->item;
	entry->count = saved->count;
	if (saved->verb == VERB_CREATE) {
		entry->arrived = saved->arrived;
		entry->retry.uncertain = saved->arrived != 0;
	} else {
		entry->lingers = saved->arrived != 0;
	}
	entry->row = saved->row;
	entry->bytes = bytes;
	table_insert(&ob->table, entry);
	list_append(&ob->waiting, entry);
	outbox_track_restored(ob, entry, &occurrence);
	ob->rows_waiting++;
	ob->stats.submitted += entry->count;
	ob->stats.restored += entry->count;
	ob->stats.pending += entry->count;
	return true;
}

void outbox_restore(struct outbox *ob, const struct outbox_saved *saved, bool wanted)
{
	bool taken;

	(void)pthread_mutex_lock(&ob->lock);
	taken = wanted && restore(ob, saved);
	(void)pthread_mutex_unlock(&ob->lock);
	if (!taken) {
		ob->ops.free(saved->item);
	}
}

void outbox_row_settled(struct outbox *ob, const struct entry *entry)
{
	if (entry->row == 0) {
		return;
	}
	ob->rows_waiting--;
	/* What nobody has answered stays in the file. */
	if (!entry->dropped || (entry->cause != EVREC_CAUSE_CLOSED && entry->cause != EVREC_CAUSE_MEMORY)) {
		ob->rows_answered[ob->rows_answered_len++] = entry->row;
	}
}

size_t outbox_max_bytes(const struct outbox *ob)
{
	return ob->limits.max_pending_bytes;
}

void outbox_discard(const struct outbox *ob, void *item)
{
	ob->ops.free(item);
}

size_t outbox_take_answered_rows(struct outbox *ob, int64_t *rows, size_t max)
{
	size_t n;

	(void)pthread_mutex_lock(&ob->lock);
	n = ob->rows_answered_len < max ? ob->rows_answered_len : max;
	ob->rows_answered_len -= n;
	if (n != 0) {
		memcpy(rows, ob->rows_answered + ob->rows_answered_len, n * sizeof(*rows));
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return n;
}

static void leave_one(struct outbox *ob, struct entry *entry)
{
	entry->state = ENTRY_LEFT;
	if (entry->verb == VERB_PATCH) {
		entry->arrived = entry->lingers || entry->told != 0 ? entry->count : 0;
	}
	list_append(&ob->left, entry);
	ob->left_len++;
}

void outbox_leave(struct outbox *ob, struct entry *entry)
{
	struct entry *follow_up;

	if (!ob->keeps) {
		outbox_drop(ob, entry, EVREC_CAUSE_CLOSED);
		return;
	}
	outbox_absorb_follow_up(ob, entry);
	follow_up = entry->follow_up;
	entry->follow_up = NULL;
	leave_one(ob, entry);
	/* Two rows of one event could be under way together in the next process. */
	if (follow_up != NULL) {
		outbox_drop(ob, follow_up, EVREC_CAUSE_MEMORY);
	}
}

/* By age, which is how the next process has them quickest in order. What is pending now is what is left. */
static void sort_left(struct outbox *ob)
{
	struct entry *next[] = { ob->ages[false].oldest, ob->ages[true].oldest };

	ob->left = (struct entry_list){ NULL, NULL };
	while (next[false] != NULL || next[true] != NULL) {
		bool important = next[false] == NULL || (next[true] != NULL && next[true]->last < next[false]->last);
		struct entry *entry = next[important];

		next[important] = entry->newer;
		list_append(&ob->left, entry);
	}
}

void outbox_leave_all(struct outbox *ob)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	ob->closed = true;
	ob->more = false;
	while ((entry = list_shift(&ob->in_flight)) != NULL) {
		ob->stats.in_flight--;
		if (entry->given_up) {
			outbox_settle(ob, entry);
			continue;
		}
		if (entry->verb == VERB_PATCH) {
			entry->lingers = true;
		} else if (!entry->retry.uncertain) {
			entry->retry.uncertain = true;
			entry->arrived = entry->count;
		}
		outbox_leave(ob, entry);
	}
	while ((entry = backoff_pop(&ob->backoff)) != NULL) {
		outbox_leave(ob, entry);
	}
	while ((entry = list_shift(&ob->waiting)) != NULL) {
		outbox_leave(ob, entry);
	}
	sort_left(ob);
	(void)pthread_cond_broadcast(&ob->progress);
	(void)pthread_mutex_unlock(&ob->lock);
}

const struct entry *outbox_next_left(const struct outbox *ob, const struct entry *entry)
{
	return entry == NULL ? ob->left.head : entry->next;
}

void outbox_spooled(struct outbox *ob)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	while ((entry = list_shift(&ob->left)) != NULL) {
		ob->stats.spooled += entry->count;
		ob->stats.pending -= entry->count;
		outbox_untrack(ob, entry);
		ob->rows_waiting -= entry->row != 0;
		table_remove(&ob->table, entry);
		ob->ops.free(entry->item);
		mem_free(entry);
	}
	ob->left_len = 0;
	(void)pthread_cond_broadcast(&ob->progress);
	(void)pthread_mutex_unlock(&ob->lock);
}

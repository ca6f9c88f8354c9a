#include "outbox/outbox_inner.h"

void outbox_name_item(struct outbox *ob, struct entry *entry, const char *name)
{
	ob->ops.set_name(entry->item, name);
	if (entry->base != 0 && ob->ops.set_base != NULL) {
		ob->ops.set_base(entry->item, entry->base);
	}
	if (!entry->deferred) {
		pending_recount_bytes(ob, entry);
	}
}

void outbox_inherit(struct outbox *ob, struct entry *entry, const struct entry *from)
{
	if (entry_name(from)[0] != '\0') {
		(void)entry_identify(ob, entry, entry_name(from), "");
		entry->base = from->base;
		outbox_name_item(ob, entry, entry_name(from));
	}
	if (entry->deferred && from->dropped && from->verb == VERB_CREATE && from->maybe_received == 0) {
		entry->verb = VERB_CREATE;
		entry->again = from->again;
		entry->known = false;
	}
}

void outbox_enter_table(struct outbox *ob, struct entry *entry, struct entry *last)
{
	if (last != NULL) {
		outbox_inherit(ob, entry, last);
		id_table_remove(&ob->table, last);
	}
	id_table_insert(&ob->table, entry);
}

void outbox_count_written(struct outbox *ob, struct entry *entry, uint32_t occurrences)
{
	if (occurrences == 0) {
		return;
	}
	if (entry->verb == VERB_CREATE) {
		ob->stats.created++;
	} else {
		ob->stats.patched++;
	}
	ob->stats.coalesced += occurrences - 1;
	ob->stats.pending -= occurrences;
	receipts_written(entry->receipts, occurrences == entry->count);
	entry->count -= occurrences;
	entry->written += occurrences;
}

void outbox_count_dropped(struct outbox *ob, struct entry *entry, enum evrec_cause cause)
{
	pending_remove(ob, entry);
	if (entry->acked != 0) {
		outbox_count_written(ob, entry, entry->acked);
		entry->maybe_late = true;
	}
	ob->stats.dropped[cause] += entry->count;
	ob->uncollected[cause] += entry->count;
	ob->stats.pending -= entry->count;
	entry->dropped = entry->count != 0;
	entry->forgone = entry->count == 0 && entry->written == 0;
	entry->cause = cause;
}

/* The spool can delete the row now. */
static void queue_row_for_deletion(struct outbox *ob, struct entry *entry)
{
	struct answered_row *answered = &ob->rows_answered[ob->rows_answered_len];

	if (ob->rows_answered_len++ == 0) {
		ob->rows_answered_at = ob->now;
	}
	*answered = (struct answered_row){ entry->row, entry->note };
	if (answered->note != 0) {
		ob->journal->note_answered(ob->journal, answered->note);
	}
	entry->note = 0;
}

static void uncount_row(struct outbox *ob, const struct entry *entry)
{
	*(entry->row > 0 ? &ob->rows_waiting : &ob->rows_own) -= 1;
}

/* The row of a settled entry. A row that was dropped without an answer stays in the spool. */
static void settle_row(struct outbox *ob, struct entry *entry)
{
	if (entry->row != 0) {
		uncount_row(ob, entry);
		if (!entry->dropped || (entry->cause != EVREC_CAUSE_CLOSED && entry->cause != EVREC_CAUSE_MEMORY)) {
			queue_row_for_deletion(ob, entry);
		}
	}
	journal_forget(ob, entry);
}

void outbox_end_follow_up(struct outbox *ob, struct entry *entry)
{
	if (entry->row != 0 && entry->count == 0) {
		rows_remove(ob, entry);
		uncount_row(ob, entry);
		queue_row_for_deletion(ob, entry);
		entry->row = 0;
	}
	rows_change(ob, entry, ob->now);
	journal_change(ob, entry);
}

/* The row, which includes the follow-up's occurrences, becomes the row of the follow-up. */
static void hand_over_row(struct outbox *ob, struct entry *entry, struct entry *follow_up)
{
	follow_up->row = entry->row;
	entry->row = 0;
	rows_remove(ob, follow_up);
	rows_change(ob, follow_up, ob->now);
}

/* The follow-up takes the place of its answered entry. */
static void succeed(struct outbox *ob, struct entry *entry, struct entry *follow_up)
{
	outbox_enter_table(ob, follow_up, entry);
	follow_up->maybe_late = entry->maybe_late;
	if (follow_up->deferred) {
		deferred_wait(ob, follow_up);
	} else {
		entry_enter(follow_up, ENTRY_WAITING);
		waiting_append_follow_up(ob, follow_up);
	}
	if (ob->journal != NULL) {
		journal_note(ob, follow_up, true);
	}
}

/* The entry is answered: the first one of its `rows_behind`, of which there is one at least, is taken next. */
static void next_row_goes(struct outbox *ob, struct entry *entry)
{
	struct entry *next = list_shift(&entry->rows_behind);

	next->rows_behind = entry->rows_behind;
	entry->rows_behind = (struct entry_list){ NULL, NULL };
	outbox_enter_table(ob, next, entry);
	entry_enter(next, ENTRY_WAITING);
	waiting_prepend(ob, next);
}

/* Whether the entry was written, and tells the pipeline nothing else. */
static bool is_plain(const struct outbox *ob, const struct entry *entry)
{
	return ob->skips_plain_answers && !entry->dropped && !entry->forgone && entry->identity == NULL &&
	       entry->receipts == NULL;
}

void outbox_settle(struct outbox *ob, struct entry *entry)
{
	struct entry *follow_up = entry->follow_up;

	entry->follow_up = NULL;
	entry_enter(entry, ENTRY_ANSWERED);
	if (!entry->dropped) {
		entry_free_item(ob, entry);
	}
	if (follow_up != NULL) {
		follow_up->note = entry->note;
		entry->note = 0;
	}
	if (follow_up != NULL && follow_up->count != 0 && entry->row != 0) {
		hand_over_row(ob, entry, follow_up);
	}
	settle_row(ob, entry);
	if (follow_up != NULL) {
		succeed(ob, entry, follow_up);
	}
	if (entry->rows_behind.head != NULL) {
		next_row_goes(ob, entry);
	}
	if (is_plain(ob, entry)) {
		id_table_remove(&ob->table, entry);
		entry_free(ob, entry);
		return;
	}
	list_append(&ob->answered, entry);
	atomic_store_explicit(&ob->news, true, memory_order_relaxed);
}

void outbox_drop(struct outbox *ob, struct entry *entry, enum evrec_cause cause)
{
	outbox_count_dropped(ob, entry, cause);
	outbox_settle(ob, entry);
}

void outbox_absorb_follow_up(struct outbox *ob, struct entry *entry)
{
	struct entry *follow_up = entry->follow_up;
	bool first;

	if (follow_up != NULL && ob->ops.merge(entry->item, follow_up->item)) {
		if (follow_up->deferred) {
			deferred_end(ob, follow_up, ob->now);
		}
		first = entry->count == 0 && follow_up->count != 0;
		entry->count += follow_up->count;
		entry->has_own = entry->has_own || follow_up->has_own;
		entry->follow_up = NULL;
		pending_recount_bytes(ob, entry);
		pending_take_age(ob, entry, follow_up);
		pending_remove(ob, follow_up);
		receipts_merge(&entry->receipts, &follow_up->receipts);
		entry_free(ob, follow_up);
		if (first && entry->row == 0) {
			rows_add(ob, entry, ob->now);
		}
		rows_change(ob, entry, ob->now);
		journal_change(ob, entry);
	}
}

void outbox_back_off(struct outbox *ob, struct entry *entry, enum backoff_why why, int64_t delay, int64_t now)
{
	entry_enter(entry, ENTRY_BACKOFF);
	backoff_push(&ob->backoff, entry, why, time_after(now, delay));
}

static void keep(struct outbox *ob, struct entry *entry)
{
	entry_enter(entry, ENTRY_KEPT);
	entry->verb = entry_verb_in_row(entry, entry->count);
	if (entry->verb == VERB_CREATE && entry->again) {
		entry->maybe_received = entry->count;
	} else if (entry->verb == VERB_PATCH) {
		entry->maybe_received = entry->maybe_late || entry->acked != 0 ? entry->count : 0;
	}
	list_append(&ob->kept, entry);
	ob->kept_len++;
	ob->rows_stay = ob->rows_stay || outbox_is_restored(entry);
}

/* Keeps the entry and the rows behind it, which are not sent either, as this one is not answered. */
static void keep_all(struct outbox *ob, struct entry *entry)
{
	struct entry *behind;

	keep(ob, entry);
	while ((behind = list_shift(&entry->rows_behind)) != NULL) {
		keep(ob, behind);
	}
}

void outbox_keep_for_spool(struct outbox *ob, struct entry *entry)
{
	struct entry *follow_up;

	if (!ob->keeps) {
		outbox_drop(ob, entry, EVREC_CAUSE_CLOSED);
		return;
	}
	outbox_absorb_follow_up(ob, entry);
	follow_up = entry->follow_up;
	entry->follow_up = NULL;
	if (entry->count != 0) {
		keep_all(ob, entry);
	} else {
		outbox_drop(ob, entry, EVREC_CAUSE_CLOSED);
	}
	/*
	 * Without memory to merge it, the follow-up is dropped: the next process could send two rows of one event at
	 * once.
	 */
	if (follow_up != NULL) {
		outbox_drop(ob, follow_up, EVREC_CAUSE_MEMORY);
	}
}

#include "outbox/outbox_inner.h"

static struct entry *head_of(const struct outbox *ob, struct entry *entry)
{
	return entry->state == ENTRY_FOLLOWING ? id_table_find(&ob->table, entry->id) : entry;
}

/* Whether other processes record all occurrences of the entry again. */
static bool is_kept_by_others(const struct entry *entry)
{
	const struct entry *follow_up = entry->follow_up;

	return (entry->receipts != NULL || (follow_up != NULL && follow_up->receipts != NULL)) && !entry->has_own &&
	       (follow_up == NULL || !follow_up->has_own);
}

void journal_forget(struct outbox *ob, struct entry *entry)
{
	if (entry->note != 0) {
		ob->journal->forget(ob->journal, entry->note);
		entry->note = 0;
	}
}

void journal_note(struct outbox *ob, struct entry *entry, bool whole)
{
	struct outbox_row row;

	entry = head_of(ob, entry);
	if (entry->row > 0 || entry->state == ENTRY_GIVEN_UP) {
		return;
	}
	entry_describe(entry, &row);
	if (row.count == 0 || is_kept_by_others(entry)) {
		journal_forget(ob, entry);
		return;
	}
	entry->note = ob->journal->note(ob->journal, entry->note, &row, entry->item,
	                                entry->follow_up == NULL ? NULL : entry->follow_up->item, whole);
}

/* Gives the entry a note of the present journal. Its number in the former journal is invalid. */
static void renumber(struct outbox *ob, struct entry *entry, bool is_new)
{
	if (is_new) {
		entry->note = 0;
	}
	if (ob->journal != NULL && entry->state != ENTRY_FOLLOWING && entry->note == 0) {
		journal_note(ob, entry, true);
	}
}

void outbox_set_journal(struct outbox *ob, struct outbox_journal *journal)
{
	bool is_new;

	(void)pthread_mutex_lock(&ob->lock);
	is_new = ob->journal != journal;
	ob->journal = journal;
	if (journal != NULL) {
		journal->renew(journal);
	}
	for (int important = 0; important < 2; important++) {
		for (struct entry *entry = ob->ages[important].oldest; entry != NULL; entry = entry->newer) {
			renumber(ob, entry, is_new);
		}
	}
	for (size_t i = 0; i < ob->deferred.len; i++) {
		renumber(ob, heap_at(&ob->deferred, i), is_new);
	}
	for (size_t i = 0; is_new && i < ob->rows_answered_len; i++) {
		ob->rows_answered[i].note = 0;
	}
	(void)pthread_mutex_unlock(&ob->lock);
}

bool outbox_has_writes(struct outbox *ob)
{
	bool has;

	(void)pthread_mutex_lock(&ob->lock);
	has = ob->stats.writes + ob->deferred_len != 0;
	(void)pthread_mutex_unlock(&ob->lock);
	return has;
}

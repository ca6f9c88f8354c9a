#include "outbox/outbox_inner.h"

/* A held entry is tried again after this time, if nothing has made it due. A probe is usually answered by then. */
#define HELD_MAX EVREC_SECOND

/* At the end, if rows are left to the next process, the held entries are kept for the spool, too. */
static bool keeps_held(const struct outbox *ob)
{
	return ob->rows_first && ob->closed && ob->rows_stay;
}

/* Ends the hold of this process's entries, if no row is left, or its time is up. */
static void check_rows_first(struct outbox *ob, int64_t now)
{
	if (!ob->rows_first || keeps_held(ob)) {
		return;
	}
	if (ob->rows_until == INT64_MIN) {
		ob->rows_until = time_after(now, ROWS_FIRST_FOR);
	}
	if ((!ob->more && ob->rows_waiting == 0) || now >= ob->rows_until) {
		ob->rows_first = false;
	}
}

/* Entries in `held` are to be sent, or kept, before all others. */
static bool held_are_due(const struct outbox *ob)
{
	return ob->held.head != NULL && (!ob->rows_first || keeps_held(ob));
}

/* Whether a deferred entry has been due since before the last occurrence of the first waiting one. */
static bool deferred_goes_first(const struct outbox *ob, int64_t now)
{
	const int64_t due = deferred_due(ob);

	return due <= now && due != INT64_MAX && (ob->waiting.head == NULL || due <= ob->waiting.head->last);
}

/* The entry to send next, taken off its list. */
static struct entry *pick(struct outbox *ob, int64_t now)
{
	/* Entries that back off go first: one may be a row with a lower count than that of a held entry. */
	if (!backoff_empty(&ob->backoff) && (ob->closed || backoff_due(&ob->backoff) <= now)) {
		return backoff_pop(&ob->backoff);
	}
	if (held_are_due(ob)) {
		return list_shift(&ob->held);
	}
	if (deferred_goes_first(ob, now)) {
		return deferred_take(ob, now);
	}
	return waiting_shift(ob);
}

/*
 * The entry may be of the same event as any row. If it were sent first, the row would set its count back, or a create
 * might make a second event.
 */
static void hold(struct outbox *ob, struct entry *entry)
{
	if (keeps_held(ob)) {
		outbox_keep_for_spool(ob, entry);
	} else {
		entry_enter(entry, ENTRY_HELD);
		list_append(&ob->held, entry);
	}
}

/* False: the entry is not sent now; it was dropped, kept or held, or backs off. */
static bool may_go(struct outbox *ob, struct entry *entry, int64_t now)
{
	struct namespace_block *block = NULL;

	if (outbox_too_old(ob, entry, now)) {
		outbox_drop(ob, entry, EVREC_CAUSE_EXPIRED);
		return false;
	}
	if (ob->rows_first && !outbox_is_restored(entry)) {
		hold(ob, entry);
		return false;
	}
	if (ob->blocks.len != 0) {
		block = namespace_blocks_find(&ob->blocks, ob->ops.ns(entry->item), entry->verb);
	}
	if (block == NULL) {
		return true;
	}
	if (time_since(now, block->since) < NAMESPACE_BLOCK_TERM) {
		outbox_drop(ob, entry, block->cause);
		return false;
	}
	if (block->probe != NULL && !ob->closed) {
		outbox_back_off(ob, entry, BACKOFF_HELD, HELD_MAX, now);
		return false;
	}
	block->probe = entry;
	return true;
}

struct entry *outbox_take(struct outbox *ob, int64_t now)
{
	struct entry *entry;
	unsigned n = 0;

	(void)pthread_mutex_lock(&ob->lock);
	ob->now = now;
	check_rows_first(ob, now);
	while ((entry = pick(ob, now)) != NULL && !may_go(ob, entry, now)) {
		outbox_yield_lock(ob, &n);
	}
	if (n != 0) {
		(void)pthread_cond_broadcast(&ob->progress);
	}
	if (entry != NULL) {
		ob->stats.retries += entry->tries != 0;
		entry_enter(entry, ENTRY_IN_FLIGHT);
		list_append(&ob->in_flight, entry);
		ob->stats.in_flight++;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return entry;
}

void outbox_untake(struct outbox *ob, struct entry *entry)
{
	struct namespace_block *block;

	(void)pthread_mutex_lock(&ob->lock);
	list_remove(&ob->in_flight, entry);
	ob->stats.in_flight--;
	block = namespace_blocks_find(&ob->blocks, ob->ops.ns(entry->item), entry->verb);
	if (block != NULL && block->probe == entry) {
		block->probe = NULL;
	}
	if (entry->state == ENTRY_GIVEN_UP) {
		outbox_settle(ob, entry);
	} else {
		ob->stats.retries -= entry->tries != 0;
		outbox_absorb_follow_up(ob, entry);
		entry_enter(entry, ENTRY_WAITING);
		waiting_prepend(ob, entry);
	}
	(void)pthread_cond_broadcast(&ob->progress);
	(void)pthread_mutex_unlock(&ob->lock);
}

int64_t outbox_next_due(struct outbox *ob, int64_t now)
{
	int64_t due, waiting;

	(void)pthread_mutex_lock(&ob->lock);
	check_rows_first(ob, now);
	due = backoff_due(&ob->backoff);
	waiting = waiting_due(ob, deferred_due(ob), now);
	if (waiting < due) {
		due = waiting;
	}
	if (held_are_due(ob) || (ob->closed && !backoff_empty(&ob->backoff))) {
		due = now;
	} else if (ob->held.head != NULL && ob->rows_until < due) {
		due = ob->rows_until;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return due;
}

bool outbox_stalled(struct outbox *ob, int64_t now)
{
	bool stalled;

	(void)pthread_mutex_lock(&ob->lock);
	check_rows_first(ob, now);
	/* Expected rows arrive even if a fake clock stands still. */
	stalled = !(ob->rows_first && ob->more) && !backoff_empty(&ob->backoff) && backoff_due(&ob->backoff) > now &&
	          !ob->closed && ob->waiting.head == NULL && !held_are_due(ob) && ob->stats.in_flight == 0;
	(void)pthread_mutex_unlock(&ob->lock);
	return stalled;
}

void outbox_make_due_now(struct outbox *ob)
{
	(void)pthread_mutex_lock(&ob->lock);
	backoff_make_due_now(&ob->backoff, BACKOFF_UNANSWERED);
	(void)pthread_mutex_unlock(&ob->lock);
}

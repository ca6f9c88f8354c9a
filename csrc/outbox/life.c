/* How an outbox is made, closed, emptied and freed, and the wait until it is empty. */
#include "outbox/outbox_inner.h"

#include "base/wait.h"

struct outbox *outbox_new(const struct outbox_ops *ops, const evrec_limits *limits, uint64_t seed)
{
	struct outbox *ob = mem_zalloc(sizeof(*ob));

	if (ob == NULL) {
		return NULL;
	}
	if (!id_table_init(&ob->table)) {
		mem_free(ob);
		return NULL;
	}
	ob->ops = *ops;
	ob->limits = *limits;
	ob->limits.max_pending_bytes = outbox_limit_of_bytes(limits);
	ob->random = seed;
	ob->now = ob->gather.ended_at = INT64_MIN;
	ob->trimmed = INT64_MIN;
	ob->rows_after = INT64_MAX;
	ob->brought_end = &ob->brought;
	(void)pthread_mutex_init(&ob->lock, NULL);
	wait_init(&ob->progress);
	return ob;
}

static void free_list(struct outbox *ob, struct entry_list *list)
{
	struct entry *entry;

	while ((entry = list_shift(list)) != NULL) {
		struct entry *behind;

		while ((behind = list_shift(&entry->rows_behind)) != NULL) {
			entry_free(ob, behind);
		}
		if (entry->follow_up != NULL) {
			entry_free(ob, entry->follow_up);
		}
		entry_free(ob, entry);
	}
}

void outbox_free(struct outbox *ob)
{
	struct entry *entry;
	void *item;

	while ((entry = backoff_pop(&ob->backoff)) != NULL || (entry = heap_pop(&ob->deferred)) != NULL) {
		list_append(&ob->waiting, entry);
	}
	free_list(ob, &ob->waiting);
	free_list(ob, &ob->held);
	free_list(ob, &ob->in_flight);
	free_list(ob, &ob->answered);
	free_list(ob, &ob->kept);
	pool_destroy(&ob->pool);
	while ((item = outbox_next_brought(ob)) != NULL) {
		ob->ops.free(item);
	}
	mem_free(ob->spare);
	mem_free(ob->rows_answered);
	backoff_free(&ob->backoff);
	heap_free(&ob->deferred);
	id_table_free(&ob->table);
	(void)pthread_cond_destroy(&ob->progress);
	(void)pthread_mutex_destroy(&ob->lock);
	mem_free(ob);
}

void outbox_close(struct outbox *ob)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->closed = true;
	deferred_end_all(ob);
	(void)pthread_mutex_unlock(&ob->lock);
}

void outbox_drop_all(struct outbox *ob, enum evrec_cause cause)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	deferred_end_all(ob);
	for (entry = ob->in_flight.head; entry != NULL; entry = entry->next) {
		struct entry *follow_up = entry->follow_up, *behind;

		if (entry->state == ENTRY_IN_FLIGHT) {
			outbox_count_dropped(ob, entry, cause);
			entry_enter(entry, ENTRY_GIVEN_UP);
			journal_forget(ob, entry);
		}
		if (follow_up != NULL) {
			entry->follow_up = NULL;
			outbox_drop(ob, follow_up, cause);
		}
		while ((behind = list_shift(&entry->rows_behind)) != NULL) {
			outbox_drop(ob, behind, cause);
		}
	}
	while ((entry = backoff_pop(&ob->backoff)) != NULL || (entry = list_shift(&ob->held)) != NULL ||
	       (entry = list_shift(&ob->kept)) != NULL) {
		waiting_append(ob, entry, INT64_MIN);
	}
	ob->kept_len = 0;
	ob->more = false;
	/* Settling an entry makes its follow-up wait, so that this loop drops the follow-up too. */
	while ((entry = waiting_shift(ob)) != NULL) {
		outbox_drop(ob, entry, cause);
	}
	(void)pthread_cond_broadcast(&ob->progress);
	(void)pthread_mutex_unlock(&ob->lock);
}

void outbox_cut_off(struct outbox *ob)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	while ((entry = list_shift(&ob->in_flight)) != NULL) {
		ob->stats.in_flight--;
		if (entry->state == ENTRY_IN_FLIGHT) {
			outbox_count_dropped(ob, entry, EVREC_CAUSE_CLOSED);
		}
		outbox_settle(ob, entry);
	}
	(void)pthread_cond_broadcast(&ob->progress);
	(void)pthread_mutex_unlock(&ob->lock);
}

bool outbox_wait(struct outbox *ob, int64_t deadline)
{
	bool empty;

	(void)pthread_mutex_lock(&ob->lock);
	while (!outbox_idle(ob)) {
		if (!wait_until(&ob->progress, &ob->lock, deadline)) {
			break;
		}
	}
	empty = outbox_idle(ob);
	(void)pthread_mutex_unlock(&ob->lock);
	return empty;
}

bool outbox_empty(struct outbox *ob)
{
	bool empty;

	(void)pthread_mutex_lock(&ob->lock);
	empty = outbox_idle(ob);
	(void)pthread_mutex_unlock(&ob->lock);
	return empty;
}

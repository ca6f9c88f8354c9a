#include "outbox/outbox_inner.h"

void outbox_on_work(struct outbox *ob, void (*wake)(void *ctx), void *ctx)
{
	ob->wake = wake;
	ob->wake_ctx = ctx;
}

HOT bool outbox_has_news(const struct outbox *ob)
{
	return atomic_load_explicit(&ob->news, memory_order_relaxed);
}

void outbox_skip_plain_answers(struct outbox *ob)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->skips_plain_answers = true;
	(void)pthread_mutex_unlock(&ob->lock);
}

struct entry *outbox_collect(struct outbox *ob, size_t max)
{
	struct entry *entry, *collected = NULL, **end = &collected;

	(void)pthread_mutex_lock(&ob->lock);
	while (max-- > 0 && (entry = list_shift(&ob->answered)) != NULL) {
		id_table_remove(&ob->table, entry);
		if (entry->dropped) {
			ob->uncollected[entry->cause] -= entry->count;
		}
		*end = entry;
		end = &entry->next;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return collected;
}

void outbox_recycle(struct outbox *ob, struct entry *entries)
{
	struct entry *next;

	(void)pthread_mutex_lock(&ob->lock);
	for (; entries != NULL; entries = next) {
		next = entries->next;
		entry_free(ob, entries);
	}
	(void)pthread_mutex_unlock(&ob->lock);
}

void outbox_queue_message(struct outbox *ob, const char *name, const char *message)
{
	messages_add(&ob->messages, name, message, ob->now);
	atomic_store_explicit(&ob->news, true, memory_order_relaxed);
}

void outbox_report(struct outbox *ob, const char *name, const char *message)
{
	(void)pthread_mutex_lock(&ob->lock);
	outbox_queue_message(ob, name, message);
	(void)pthread_mutex_unlock(&ob->lock);
}

bool outbox_next_message(struct outbox *ob, struct outbox_message *report)
{
	bool found;

	(void)pthread_mutex_lock(&ob->lock);
	found = messages_next(&ob->messages, report);
	if (!found && ob->answered.head == NULL && ob->brought == NULL) {
		atomic_store_explicit(&ob->news, false, memory_order_relaxed);
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return found;
}

void outbox_get_losses(struct outbox *ob, struct outbox_losses *losses)
{
	(void)pthread_mutex_lock(&ob->lock);
	memcpy(losses->dropped, ob->uncollected, sizeof(losses->dropped));
	losses->message = ob->messages.latest;
	(void)pthread_mutex_unlock(&ob->lock);
}

void outbox_get_stats(struct outbox *ob, struct outbox_stats *stats)
{
	(void)pthread_mutex_lock(&ob->lock);
	*stats = ob->stats;
	stats->messages_lost = ob->messages.lost;
	(void)pthread_mutex_unlock(&ob->lock);
}

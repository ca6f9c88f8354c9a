/* The entries that can be taken, and how long they wait for a batch to fill. */
#include "outbox/outbox_inner.h"

/* Whether the waiting entries are due, regardless of the time. */
static bool is_due(const struct outbox *ob)
{
	const struct gather *g = &ob->gather;

	return g->len != 0 && (g->delay == 0 || g->ended || ob->closed || g->len >= g->batch ||
	                       ob->stats.bytes >= ob->limits.max_pending_bytes / 2);
}

void outbox_gather(struct outbox *ob, size_t batch, int64_t delay)
{
	const size_t most = ob->limits.max_pending / 2;
	const int64_t longest = ob->limits.max_age != 0 ? ob->limits.max_age / 2 : INT64_MAX;

	(void)pthread_mutex_lock(&ob->lock);
	/* Writes are due before a full outbox would drop them, and before they are too old. */
	ob->gather.batch = batch < most ? batch : most;
	ob->gather.delay = delay < longest ? delay : longest;
	(void)pthread_mutex_unlock(&ob->lock);
}

void waiting_append(struct outbox *ob, struct entry *entry, int64_t since)
{
	entry->since = since;
	list_append(&ob->waiting, entry);
	ob->gather.len++;
	ob->gather.ended = ob->gather.ended || since == INT64_MIN;
}

void waiting_prepend(struct outbox *ob, struct entry *entry)
{
	entry->since = INT64_MIN;
	list_prepend(&ob->waiting, entry);
	ob->gather.len++;
	ob->gather.ended = true;
}

void waiting_append_follow_up(struct outbox *ob, struct entry *entry)
{
	waiting_append(ob, entry, entry->since <= ob->gather.ended_at ? INT64_MIN : ob->now);
}

void waiting_remove(struct outbox *ob, struct entry *entry)
{
	list_remove(&ob->waiting, entry);
	ob->gather.len--;
	ob->gather.ended = ob->gather.ended && ob->gather.len != 0;
	ob->gather.told = ob->gather.told && is_due(ob);
}

struct entry *waiting_shift(struct outbox *ob)
{
	struct entry *entry = ob->waiting.head;

	if (entry != NULL) {
		waiting_remove(ob, entry);
	}
	return entry;
}

void waiting_end(struct outbox *ob, int64_t now)
{
	ob->gather.ended = ob->gather.len != 0;
	ob->gather.ended_at = now;
}

bool waiting_needs_driver(struct outbox *ob, size_t waited)
{
	const bool told = waited != 0 && (ob->gather.delay == 0 || ob->gather.told);

	ob->gather.told = is_due(ob);
	return ob->gather.len != 0 && (waited == 0 || (!told && ob->gather.told));
}

int64_t waiting_due(const struct outbox *ob, int64_t first, int64_t now)
{
	if (is_due(ob)) {
		return now;
	}
	if (ob->gather.delay == 0 || ob->closed) {
		return first;
	}
	if (ob->waiting.head != NULL && ob->waiting.head->since < first) {
		first = ob->waiting.head->since;
	}
	return time_after(first, ob->gather.delay);
}

#include "deliver/outbox_inner.h"

#include "base/wait.h"

#define MAX_PENDING_MAX 10000000

int outbox_check_max_pending(size_t max_pending, evrec_error *err)
{
	if (max_pending < 1 || max_pending > MAX_PENDING_MAX) {
		return error_set(err, EVREC_EINVALID, "max_pending: must be 1 to %d", MAX_PENDING_MAX);
	}
	return 0;
}

struct outbox *outbox_new(const struct outbox_ops *ops, size_t max_pending, uint64_t seed)
{
	struct outbox *ob = mem_zalloc(sizeof(*ob));

	if (ob == NULL) {
		return NULL;
	}
	if (!table_init(&ob->table)) {
		mem_free(ob);
		return NULL;
	}
	ob->ops = *ops;
	ob->max_pending = max_pending;
	ob->random = seed;
	ob->now = INT64_MIN;
	(void)pthread_mutex_init(&ob->lock, NULL);
	wait_init(&ob->progress);
	return ob;
}

static void free_entry(struct outbox *ob, struct entry *entry)
{
	if (entry->item != NULL) {
		ob->ops.free(entry->item);
	}
	mem_free(entry);
}

static void free_list(struct outbox *ob, struct entry_list *list)
{
	struct entry *entry;

	while ((entry = list_shift(list)) != NULL) {
		if (entry->follow_up != NULL) {
			free_entry(ob, entry->follow_up);
		}
		free_entry(ob, entry);
	}
}

void outbox_free(struct outbox *ob)
{
	struct entry *entry;

	while ((entry = heap_pop(&ob->backoff)) != NULL) {
		list_append(&ob->waiting, entry);
	}
	free_list(ob, &ob->waiting);
	free_list(ob, &ob->in_flight);
	free_list(ob, &ob->answered);
	heap_free(&ob->backoff);
	table_free(&ob->table);
	(void)pthread_cond_destroy(&ob->progress);
	(void)pthread_mutex_destroy(&ob->lock);
	mem_free(ob);
}

void outbox_on_work(struct outbox *ob, void (*wake)(void *ctx), void *ctx)
{
	ob->wake = wake;
	ob->wake_ctx = ctx;
}

void outbox_inherit_name(struct outbox *ob, struct entry *entry, const struct entry *from)
{
	if (from->name[0] != '\0') {
		memcpy(entry->name, from->name, sizeof(entry->name));
		ob->ops.set_name(entry->item, entry->name);
	}
}

/* An entry with an item of its own and a place in the heap when it needs one; NULL: *cause says why. */
static struct entry *make_entry(struct outbox *ob, uint64_t id, enum verb verb, const void *draft,
                                enum evrec_cause *cause)
{
	struct entry *entry;

	if (ob->stats.writes >= ob->max_pending) {
		*cause = EVREC_CAUSE_QUEUE_FULL;
		return NULL;
	}
	*cause = EVREC_CAUSE_MEMORY;
	entry = heap_reserve(&ob->backoff, (size_t)ob->stats.writes + 1) ? mem_alloc(sizeof(*entry)) : NULL;
	if (entry == NULL) {
		return NULL;
	}
	/* Up to the names, which are long, and of which few entries come to have one. */
	memset(entry, 0, offsetof(struct entry, name));
	entry->name[0] = entry->resource_version[0] = '\0';
	entry->item = ob->ops.make(draft);
	if (entry->item == NULL) {
		mem_free(entry);
		return NULL;
	}
	entry->id = id;
	entry->state = ENTRY_WAITING;
	entry->verb = verb;
	ob->stats.writes++;
	return entry;
}

/* Folds a draft into what waits under its id, or makes that. NULL: *cause says why. */
static struct entry *admit(struct outbox *ob, uint64_t id, enum verb verb, const void *draft, enum evrec_cause *cause)
{
	struct entry *entry = table_find(&ob->table, id);
	struct entry *target = entry;

	if (ob->closed) {
		*cause = EVREC_CAUSE_CLOSED;
		return NULL;
	}
	if (entry == NULL || entry->state == ENTRY_ANSWERED) {
		target = make_entry(ob, id, verb, draft, cause);
		if (target == NULL) {
			return NULL;
		}
		if (entry != NULL) {
			outbox_inherit_name(ob, target, entry);
			table_remove(&ob->table, entry);
		}
		table_insert(&ob->table, target);
		list_append(&ob->waiting, target);
		return target;
	}
	if (entry->follow_up != NULL) {
		target = entry->follow_up;
	} else if (entry->state == ENTRY_IN_FLIGHT) {
		entry->follow_up = make_entry(ob, id, VERB_PATCH, draft, cause);
		return entry->follow_up;
	}
	if (!ob->ops.fold(target->item, draft)) {
		*cause = EVREC_CAUSE_MEMORY;
		return NULL;
	}
	return target;
}

void outbox_report_locked(struct outbox *ob, const char *name, const char *message)
{
	reports_add(&ob->reports, name, message, ob->now);
	atomic_store_explicit(&ob->news, true, memory_order_relaxed);
}

bool outbox_submit(struct outbox *ob, uint64_t id, enum verb verb, const void *draft, enum evrec_cause *cause)
{
	struct entry *target;
	bool wake;

	(void)pthread_mutex_lock(&ob->lock);
	ob->stats.submitted++;
	wake = ob->waiting.head == NULL;
	target = admit(ob, id, verb, draft, cause);
	if (target != NULL) {
		target->count++;
		ob->stats.pending++;
	} else {
		ob->stats.dropped[*cause]++;
		if (*cause == EVREC_CAUSE_MEMORY) {
			outbox_report_locked(ob, "memory", "no memory: an event was dropped");
		}
	}
	wake = wake && ob->waiting.head != NULL && ob->wake != NULL;
	(void)pthread_mutex_unlock(&ob->lock);
	if (wake) {
		ob->wake(ob->wake_ctx);
	}
	return target != NULL;
}

struct entry *outbox_take(struct outbox *ob, int64_t now)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	ob->now = now;
	entry = heap_top(&ob->backoff);
	if (entry != NULL && (ob->closed || entry->due <= now)) {
		(void)heap_pop(&ob->backoff);
		ob->stats.retries++;
	} else {
		entry = list_shift(&ob->waiting);
	}
	if (entry != NULL) {
		entry->state = ENTRY_IN_FLIGHT;
		list_append(&ob->in_flight, entry);
		ob->stats.in_flight++;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return entry;
}

int64_t outbox_next_due(struct outbox *ob, int64_t now)
{
	struct entry *top;
	int64_t due = INT64_MAX;

	(void)pthread_mutex_lock(&ob->lock);
	top = heap_top(&ob->backoff);
	if (ob->waiting.head != NULL || (top != NULL && ob->closed)) {
		due = now;
	} else if (top != NULL) {
		due = top->due;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return due;
}

void outbox_hasten(struct outbox *ob, int64_t now)
{
	(void)pthread_mutex_lock(&ob->lock);
	for (size_t i = 0; i < ob->backoff.len; i++) {
		struct entry *entry = ob->backoff.entries[i];

		if (entry->unanswered && entry->due > now) {
			entry->due = now;
		}
	}
	heap_reorder(&ob->backoff);
	(void)pthread_mutex_unlock(&ob->lock);
}

bool outbox_has_news(const struct outbox *ob)
{
	return atomic_load_explicit(&ob->news, memory_order_relaxed);
}

struct entry *outbox_collect(struct outbox *ob)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	entry = list_shift(&ob->answered);
	if (entry != NULL) {
		table_remove(&ob->table, entry);
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return entry;
}

void outbox_recycle(struct outbox *ob, struct entry *entry)
{
	free_entry(ob, entry);
}

void outbox_report(struct outbox *ob, const char *name, const char *message)
{
	(void)pthread_mutex_lock(&ob->lock);
	outbox_report_locked(ob, name, message);
	(void)pthread_mutex_unlock(&ob->lock);
}

bool outbox_next_report(struct outbox *ob, struct outbox_report *report)
{
	bool found;

	(void)pthread_mutex_lock(&ob->lock);
	found = reports_next(&ob->reports, report);
	if (!found && ob->answered.head == NULL) {
		atomic_store_explicit(&ob->news, false, memory_order_relaxed);
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return found;
}

void outbox_close(struct outbox *ob)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->closed = true;
	(void)pthread_mutex_unlock(&ob->lock);
}

void outbox_drop_all(struct outbox *ob, enum evrec_cause cause)
{
	struct entry *entry;

	(void)pthread_mutex_lock(&ob->lock);
	for (entry = ob->in_flight.head; entry != NULL; entry = entry->next) {
		struct entry *follow_up = entry->follow_up;

		if (!entry->given_up) {
			entry->given_up = true;
			outbox_count_dropped(ob, entry, cause);
		}
		if (follow_up != NULL) {
			entry->follow_up = NULL;
			outbox_count_dropped(ob, follow_up, cause);
			outbox_settle(ob, follow_up);
		}
	}
	while ((entry = heap_pop(&ob->backoff)) != NULL) {
		list_append(&ob->waiting, entry);
	}
	/* A follow-up comes to wait when what it followed is settled, so it is dropped here in its turn. */
	while ((entry = list_shift(&ob->waiting)) != NULL) {
		outbox_count_dropped(ob, entry, cause);
		outbox_settle(ob, entry);
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
		if (!entry->given_up) {
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
	while (ob->stats.writes != 0 && ob->answered.head == NULL) {
		if (!wait_until(&ob->progress, &ob->lock, deadline)) {
			break;
		}
	}
	empty = ob->stats.writes == 0;
	(void)pthread_mutex_unlock(&ob->lock);
	return empty;
}

bool outbox_empty(struct outbox *ob)
{
	bool empty;

	(void)pthread_mutex_lock(&ob->lock);
	empty = ob->stats.writes == 0;
	(void)pthread_mutex_unlock(&ob->lock);
	return empty;
}

bool outbox_stalled(struct outbox *ob, int64_t now)
{
	const struct entry *top;
	bool stalled;

	(void)pthread_mutex_lock(&ob->lock);
	top = heap_top(&ob->backoff);
	stalled = top != NULL && top->due > now && !ob->closed && ob->waiting.head == NULL && ob->stats.in_flight == 0;
	(void)pthread_mutex_unlock(&ob->lock);
	return stalled;
}

void outbox_get_stats(struct outbox *ob, struct outbox_stats *stats)
{
	(void)pthread_mutex_lock(&ob->lock);
	*stats = ob->stats;
	stats->reports_lost = ob->reports.lost;
	(void)pthread_mutex_unlock(&ob->lock);
}

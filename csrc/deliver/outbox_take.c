#include "deliver/outbox_inner.h"

#define HELD_MAX EVREC_SECOND

/* What comes next, on no list any more. */
static struct entry *pick(struct outbox *ob, int64_t now)
{
	struct entry *entry = heap_top(&ob->backoff);

	if (entry != NULL && (ob->closed || entry->due <= now)) {
		outbox_unhold(ob, entry);
		return heap_pop(&ob->backoff);
	}
	return list_shift(&ob->waiting);
}

static void hold(struct outbox *ob, struct entry *entry, int64_t now)
{
	entry->held = true;
	ob->held++;
	entry->unanswered = false;
	outbox_back_off(ob, entry, HELD_MAX, now);
}

/* False: it is not sent now, but was dropped or held. */
static bool may_go(struct outbox *ob, struct entry *entry, int64_t now)
{
	struct place *place = NULL;

	if (outbox_too_old(ob, entry, now)) {
		outbox_drop(ob, entry, EVREC_CAUSE_EXPIRED);
		return false;
	}
	if (ob->places.len != 0) {
		place = places_find(&ob->places, ob->ops.place(entry->item), entry->verb);
	}
	if (place == NULL) {
		return true;
	}
	if (time_since(now, place->since) < PLACES_TERM) {
		outbox_drop(ob, entry, place->cause);
		return false;
	}
	if (place->probe != NULL && !ob->closed) {
		hold(ob, entry, now);
		return false;
	}
	place->probe = entry;
	return true;
}

struct entry *outbox_take(struct outbox *ob, int64_t now)
{
	struct entry *entry;
	unsigned n = 0;

	(void)pthread_mutex_lock(&ob->lock);
	ob->now = now;
	while ((entry = pick(ob, now)) != NULL && !may_go(ob, entry, now)) {
		outbox_breathe(ob, &n);
	}
	if (n != 0) {
		(void)pthread_cond_broadcast(&ob->progress);
	}
	if (entry != NULL) {
		/* Tries start anew where it goes out as something else. */
		ob->stats.retries += entry->retry.tries != 0;
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

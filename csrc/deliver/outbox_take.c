#include "deliver/outbox_inner.h"

#define HELD_MAX EVREC_SECOND

/* What comes next, on no list any more. */
static struct entry *pick(struct outbox *ob, int64_t now)
{
	if (!backoff_empty(&ob->backoff) && (ob->closed || backoff_due(&ob->backoff) <= now)) {
		return backoff_pop(&ob->backoff);
	}
	return list_shift(&ob->waiting);
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
		outbox_back_off(ob, entry, BACKOFF_HELD, HELD_MAX, now);
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
	int64_t due;

	(void)pthread_mutex_lock(&ob->lock);
	due = backoff_due(&ob->backoff);
	if (ob->waiting.head != NULL || (ob->closed && !backoff_empty(&ob->backoff))) {
		due = now;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return due;
}

void outbox_hasten(struct outbox *ob)
{
	(void)pthread_mutex_lock(&ob->lock);
	backoff_hasten(&ob->backoff, BACKOFF_UNANSWERED);
	(void)pthread_mutex_unlock(&ob->lock);
}

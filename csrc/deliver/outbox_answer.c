#include "deliver/outbox_inner.h"

#include <stdio.h>

/* From an answer to when what a server that hung had before that is carried out too. */
#define LINGERING (2 * EVREC_SECOND)

static void count_written(struct outbox *ob, struct entry *entry, uint32_t occurrences)
{
	if (entry->verb == VERB_CREATE) {
		ob->stats.created++;
	} else {
		ob->stats.patched++;
	}
	ob->stats.coalesced += occurrences - 1;
	ob->stats.pending -= occurrences;
	entry->count -= occurrences;
}

void outbox_count_dropped(struct outbox *ob, struct entry *entry, enum evrec_cause cause)
{
	outbox_untrack(ob, entry);
	if (entry->told != 0) {
		count_written(ob, entry, entry->told);
		entry->lingers = true;
	}
	ob->stats.dropped[cause] += entry->count;
	ob->stats.pending -= entry->count;
	entry->dropped = entry->count != 0;
	entry->cause = cause;
}

void outbox_settle(struct outbox *ob, struct entry *entry)
{
	struct entry *follow_up = entry->follow_up;

	entry->follow_up = NULL;
	entry->state = ENTRY_ANSWERED;
	if (!entry->dropped) {
		ob->ops.free(entry->item);
		entry->item = NULL;
	}
	list_append(&ob->answered, entry);
	outbox_row_settled(ob, entry);
	atomic_store_explicit(&ob->news, true, memory_order_relaxed);
	if (follow_up != NULL) {
		outbox_inherit_name(ob, follow_up, entry);
		table_remove(&ob->table, entry);
		table_insert(&ob->table, follow_up);
		follow_up->state = ENTRY_WAITING;
		follow_up->lingers = entry->lingers;
		list_append(&ob->waiting, follow_up);
	}
}

static void written(struct outbox *ob, struct entry *entry)
{
	count_written(ob, entry, entry->count);
	outbox_untrack(ob, entry);
	outbox_settle(ob, entry);
}

void outbox_drop(struct outbox *ob, struct entry *entry, enum evrec_cause cause)
{
	outbox_count_dropped(ob, entry, cause);
	outbox_settle(ob, entry);
}

void outbox_absorb_follow_up(struct outbox *ob, struct entry *entry)
{
	struct entry *follow_up = entry->follow_up;

	if (follow_up != NULL && ob->ops.merge(entry->item, follow_up->item)) {
		entry->count += follow_up->count;
		entry->follow_up = NULL;
		outbox_weigh(ob, entry);
		outbox_take_age(ob, entry, follow_up);
		outbox_untrack(ob, follow_up);
		ob->ops.free(follow_up->item);
		mem_free(follow_up);
	}
}

static void at_once(struct outbox *ob, struct entry *entry, enum verb verb)
{
	outbox_absorb_follow_up(ob, entry);
	entry->verb = verb;
	entry->retry.tries = 0;
	entry->retry.uncertain = false;
	entry->arrived = entry->told = 0;
	entry->state = ENTRY_WAITING;
	list_prepend(&ob->waiting, entry);
}

void outbox_back_off(struct outbox *ob, struct entry *entry, enum backoff_why why, int64_t delay, int64_t now)
{
	int64_t due;

	if (__builtin_add_overflow(now, delay, &due)) {
		due = INT64_MAX;
	}
	entry->state = ENTRY_BACKOFF;
	backoff_push(&ob->backoff, entry, why, due);
}

static void try_later(struct outbox *ob, struct entry *entry, const evrec_answer *answer, int64_t now)
{
	enum backoff_why why = answer->status == 0 ? BACKOFF_UNANSWERED : BACKOFF_ANSWERED;
	int64_t delay;

	outbox_absorb_follow_up(ob, entry);
	entry->retry.tries++;
	delay = retry_delay(entry->retry.tries, answer->retry_after, retry_random(&ob->random));
	outbox_back_off(ob, entry, why, delay, now);
}

/* Not all is over yet where a try of before may still set back what this one has told. */
static void done(struct outbox *ob, struct entry *entry, int64_t now)
{
	if (!entry->lingers || entry->verb != VERB_PATCH || ob->closed) {
		written(ob, entry);
		return;
	}
	entry->lingers = false;
	entry->told = entry->count;
	entry->retry.tries = 1;
	outbox_absorb_follow_up(ob, entry);
	outbox_back_off(ob, entry, BACKOFF_ANSWERED, LINGERING, now);
}

/* The server has these, or had; what was folded in since is still to be told. */
static void go_on(struct outbox *ob, struct entry *entry, uint32_t acknowledged, enum verb verb)
{
	outbox_absorb_follow_up(ob, entry);
	if (entry->count == acknowledged) {
		written(ob, entry);
		return;
	}
	if (acknowledged != 0) {
		count_written(ob, entry, acknowledged);
	}
	at_once(ob, entry, verb);
}

static const char *report_name(int status)
{
	switch (status) {
	case 0:
		return "transport";
	case 401:
		return "unauthorized";
	case 403:
		return "forbidden";
	case 404:
		return "not_found";
	case 409:
		return "conflict";
	case 429:
		return "throttled";
	case 408:
	case 500:
	case 502:
	case 503:
	case 504:
		return "server";
	default:
		return "rejected";
	}
}

static void report(struct outbox *ob, const struct entry *entry, const evrec_answer *answer)
{
	const char *verb = entry->verb == VERB_CREATE ? "POST" : "PATCH";
	char message[sizeof(((struct outbox_report *)0)->message)];
	const char *key;

	if (answer->status == 0) {
		(void)snprintf(message, sizeof(message), "%s: %s", verb, answer->message);
	} else if (answer->message[0] == '\0') {
		(void)snprintf(message, sizeof(message), "%s: %d", verb, answer->status);
	} else {
		(void)snprintf(message, sizeof(message), "%s: %d: %s", verb, answer->status, answer->message);
	}
	if (answer->status != 403) {
		outbox_report_locked(ob, report_name(answer->status), message);
		return;
	}
	/* Before these words the server names the event, which differs every time; after them, the user and verb. */
	key = strstr(message, "is forbidden");
	reports_add_once(&ob->reports, "forbidden", message, key == NULL ? message : key);
	atomic_store_explicit(&ob->news, true, memory_order_relaxed);
}

static void remember(struct entry *entry, const evrec_answer *answer)
{
	if (answer->name[0] != '\0') {
		memcpy(entry->name, answer->name, sizeof(entry->name));
	}
	memcpy(entry->resource_version, answer->resource_version, sizeof(entry->resource_version));
}

static void again(struct outbox *ob, struct entry *entry, const evrec_answer *answer, int64_t now)
{
	entry->failed++;
	if (ob->closed) {
		outbox_leave(ob, entry);
	} else if (ob->limits.max_tries != 0 && entry->failed >= ob->limits.max_tries) {
		outbox_drop(ob, entry, EVREC_CAUSE_MAX_TRIES);
	} else {
		try_later(ob, entry, answer, now);
	}
}

static void act(struct outbox *ob, struct entry *entry, const struct retry_decision *decision,
                const evrec_answer *answer, int64_t now)
{
	if (decision->uncertain && !entry->retry.uncertain) {
		entry->retry.uncertain = true;
		entry->arrived = entry->count;
	}
	entry->lingers = entry->lingers || (answer->lingers && entry->verb == VERB_PATCH);
	switch (decision->verdict) {
	case VERDICT_DONE:
		remember(entry, answer);
		done(ob, entry, now);
		break;
	case VERDICT_EXISTS:
		go_on(ob, entry, entry->arrived, VERB_PATCH);
		break;
	case VERDICT_AGAIN:
	case VERDICT_RELOAD:
		again(ob, entry, answer, now);
		break;
	case VERDICT_CREATE:
		go_on(ob, entry, entry->told, VERB_CREATE);
		break;
	case VERDICT_RENAME:
		if (ob->ops.rename(entry->item, entry->name)) {
			outbox_weigh(ob, entry);
			at_once(ob, entry, VERB_CREATE);
			entry->retry.renamed = true;
		} else if (ob->closed) {
			outbox_drop(ob, entry, EVREC_CAUSE_MEMORY);
		} else {
			again(ob, entry, answer, now);
		}
		break;
	case VERDICT_DROP:
		outbox_drop(ob, entry, decision->cause);
		break;
	}
}

/* A place that refuses is remembered; one that takes something, or whose probe ended in another way, is not. */
static void learn(struct outbox *ob, const struct entry *entry, const struct retry_decision *decision, int64_t now)
{
	evrec_str name = ob->ops.place(entry->item);
	struct place *place = places_find(&ob->places, name, entry->verb);

	if (decision->place_refuses) {
		places_refuse(&ob->places, name, entry->verb, decision->cause, now);
	} else if (place != NULL && (place->probe == entry || decision->verdict == VERDICT_DONE)) {
		places_forget(&ob->places, place);
	}
	if (place != NULL) {
		/* What was held for a probe goes on. */
		backoff_hasten(&ob->backoff, BACKOFF_HELD);
	}
}

bool outbox_answer(struct outbox *ob, struct entry *entry, const evrec_answer *answer, int64_t now)
{
	struct retry_decision decision;

	(void)pthread_mutex_lock(&ob->lock);
	ob->now = now;
	list_remove(&ob->in_flight, entry);
	ob->stats.in_flight--;
	decision = retry_decide(entry->verb, &entry->retry, answer);
	if (!decision.quiet) {
		report(ob, entry, answer);
	}
	if (decision.place_refuses || ob->places.len != 0) {
		learn(ob, entry, &decision, now);
	}
	if (entry->given_up) {
		outbox_settle(ob, entry);
	} else {
		act(ob, entry, &decision, answer, now);
	}
	if (outbox_idle(ob)) {
		(void)pthread_cond_broadcast(&ob->progress);
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return decision.verdict == VERDICT_RELOAD;
}

#include "outbox/outbox_inner.h"

/* The time after an answer within which a server that hung has carried out earlier requests, too. */
#define MAYBE_LATE_FOR (2 * EVREC_SECOND)

static void written(struct outbox *ob, struct entry *entry)
{
	outbox_count_written(ob, entry, entry->count);
	pending_remove(ob, entry);
	outbox_settle(ob, entry);
}

/* Sends the entry as `verb` before all others, with its follow-up in it. Tries are counted anew. */
static void send_at_once(struct outbox *ob, struct entry *entry, enum verb verb)
{
	outbox_absorb_follow_up(ob, entry);
	/* Only once: otherwise a patch and a create could alternate for ever. */
	entry->missing = entry->known && entry->verb == VERB_PATCH && verb == VERB_CREATE;
	entry->known = false;
	entry->verb = verb;
	entry->tries = 0;
	entry->maybe_received = entry->acked = 0;
	entry->again = false;
	entry_enter(entry, ENTRY_WAITING);
	waiting_prepend(ob, entry);
	rows_change(ob, entry, ob->now);
	journal_change(ob, entry);
}

/* The writes of one request are due together: all get the delay of the first one that was answered. */
static int64_t choose_delay(struct outbox *ob, const struct entry *entry, const struct outcome *outcome, int64_t now)
{
	struct together *together = &ob->together;
	int64_t delay;

	if (outcome->request != 0 && outcome->request == together->request) {
		return time_since(together->due, now);
	}
	delay = retry_delay(entry->tries, outcome->retry_after, retry_random(&ob->random));
	together->request = outcome->request;
	together->due = time_after(now, delay);
	return delay;
}

static void retry_later(struct outbox *ob, struct entry *entry, const struct outcome *outcome, int64_t now)
{
	enum backoff_why why = outcome->unanswered ? BACKOFF_UNANSWERED : BACKOFF_ANSWERED;

	outbox_absorb_follow_up(ob, entry);
	entry->tries++;
	if (outcome->refused) {
		entry_enter(entry, ENTRY_WAITING);
		waiting_append(ob, entry, INT64_MIN);
		return;
	}
	outbox_back_off(ob, entry, why, choose_delay(ob, entry, outcome, now), now);
	if (outcome->unanswered && outbox_is_restored(entry) && entry->due <= INT64_MAX - ROWS_FIRST_FOR) {
		ob->rows_until = entry->due + ROWS_FIRST_FOR;
	}
}

static void retry(struct outbox *ob, struct entry *entry, const struct outcome *outcome, int64_t now)
{
	entry->failed++;
	if (ob->closed) {
		outbox_keep_for_spool(ob, entry);
	} else if (ob->limits.max_tries != 0 && entry->failed >= ob->limits.max_tries) {
		outbox_drop(ob, entry, EVREC_CAUSE_MAX_TRIES);
	} else {
		retry_later(ob, entry, outcome, now);
	}
}

void outbox_append_only(struct outbox *ob)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->append_only = true;
	(void)pthread_mutex_unlock(&ob->lock);
}

/* If an earlier try of this patch may still be carried out, and set the count back, the patch is sent once more. */
static void acknowledge(struct outbox *ob, struct entry *entry, int64_t now)
{
	if (!entry->maybe_late || entry->verb != VERB_PATCH || ob->append_only || ob->closed) {
		written(ob, entry);
		return;
	}
	entry->maybe_late = false;
	entry->acked = entry->count;
	receipts_mark_tried(entry->receipts);
	entry->tries = 1;
	outbox_absorb_follow_up(ob, entry);
	outbox_back_off(ob, entry, BACKOFF_ANSWERED, MAYBE_LATE_FOR, now);
}

/* The server has, or had, `acknowledged` occurrences of the entry. Later ones are sent as `verb`. */
static void send_rest(struct outbox *ob, struct entry *entry, uint32_t acknowledged, enum verb verb)
{
	outbox_absorb_follow_up(ob, entry);
	if (entry->count == acknowledged) {
		written(ob, entry);
		return;
	}
	if (acknowledged != 0) {
		outbox_count_written(ob, entry, acknowledged);
	}
	send_at_once(ob, entry, verb);
}

static void go_without_memory(struct outbox *ob, struct entry *entry, const struct outcome *outcome, int64_t now)
{
	if (ob->closed) {
		outbox_drop(ob, entry, EVREC_CAUSE_MEMORY);
	} else {
		retry(ob, entry, outcome, now);
	}
}

static void rename_and_send(struct outbox *ob, struct entry *entry, const struct outcome *outcome, int64_t now)
{
	/* Allocated first: once the item has its new name, the identity must have it too. */
	struct identity *identity = identity_new(ob, OUTBOX_NAME_SIZE + 1);
	char name[OUTBOX_NAME_SIZE];

	if (identity == NULL || !ob->ops.rename(entry->item, name)) {
		pool_free(&ob->pool, identity);
		go_without_memory(ob, entry, outcome, now);
		return;
	}
	entry_set_identity(ob, entry, identity, name, "");
	pending_recount_bytes(ob, entry);
	send_at_once(ob, entry, VERB_CREATE);
	entry->renamed = true;
}

static void wait_again(struct outbox *ob, struct entry *entry)
{
	outbox_absorb_follow_up(ob, entry);
	entry_enter(entry, ENTRY_WAITING);
	waiting_append(ob, entry, INT64_MIN);
}

/* False: no memory, and the object's old name and resource version stay. */
static bool remember_identity(struct outbox *ob, struct entry *entry, const struct outcome *outcome)
{
	return (outcome->name[0] == '\0' && outcome->resource_version[0] == '\0') ||
	       entry_identify(ob, entry, outcome->name[0] != '\0' ? outcome->name : entry_name(entry),
	                      outcome->resource_version);
}

/* The object that an earlier process created is patched, and keeps its name. */
static void adopt(struct outbox *ob, struct entry *entry, const struct outcome *outcome, int64_t now)
{
	if (!remember_identity(ob, entry, outcome)) {
		go_without_memory(ob, entry, outcome, now);
		return;
	}
	entry->base = outcome->base;
	outbox_absorb_follow_up(ob, entry);
	outbox_name_item(ob, entry, outcome->name);
	send_at_once(ob, entry, VERB_PATCH);
}

static void act(struct outbox *ob, struct entry *entry, const struct outcome *outcome, int64_t now)
{
	if (outcome->maybe_received && entry->maybe_received == 0) {
		entry->maybe_received = entry->count;
		entry->again = entry->again || entry->count == 0; /* 0 says that no try was received */
		receipts_mark_tried(entry->receipts);
	}
	entry->maybe_late = entry->maybe_late || outcome->maybe_late;
	switch (outcome->verdict) {
	case VERDICT_WRITTEN:
		(void)remember_identity(ob, entry, outcome);
		acknowledge(ob, entry, now);
		break;
	case VERDICT_EXISTS:
		/* If another write may have created it, its count is unknown: send the whole count. */
		if (entry->missing) {
			send_at_once(ob, entry, VERB_PATCH); /* also if the entry has no occurrence of its own */
		} else {
			send_rest(ob, entry, entry->again ? 0 : entry->maybe_received, VERB_PATCH);
		}
		break;
	case VERDICT_RETRY:
		retry(ob, entry, outcome, now);
		break;
	case VERDICT_CREATE:
		if (entry->again && entry->count == 0) {
			send_at_once(ob, entry, VERB_CREATE);
		} else {
			send_rest(ob, entry, entry->acked, VERB_CREATE);
		}
		break;
	case VERDICT_ADOPT:
		adopt(ob, entry, outcome, now);
		break;
	case VERDICT_RENAME:
		rename_and_send(ob, entry, outcome, now);
		break;
	case VERDICT_AGAIN:
		wait_again(ob, entry);
		break;
	case VERDICT_DROP:
		outbox_drop(ob, entry, outcome->cause);
		break;
	}
}

/* Blocks a namespace that refuses; removes the block of one that takes a write, or whose probe ended in another way. */
static void learn_of_namespace(struct outbox *ob, const struct entry *entry, const struct outcome *outcome, int64_t now)
{
	evrec_str ns = ob->ops.ns(entry->item);
	struct namespace_block *block = namespace_blocks_find(&ob->blocks, ns, entry->verb);

	if (outcome->blocks_namespace) {
		namespace_blocks_add(&ob->blocks, ns, entry->verb, outcome->cause, now);
	} else if (block != NULL && (block->probe == entry || outcome->verdict == VERDICT_WRITTEN)) {
		namespace_blocks_remove(&ob->blocks, block);
	}
	if (block != NULL) {
		backoff_make_due_now(&ob->backoff, BACKOFF_HELD);
	}
}

static void queue_message(struct outbox *ob, const struct outcome *outcome)
{
	if (!outcome->once) {
		outbox_queue_message(ob, outcome->problem, outcome->message);
		return;
	}
	messages_add_once(&ob->messages, outcome->problem, outcome->message, outcome->message + outcome->once_from);
	atomic_store_explicit(&ob->news, true, memory_order_relaxed);
}

void outbox_answer(struct outbox *ob, struct entry *entry, const struct outcome *outcome, int64_t now)
{
	(void)pthread_mutex_lock(&ob->lock);
	ob->now = now;
	list_remove(&ob->in_flight, entry);
	ob->stats.in_flight--;
	if (outcome->problem != NULL) {
		queue_message(ob, outcome);
	}
	if (outcome->blocks_namespace || ob->blocks.len != 0) {
		learn_of_namespace(ob, entry, outcome, now);
	}
	if (entry->state == ENTRY_GIVEN_UP) {
		outbox_settle(ob, entry);
	} else {
		act(ob, entry, outcome, now);
	}
	if (outbox_idle(ob)) {
		(void)pthread_cond_broadcast(&ob->progress);
	}
	(void)pthread_mutex_unlock(&ob->lock);
}

/* Recorded occurrences: each makes a write, or is folded into one. */
#include "outbox/outbox_inner.h"

/* A row counts occurrences: an entry without occurrences has no row. */
static void add_row(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence)
{
	if (!occurrence->silent) {
		rows_add(ob, entry, occurrence->now);
	}
}

/* A new entry of an occurrence, with an item, and with room in the heaps for when it backs off. NULL: no memory. */
static struct entry *alloc_entry(struct outbox *ob, const struct occurrence *occurrence)
{
	bool has_room = backoff_reserve(&ob->backoff, (size_t)ob->stats.writes + ob->deferred_len + 1);
	struct entry *entry = has_room ? entry_make(ob, occurrence->draft) : NULL;

	if (entry != NULL) {
		entry->bytes = outbox_item_bytes(ob, entry->item);
		entry->id = occurrence->id;
		entry->verb = occurrence->verb;
		entry->again = occurrence->again;
		entry->known = occurrence->silent || occurrence->verb == VERB_PATCH;
	}
	return entry;
}

/* Makes a deferred write, which no limit bounds. NULL: no memory. */
static struct entry *make_deferred(struct outbox *ob, const struct occurrence *occurrence)
{
	struct entry *entry = deferred_reserve(ob) ? alloc_entry(ob, occurrence) : NULL;

	if (entry != NULL) {
		deferred_add(ob, entry, occurrence);
		add_row(ob, entry, occurrence);
	}
	return entry;
}

static bool is_deferred(const struct outbox *ob, const struct occurrence *occurrence)
{
	return occurrence->due != 0 && (occurrence->max_deferred == 0 || ob->deferred_len < occurrence->max_deferred);
}

/* Makes a pending write, for which others may be dropped. NULL: *cause says why. */
static struct entry *make_entry(struct outbox *ob, const struct occurrence *occurrence, enum evrec_cause *cause)
{
	struct entry *entry;

	if (is_deferred(ob, occurrence)) {
		*cause = EVREC_CAUSE_MEMORY;
		return make_deferred(ob, occurrence);
	}
	*cause = EVREC_CAUSE_QUEUE_FULL;
	/* Nothing is allocated for an entry that cannot have room. */
	if (!outbox_has_room(ob, occurrence->important)) {
		return NULL;
	}
	entry = alloc_entry(ob, occurrence);
	if (entry == NULL) {
		*cause = EVREC_CAUSE_MEMORY;
		return NULL;
	}
	if (!outbox_make_room(ob, entry->bytes, occurrence->important)) {
		entry_free(ob, entry);
		return NULL;
	}
	pending_add(ob, entry, occurrence);
	add_row(ob, entry, occurrence);
	return entry;
}

static struct entry *make_follow_up(struct outbox *ob, struct entry *entry, const struct occurrence *occurrence,
                                    enum evrec_cause *cause)
{
	struct occurrence later = *occurrence;

	later.verb = VERB_PATCH;
	later.important = later.important || entry->important;
	entry->follow_up = make_entry(ob, &later, cause);
	if (entry->follow_up != NULL) {
		entry->follow_up->since = occurrence->now;
		if (entry->follow_up->deferred) {
			deferred_follow(ob, entry->follow_up);
		} else {
			entry_enter(entry->follow_up, ENTRY_FOLLOWING);
		}
		rows_change(ob, entry, occurrence->now);
	}
	return entry->follow_up;
}

/* An occurrence was folded into a write that is deferred, or had none yet. Out of line, it costs others less. */
static __attribute__((noinline)) void fold_rare(struct outbox *ob, struct entry *target,
                                                const struct occurrence *occurrence)
{
	if (target->count == 0) {
		add_row(ob, target, occurrence);
	}
	if (target->deferred) {
		deferred_fold(ob, target, occurrence);
	} else {
		pending_recount_bytes(ob, target);
		pending_touch_age(ob, target, occurrence);
	}
}

/*
 * The entry of an occurrence's id; NULL: there is none. Not looking for that of a first occurrence saves 38 of 4,961
 * instructions of a new event; in nginx, with a full queue, whose table is in no cache of the processor's, 170 ns.
 */
static inline struct entry *find_entry(const struct outbox *ob, const struct occurrence *occurrence)
{
#ifdef EVREC_DEBUG
	if (occurrence->is_first && id_table_find(&ob->table, occurrence->id) != NULL) {
		__builtin_trap();
	}
#endif
	return occurrence->is_first ? NULL : id_table_find(&ob->table, occurrence->id);
}

/*
 * Folds an occurrence into the waiting write of its id, or makes one. NULL: *cause says why. Always inline: with this
 * and rows_change inline a duplicate takes 1,274 instructions, without 1,293.
 */
static inline __attribute__((always_inline)) struct entry *admit(struct outbox *ob, const struct occurrence *occurrence,
                                                                 enum evrec_cause *cause)
{
	struct entry *entry = find_entry(ob, occurrence);
	struct entry *target = entry;

	if (ob->closed) {
		*cause = EVREC_CAUSE_CLOSED;
		return NULL;
	}
	if (entry == NULL || entry->state == ENTRY_ANSWERED) {
		target = make_entry(ob, occurrence, cause);
		if (target == NULL) {
			return NULL;
		}
		if (entry != NULL) {
			outbox_inherit(ob, target, entry);
			id_table_remove(&ob->table, entry);
		}
		id_table_insert(&ob->table, target);
		if (target->deferred) {
			deferred_wait(ob, target);
		} else {
			waiting_append(ob, target, occurrence->now);
		}
		return target;
	}
	if (entry->follow_up != NULL) {
		target = entry->follow_up;
	} else if (entry->state == ENTRY_IN_FLIGHT || entry->state == ENTRY_GIVEN_UP) {
		return make_follow_up(ob, entry, occurrence, cause);
	}
	if (!ob->ops.fold(target->item, occurrence->draft)) {
		*cause = EVREC_CAUSE_MEMORY;
		return NULL;
	}
	if (target->deferred || target->count == 0) {
		fold_rare(ob, target, occurrence);
	} else {
		pending_recount_bytes(ob, target);
		pending_touch_age(ob, target, occurrence);
	}
	rows_change(ob, entry, occurrence->now);
	return target;
}

static void count_refused(struct outbox *ob, enum evrec_cause cause, uint32_t occurrences)
{
	ob->stats.dropped[cause] += occurrences;
	if (cause == EVREC_CAUSE_MEMORY) {
		outbox_queue_message(ob, "memory", "no memory: an event was dropped");
	}
}

/* As admit, with the occurrence's receipt if it has one. */
static struct entry *admit_rare(struct outbox *ob, const struct occurrence *occurrence, enum evrec_cause *cause)
{
	struct entry *target;

	/* Allocated first, as an admitted occurrence cannot be undone. */
	if (occurrence->receipt != NULL && ob->spare == NULL) {
		ob->spare = mem_alloc(sizeof(*ob->spare));
		if (ob->spare == NULL) {
			*cause = EVREC_CAUSE_MEMORY;
			return NULL;
		}
	}
	target = admit(ob, occurrence, cause);
	if (target != NULL && occurrence->receipt != NULL &&
	    receipts_add(&target->receipts, *occurrence->receipt, ob->spare)) {
		ob->spare = NULL;
	}
	return target;
}

/* For an occurrence that has a time or a receipt, or is silent. */
static __attribute__((noinline)) bool submit_rare(struct outbox *ob, const struct occurrence *occurrence,
                                                  enum evrec_cause *cause)
{
	const uint32_t n = !occurrence->silent;
	struct entry *target;
	bool wake, deferred, wanted;
	size_t waited;
	int64_t look;

	(void)pthread_mutex_lock(&ob->lock);
	ob->stats.submitted += n;
	waited = ob->gather.len;
	look = deferred_look(ob);
	wanted = outbox_wants_memory(ob);
	target = admit_rare(ob, occurrence, cause);
	deferred = target != NULL && target->deferred;
	if (target != NULL) {
		target->count += n;
		target->has_own = target->has_own || (n != 0 && occurrence->receipt == NULL);
		*(deferred ? &ob->stats.counted : &ob->stats.pending) += n;
		journal_change(ob, target);
	} else {
		count_refused(ob, *cause, n);
	}
	wake = waiting_needs_driver(ob, waited) || (occurrence->due != 0 && deferred_look(ob) < look) ||
	       outbox_wants_memory(ob) != wanted;
	if (occurrence->due != 0 && occurrence->deferred != NULL) {
		*occurrence->deferred = deferred;
	}
	outbox_unlock_and_wake(ob, wake);
	return target != NULL;
}

bool outbox_submit(struct outbox *ob, const struct occurrence *occurrence, enum evrec_cause *cause)
{
	struct entry *target;
	size_t waited;
	bool wanted;

	/* One test for two fields: with one for each a duplicate takes one instruction more, of 1,307. */
	if (((uint64_t)occurrence->due | (uintptr_t)occurrence->receipt) != 0 || occurrence->silent) {
		return submit_rare(ob, occurrence, cause);
	}
	(void)pthread_mutex_lock(&ob->lock);
	ob->stats.submitted++;
	waited = ob->gather.len;
	wanted = outbox_wants_memory(ob);
	target = admit(ob, occurrence, cause);
	if (target != NULL) {
		target->count++;
		target->has_own = true;
		ob->stats.pending++;
		journal_change(ob, target);
	} else {
		count_refused(ob, *cause, 1);
	}
	outbox_unlock_and_wake(ob, ob->gather.len != waited &&
	                                   (waiting_needs_driver(ob, waited) || outbox_wants_memory(ob) != wanted));
	return target != NULL;
}

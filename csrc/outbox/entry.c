#include "outbox/entry.h"

#include "base/phase.h"

static const unsigned legal_steps[ENTRY_STATES] = {
	[ENTRY_WAITING] = PHASE_BIT(ENTRY_FOLLOWING) | PHASE_BIT(ENTRY_DEFERRED) | PHASE_BIT(ENTRY_IN_FLIGHT) |
	                  PHASE_BIT(ENTRY_BACKOFF) | PHASE_BIT(ENTRY_KEPT) | PHASE_BIT(ENTRY_ANSWERED) |
	                  PHASE_BIT(ENTRY_QUEUED) | PHASE_BIT(ENTRY_HELD),
	[ENTRY_QUEUED] = PHASE_BIT(ENTRY_WAITING) | PHASE_BIT(ENTRY_KEPT) | PHASE_BIT(ENTRY_ANSWERED),
	[ENTRY_HELD] = PHASE_BIT(ENTRY_BACKOFF) | PHASE_BIT(ENTRY_IN_FLIGHT) | PHASE_BIT(ENTRY_KEPT) |
	               PHASE_BIT(ENTRY_ANSWERED),
	[ENTRY_FOLLOWING] = PHASE_BIT(ENTRY_WAITING) | PHASE_BIT(ENTRY_DEFERRED) | PHASE_BIT(ENTRY_ANSWERED),
	[ENTRY_DEFERRED] = PHASE_BIT(ENTRY_WAITING),
	[ENTRY_BACKOFF] = PHASE_BIT(ENTRY_BACKOFF) | PHASE_BIT(ENTRY_IN_FLIGHT) | PHASE_BIT(ENTRY_KEPT) |
	                  PHASE_BIT(ENTRY_ANSWERED),
	[ENTRY_IN_FLIGHT] = PHASE_BIT(ENTRY_WAITING) | PHASE_BIT(ENTRY_BACKOFF) | PHASE_BIT(ENTRY_GIVEN_UP) |
	                    PHASE_BIT(ENTRY_KEPT) | PHASE_BIT(ENTRY_ANSWERED),
	[ENTRY_GIVEN_UP] = PHASE_BIT(ENTRY_ANSWERED),
	[ENTRY_KEPT] = PHASE_BIT(ENTRY_ANSWERED),
	[ENTRY_ANSWERED] = 0,
};

void entry_enter(struct entry *entry, enum entry_state state)
{
	phase_step(&entry->state, state, legal_steps);
}

void list_append(struct entry_list *list, struct entry *entry)
{
	entry->next = NULL;
	entry->prev = list->tail;
	if (list->tail == NULL) {
		list->head = entry;
	} else {
		list->tail->next = entry;
	}
	list->tail = entry;
}

void list_prepend(struct entry_list *list, struct entry *entry)
{
	entry->prev = NULL;
	entry->next = list->head;
	if (list->head == NULL) {
		list->tail = entry;
	} else {
		list->head->prev = entry;
	}
	list->head = entry;
}

void list_remove(struct entry_list *list, struct entry *entry)
{
	if (entry->prev == NULL) {
		list->head = entry->next;
	} else {
		entry->prev->next = entry->next;
	}
	if (entry->next == NULL) {
		list->tail = entry->prev;
	} else {
		entry->next->prev = entry->prev;
	}
	entry->prev = entry->next = NULL;
}

struct entry *list_shift(struct entry_list *list)
{
	struct entry *entry = list->head;

	if (entry != NULL) {
		list_remove(list, entry);
	}
	return entry;
}

enum verb entry_verb_in_row(const struct entry *entry, uint32_t count)
{
	return entry->missing || (entry->again && (entry->known || count > 1)) ? VERB_PATCH : entry->verb;
}

/*
 * The entry may be sent after its row was written, so the row is marked as maybe received. If an earlier try may have
 * been received, the server has at least that try's count.
 */
void entry_describe(const struct entry *entry, struct outbox_row *row)
{
	const struct entry *follow_up = entry->follow_up;
	const uint32_t count = entry->count + (follow_up == NULL ? 0 : follow_up->count);

	*row = (struct outbox_row){
		.row = entry->row,
		.verb = entry_verb_in_row(entry, count),
		.count = count,
		.maybe_received = entry->maybe_received != 0 ? entry->maybe_received : entry->count,
		.last = follow_up == NULL ? entry->last : follow_up->last,
	};
}

bool outbox_is_restored(const struct entry *entry)
{
	return (entry->id & ENTRY_RESTORED) != 0;
}

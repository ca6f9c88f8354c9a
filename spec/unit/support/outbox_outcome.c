#include "outbox_outcome.h"

static void apply_success(struct outbox_world *w, unsigned id, enum verb verb, bool memory)
{
	struct model_write *write = model_find(&w->m, id, true);

	if (verb == VERB_PATCH && write->maybe_late) {
		write->maybe_late = false;
		write->acked = write->n;
		write->due = w->now + WORLD_MAYBE_LATE_FOR;
		(void)model_return(&w->m, id, w->now, memory);
	} else {
		(void)model_acknowledge(&w->m, write, write->n);
	}
}

static void apply_retry(struct outbox_world *w, unsigned id, bool memory)
{
	struct model_write *write = model_find(&w->m, id, true);

	write->tries++;
	if (w->m.limits.max_tries != 0 && write->tries == w->m.limits.max_tries) {
		model_drop(&w->m, write, EVREC_CAUSE_MAX_TRIES);
	} else {
		(void)model_return(&w->m, id, w->now, memory);
	}
}

/* `missing`: a patch has not found it before, so another write may have stored it. */
static void apply_conflict(struct outbox_world *w, unsigned id, bool is_own, bool missing, bool memory)
{
	struct model_write *write = model_find(&w->m, id, true);

	if (is_own) {
		/* An earlier try stored it: its occurrences are written, later ones wait for a PATCH. */
		unsigned received = missing ? 0 : write->maybe_received;

		assert_true(write->maybe_received != 0);
		write = model_return(&w->m, id, w->now, memory);
		(void)model_acknowledge(&w->m, write, received);
	} else if (write->renamed) {
		model_drop(&w->m, write, EVREC_CAUSE_CONFLICT);
	} else if (!memory) {
		apply_retry(w, id, memory);
	} else {
		model_return(&w->m, id, w->now, memory)->renamed = true;
	}
}

static bool is_remembered(const evrec_answer *answer)
{
	return answer->terminating || answer->message[0] == '\0' || strstr(answer->message, "cannot") != NULL;
}

static void learn_block(struct outbox_world *w, unsigned id, enum verb verb, const evrec_answer *answer)
{
	bool success = answer->status == 200 || answer->status == 201;

	if (answer->status == 403 && is_remembered(answer)) {
		w->m.blocks[namespace_of(id)][verb].known = true;
		w->m.blocks[namespace_of(id)][verb].probing = false;
		w->m.blocks[namespace_of(id)][verb].since = w->now;
		w->m.blocks[namespace_of(id)][verb].cause =
			answer->terminating ? EVREC_CAUSE_TERMINATING : EVREC_CAUSE_FORBIDDEN;
	} else if (success ||
	           (w->m.blocks[namespace_of(id)][verb].probing && w->m.blocks[namespace_of(id)][verb].probe == id)) {
		w->m.blocks[namespace_of(id)][verb].known = w->m.blocks[namespace_of(id)][verb].probing = false;
	}
}

static void model_answered(struct outbox_world *w, unsigned id, enum verb verb, const evrec_answer *answer, bool is_own,
                           bool missing, bool memory)
{
	struct model_write *write = model_find(&w->m, id, true);
	bool may_be_received =
		(answer->status == 0 && !answer->unsent) || answer->status == 408 || answer->status >= 500;

	if (verb == VERB_CREATE && may_be_received && write->maybe_received == 0) {
		write->maybe_received = write->n;
	}
	write->maybe_late = write->maybe_late || (verb == VERB_PATCH && answer->maybe_late);
	learn_block(w, id, verb, answer);
	switch (answer->status) {
	case 200:
	case 201:
		apply_success(w, id, verb, memory);
		break;
	case 403:
		model_drop(&w->m, write, answer->terminating ? EVREC_CAUSE_TERMINATING : EVREC_CAUSE_FORBIDDEN);
		break;
	case 404:
		assert_int_equal(verb, VERB_PATCH);
		write = model_return(&w->m, id, w->now, memory);
		(void)model_acknowledge(&w->m, write, write->acked);
		break;
	case 409:
		if (verb == VERB_PATCH) {
			apply_retry(w, id, memory);
		} else {
			apply_conflict(w, id, is_own, missing, memory);
		}
		break;
	case 422:
		model_drop(&w->m, write, EVREC_CAUSE_REJECTED);
		break;
	default:
		apply_retry(w, id, memory);
		break;
	}
}

static void model_adopted(struct outbox_world *w, unsigned id, bool memory)
{
	const evrec_answer taken = { .status = 409 };

	learn_block(w, id, VERB_CREATE, &taken);
	model_return(&w->m, id, w->now, memory)->maybe_received = 0;
}

static void answer_adopt(struct outbox_world *w, struct entry *entry, const struct stored_event *found)
{
	struct outcome outcome = { .verdict = VERDICT_ADOPT, .base = found->base };

	snprintf(outcome.name, sizeof(outcome.name), "%s", found->name);
	model_adopted(w, (unsigned)entry->id, !fake_writes.no_memory);
	outbox_answer(w->ob, entry, &outcome, w->now);
}

void world_answer(struct outbox_world *w, size_t slot)
{
	struct entry *entry = w->in_flight[slot];
	const unsigned id = (unsigned)entry->id;
	const enum verb verb = entry->verb;
	const bool missing = entry->missing;
	evrec_answer answer = { 0 };
	const struct stored_event *there, *found = world_find_to_adopt(w, entry);

	w->in_flight[slot] = NULL;
	if (found == NULL) {
		world_try(w, entry, &answer);
	}
	there = world_find(w, ((struct fake_write *)entry->item)->name);
	fake_writes.no_memory = !w->healthy && world_below(w, 20) == 0;
	if (found != NULL) {
		answer_adopt(w, entry, found);
	} else {
		model_answered(w, id, verb, &answer, there != NULL && there->id == id, missing, !fake_writes.no_memory);
		answer_entry_as_kubernetes(w->ob, entry, &answer, w->now);
	}
	fake_writes.no_memory = false;
}

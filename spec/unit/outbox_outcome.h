/*
 * outbox_outcome.h - what should come of an answer, in the model.
 */
#ifndef EVREC_OUTBOX_OUTCOME_H
#define EVREC_OUTBOX_OUTCOME_H

#include "outbox_world.h"

static inline void done(struct world *w, unsigned id, enum verb verb, bool memory)
{
	struct model_write *write = model_find(&w->m, id, true);

	if (verb == VERB_PATCH && write->lingers) {
		write->lingers = false;
		write->told = write->n;
		write->due = w->now + LINGERING;
		(void)model_return(&w->m, id, memory);
	} else {
		(void)model_acknowledge(&w->m, write, write->n);
	}
}

static inline void again(struct world *w, unsigned id, bool memory)
{
	struct model_write *write = model_find(&w->m, id, true);

	write->tries++;
	if (w->m.limits.max_tries != 0 && write->tries == w->m.limits.max_tries) {
		model_drop(&w->m, write, EVREC_CAUSE_MAX_TRIES);
	} else {
		(void)model_return(&w->m, id, memory);
	}
}

static inline void taken(struct world *w, unsigned id, bool is_own, bool memory)
{
	struct model_write *write = model_find(&w->m, id, true);

	if (is_own) {
		/* Found again: what it carried is written, what has come since is to be patched. */
		unsigned arrived = write->arrived;

		assert_true(arrived != 0);
		write = model_return(&w->m, id, memory);
		(void)model_acknowledge(&w->m, write, arrived);
	} else if (write->renamed) {
		model_drop(&w->m, write, EVREC_CAUSE_CONFLICT);
	} else if (!memory) {
		again(w, id, memory);
	} else {
		model_return(&w->m, id, memory)->renamed = true;
	}
}

static inline bool is_remembered(const evrec_answer *answer)
{
	return answer->terminating || answer->message[0] == '\0' || strstr(answer->message, "cannot") != NULL;
}

static inline void learn(struct world *w, unsigned id, enum verb verb, const evrec_answer *answer)
{
	bool success = answer->status == 200 || answer->status == 201;

	if (answer->status == 403 && is_remembered(answer)) {
		w->m.places[place_of(id)][verb].known = true;
		w->m.places[place_of(id)][verb].probing = false;
		w->m.places[place_of(id)][verb].since = w->now;
		w->m.places[place_of(id)][verb].cause =
			answer->terminating ? EVREC_CAUSE_TERMINATING : EVREC_CAUSE_FORBIDDEN;
	} else if (success ||
	           (w->m.places[place_of(id)][verb].probing && w->m.places[place_of(id)][verb].probe == id)) {
		w->m.places[place_of(id)][verb].known = w->m.places[place_of(id)][verb].probing = false;
	}
}

static inline void answered(struct world *w, unsigned id, enum verb verb, const evrec_answer *answer, bool is_own,
                            bool memory)
{
	struct model_write *write = model_find(&w->m, id, true);
	bool may_have_arrived =
		(answer->status == 0 && !answer->unsent) || answer->status == 408 || answer->status >= 500;

	if (verb == VERB_CREATE && may_have_arrived && write->arrived == 0) {
		write->arrived = write->n;
	}
	write->lingers = write->lingers || (verb == VERB_PATCH && answer->lingers);
	learn(w, id, verb, answer);
	switch (answer->status) {
	case 200:
	case 201:
		done(w, id, verb, memory);
		break;
	case 403:
		model_drop(&w->m, write, answer->terminating ? EVREC_CAUSE_TERMINATING : EVREC_CAUSE_FORBIDDEN);
		break;
	case 404:
		assert_int_equal(verb, VERB_PATCH);
		write = model_return(&w->m, id, memory);
		(void)model_acknowledge(&w->m, write, write->told);
		break;
	case 409:
		if (verb == VERB_PATCH) {
			again(w, id, memory);
		} else {
			taken(w, id, is_own, memory);
		}
		break;
	case 422:
		model_drop(&w->m, write, EVREC_CAUSE_REJECTED);
		break;
	default:
		again(w, id, memory);
		break;
	}
}

#endif

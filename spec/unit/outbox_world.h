/*
 * outbox_world.h - the world around an outbox under test: a server that fails in every way it can and knows what it
 * holds, and what the model makes of each answer.
 */
#ifndef EVREC_OUTBOX_WORLD_H
#define EVREC_OUTBOX_WORLD_H

#include "outbox_model.h"

#define IDS 9
#define EVENTS 256
#define FLYING 4
#define LIFE 12 /* ids between one life's and the next one's, which are of the same places and kinds */
#define ROWS 64

struct stored {
	char name[64];
	unsigned id; /* 0: somebody else's */
	unsigned count;
	bool there;
};

/* What a spool has of an event; its id is the number of its row. */
struct row {
	struct outbox_saved saved;
	struct item item;
	bool there, loaded;
};

struct world {
	struct outbox *ob;
	unsigned life;
	struct row rows[ROWS];
	struct model m;
	uint64_t random;
	int64_t now;
	bool healthy;
	bool foreign; /* some names are taken; then nothing is dropped that was taken in */
	struct {
		char name[64]; /* what the lane knows */
		unsigned count;
		bool accepted; /* one of its occurrences, by the outbox */
	} lane[IDS + 1];
	struct stored server[EVENTS];
	struct entry *flying[FLYING];
	unsigned chosen;
};

static inline unsigned below(struct world *w, unsigned n)
{
	return (unsigned)(unit_random(&w->random) % n);
}

/* The id of the lane's n-th event. */
static inline unsigned id_of(const struct world *w, unsigned n)
{
	return w->life * LIFE + n;
}

static inline bool is_taken(const struct world *w, unsigned id)
{
	return w->foreign && id % 4 == 0;
}

static inline bool is_important(const struct world *w, unsigned id)
{
	return !w->foreign && id % 3 == 0;
}

static inline unsigned place_of(unsigned id)
{
	return id % MODEL_PLACES;
}

/* ---- the server ---- */

static inline struct stored *find(struct world *w, const char *name)
{
	for (size_t i = 0; i < EVENTS; i++) {
		if (w->server[i].there && strcmp(w->server[i].name, name) == 0) {
			return &w->server[i];
		}
	}
	return NULL;
}

static inline void store(struct world *w, const char *name, unsigned id, unsigned count)
{
	struct stored *free_slot = NULL;

	for (size_t i = 0; i < EVENTS; i++) {
		/* Not twice. */
		assert_false(w->server[i].there && id != 0 && w->server[i].id == id);
		if (!w->server[i].there) {
			free_slot = &w->server[i];
		}
	}
	assert_non_null(free_slot);
	*free_slot = (struct stored){ .id = id, .count = count, .there = true };
	snprintf(free_slot->name, sizeof(free_slot->name), "%s", name);
}

/* What an API server does with it; `answer`: that is heard. */
static inline int serve(struct world *w, const struct entry *entry, evrec_answer *answer)
{
	const struct item *item = entry->item;
	struct stored *event = find(w, item->name);
	char name[64];

	if (entry->verb == VERB_PATCH) {
		if (event == NULL) {
			return 404;
		}
		assert_int_equal(event->id, (unsigned)entry->id);
		assert_true(item->count >= event->count);
		event->count = item->count;
		return 200;
	}
	if (event != NULL) {
		return 409;
	}
	memcpy(name, item->name, sizeof(name));
	if (answer != NULL && below(w, 10) == 0) {
		/* It has a mind of its own. */
		snprintf(name, sizeof(name), "%c/chosen-%u", (char)('a' + place_of((unsigned)entry->id)), ++w->chosen);
		memcpy(answer->name, name, sizeof(name));
	}
	store(w, name, (unsigned)entry->id, item->count);
	return 201;
}

static inline void refuse(struct world *w, evrec_answer *answer)
{
	static const char *const messages[] = {
		"",
		"events is forbidden: User \"u\" cannot create resource \"events\" in API group \"\"",
		"events \"x\" is forbidden: User \"u\" cannot patch resource \"events\" in API group \"\"",
		"events \"x\" is forbidden: exceeded quota",
		"admission webhook \"w\" denied the request: no",
	};

	answer->status = 403;
	answer->terminating = below(w, 4) == 0;
	snprintf(answer->message, sizeof(answer->message), "%s", messages[below(w, 5)]);
}

/* What comes of a try: the server's answer, or another fault. */
static inline void try(struct world *w, const struct entry *entry, evrec_answer *answer)
{
	const int again[] = { 429, 401, 503, 500, 408 };
	bool taken = is_taken(w, (unsigned)entry->id) && ((struct item *)entry->item)->name[2] == 'n';
	unsigned dice = w->healthy ? 0 : below(w, 13);

	/*
	 * Two things that nobody can tell from what is hoped for are left out: a lost answer about a name that is
	 * somebody else's, and a patch of such a name after its creation was refused for another reason.
	 */
	if (taken && dice > 7) {
		dice = 7;
	}
	switch (dice) {
	case 8:
		answer->status = 422;
		break;
	case 9: /* arrived, and the answer lost */
		(void)serve(w, entry, NULL);
		break;
	case 10:
		answer->unsent = below(w, 2) == 0;
		break;
	case 11:
		answer->status = entry->verb == VERB_PATCH && below(w, 6) == 0 ? 409 : again[below(w, 5)];
		if (answer->status >= 500 && below(w, 2) == 0) {
			(void)serve(w, entry, NULL);
		}
		break;
	case 12:
		if (!w->foreign) {
			refuse(w, answer);
			break;
		}
		/* fallthrough */
	default:
		answer->status = serve(w, entry, answer);
		break;
	}
}

/* ---- what should come of an answer ---- */

static inline void done(struct world *w, unsigned id)
{
	struct model_write *write = model_find(&w->m, id, true);

	w->m.written += write->n;
	model_remove(&w->m, write);
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
		w->m.written += arrived;
		write->n -= arrived;
		write->arrived = 0;
		if (write->n == 0) {
			model_remove(&w->m, write);
		}
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
	learn(w, id, verb, answer);
	switch (answer->status) {
	case 200:
	case 201:
		done(w, id);
		break;
	case 403:
		model_drop(&w->m, write, answer->terminating ? EVREC_CAUSE_TERMINATING : EVREC_CAUSE_FORBIDDEN);
		break;
	case 404:
		assert_int_equal(verb, VERB_PATCH);
		model_return(&w->m, id, memory)->arrived = 0;
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

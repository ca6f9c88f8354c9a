/*
 * outbox_world.h - the world around an outbox under test: a server that fails in every way it can and knows what it
 * holds.
 */
#ifndef EVREC_OUTBOX_WORLD_H
#define EVREC_OUTBOX_WORLD_H

#include "outbox_model.h"

#define IDS 9
#define EVENTS 256
#define FLYING 4
#define LIFE 12 /* ids between one life's and the next one's, which are of the same places and kinds */
#define ROWS 64
#define LATE 8
#define LINGERING (2 * EVREC_SECOND)

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

/* A PATCH that the server hangs with. */
struct late {
	struct item item;
	unsigned id; /* 0: none */
	int64_t due; /* when it is carried out at the latest; INT64_MAX: not before a later one was answered */
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
	unsigned acknowledged[MODEL_IDS]; /* the last count of an event that was, by the server */
	struct late late[LATE];
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

/* The server hangs with this one; false: it does with too many by now. */
static inline bool detain(struct world *w, const struct entry *entry)
{
	for (size_t i = 0; i < LATE; i++) {
		if (w->late[i].id == 0) {
			w->late[i].item = *(const struct item *)entry->item;
			w->late[i].id = (unsigned)entry->id;
			w->late[i].due = INT64_MAX;
			return true;
		}
	}
	return false;
}

/* One of them is carried out at last, whatever others have told since. */
static inline void carry_out(struct world *w, struct late *late)
{
	struct stored *event = late->id == 0 ? NULL : find(w, late->item.name);

	if (event != NULL) {
		assert_int_equal(event->id, late->id);
		event->count = late->item.count;
	}
	late->id = 0;
}

/*
 * No PATCH is late any more of an event that is gone, as one that is made anew under its name is not told again; or
 * whose write was dropped: that does not outlive it.
 */
static inline void release(struct world *w, unsigned id)
{
	for (size_t i = 0; i < LATE; i++) {
		w->late[i].id = w->late[i].id == id ? 0 : w->late[i].id;
	}
}

/* An event's time to live is over. */
static inline void expire(struct world *w, struct stored *event)
{
	if (event->there && event->id != 0) {
		event->there = false;
		release(w, event->id);
	}
}

static inline void release_dropped(struct world *w)
{
	for (unsigned id = 1; id < MODEL_IDS; id++) {
		if (w->m.given_up[id]) {
			release(w, id);
			w->acknowledged[id] = 0; /* one that was late may have set it back by now */
			w->m.given_up[id] = false;
		}
	}
}

/* The server has told that it has this one: what is late of before is so no longer than that. */
static inline void acknowledge(struct world *w, const struct entry *entry)
{
	w->acknowledged[(unsigned)entry->id] = ((const struct item *)entry->item)->count;
	for (size_t i = 0; i < LATE; i++) {
		if (w->late[i].id == (unsigned)entry->id && w->late[i].due == INT64_MAX) {
			w->late[i].due = w->now + (int64_t)below(w, 2000) * (EVREC_SECOND / 1000);
		}
	}
}

static inline void pass(struct world *w, int64_t time)
{
	w->now += time;
	for (size_t i = 0; i < LATE; i++) {
		if (w->late[i].due <= w->now) {
			carry_out(w, &w->late[i]);
		}
	}
}

/* Whatever the server still hangs with. */
static inline void assert_none_set_back(struct world *w)
{
	for (size_t i = 0; i < LATE; i++) {
		carry_out(w, &w->late[i]);
	}
	for (size_t i = 0; i < EVENTS; i++) {
		assert_true(!w->server[i].there || w->server[i].count >= w->acknowledged[w->server[i].id]);
	}
}

/* What an API server does with it; `answer`: that is heard. */
static inline int serve(struct world *w, const struct entry *entry, evrec_answer *answer)
{
	const struct item *item = entry->item;
	struct stored *event = find(w, item->name);
	char name[64];

	if (entry->verb == VERB_PATCH) {
		if (event == NULL) {
			release(w, (unsigned)entry->id);
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

/* The server does, with a PATCH, and may have the same by another connection; a POST does not arrive. */
static inline void hang(struct world *w, const struct entry *entry, evrec_answer *answer)
{
	if (entry->verb != VERB_PATCH || !detain(w, entry)) {
		return;
	}
	answer->lingers = true;
	if (below(w, 3) == 0) {
		answer->status = serve(w, entry, answer);
	} else if (below(w, 2) == 0) {
		answer->status = 504;
	}
}

/* What comes of a try: the server's answer, or another fault. */
static inline void try(struct world *w, const struct entry *entry, evrec_answer *answer)
{
	const int again[] = { 429, 401, 503, 500, 408 };
	bool taken = is_taken(w, (unsigned)entry->id) && ((struct item *)entry->item)->name[2] == 'n';
	unsigned dice = w->healthy ? 0 : below(w, 14);

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
		answer->lingers = below(w, 2) == 0;
		break;
	case 10:
		answer->unsent = below(w, 2) == 0;
		answer->lingers = !answer->unsent && below(w, 2) == 0;
		break;
	case 11:
		answer->status = entry->verb == VERB_PATCH && below(w, 6) == 0 ? 409 : again[below(w, 5)];
		if (answer->status >= 500 && below(w, 2) == 0) {
			(void)serve(w, entry, NULL);
		}
		break;
	case 12:
		hang(w, entry, answer);
		break;
	case 13:
		if (!w->foreign) {
			refuse(w, answer);
			break;
		}
		/* fallthrough */
	default:
		answer->status = serve(w, entry, answer);
		break;
	}
	if (answer->status == 200 || answer->status == 201) {
		acknowledge(w, entry);
	}
}

#endif

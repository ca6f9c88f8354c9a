#include "outbox_world.h"

unsigned world_below(struct outbox_world *w, unsigned n)
{
	return (unsigned)(unit_random(&w->random) % n);
}

unsigned world_id(const struct outbox_world *w, unsigned n)
{
	return w->life * WORLD_IDS_PER_LIFE + n;
}

bool world_is_taken(const struct outbox_world *w, unsigned id)
{
	return w->foreign && id % 4 == 0;
}

bool world_is_important(const struct outbox_world *w, unsigned id)
{
	return !w->foreign && id % 3 == 0;
}

unsigned namespace_of(unsigned id)
{
	return id % MODEL_NAMESPACES;
}

void world_collected(struct outbox_world *w, const struct entry *entry)
{
	tally_collect(&w->tally, entry, w->receipts == 2 && !outbox_is_restored(entry));
}

struct stored_event *world_find(struct outbox_world *w, const char *name)
{
	for (size_t i = 0; i < WORLD_EVENTS; i++) {
		if (w->server[i].there && strcmp(w->server[i].name, name) == 0) {
			return &w->server[i];
		}
	}
	return NULL;
}

struct stored_event *world_store(struct outbox_world *w, const char *name, unsigned id, unsigned count)
{
	struct stored_event *free_slot = NULL;

	for (size_t i = 0; i < WORLD_EVENTS; i++) {
		/* No event is stored twice. */
		assert_false(w->server[i].there && id != 0 && w->server[i].id == id);
		if (!w->server[i].there) {
			free_slot = &w->server[i];
		}
	}
	assert_non_null(free_slot);
	*free_slot = (struct stored_event){ .id = id, .count = count, .there = true };
	snprintf(free_slot->name, sizeof(free_slot->name), "%s", name);
	return free_slot;
}

bool world_hold_patch(struct outbox_world *w, const struct entry *entry)
{
	for (size_t i = 0; i < WORLD_LATE; i++) {
		if (w->late[i].id == 0) {
			w->late[i].item = *(const struct fake_write *)entry->item;
			w->late[i].id = (unsigned)entry->id;
			w->late[i].due = INT64_MAX;
			return true;
		}
	}
	return false;
}

void world_apply_patch(struct outbox_world *w, struct late_patch *late)
{
	struct stored_event *event = late->id == 0 ? NULL : world_find(w, late->item.name);

	if (event != NULL) {
		assert_int_equal(event->id, late->id);
		event->count = late->item.count;
	}
	late->id = 0;
}

/*
 * Discards late PATCHes of an event that is gone or whose write was dropped. evrec cannot know of them: it does not
 * repeat PATCHes to an event created anew, and a write's doubt ends with the write.
 */
static void world_release_patches(struct outbox_world *w, unsigned id)
{
	for (size_t i = 0; i < WORLD_LATE; i++) {
		w->late[i].id = w->late[i].id == id ? 0 : w->late[i].id;
	}
}

void world_expire(struct outbox_world *w, struct stored_event *event)
{
	if (event->there && event->id != 0) {
		event->there = false;
		world_release_patches(w, event->id);
	}
}

void world_release_dropped(struct outbox_world *w)
{
	for (unsigned id = 1; id < MODEL_IDS; id++) {
		if (w->m.forgot_late[id]) {
			world_release_patches(w, id);
			w->acknowledged[id] = 0; /* a late PATCH may have lowered the count by now */
			w->m.forgot_late[id] = false;
		}
	}
}

/* The server has acknowledged the event; its late PATCHes are carried out within 2 s of now. */
static void world_acknowledge(struct outbox_world *w, const struct entry *entry)
{
	w->acknowledged[(unsigned)entry->id] = ((const struct fake_write *)entry->item)->count;
	for (size_t i = 0; i < WORLD_LATE; i++) {
		if (w->late[i].id == (unsigned)entry->id && w->late[i].due == INT64_MAX) {
			w->late[i].due = w->now + (int64_t)world_below(w, 2000) * (EVREC_SECOND / 1000);
		}
	}
}

void world_advance(struct outbox_world *w, int64_t time)
{
	w->now += time;
	for (size_t i = 0; i < WORLD_LATE; i++) {
		if (w->late[i].due <= w->now) {
			world_apply_patch(w, &w->late[i]);
		}
	}
}

void world_check_counts_kept(struct outbox_world *w)
{
	for (size_t i = 0; i < WORLD_LATE; i++) {
		world_apply_patch(w, &w->late[i]);
	}
	for (size_t i = 0; i < WORLD_EVENTS; i++) {
		assert_true(!w->server[i].there || w->server[i].count >= w->acknowledged[w->server[i].id]);
	}
}

void world_check_complete(struct outbox_world *w)
{
	unsigned found[WORLD_IDS + 1] = { 0 };

	for (size_t i = 0; i < WORLD_EVENTS; i++) {
		const struct stored_event *event = &w->server[i];

		if (event->there && event->id > world_id(w, 0)) {
			found[event->id - world_id(w, 0)]++;
			assert_int_equal(event->count, w->pipeline[event->id - world_id(w, 0)].count);
		}
	}
	for (unsigned n = 1; n <= WORLD_IDS; n++) {
		assert_int_equal(found[n], 1);
	}
}

int world_serve(struct outbox_world *w, const struct entry *entry, evrec_answer *answer)
{
	const struct fake_write *item = entry->item;
	struct stored_event *event = world_find(w, item->name);
	char name[64];

	if (entry->verb == VERB_PATCH) {
		if (event == NULL) {
			world_release_patches(w, (unsigned)entry->id);
			return 404;
		}
		assert_int_equal(event->id, (unsigned)entry->id);
		assert_int_equal(event->base, item->base);
		assert_true(item->count >= event->count);
		event->count = item->count;
		return 200;
	}
	if (event != NULL) {
		return 409;
	}
	memcpy(name, item->name, sizeof(name));
	if (answer != NULL && world_below(w, 10) == 0) {
		/* The server chooses a name itself. */
		snprintf(name, sizeof(name), "%c/chosen-%u", (char)('a' + namespace_of((unsigned)entry->id)),
		         ++w->chosen);
		memcpy(answer->name, name, sizeof(name));
	}
	world_store(w, name, (unsigned)entry->id, item->count)->base = item->base;
	return 201;
}

const struct stored_event *world_find_to_adopt(struct outbox_world *w, const struct entry *entry)
{
	const unsigned id = (unsigned)entry->id;
	struct stored_event *event;
	char name[64];

	if (entry->verb != VERB_CREATE || ((const struct fake_write *)entry->item)->base != 0 || w->healthy ||
	    world_is_taken(w, id) || world_below(w, 8) != 0) {
		return NULL;
	}
	for (size_t i = 0; i < WORLD_EVENTS; i++) {
		if (w->server[i].there && w->server[i].id == id) {
			return NULL;
		}
	}
	snprintf(name, sizeof(name), "%c/found-%u", (char)('a' + namespace_of(id)), ++w->chosen);
	event = world_store(w, name, id, 0);
	event->base = 1 + world_below(w, 9);
	w->acknowledged[id] = 0; /* those were occurrences in another object, which is gone */
	return event;
}

/* 403: from authorization, admission, or a namespace that is being deleted. */
static void refuse(struct outbox_world *w, evrec_answer *answer)
{
	static const char *const messages[] = {
		"",
		"events is forbidden: User \"u\" cannot create resource \"events\" in API group \"\"",
		"events \"x\" is forbidden: User \"u\" cannot patch resource \"events\" in API group \"\"",
		"events \"x\" is forbidden: exceeded quota",
		"admission webhook \"w\" denied the request: no",
	};

	answer->status = 403;
	answer->terminating = world_below(w, 4) == 0;
	snprintf(answer->message, sizeof(answer->message), "%s", messages[world_below(w, 5)]);
}

/* The server keeps a PATCH for later, and may carry out a second sending of it; a POST is lost. */
static void hang(struct outbox_world *w, const struct entry *entry, evrec_answer *answer)
{
	if (entry->verb != VERB_PATCH || !world_hold_patch(w, entry)) {
		return;
	}
	answer->maybe_late = true;
	if (world_below(w, 3) == 0) {
		answer->status = world_serve(w, entry, answer);
	} else if (world_below(w, 2) == 0) {
		answer->status = 504;
	}
}

void world_try(struct outbox_world *w, const struct entry *entry, evrec_answer *answer)
{
	const int again[] = { 429, 401, 503, 500, 408 };
	bool taken = world_is_taken(w, (unsigned)entry->id) && ((struct fake_write *)entry->item)->name[2] == 'n';
	unsigned dice = w->healthy ? 0 : world_below(w, 14);

	/*
	 * Two cases are left out, since evrec cannot tell them from its own success: a lost answer about another
	 * client's name, and a PATCH of such a name after its POST was refused for another reason.
	 */
	if (taken && dice > 7) {
		dice = 7;
	}
	switch (dice) {
	case 8:
		answer->status = 422;
		break;
	case 9: /* the answer is lost */
		(void)world_serve(w, entry, NULL);
		answer->maybe_late = world_below(w, 2) == 0;
		break;
	case 10:
		answer->unsent = world_below(w, 2) == 0;
		answer->maybe_late = !answer->unsent && world_below(w, 2) == 0;
		break;
	case 11:
		answer->status = entry->verb == VERB_PATCH && world_below(w, 6) == 0 ? 409 : again[world_below(w, 5)];
		if (answer->status >= 500 && world_below(w, 2) == 0) {
			(void)world_serve(w, entry, NULL);
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
		answer->status = world_serve(w, entry, answer);
		break;
	}
	if (answer->status == 200 || answer->status == 201) {
		world_acknowledge(w, entry);
	}
}

/*
 * A lane, an outbox and a server that fails in every way it can, in random order. Whatever happened: the books balance
 * after every step, no event's count is ever lowered, and in the end the server holds each event once, complete.
 */
#include "items.h"

#define IDS 12
#define EVENTS 256
#define FLYING 4
#define WORLDS 300
#define STEPS 2000

struct stored {
	char name[64];
	unsigned id; /* 0: somebody else's */
	unsigned count;
	bool there;
};

struct world {
	struct outbox *ob;
	uint64_t random;
	int64_t now;
	bool healthy;
	struct {
		char name[64]; /* what the lane knows */
		unsigned count;
		bool accepted; /* one of its occurrences, by the outbox */
	} lane[IDS + 1];
	struct stored server[EVENTS];
	struct entry *flying[FLYING];
	unsigned chosen;
};

static unsigned below(struct world *w, unsigned n)
{
	return (unsigned)(unit_random(&w->random) % n);
}

static struct stored *find(struct world *w, const char *name)
{
	for (size_t i = 0; i < EVENTS; i++) {
		if (w->server[i].there && strcmp(w->server[i].name, name) == 0) {
			return &w->server[i];
		}
	}
	return NULL;
}

static void store(struct world *w, const char *name, unsigned id, unsigned count)
{
	for (size_t i = 0; i < EVENTS; i++) {
		if (!w->server[i].there) {
			w->server[i] = (struct stored){ .id = id, .count = count, .there = true };
			snprintf(w->server[i].name, sizeof(w->server[i].name), "%s", name);
			return;
		}
	}
	fail_msg("the server is full");
}

/* What an API server does with it. */
static int serve(struct world *w, const struct entry *entry, evrec_answer *answer)
{
	const struct item *item = entry->item;
	struct stored *event = find(w, item->name);
	const char *name = item->name;
	char chosen[64];

	if (entry->verb == VERB_PATCH) {
		if (event == NULL) {
			return 404;
		}
		assert_int_equal(event->id, entry->id);
		assert_true(item->count >= event->count);
		event->count = item->count;
		return 200;
	}
	if (event != NULL) {
		return 409;
	}
	if (answer != NULL && below(w, 10) == 0) {
		/* It has a mind of its own. */
		snprintf(chosen, sizeof(chosen), "chosen-%u", ++w->chosen);
		memcpy(answer->name, chosen, sizeof(chosen));
		name = chosen;
	}
	store(w, name, (unsigned)entry->id, item->count);
	return 201;
}

static bool is_foreign(unsigned id)
{
	return id % 4 == 0;
}

static void answer_one(struct world *w, size_t slot)
{
	struct entry *entry = w->flying[slot];
	evrec_answer answer = { 0 };
	const int again[] = { 429, 401, 503, 500, 408 };
	bool taken = is_foreign((unsigned)entry->id) && ((struct item *)entry->item)->name[0] == 'n';
	unsigned dice = w->healthy ? 0 : below(w, 12);

	/*
	 * Two things that nobody can tell from what is hoped for are left out: a lost answer about a name that is
	 * somebody else's, and a patch of such a name after its creation was refused for another reason.
	 */
	if (taken && dice > 7) {
		dice = 7;
	}
	w->flying[slot] = NULL;
	items_fail = !w->healthy && below(w, 20) == 0;
	switch (dice) {
	case 9: /* arrived, and the answer lost */
		(void)serve(w, entry, NULL);
		break;
	case 10:
		answer.unsent = below(w, 2) == 0;
		break;
	case 11:
		answer.status = again[below(w, 5)];
		if (answer.status >= 500 && below(w, 2) == 0) {
			(void)serve(w, entry, NULL);
		}
		break;
	case 8:
		answer.status = below(w, 2) == 0 ? 422 : 403;
		break;
	default:
		answer.status = serve(w, entry, &answer);
		break;
	}
	(void)outbox_answer(w->ob, entry, &answer, w->now);
	items_fail = false;
}

static void take_one(struct world *w)
{
	for (size_t i = 0; i < FLYING; i++) {
		if (w->flying[i] == NULL) {
			w->flying[i] = outbox_take(w->ob, w->now);
			if (w->flying[i] == NULL) {
				return;
			}
			for (size_t j = 0; j < FLYING; j++) {
				assert_true(i == j || w->flying[j] == NULL || w->flying[j]->id != w->flying[i]->id);
			}
			return;
		}
	}
}

static void collect_all(struct world *w)
{
	struct entry *entry;

	while ((entry = outbox_collect(w->ob)) != NULL) {
		if (entry->name[0] != '\0') {
			memcpy(w->lane[entry->id].name, entry->name, sizeof(w->lane[0].name));
		}
		assert_true((entry->item != NULL) == entry->dropped);
		outbox_recycle(w->ob, entry);
	}
}

static bool submit_one(struct world *w, unsigned id)
{
	struct item draft;
	enum evrec_cause cause;

	draft.count = ++w->lane[id].count;
	memcpy(draft.name, w->lane[id].name, sizeof(draft.name));
	if (!outbox_submit(w->ob, id, w->lane[id].accepted ? VERB_PATCH : VERB_CREATE, &draft, &cause)) {
		return false;
	}
	w->lane[id].accepted = true;
	return true;
}

static void expire_one(struct world *w)
{
	struct stored *event = &w->server[below(w, EVENTS)];

	event->there = event->there && event->id == 0;
}

static void step(struct world *w)
{
	switch (below(w, 10)) {
	case 0:
	case 1:
	case 2:
		items_fail = below(w, 30) == 0;
		(void)submit_one(w, 1 + below(w, IDS));
		items_fail = false;
		break;
	case 3:
	case 4:
		take_one(w);
		break;
	case 5:
	case 6:
	case 7: {
		size_t slot = below(w, FLYING);

		if (w->flying[slot] != NULL) {
			answer_one(w, slot);
		}
		break;
	}
	case 8:
		w->now += (int64_t)below(w, 2000) * (EVREC_SECOND / 1000);
		break;
	default:
		if (below(w, 4) == 0) {
			expire_one(w);
		} else if (below(w, 8) == 0) {
			outbox_hasten(w->ob, w->now);
		} else {
			collect_all(w);
		}
		break;
	}
	assert_equation(w->ob);
}

static void settle(struct world *w)
{
	w->healthy = true;
	while (!outbox_empty(w->ob)) {
		take_one(w);
		for (size_t i = 0; i < FLYING; i++) {
			if (w->flying[i] != NULL) {
				answer_one(w, i);
			}
		}
		w->now += EVREC_SECOND;
		assert_equation(w->ob);
	}
}

static void assert_complete(struct world *w)
{
	unsigned found[IDS + 1] = { 0 };

	for (size_t i = 0; i < EVENTS; i++) {
		const struct stored *event = &w->server[i];

		if (event->there && event->id != 0) {
			found[event->id]++;
			assert_int_equal(event->count, w->lane[event->id].count);
		}
	}
	for (unsigned id = 1; id <= IDS; id++) {
		assert_int_equal(found[id], 1);
	}
}

static void test_random_worlds(void **state)
{
	uint64_t seed = unit_seed();

	(void)state;
	for (unsigned i = 0; i < WORLDS; i++) {
		struct world w = { .random = seed + i };

		w.ob = outbox_new(&item_ops, 1 + below(&w, 2 * IDS), seed);
		for (unsigned id = 1; id <= IDS; id++) {
			snprintf(w.lane[id].name, sizeof(w.lane[id].name), "n%u", id);
			if (is_foreign(id)) {
				store(&w, w.lane[id].name, 0, 1);
			}
		}
		for (unsigned n = 0; n < STEPS; n++) {
			step(&w);
		}
		settle(&w);
		for (unsigned id = 1; id <= IDS; id++) {
			collect_all(&w);
			assert_true(submit_one(&w, id));
			settle(&w);
		}
		assert_complete(&w);
		outbox_free(w.ob);
		assert_int_equal(items_alive, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

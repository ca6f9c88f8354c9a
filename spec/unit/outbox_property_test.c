/*
 * An outbox under a random life: tiny bounds, events that come and come again, a server that fails in every way it can,
 * time that jumps; beside it the model of outbox_model.h and a server that knows what it holds. After every step the
 * books are the model's, occurrence for occurrence; an event's requests follow each other, none is created twice, no
 * count ever gets less but by a PATCH that the server had hung with, and not for good. Some have several lives, with a
 * spool in between: what one leaves, another takes up, once. In the end the server holds each event once, complete.
 *
 * EVREC_SEED=n EVREC_SEEDS=1 repeats the life that failed; EVREC_SEEDS is how many are tried.
 */
#include "outbox_lives.h"
#include "outbox_outcome.h"

#define STEPS 240
#define SEEDS 10000

static uint64_t failing; /* the seed at work */

static void answer_one(struct world *w, size_t slot)
{
	struct entry *entry = w->flying[slot];
	const unsigned id = (unsigned)entry->id;
	const enum verb verb = entry->verb;
	evrec_answer answer = { 0 };
	struct stored *there;

	w->flying[slot] = NULL;
	try(w, entry, &answer);
	there = find(w, ((struct item *)entry->item)->name);
	items_fail = !w->healthy && below(w, 20) == 0;
	answered(w, id, verb, &answer, there != NULL && there->id == id, !items_fail);
	(void)outbox_answer(w->ob, entry, &answer, w->now);
	items_fail = false;
}

/* The lane does of its own; it never knew what came from the spool. */
static void learn_name(struct world *w, const struct entry *entry)
{
	if (entry->name[0] != '\0' && entry->row == 0) {
		memcpy(w->lane[entry->id - id_of(w, 0)].name, entry->name, sizeof(w->lane[0].name));
	}
}

static void collect_all(struct world *w)
{
	struct entry *entry;

	while ((entry = outbox_collect(w->ob)) != NULL) {
		learn_name(w, entry);
		assert_true((entry->item != NULL) == entry->dropped);
		if (entry->dropped) {
			model_collect(&w->m, entry);
		}
		outbox_recycle(w->ob, entry);
	}
	assert_int_equal(w->m.gone_len, 0);
}

/* What outbox_take dropped by the way: it may drop what goes to places that refuse. */
static void collect_refused(struct world *w)
{
	struct entry *entry;

	while ((entry = outbox_collect(w->ob)) != NULL) {
		struct model_write *write = model_find(&w->m, (unsigned)entry->id, false);
		unsigned place = place_of((unsigned)entry->id);

		learn_name(w, entry);
		/* The older of two that there was no memory to merge. */
		for (size_t i = 0; write != NULL && i < w->m.len; i++) {
			if (w->m.writes[i].id == (unsigned)entry->id && !w->m.writes[i].flying &&
			    w->m.writes[i].n - w->m.writes[i].told == entry->count) {
				write = &w->m.writes[i];
				break;
			}
		}
		assert_non_null(write);
		assert_true(w->m.places[place][entry->verb].known);
		assert_true(w->now - w->m.places[place][entry->verb].since < PLACES_TERM);
		assert_int_equal(entry->cause, w->m.places[place][entry->verb].cause);
		model_drop(&w->m, write, entry->cause);
		if (entry->dropped) {
			model_collect(&w->m, entry);
		}
		outbox_recycle(w->ob, entry);
	}
}

static void check_taken(struct world *w, const struct entry *entry, const struct model_write *write)
{
	const unsigned id = (unsigned)entry->id, place = place_of(id);

	for (size_t i = 0; i < FLYING; i++) {
		assert_true(w->flying[i] == NULL || (unsigned)w->flying[i]->id != id);
	}
	assert_non_null(write);
	assert_int_equal(write->n, entry->count);
	assert_true(w->now >= write->due);
	if (w->m.places[place][entry->verb].known) {
		assert_true(w->now - w->m.places[place][entry->verb].since >= PLACES_TERM);
		assert_false(w->m.places[place][entry->verb].probing);
		w->m.places[place][entry->verb].probing = true;
		w->m.places[place][entry->verb].probe = id;
	}
}

static void take_one(struct world *w)
{
	struct model_write *write = NULL;
	struct entry *entry;
	size_t slot = 0;

	while (slot < FLYING && w->flying[slot] != NULL) {
		slot++;
	}
	(void)outbox_expire(w->ob, w->now);
	model_expire(&w->m, w->now);
	model_check(&w->m, w->ob);
	if (slot == FLYING) {
		return;
	}
	collect_all(w);
	entry = outbox_take(w->ob, w->now);
	collect_refused(w);
	if (entry != NULL) {
		for (size_t i = 0; i < w->m.len && write == NULL; i++) {
			if (w->m.writes[i].id == (unsigned)entry->id && !w->m.writes[i].flying) {
				write = &w->m.writes[i];
			}
		}
		check_taken(w, entry, write);
		write->flying = true;
		write->due = 0;
		w->flying[slot] = entry;
	}
}

static bool submit_one(struct world *w, unsigned n)
{
	struct item draft = { .count = ++w->lane[n].count, .size = below(w, 300) };
	const unsigned id = id_of(w, n);
	const struct occurrence occurrence = { .id = id,
		                               .verb = w->lane[n].accepted ? VERB_PATCH : VERB_CREATE,
		                               .important = is_important(w, id),
		                               .now = w->now,
		                               .draft = &draft };
	enum evrec_cause cause;
	bool accepted, expected;

	memcpy(draft.name, w->lane[n].name, sizeof(draft.name));
	expected = model_submit(&w->m, id, occurrence.important, draft.size, w->now, !items_fail);
	accepted = outbox_submit(w->ob, &occurrence, &cause);
	assert_int_equal(accepted, expected);
	w->lane[n].accepted = w->lane[n].accepted || accepted;
	return accepted;
}

static void step(struct world *w)
{
	struct stored *event = &w->server[below(w, EVENTS)];
	size_t slot = below(w, FLYING);

	switch (below(w, 12)) {
	case 0:
	case 1:
	case 2:
	case 3:
		items_fail = below(w, 30) == 0;
		(void)submit_one(w, 1 + below(w, IDS));
		items_fail = false;
		break;
	case 4:
	case 5:
		take_one(w);
		break;
	case 6:
	case 7:
	case 8:
		if (w->flying[slot] != NULL) {
			answer_one(w, slot);
		}
		break;
	case 9:
		pass(w, (int64_t)below(w, below(w, 20) == 0 ? 40000 : 2000) * (EVREC_SECOND / 1000));
		break;
	case 10:
		forget_rows(w);
		(void)restore_rows(w);
		break;
	default:
		if (below(w, 4) == 0) {
			expire(w, event);
		} else if (below(w, 4) == 0) {
			carry_out(w, &w->late[below(w, LATE)]);
		} else if (below(w, 8) == 0) {
			outbox_hasten(w->ob);
		} else {
			collect_all(w);
		}
		break;
	}
	model_check(&w->m, w->ob);
	release_dropped(w);
}

static void settle(struct world *w)
{
	w->healthy = true;
	for (unsigned rounds = 0; !outbox_empty(w->ob); rounds++) {
		assert_true(rounds < 2000); /* whatever waits, moves */
		take_one(w);
		for (size_t i = 0; i < FLYING; i++) {
			if (w->flying[i] != NULL) {
				answer_one(w, i);
			}
		}
		release_dropped(w);
		pass(w, EVREC_SECOND);
		model_check(&w->m, w->ob);
	}
}

static void assert_complete(struct world *w)
{
	unsigned found[IDS + 1] = { 0 };

	for (size_t i = 0; i < EVENTS; i++) {
		const struct stored *event = &w->server[i];

		if (event->there && event->id > id_of(w, 0)) {
			found[event->id - id_of(w, 0)]++;
			assert_int_equal(event->count, w->lane[event->id - id_of(w, 0)].count);
		}
	}
	for (unsigned n = 1; n <= IDS; n++) {
		assert_int_equal(found[n], 1);
	}
}

/* The server gets well, what the spool has is written or too old, and every event happens once more. */
static void end_well(struct world *w)
{
	bool all;

	do {
		all = restore_rows(w);
		settle(w);
		collect_all(w);
		forget_rows(w);
	} while (!all);
	for (size_t i = 0; i < ROWS; i++) {
		assert_false(w->rows[i].there);
	}
	assert_none_set_back(w);
	pass(w, PLACES_TERM);
	for (unsigned n = 1; n <= IDS; n++) {
		collect_all(w);
		assert_true(submit_one(w, n));
		settle(w);
	}
	assert_none_set_back(w);
	assert_complete(w);
}

static void end_at_once(struct world *w)
{
	outbox_close(w->ob);
	outbox_drop_all(w->ob, EVREC_CAUSE_CLOSED);
	outbox_cut_off(w->ob);
	while (w->m.len != 0) {
		model_drop(&w->m, &w->m.writes[0], EVREC_CAUSE_CLOSED);
	}
	model_check(&w->m, w->ob);
	collect_all(w);
}

static void begin_life(struct world *w)
{
	w->ob = outbox_new(&item_ops, &w->m.limits, w->random);
	outbox_expect(w->ob, true);
	outbox_expect(w->ob, false);
	memset(w->lane, 0, sizeof(w->lane));
	for (unsigned n = 1; n <= IDS; n++) {
		const unsigned id = id_of(w, n);

		snprintf(w->lane[n].name, sizeof(w->lane[n].name), "%c/n%u", (char)('a' + place_of(id)), id);
		if (is_taken(w, id)) {
			store(w, w->lane[n].name, 0, 1);
		}
	}
}

static void begin(struct world *w, size_t bytes)
{
	evrec_limits *limits = &w->m.limits;

	w->foreign = below(w, 4) == 0;
	w->m.entry_bytes = bytes;
	limits->max_pending = 1 + below(w, below(w, 2) == 0 ? 4 : 2 * IDS);
	limits->max_pending_bytes = bytes + 300 + below(w, (unsigned)bytes * 8);
	if (!w->foreign) {
		limits->max_age = below(w, 2) * below(w, 60) * EVREC_SECOND;
		limits->max_tries = below(w, 2) * below(w, 5);
		limits->full = below(w, 2) == 0 ? EVREC_DROP_NEWEST : EVREC_DROP_OLDEST;
	}
	begin_life(w);
}

/* The next process: of what happened it knows only what is in the spool, and for it all events are new ones. */
static void next_life(struct world *w)
{
	const struct model old = w->m;

	/* Nobody could tell whose a name is that was somebody else's when the answer was lost. */
	for (size_t i = 0; i < FLYING; i++) {
		if (w->flying[i] != NULL && is_taken(w, (unsigned)w->flying[i]->id)) {
			answer_one(w, i);
		}
	}
	collect_all(w);
	release_dropped(w);
	end_life(w);
	w->life++;
	w->m = (struct model){ .limits = old.limits, .entry_bytes = old.entry_bytes };
	begin_life(w);
}

static void live(uint64_t seed, size_t bytes)
{
	static struct world w;

	w = (struct world){ .random = seed };
	begin(&w, bytes);
	for (unsigned lives = 1 + below(&w, 3); lives > 0; lives--) {
		for (unsigned n = 0; n < STEPS / 2; n++) {
			step(&w);
		}
		if (lives > 1) {
			next_life(&w);
		}
	}
	if (below(&w, 4) == 0) {
		end_at_once(&w);
	} else {
		end_well(&w);
	}
	outbox_free(w.ob);
	assert_int_equal(items_alive, 0);
}

static void test_random_lives(void **state)
{
	const char *count = getenv("EVREC_SEEDS");
	unsigned long seeds = count != NULL ? strtoul(count, NULL, 10) : SEEDS;
	uint64_t seed = unit_seed();
	const size_t bytes = entry_bytes();

	(void)state;
	for (unsigned long i = 0; i < seeds; i++) {
		failing = seed + i;
		live(seed + i, bytes);
	}
	failing = 0;
}

static int tell_failing(void **state)
{
	(void)state;
	if (failing != 0) {
		print_error("the life that failed: EVREC_SEED=%llu EVREC_SEEDS=1\n", (unsigned long long)failing);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_random_lives, tell_failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

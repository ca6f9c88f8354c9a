/*
 * Property test of the outbox: random submissions, deferred or not, answers, faults, adoptions, expiry, restarts with a
 * spool, and jumps in time, with tiny limits. Beside the outbox are a model (outbox_model.h) and a server that knows its
 * events (outbox_world.h). After every step the counters equal the model's; an event has one request in flight at most,
 * is never created twice, and its count decreases only by a late PATCH that a repeat repairs. A restart keeps each
 * pending event once. In the end the server has each event once, with all occurrences.
 *
 * EVREC_SEED=n EVREC_SEEDS=1 repeats the run that failed; EVREC_SEEDS is the number of runs.
 */
#include "outbox_lives.h"
#include "outbox_outcome.h"

#define STEPS 240
#define SEEDS 10000

static uint64_t failing; /* seed of the current run, for the teardown; 0: none */

/* The time of a deferred write has come: the model's is pending too. */
static struct outbox_world *world;
static bool releasing; /* one whose time has not come, perhaps */

static void on_time(const struct fake_write *item)
{
	const struct model_write *write = model_find(&world->m, item->id, false);

	assert_true(write != NULL && write->deferred && (releasing || write->due <= world->now));
	model_release(&world->m, item->id, world->now);
}

/* The pipeline takes receipts, and learns the names and bases of entries that it submitted, not of restored ones. */
static void take_back(struct outbox_world *w, const struct entry *entry)
{
	world_collected(w, entry);
	if (entry_name(entry)[0] != '\0' && entry->row == 0) {
		(void)snprintf(w->pipeline[entry->id - world_id(w, 0)].name, sizeof(w->pipeline[0].name), "%s",
		               entry_name(entry));
		if (entry->base != 0) {
			w->pipeline[entry->id - world_id(w, 0)].base = entry->base;
		}
	}
}

static void collect_all(struct outbox_world *w)
{
	struct entry *entry;

	while ((entry = outbox_collect(w->ob, 1)) != NULL) {
		take_back(w, entry);
		assert_true((entry->item != NULL) == entry->dropped);
		if (entry->dropped) {
			model_collect(&w->m, entry);
		}
		outbox_recycle(w->ob, entry);
	}
	assert_int_equal(w->m.gone_len, 0);
}

/* Collects entries that outbox_take dropped because their namespace refuses writes. */
static void collect_refused(struct outbox_world *w)
{
	struct entry *entry;

	while ((entry = outbox_collect(w->ob, 1)) != NULL) {
		struct model_write *write = model_find(&w->m, (unsigned)entry->id, false);
		unsigned ns = namespace_of((unsigned)entry->id);

		take_back(w, entry);
		/* The entry may be the older of two writes that could not be merged for want of memory. */
		for (size_t i = 0; write != NULL && i < w->m.len; i++) {
			if (w->m.writes[i].id == (unsigned)entry->id && !w->m.writes[i].in_flight &&
			    w->m.writes[i].n - w->m.writes[i].acked == entry->count) {
				write = &w->m.writes[i];
				break;
			}
		}
		assert_non_null(write);
		assert_true(w->m.blocks[ns][entry->verb].known);
		assert_true(w->now - w->m.blocks[ns][entry->verb].since < NAMESPACE_BLOCK_TERM);
		assert_int_equal(entry->cause, w->m.blocks[ns][entry->verb].cause);
		model_drop(&w->m, write, entry->cause);
		if (entry->dropped) {
			model_collect(&w->m, entry);
		}
		outbox_recycle(w->ob, entry);
	}
}

static void check_taken(struct outbox_world *w, const struct entry *entry, const struct model_write *write)
{
	const unsigned id = (unsigned)entry->id, ns = namespace_of(id);

	for (size_t i = 0; i < WORLD_IN_FLIGHT; i++) {
		assert_true(w->in_flight[i] == NULL || (unsigned)w->in_flight[i]->id != id);
	}
	assert_non_null(write);
	assert_int_equal(write->n, entry->count);
	assert_true(w->now >= write->due);
	if (w->m.blocks[ns][entry->verb].known) {
		assert_true(w->now - w->m.blocks[ns][entry->verb].since >= NAMESPACE_BLOCK_TERM);
		assert_false(w->m.blocks[ns][entry->verb].probing);
		w->m.blocks[ns][entry->verb].probing = true;
		w->m.blocks[ns][entry->verb].probe = id;
	}
}

static void take_one(struct outbox_world *w)
{
	struct model_write *write = NULL;
	struct entry *entry;
	size_t slot = 0;

	while (slot < WORLD_IN_FLIGHT && w->in_flight[slot] != NULL) {
		slot++;
	}
	(void)outbox_expire(w->ob, w->now);
	model_expire(&w->m, w->now);
	model_check(&w->m, w->ob);
	if (slot == WORLD_IN_FLIGHT) {
		return;
	}
	collect_all(w);
	entry = outbox_take(w->ob, w->now);
	collect_refused(w);
	if (entry != NULL) {
		for (size_t i = 0; i < w->m.len && write == NULL; i++) {
			if (w->m.writes[i].id == (unsigned)entry->id && !w->m.writes[i].in_flight) {
				write = &w->m.writes[i];
			}
		}
		check_taken(w, entry, write);
		write->in_flight = true;
		write->due = 0;
		w->in_flight[slot] = entry;
	}
}

/* No two are equal, as the order of equal ones is not told. 0: the write is not deferred. */
static int64_t random_due(struct outbox_world *w)
{
	if (world_below(w, 3) != 0) {
		return 0;
	}
	return w->now + world_below(w, 20000) * (EVREC_SECOND / 1000) + (int64_t)w->m.submitted + 1;
}

static bool submit_one(struct outbox_world *w, unsigned n)
{
	const struct receipt_id receipt = { world_below(w, TALLY_SOURCES), world_below(w, 2) == 0 ? n : 0 };
	const bool has_receipt = world_below(w, 2) < w->receipts;
	const unsigned id = world_id(w, n);
	struct fake_write draft = {
		.count = ++w->pipeline[n].count, .size = world_below(w, 300), .base = w->pipeline[n].base, .id = id
	};
	const struct occurrence occurrence = { .id = id,
		                               .verb = w->pipeline[n].accepted ? VERB_PATCH : VERB_CREATE,
		                               .important = world_is_important(w, id),
		                               .now = w->now,
		                               .due = random_due(w),
		                               .receipt = has_receipt ? &receipt : NULL,
		                               .draft = &draft };
	enum evrec_cause cause;
	bool accepted, expected;

	memcpy(draft.name, w->pipeline[n].name, sizeof(draft.name));
	expected = model_submit(&w->m, id, occurrence.important, draft.size, w->now, occurrence.due,
	                        !fake_writes.no_memory);
	accepted = outbox_submit(w->ob, &occurrence, &cause);
	assert_int_equal(accepted, expected);
	w->pipeline[n].accepted = w->pipeline[n].accepted || accepted;
	if (accepted && has_receipt) {
		tally_give(&w->tally, receipt);
	}
	return accepted;
}

static void submit_some(struct outbox_world *w)
{
	for (unsigned n = world_below(w, 3); n > 0; n--) {
		(void)submit_one(w, 1 + world_below(w, WORLD_IDS));
		model_check(&w->m, w->ob);
	}
}

static void release_some(struct outbox_world *w)
{
	const unsigned id = world_id(w, 1 + world_below(w, WORLD_IDS));

	if (world_below(w, 3) == 0) {
		outbox_release_all(w->ob, w->now);
		model_release_all(&w->m, w->now);
	} else {
		releasing = true;
		outbox_release(w->ob, id, w->now);
		releasing = false;
	}
}

static bool has_deferred(struct outbox_world *w)
{
	struct outbox_stats stats;

	outbox_get_stats(w->ob, &stats);
	return stats.counted != 0;
}

static void step(struct outbox_world *w)
{
	struct stored_event *event = &w->server[world_below(w, WORLD_EVENTS)];
	size_t slot = world_below(w, WORLD_IN_FLIGHT);

	switch (world_below(w, 12)) {
	case 0:
	case 1:
	case 2:
	case 3:
		fake_writes.no_memory = world_below(w, 30) == 0;
		(void)submit_one(w, 1 + world_below(w, WORLD_IDS));
		fake_writes.no_memory = false;
		break;
	case 4:
	case 5:
		take_one(w);
		break;
	case 6:
	case 7:
	case 8:
		if (w->in_flight[slot] != NULL) {
			world_answer(w, slot);
		}
		break;
	case 9:
		world_advance(w,
		              (int64_t)world_below(w, world_below(w, 20) == 0 ? 40000 : 2000) * (EVREC_SECOND / 1000));
		break;
	case 10:
		world_forget_rows(w);
		(void)world_restore_rows(w, world_below(w, 2) == 0 ? submit_some : NULL);
		break;
	default:
		if (world_below(w, 4) == 0) {
			world_expire(w, event);
		} else if (world_below(w, 4) == 0) {
			world_apply_patch(w, &w->late[world_below(w, WORLD_LATE)]);
		} else if (world_below(w, 8) == 0) {
			outbox_make_due_now(w->ob);
		} else if (world_below(w, 4) == 0) {
			release_some(w);
		} else {
			collect_all(w);
		}
		break;
	}
	model_check(&w->m, w->ob);
	world_release_dropped(w);
}

static void settle(struct outbox_world *w)
{
	w->healthy = true;
	if (world_below(w, 2) == 0) {
		outbox_release_all(w->ob, w->now);
		model_release_all(&w->m, w->now);
	}
	for (unsigned rounds = 0; !outbox_empty(w->ob) || has_deferred(w); rounds++) {
		assert_true(rounds < 2000); /* no write waits forever */
		take_one(w);
		for (size_t i = 0; i < WORLD_IN_FLIGHT; i++) {
			if (w->in_flight[i] != NULL) {
				world_answer(w, i);
			}
		}
		world_release_dropped(w);
		world_advance(w, EVREC_SECOND);
		model_check(&w->m, w->ob);
	}
}

/* The server recovers, all rows of the spool are written or expire, and every event occurs once more. */
static void end_complete(struct outbox_world *w)
{
	bool all;

	do {
		all = world_restore_rows(w, NULL);
		settle(w);
		collect_all(w);
		world_forget_rows(w);
	} while (!all);
	for (size_t i = 0; i < WORLD_ROWS; i++) {
		assert_false(w->rows[i].there);
	}
	world_check_counts_kept(w);
	world_advance(w, NAMESPACE_BLOCK_TERM);
	for (unsigned n = 1; n <= WORLD_IDS; n++) {
		collect_all(w);
		assert_true(submit_one(w, n));
		settle(w);
	}
	world_check_counts_kept(w);
	world_check_complete(w);
}

static void end_at_once(struct outbox_world *w)
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

static void begin_life(struct outbox_world *w)
{
	w->ob = outbox_new(&fake_write_ops, &w->m.limits, w->random);
	outbox_expect(w->ob, true);
	outbox_expect(w->ob, false);
	memset(w->pipeline, 0, sizeof(w->pipeline));
	for (unsigned n = 1; n <= WORLD_IDS; n++) {
		const unsigned id = world_id(w, n);

		snprintf(w->pipeline[n].name, sizeof(w->pipeline[n].name), "%c/n%u", (char)('a' + namespace_of(id)),
		         id);
		if (world_is_taken(w, id)) {
			world_store(w, w->pipeline[n].name, 0, 1);
		}
	}
}

static void begin(struct outbox_world *w, size_t bytes)
{
	evrec_limits *limits = &w->m.limits;

	w->foreign = world_below(w, 4) == 0;
	w->receipts = world_below(w, 3);
	w->m.entry_bytes = bytes;
	limits->max_pending = 1 + world_below(w, world_below(w, 2) == 0 ? 4 : 2 * WORLD_IDS);
	limits->max_pending_bytes = bytes + 300 + world_below(w, (unsigned)bytes * 8);
	if (!w->foreign) {
		limits->max_age = world_below(w, 2) * world_below(w, 60) * EVREC_SECOND;
		limits->max_tries = world_below(w, 2) * world_below(w, 5);
		limits->full = world_below(w, 2) == 0 ? EVREC_DROP_NEWEST : EVREC_DROP_OLDEST;
	}
	begin_life(w);
}

/* The next process: it knows only the rows of the spool, and its events are new ones. */
static void next_life(struct outbox_world *w)
{
	const struct model old = w->m;

	/* A lost answer about another client's name cannot be told from success: answer these first. */
	for (size_t i = 0; i < WORLD_IN_FLIGHT; i++) {
		if (w->in_flight[i] != NULL && world_is_taken(w, (unsigned)w->in_flight[i]->id)) {
			world_answer(w, i);
		}
	}
	collect_all(w);
	world_release_dropped(w);
	world_end_life(w);
	w->life++;
	w->m = (struct model){ .limits = old.limits, .entry_bytes = old.entry_bytes };
	begin_life(w);
}

static void run(uint64_t seed, size_t bytes)
{
	static struct outbox_world w;

	w = (struct outbox_world){ .random = seed };
	world = &w;
	fake_writes.on_time = on_time;
	begin(&w, bytes);
	for (unsigned lives = 1 + world_below(&w, 3); lives > 0; lives--) {
		for (unsigned n = 0; n < STEPS / 2; n++) {
			step(&w);
		}
		if (lives > 1) {
			next_life(&w);
		}
	}
	if (world_below(&w, 4) == 0) {
		end_at_once(&w);
	} else {
		end_complete(&w);
	}
	collect_all(&w);
	tally_check_none_open(&w.tally);
	outbox_free(w.ob);
	assert_int_equal(fake_writes.alive, 0);
}

static void test_random_runs_match_the_model(void **state)
{
	const char *count = getenv("EVREC_SEEDS");
	unsigned long seeds = count != NULL ? strtoul(count, NULL, 10) : SEEDS;
	uint64_t seed = unit_seed();
	const size_t bytes = outbox_entry_bytes();

	(void)state;
	for (unsigned long i = 0; i < seeds; i++) {
		failing = seed + i;
		run(seed + i, bytes);
	}
	failing = 0;
}

static int print_failing(void **state)
{
	(void)state;
	if (failing != 0) {
		print_error("to repeat the run: EVREC_SEED=%llu EVREC_SEEDS=1\n", (unsigned long long)failing);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_random_runs_match_the_model, print_failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Random lives of processes that share one event. The one that counts it for all is killed at any moment: between the write
 * of its state, its acknowledgements, and what the others learn of them. The next one has the state of some time ago, the
 * numbers of the journals, and what the others record again.
 */
#include "correlations.h"

#include "correlate/state.h"

#define WORKERS 3
#define LIVES 12
#define STEPS 60
#define ROUNDS 400

/* A process that hands its occurrences over. */
struct worker {
	uint64_t process, connection, got, had; /* batches: the last one, and at the begin of the connection */
	unsigned unsent, sent;                  /* occurrences that are not acknowledged */
	unsigned again;                         /* of those that were sent, these are to be sent once more, first */
	unsigned pending, held, batched,
		coming; /* for the owner: recorded, settled, in the batch, sent as acknowledged */
	uint64_t batch; /* of `batched` */
};

struct world {
	uint64_t random, numbers;
	evrec_correlator *owner;
	struct buf state; /* as it was written last */
	bool is_written;  /* since the batch began */
	bool marked;
	uint64_t batch, handle;
	struct worker workers[WORKERS];
	unsigned recorded;
	char name[64];
	int32_t sure[LIVES]; /* the last note of each journal */
	unsigned life;
	bool own; /* owners record something themselves */
};

static unsigned below(struct world *w, unsigned n)
{
	return (unsigned)(unit_random(&w->random) % n);
}

static struct observed observe(struct world *w, const struct origin *origin)
{
	const evrec_fields event = pod_event("p", "R", "m", T0);
	struct keys keys = { 0 };
	struct observed o;

	assert_true(keys_make(&keys, &event));
	assert_int_equal(correlator_observe(w->owner, &event, &keys, T0, origin, &o), 0);
	keys_free(&keys);
	w->handle = o.handle;
	(void)snprintf(w->name, sizeof(w->name), "%.*s", (int)o.name.len, o.name.data);
	if (origin == NULL || origin->connection == 0) {
		w->sure[w->life] = o.sure;
	}
	return o;
}

/* ---- the owner ---- */

static void write_state(struct world *w)
{
	struct state *s = state_new(w->owner);
	uint64_t cursor = 0;

	buf_clear(&w->state);
	assert_true(state_note_all(s, T0));
	(void)state_take_all(s, &cursor, SIZE_MAX, &w->state);
	state_free(s);
	w->is_written = true;
}

static void begin_batch(struct world *w)
{
	w->batch = ++w->numbers;
	for (struct worker *k = w->workers; k < w->workers + WORKERS; k++) {
		if (k->coming == 0 && k->batched != 0) {
			correlator_acknowledge(w->owner, w->handle, k->connection, false, k->batched);
			k->batched = 0;
		}
		if (k->coming == 0 && k->held != 0) {
			correlator_tell(w->owner, w->handle, k->connection, false, k->held, w->batch);
			k->batched = k->held;
			k->batch = w->batch;
			k->held = 0;
		}
	}
	w->marked = true;
	w->is_written = false;
}

static void release(struct world *w)
{
	for (struct worker *k = w->workers; k < w->workers + WORKERS; k++) {
		if (k->batched != 0 && k->batch == w->batch) {
			k->coming = k->batched;
		}
	}
	w->marked = false;
}

static void receive(struct worker *k)
{
	if (k->coming != 0) {
		k->sent -= k->coming;
		k->coming = 0;
		k->got = k->batch;
	}
}

/* ---- workers ---- */

static void send(struct world *w, struct worker *k)
{
	const struct origin again = { k->process, k->connection, k->had, true, true };
	const struct origin fresh = { k->process, k->connection, k->had, false, false };

	if (k->again != 0) {
		(void)observe(w, &again);
		k->again--;
		k->pending++;
	} else if (k->unsent != 0) {
		(void)observe(w, &fresh);
		k->unsent--;
		k->sent++;
		k->pending++;
	}
}

static void connect(struct world *w, struct worker *k)
{
	struct origin from = { .process = k->process };

	k->connection = from.connection = ++w->numbers;
	k->had = from.batch = k->got;
	k->again = k->sent;
	k->pending = k->held = k->batched = k->coming = 0;
	correlator_reconnect(w->owner, &from);
}

/* A worker becomes the owner, and a new process takes its place. */
static void take_over(struct world *w, struct worker *heir)
{
	const struct origin reconnected = { .process = heir->process, .batch = heir->got };
	const struct origin again = { heir->process, 0, heir->got, true, true };
	const evrec_correlator_options options = unlimited_options();
	evrec_fields noted = pod_event("p", "R", "m", T0);
	struct state_loaded loaded;
	struct state *s;

	evrec_correlator_free(w->owner);
	w->owner = correlator_with(&options);
	w->marked = false;
	w->life++;
	s = state_new(w->owner);
	assert_true(state_load(s, buf_str(&w->state), T0, INT64_MAX, &loaded));
	state_free(s);
	noted.name = str_from(w->name);
	for (unsigned i = 0; i < w->life; i++) {
		if (w->sure[i] > 0) {
			correlator_recover(w->owner, &noted, w->sure[i], T0);
		}
	}
	correlator_reconnect(w->owner, &reconnected);
	for (; heir->sent > 0; heir->sent--) {
		(void)observe(w, &again);
	}
	for (; heir->unsent > 0; heir->unsent--) {
		(void)observe(w, NULL);
	}
	*heir = (struct worker){ .process = ++w->numbers };
	for (struct worker *k = w->workers; k < w->workers + WORKERS; k++) {
		connect(w, k);
	}
}

static void kill_owner(struct world *w)
{
	for (struct worker *k = w->workers; k < w->workers + WORKERS; k++) {
		if (below(w, 2) == 0) {
			/* It was sent before. */
			receive(k);
		}
	}
	take_over(w, &w->workers[below(w, WORKERS)]);
}

/* ---- the test ---- */

static void step(struct world *w)
{
	struct worker *k = &w->workers[below(w, WORKERS)];

	switch (below(w, 9)) {
	case 0:
		k->unsent++;
		w->recorded++;
		break;
	case 1:
	case 2:
		send(w, k);
		break;
	case 3:
		k->held += k->pending;
		k->pending = 0;
		break;
	case 4:
		if (!w->marked) {
			begin_batch(w);
		}
		break;
	case 5:
		write_state(w);
		break;
	case 6:
		if (w->marked && w->is_written) {
			release(w);
		}
		break;
	case 7:
		receive(k);
		break;
	default:
		if (w->own) {
			(void)observe(w, NULL);
			w->recorded++;
		} else if (below(w, 4) == 0 && k->coming == 0 && !w->marked) {
			connect(w, k);
		}
	}
}

static int32_t live(uint64_t *random, bool own, unsigned *recorded)
{
	const evrec_correlator_options options = unlimited_options();
	struct world w = { .random = unit_random(random), .own = own, .owner = correlator_with(&options) };
	int32_t count;

	for (struct worker *k = w.workers; k < w.workers + WORKERS; k++) {
		k->process = ++w.numbers;
		connect(&w, k);
	}
	for (unsigned i = 0; i < LIVES; i++) {
		for (unsigned steps = below(&w, STEPS); steps > 0; steps--) {
			step(&w);
		}
		if (i + 1 < LIVES) {
			kill_owner(&w);
		}
	}
	for (struct worker *k = w.workers; k < w.workers + WORKERS; k++) {
		while (k->again + k->unsent != 0) {
			send(&w, k);
		}
	}
	count = observe(&w, NULL).count;
	*recorded = w.recorded + 1;
	evrec_correlator_free(w.owner);
	buf_free(&w.state);
	return count;
}

static void test_each_occurrence_is_counted_once(void **state)
{
	uint64_t random = unit_seed();
	unsigned recorded;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		const int32_t count = live(&random, i % 2 == 0, &recorded);

		assert_int_equal(count, recorded);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_occurrence_is_counted_once),
	};

	return cmocka_run_group_tests_name("killed owners", tests, NULL, NULL);
}

/* Series: random lives beside a model that keeps everything in arrays and looks at every tick; and every allocation fails. */
#include "alloc_failure.h"
#include "series_fixture.h"

#define S EVREC_SECOND
#define OBJECTS 6
#define REFRESH (50 * S)
#define FINISH (20 * S)

/* ---- the model ---- */

struct model_entry {
	bool known, begun, unknown, dropped, answered, waits;
	int64_t seen, dropped_at, first;
	int count, base;
	char note;
	uint64_t order; /* of use */
	uint64_t handle;
	bool says_finished;
};

struct model {
	struct model_entry entries[OBJECTS];
	uint64_t uses;
	size_t max;
	unsigned long begun, finished, evicted, evicted_singles;
	char told[1024]; /* as in series_check_told */
	size_t told_len;
	bool untold[SERIES_TOLD_MAX]; /* of each that was told */
};

static void model_tell(struct model *m, int i, const char *state, int count, bool untold)
{
	size_t len = strlen(m->told);

	m->untold[m->told_len++] = untold;
	(void)snprintf(m->told + len, sizeof(m->told) - len, "%s%s %c %d", len == 0 ? "" : ", ", state, 'a' + i, count);
}

/* Walks from tick to tick. */
static int64_t model_end(int64_t seen)
{
	int64_t tick = T0;

	while (!(seen < tick - FINISH)) {
		tick += FINISH;
	}
	return tick;
}

static int64_t model_heartbeat(int64_t now)
{
	int64_t tick = T0;

	while (tick <= now) {
		tick += REFRESH;
	}
	return tick;
}

static void model_finish(struct model *m, int i, bool evicted)
{
	struct model_entry *e = &m->entries[i];

	if (e->begun) {
		m->finished++;
		m->evicted += evicted;
		model_tell(m, i, "Finished", e->base + e->count,
		           (!e->dropped || e->waits) && (evicted || !e->says_finished));
	} else {
		m->evicted_singles += evicted;
	}
	*e = (struct model_entry){ .known = false };
}

static int model_oldest(const struct model *m, size_t *n)
{
	int i, oldest = -1;

	*n = 0;
	for (i = 0; i < OBJECTS; i++) {
		if (m->entries[i].known) {
			++*n;
			if (oldest < 0 || m->entries[i].order < m->entries[oldest].order) {
				oldest = i;
			}
		}
	}
	return oldest;
}

static void model_tick(struct model *m, int64_t now, size_t max)
{
	size_t n;
	int i;

	while (max-- > 0 && (i = model_oldest(m, &n)) >= 0 && model_end(m->entries[i].seen) <= now) {
		model_finish(m, i, false);
	}
}

struct expected {
	bool patch, deferred, finishes, merged;
	int64_t due;
};

static struct expected model_see(struct model *m, int i, char note, int64_t now)
{
	struct expected x = { .patch = true };
	struct model_entry *e = &m->entries[i];
	size_t n;
	int oldest;

	if (e->known && model_end(e->seen) <= now) {
		model_finish(m, i, false);
	}
	if (!e->known) {
		*e = (struct model_entry){ .known = true, .seen = now, .first = now, .note = note, .order = ++m->uses };
		x.patch = false;
		oldest = model_oldest(m, &n);
		if (n > m->max) {
			model_finish(m, oldest, model_end(m->entries[oldest].seen) > now);
		}
	} else if (e->dropped && now - e->dropped_at >= 30 * S) {
		x.patch = false;
	} else {
		x.deferred = e->dropped || (e->begun && !e->unknown);
		x.patch = !e->dropped;
		e->waits = e->dropped;
	}
	x.merged = note != e->note;
	e->note = note;
	e->order = ++m->uses;
	e->seen = now;
	e->count++;
	if (x.deferred) {
		const int64_t end = model_end(now), heartbeat = model_heartbeat(now);

		x.due = end < heartbeat ? end : heartbeat;
		x.finishes = x.due == end;
	} else {
		e->dropped = false;
	}
	e->says_finished = x.finishes;
	if (e->count + e->base >= 2) {
		if (!e->begun || e->unknown) {
			m->begun += !e->begun;
			model_tell(m, i, "Ongoing", e->count + e->base, false);
		}
		e->begun = true;
		e->unknown = false;
	}
	return x;
}

/* ---- both side by side ---- */

static void check_stats(const struct series_fixture *f, const struct model *m)
{
	evrec_series_stats stats;
	size_t n, ongoing = 0;
	int i, oldest = model_oldest(m, &n);

	for (i = 0; i < OBJECTS; i++) {
		ongoing += m->entries[i].known && m->entries[i].begun;
	}
	series_get_stats(f->s, &stats);
	assert_true(stats.series == n && stats.ongoing == ongoing && stats.begun == m->begun);
	assert_true(stats.finished == m->finished && stats.evicted == m->evicted);
	assert_int_equal(stats.evicted_singles, m->evicted_singles);
	assert_int_equal(stats.begun, stats.ongoing + stats.finished);
	assert_int_equal(series_next_due(f->s), oldest < 0 ? INT64_MAX : model_end(m->entries[oldest].seen));
}

static void check_see(struct series_fixture *f, struct model *m, int i, char note, int64_t now)
{
	const char object[] = { (char)('a' + i), '\0' }, text[] = { note, '\0' };
	const struct expected x = model_see(m, i, note, now);
	const struct observed *o = series_see(f, object, text, now - T0);
	struct model_entry *e = &m->entries[i];

	assert_false(o->skip);
	assert_int_equal(o->patch, x.patch);
	assert_int_equal(o->due, x.due);
	assert_int_equal(o->finishes, x.finishes);
	assert_int_equal(o->merged, x.merged);
	assert_int_equal(o->count, e->count);
	assert_int_equal(o->base, e->base);
	assert_int_equal(o->first, e->first);
	assert_int_equal(o->last, now);
	assert_true(e->handle == 0 || e->handle == o->handle);
	e->handle = o->handle;
}

static void check_resume(struct series_fixture *f, struct model *m, int i, int count, int64_t now)
{
	const char object[] = { (char)('a' + i), '\0' };
	evrec_fields event = pod_event(object, "R", "x", now);
	struct model_entry *e = &m->entries[i];
	size_t n;

	event.name = EVREC_STR("old.1");
	event.count = count;
	assert_true(series_resume(f->s, &event, now));
	(void)model_oldest(m, &n);
	if (e->known && e->count == 0 && count > e->base) {
		e->base = count;
		if (!e->begun) {
			e->begun = e->unknown = true;
			m->begun++;
			model_tell(m, i, "Unknown", count, false);
		}
	}
	if (e->known || n == m->max) {
		return;
	}
	*e = (struct model_entry){ .known = true,
		                   .answered = true,
		                   .begun = count > 1,
		                   .unknown = count > 1,
		                   .base = count,
		                   .seen = now,
		                   .first = now,
		                   .note = 'x',
		                   .order = ++m->uses };
	if (count > 1) {
		m->begun++;
		model_tell(m, i, "Unknown", count, false);
	}
}

static void check_answer(struct series_fixture *f, struct model *m, int i, bool dropped, int64_t now)
{
	struct model_entry *e = &m->entries[i];

	if (dropped) {
		series_dropped(f->s, e->handle, EVREC_CAUSE_REJECTED, now);
		if (!e->answered) {
			e->dropped = true;
			e->dropped_at = now;
			e->waits = false;
		}
	} else {
		series_answered(f->s, e->handle, EVREC_STR(""), 0);
		e->answered = true;
		e->dropped = false;
	}
}

static void check_release(struct series_fixture *f, struct model *m, int i, bool all)
{
	int k;

	series_released(f->s, all ? 0 : m->entries[i].handle);
	for (k = 0; k < OBJECTS; k++) {
		m->entries[k].says_finished = m->entries[k].says_finished && !all && k != i;
	}
}

static void check_told(struct series_fixture *f, struct model *m)
{
	size_t i;

	assert_int_equal(f->told_len, m->told_len);
	for (i = 0; i < m->told_len; i++) {
		assert_int_equal(f->told[i].untold, m->untold[i]);
	}
	series_check_told(f, m->told);
	m->told[0] = '\0';
	m->told_len = 0;
}

static void live(uint64_t *seed)
{
	const evrec_series_options options = { REFRESH, FINISH, 1 + unit_random(seed) % OBJECTS, false, false };
	struct model m = { .max = options.max_series };
	struct series_fixture f;
	int64_t now = T0;
	int step;

	series_setup(&f, &options, NULL);
	for (step = 0; step < 400; step++) {
		const int i = (int)(unit_random(seed) % OBJECTS);
		const uint64_t what = unit_random(seed) % 18;

		/* Often exactly at a tick, or 1 ns from it. */
		if (unit_random(seed) % 3 == 0) {
			now += (int64_t)(unit_random(seed) % 12) * S;
		} else if (unit_random(seed) % 3 == 0) {
			now += 10 * S - (now - T0) % (10 * S) - (int64_t)(unit_random(seed) % 2);
		}
		if (what < 12) {
			check_see(&f, &m, i, (char)('x' + unit_random(seed) % 3), now);
		} else if (what == 12) {
			const size_t max = unit_random(seed) % 3;

			model_tick(&m, now, max);
			series_tick(f.s, now, max);
		} else if (what == 13) {
			check_resume(&f, &m, i, 1 + (int)(unit_random(seed) % 3), now);
		} else if (what >= 16 && m.entries[i].handle != 0) {
			check_release(&f, &m, i, what == 16);
		} else if (m.entries[i].handle != 0) {
			check_answer(&f, &m, i, what == 14, now);
		}
		check_told(&f, &m);
		check_stats(&f, &m);
	}
	series_teardown(&f);
}

static void test_random_lives_match_the_model(void **state)
{
	uint64_t seed = unit_seed();
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		live(&seed);
	}
}

/* ---- no memory ---- */

static void ignore(void *ctx, const struct series_told *told)
{
	(void)ctx;
	(void)told;
}

static bool choose_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)ctx;
	*key = event->regarding.name;
	return true;
}

/* Repeats the event until there is memory for it. A failed try counts nothing. */
static void see(struct series *s, const char *object, const char *note, int64_t now, int32_t count)
{
	const evrec_fields event = pod_event(object, "R", note, now);
	struct keys keys = { .made = false };
	evrec_series_stats before, after;
	struct observed o;
	int code = EVREC_ENOMEM, tries;
	bool made = false;

	for (tries = 0; tries < 3 && code != 0; tries++) {
		made = keys_make(&keys, &event);
		alloc_failure_check(made);
		if (made) {
			series_get_stats(s, &before);
			code = series_observe(s, &event, &keys, now, &o);
			alloc_failure_check(code == 0);
			series_get_stats(s, &after);
			assert_true(code == 0 || (code == EVREC_ENOMEM && after.series <= before.series &&
			                          after.begun == before.begun && after.notes == before.notes));
		}
	}
	alloc_failure_disarm();
	assert_true(keys_make(&keys, &event));
	if (code != 0) {
		assert_int_equal(series_observe(s, &event, &keys, now, &o), 0);
	}
	assert_int_equal(o.count, count);
	assert_true(o.name.len > 2);
	keys_free(&keys);
	alloc_failure_arm();
}

static void scenario(void)
{
	evrec_series_options options = series_options(2);
	evrec_fields old = pod_event("old", "R", "m", T0);
	evrec_correlator_options limits;
	struct series *s;
	bool ok;

	evrec_correlator_options_init(&limits);
	limits.spam_key_func = choose_spam_key;
	options.rate_limit = true;
	alloc_failure_arm();
	s = series_new(&options, &limits, T0, ignore, NULL);
	alloc_failure_check(s != NULL);
	if (s == NULL) {
		alloc_failure_disarm();
		return;
	}
	see(s, "a", "m", T0, 1);
	see(s, "a", "m", T0 + 1, 2);
	see(s, "a", "a longer note than the one before, and than any other", T0 + 2, 3);
	series_answered(s, 0, EVREC_STR("x"), 0);
	see(s, "b", "m", T0 + 3, 1);
	see(s, "c", "m", T0 + 4, 1); /* evicts a */
	series_answered(s, UINT64_C(1) << 32, EVREC_STR("a.renamed"), 0);
	alloc_failure_ignore();
	see(s, "b", "m", T0 + 720 * S, 1); /* the one before has ended */
	see(s, "b", "n", T0 + 720 * S, 2);
	series_tick(s, T0 + 7200 * S, SIZE_MAX);
	old.name = EVREC_STR("old.1");
	ok = series_resume(s, &old, T0 + 7200 * S);
	alloc_failure_check(ok);
	alloc_failure_disarm();
	assert_true(series_resume(s, &old, T0 + 7200 * S));
	see(s, "old", "m", T0 + 7200 * S, 1);
	alloc_failure_disarm();
	series_free(s);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_lives_match_the_model),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("series_random", tests, NULL, NULL);
}

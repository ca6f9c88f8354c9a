/* The state of a series as bytes: one that was loaded goes on with the counts and names of the one before. */
#include "alloc_failure.h"
#include "series_fixture.h"

#include "correlate/series_state.h"
#include "correlate/state.h"

#define S EVREC_SECOND

/* A series with its state, and the bytes that a file would have. */
struct life {
	struct series_fixture f;
	struct state *state;
	struct series_watch watch;
	struct buf file;
};

static void begin_change(void *ctx)
{
	(void)ctx;
}

static void observed(void *ctx, const struct observed *o, int64_t now)
{
	state_observed(((struct life *)ctx)->state, o, now);
}

static void changed(void *ctx, uint64_t handle)
{
	state_answered(((struct life *)ctx)->state, handle);
}

static void removed(void *ctx, evrec_str key, uint64_t hash, int64_t now)
{
	state_removed(((struct life *)ctx)->state, key, hash, now);
}

static void life_begin(struct life *life, const evrec_series_options *options, const evrec_correlator_options *limits)
{
	const evrec_series_options usual = series_options(10);

	series_setup(&life->f, options != NULL ? options : &usual, limits);
	life->file = (struct buf){ 0 };
	life->state = state_new_of_series(life->f.s);
	assert_non_null(life->state);
	life->watch = (struct series_watch){ begin_change, observed, changed, removed, begin_change, life };
	series_set_watch(life->f.s, &life->watch);
}

static void life_end(struct life *life)
{
	series_teardown(&life->f);
	state_free(life->state);
	buf_free(&life->file);
}

static void save_changes(struct life *life)
{
	state_begin_changes(life->state);
	do {
		(void)state_take_changes(life->state, 3, &life->file);
	} while (state_changes(life->state) != 0);
	assert_false(life->file.failed);
}

static void save_all(struct life *life)
{
	uint64_t cursor = 0;

	buf_clear(&life->file);
	while (state_take_all(life->state, &cursor, 5, &life->file) != 0) {
	}
	assert_false(life->file.failed);
}

/* The next life, of what the file has; `after` ns behind T0. Its series count their ticks from T0. */
static struct state_loaded next_life_with(struct life *life, const evrec_series_options *options,
                                          const evrec_correlator_options *limits, int64_t after)
{
	struct buf file = life->file;
	struct state_loaded loaded;

	life->file = (struct buf){ 0 };
	life_end(life);
	life_begin(life, options, limits);
	life->file = file;
	assert_true(state_load(life->state, buf_str(&file), T0 + after, 12 * 3600 * S, &loaded));
	assert_int_equal(loaded.valid_len, file.len);
	return loaded;
}

static struct state_loaded next_life(struct life *life, int64_t after)
{
	return next_life_with(life, NULL, NULL, after);
}

/* Sees the event so often; the last write is answered. */
static uint64_t see_written(struct life *life, const char *object, unsigned n, int64_t after)
{
	uint64_t handle = 0;

	for (unsigned i = 0; i < n; i++) {
		handle = series_see(&life->f, object, "m", after)->handle;
	}
	series_settled(life->f.s, handle, n, 0);
	series_answered(life->f.s, handle, EVREC_STR(""), 0);
	return handle;
}

static evrec_series_stats stats_of(const struct life *life)
{
	evrec_series_stats stats;

	series_get_stats(life->f.s, &stats);
	return stats;
}

static void test_a_series_goes_on(void **unused)
{
	struct observed *o;
	struct life life;
	char name[64];

	(void)unused;
	life_begin(&life, NULL, NULL);
	o = series_see(&life.f, "a", "m", 0);
	series_answered(life.f.s, o->handle, EVREC_STR("named-by-server"), 0);
	(void)see_written(&life, "a", 4, 10 * S);
	series_settled(life.f.s, o->handle, 1, 0);
	series_check_told(&life.f, "Ongoing a 2");
	save_changes(&life);
	assert_int_equal(next_life(&life, 20 * S).records, 1);
	assert_int_equal(life.f.told[0].last, T0 + 10 * S);
	assert_int_equal(life.f.told[0].due, 0);
	assert_int_equal(life.f.told[0].event_time, T0);
	(void)snprintf(name, sizeof(name), "%s", life.f.told[0].name);
	assert_string_equal(name, "named-by-server");
	series_check_told(&life.f, "Unknown a 5");
	assert_int_equal(stats_of(&life).ongoing, 1);
	state_begin_changes(life.state);
	assert_int_equal(state_changes(life.state), 0);
	/* The first one is written at once, as a patch; the others are counted. */
	o = series_see(&life.f, "a", "m", 21 * S);
	assert_true(o->patch && !o->again && o->due == 0);
	assert_int_equal(o->base + (uint32_t)o->count, 6);
	assert_true(str_eq(o->name, str_from(name)));
	series_check_told(&life.f, "Ongoing a 6");
	o = series_see(&life.f, "a", "m", 22 * S);
	assert_true(o->patch && o->due != 0);
	assert_int_equal(o->base + (uint32_t)o->count, 7);
	life_end(&life);
}

static void test_notes(void **unused)
{
	struct observed *o;
	struct life life;

	(void)unused;
	life_begin(&life, NULL, NULL);
	(void)series_see(&life.f, "a", "first", 0);
	(void)series_see(&life.f, "a", "second", 1);
	(void)series_see(&life.f, "b", "first", 1);
	(void)series_see(&life.f, "b", "", 1);
	series_check_told(&life.f, "Ongoing a 2, Ongoing b 2");
	save_changes(&life);
	(void)next_life(&life, 2);
	assert_int_equal(life.f.told_len, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(life.f.told[i].note, life.f.told[i].object[0] == 'a' ? "second" : "");
	}
	life.f.told_len = 0;
	assert_false(series_see(&life.f, "a", "second", 3)->merged);
	o = series_see(&life.f, "a", "first", 4);
	assert_true(o->merged);
	/* Both were known before. */
	assert_int_equal(stats_of(&life).notes, 0);
	(void)series_see(&life.f, "a", "third", 5);
	assert_int_equal(stats_of(&life).notes, 1);
	series_check_told(&life.f, "Ongoing a 3");
	life_end(&life);
}

static void test_a_single_event_begins_a_series(void **unused)
{
	struct observed *o;
	struct life life;

	(void)unused;
	life_begin(&life, NULL, NULL);
	(void)see_written(&life, "a", 1, 0);
	save_all(&life);
	(void)next_life(&life, S);
	series_check_told(&life.f, "");
	o = series_see(&life.f, "a", "m", 2 * S);
	assert_true(o->patch && o->due == 0);
	assert_int_equal(o->base + (uint32_t)o->count, 2);
	series_check_told(&life.f, "Ongoing a 2");
	life_end(&life);
}

/* A process that was killed had counted more than it had written. */
static void test_what_was_only_counted_is_due(void **unused)
{
	struct life life;
	uint64_t handle;

	(void)unused;
	life_begin(&life, NULL, NULL);
	handle = see_written(&life, "a", 2, 0);
	(void)series_see(&life.f, "a", "m", S);
	(void)see_written(&life, "b", 2, S);
	save_changes(&life);
	life.f.told_len = 0;
	(void)next_life(&life, 2 * S);
	assert_int_equal(life.f.told_len, 2);
	for (size_t i = 0; i < 2; i++) {
		const bool is_a = life.f.told[i].object[0] == 'a';

		assert_int_equal(life.f.told[i].due, is_a ? T0 + 720 * S : 0);
		assert_int_equal(life.f.told[i].finishes, is_a);
		assert_int_equal(life.f.told[i].count, is_a ? 3 : 2);
		handle = is_a ? life.f.told[i].handle : handle;
	}
	life.f.told_len = 0;
	/* Once that is written, the next life has nothing to write. */
	series_answered(life.f.s, handle, EVREC_STR(""), 0);
	save_all(&life);
	(void)next_life(&life, 3 * S);
	assert_true(life.f.told[0].due == 0 && life.f.told[1].due == 0);
	life.f.told_len = 0;
	life_end(&life);
}

static void test_a_dropped_write_is_due(void **unused)
{
	struct life life;
	uint64_t handle;

	(void)unused;
	life_begin(&life, NULL, NULL);
	handle = see_written(&life, "a", 2, 0);
	(void)series_see(&life.f, "a", "m", S);
	series_settled(life.f.s, handle, 1, 0);
	series_dropped(life.f.s, handle, EVREC_CAUSE_EXPIRED, T0 + S);
	series_check_told(&life.f, "Ongoing a 2");
	save_all(&life);
	(void)next_life(&life, 2 * S);
	assert_true(life.f.told[0].due != 0);
	series_check_told(&life.f, "Unknown a 3");
	life_end(&life);
}

static void test_what_is_over_is_left_out(void **unused)
{
	struct life life;

	(void)unused;
	life_begin(&life, NULL, NULL);
	(void)see_written(&life, "written", 3, 0);
	(void)see_written(&life, "single", 1, 0);
	(void)see_written(&life, "counted", 3, 0);
	(void)series_see(&life.f, "counted", "m", 0);
	(void)see_written(&life, "later", 2, 10 * S);
	life.f.told_len = 0;
	save_all(&life);
	/* Both ticks of 360 s have gone by: its count is written yet. */
	assert_int_equal(next_life(&life, 720 * S).records, 1);
	series_check_told(&life.f, "Unknown counted 4");
	series_tick(life.f.s, T0 + 720 * S, SIZE_MAX);
	assert_false(life.f.told[0].untold);
	series_check_told(&life.f, "Finished counted 4");
	life_end(&life);
}

static void test_too_old_to_be_written(void **unused)
{
	struct life life;

	(void)unused;
	life_begin(&life, NULL, NULL);
	(void)see_written(&life, "a", 3, 0);
	(void)series_see(&life.f, "a", "m", 0);
	life.f.told_len = 0;
	save_all(&life);
	(void)next_life(&life, (1800 + 360) * S - 1);
	series_check_told(&life.f, "Unknown a 4");
	assert_int_equal(next_life(&life, (1800 + 360) * S).records, 0);
	assert_int_equal(stats_of(&life).series, 0);
	life_end(&life);
}

static void test_a_finished_series_stays_finished(void **unused)
{
	struct life life;

	(void)unused;
	life_begin(&life, NULL, NULL);
	(void)see_written(&life, "a", 2, 0);
	(void)series_see(&life.f, "a", "m", 1);
	save_changes(&life);
	series_tick(life.f.s, T0 + 720 * S, SIZE_MAX);
	series_check_told(&life.f, "Ongoing a 2, Finished a 3");
	save_changes(&life);
	(void)next_life(&life, 730 * S);
	series_check_told(&life.f, "");
	assert_int_equal(stats_of(&life).series, 0);
	/* It has begun anew since. */
	(void)see_written(&life, "a", 2, 730 * S);
	series_tick(life.f.s, T0 + 1440 * S, SIZE_MAX);
	(void)see_written(&life, "a", 3, 1440 * S);
	life.f.told_len = 0;
	save_changes(&life);
	(void)next_life(&life, 1440 * S);
	series_check_told(&life.f, "Unknown a 3");
	life_end(&life);
}

/* What others keep, they record again if the process is killed: it is not counted twice. */
static void test_counts_of_others(void **unused)
{
	struct observed *o;
	struct life life;
	uint64_t handle;

	(void)unused;
	life_begin(&life, NULL, NULL);
	(void)series_see(&life.f, "a", "m", 0);
	series_for_others(life.f.s, true);
	for (int i = 0; i < 5; i++) {
		(void)series_see(&life.f, "a", "m", 1);
	}
	handle = life.f.o.handle;
	series_settled(life.f.s, handle, 3, 2);
	life.f.told_len = 0;
	save_changes(&life);
	(void)next_life(&life, S);
	series_check_told(&life.f, "Unknown a 3");
	/* The server's count has what is recorded again. */
	{
		evrec_fields event = pod_event("a", "R", "m", T0);

		o = series_see(&life.f, "b", "m", 2 * S);
		event.name = EVREC_STR("none");
		event.series_count = 6;
		assert_true(series_resume(life.f.s, &event, T0 + 2 * S));
		series_check_told(&life.f, "");
	}
	assert_int_equal(o->count, 1);
	life_end(&life);
}

/* Nothing is counted yet, but whoever records it again must not give it another name. */
static void test_a_name_without_a_count(void **unused)
{
	struct observed *o;
	struct life life;
	char name[64];

	(void)unused;
	life_begin(&life, NULL, NULL);
	series_for_others(life.f.s, true);
	o = series_see(&life.f, "a", "m", 0);
	(void)snprintf(name, sizeof(name), "%.*s", (int)o->name.len, o->name.data);
	save_changes(&life);
	(void)next_life(&life, S);
	series_check_told(&life.f, "");
	o = series_see(&life.f, "a", "m", S);
	assert_true(!o->patch && o->again);
	assert_int_equal(o->base + (uint32_t)o->count, 1);
	assert_true(str_eq(o->name, str_from(name)));
	series_answered(life.f.s, o->handle, EVREC_STR(""), 0);
	assert_false(series_see(&life.f, "a", "m", S)->again);
	series_check_told(&life.f, "Ongoing a 2");
	life_end(&life);
}

static void test_the_larger_count_of_server_and_state(void **unused)
{
	evrec_fields event;
	struct life life;
	char name[64];

	(void)unused;
	life_begin(&life, NULL, NULL);
	(void)see_written(&life, "a", 1, 0);
	(void)snprintf(name, sizeof(name), "%.*s", (int)life.f.o.name.len, life.f.o.name.data);
	save_changes(&life);
	(void)next_life(&life, S);
	event = pod_event("a", "R", "m", T0);
	event.event_time = T0;
	event.name = EVREC_STR("another");
	event.series_count = 9;
	event.series_last = T0 + S;
	assert_true(series_resume(life.f.s, &event, T0 + S));
	series_check_told(&life.f, "");
	event.name = str_from(name);
	assert_true(series_resume(life.f.s, &event, T0 + S));
	series_check_told(&life.f, "Unknown a 9");
	event.series_count = 8;
	assert_true(series_resume(life.f.s, &event, T0 + S));
	assert_int_equal(series_see(&life.f, "a", "m", 2 * S)->base, 9);
	series_check_told(&life.f, "Ongoing a 10");
	/* From now on the own count holds. */
	event.series_count = 50;
	assert_true(series_resume(life.f.s, &event, T0 + 2 * S));
	assert_int_equal(series_see(&life.f, "a", "m", 2 * S)->base, 9);
	life_end(&life);
}

static void test_tokens_do_not_come_back(void **unused)
{
	evrec_series_options options = series_options(10);
	evrec_correlator_options limits;
	struct observed *o;
	struct life life;

	(void)unused;
	evrec_correlator_options_init(&limits);
	limits.burst_size = 1;
	options.rate_limit = true;
	life_begin(&life, &options, &limits);
	(void)series_see(&life.f, "a", "m", 0);
	{
		evrec_fields event = pod_event("a", "Q", "m", T0);

		assert_true(series_see_event(&life.f, &event, T0)->skip);
	}
	save_changes(&life);
	assert_int_equal(next_life_with(&life, &options, &limits, S).records, 3);
	/* No answer has come to its create. */
	assert_int_equal(life.f.told[0].due, T0 + 720 * S);
	series_check_told(&life.f, " a 1");
	{
		/* Its first occurrence had none; if the third had one, it would tell of all three. */
		evrec_fields event = pod_event("a", "Q", "m", T0);

		o = series_see_event(&life.f, &event, T0 + S);
		assert_true(o->skip && !o->patch);
		o = series_see_event(&life.f, &event, T0 + 400 * S);
		assert_true(!o->skip && !o->patch && !o->again);
		assert_int_equal(o->base + (uint32_t)o->count, 3);
	}
	series_check_told(&life.f, "Ongoing a 3");
	life_end(&life);
}

static void test_bounds(void **unused)
{
	const evrec_series_options small = series_options(2);
	struct life life;
	char object[8];

	(void)unused;
	life_begin(&life, NULL, NULL);
	for (int i = 0; i < 5; i++) {
		(void)snprintf(object, sizeof(object), "o%d", i);
		(void)see_written(&life, object, 2, i);
	}
	life.f.told_len = 0;
	save_all(&life);
	(void)next_life_with(&life, &small, NULL, S);
	series_check_told(&life.f, "Unknown o4 2, Unknown o3 2");
	assert_int_equal(stats_of(&life).series, 2);
	life_end(&life);
}

/* Each byte flipped: what is told is a series that there was. */
static void test_damage_is_found(void **unused)
{
	struct life life;
	struct buf file;

	(void)unused;
	life_begin(&life, NULL, NULL);
	(void)see_written(&life, "a", 2, 0);
	(void)see_written(&life, "b", 2, 0);
	life.f.told_len = 0;
	save_all(&life);
	file = life.file;
	life.file = (struct buf){ 0 };
	for (size_t i = 0; i < file.len; i++) {
		struct state_loaded loaded;

		file.data[i] ^= (char)(1 << i % 8);
		life_end(&life);
		life_begin(&life, NULL, NULL);
		assert_true(state_load(life.state, buf_str(&file), T0, INT64_MAX, &loaded));
		assert_in_range(loaded.valid_len, 0, i);
		assert_in_range(loaded.records, 0, 1);
		assert_int_equal(life.f.told_len, loaded.records);
		life.f.told_len = 0;
		file.data[i] ^= (char)(1 << i % 8);
	}
	buf_free(&file);
	life_end(&life);
}

/* A value of any bytes whose checksum is right. */
static void test_values_of_any_bytes(void **unused)
{
	uint64_t random = unit_seed();
	const evrec_series_options options = series_options(4);
	struct series_fixture f;
	struct state *state;
	struct life life;
	uint64_t cursor = 0;
	struct buf value = { 0 };

	(void)unused;
	life_begin(&life, NULL, NULL);
	(void)see_written(&life, "a", 2, 0);
	(void)series_see(&life.f, "a", "another note", 0);
	life.f.told_len = 0;
	assert_true(series_save(lru_oldest(series_cache(life.f.s)), &value));
	series_setup(&f, &options, NULL);
	state = state_new_of_series(f.s);
	for (int i = 0; i < 20000; i++) {
		struct key key = key_of(EVREC_STR("k"), EVREC_STR(""));
		struct buf bad = { 0 };

		buf_put(&bad, value.data, unit_random(&random) % (value.len + 1));
		for (size_t n = unit_random(&random) % 4; n > 0 && bad.len > 0; n--) {
			bad.data[unit_random(&random) % bad.len] = (char)unit_random(&random);
		}
		if (series_restore(f.s, &key, buf_str(&bad), T0 + (int64_t)(unit_random(&random) >> 2)) == RESTORED) {
			assert_int_equal(lru_len(series_cache(f.s)), 1);
		}
		series_tell_restored(f.s);
		f.told_len = 0;
		buf_free(&bad);
	}
	(void)state_take_all(state, &cursor, SIZE_MAX, &value);
	state_free(state);
	buf_free(&value);
	series_teardown(&f);
	life_end(&life);
}

/* ---- random lives ---- */

#define OBJECTS 5
#define STEPS 150

/* What the world outside has of an event: its name, and what was recorded. */
struct truth {
	char name[64];
	uint32_t count;
};

static void live_on(struct life *life, const evrec_series_options *options, uint64_t *random, int64_t after)
{
	switch (unit_random(random) % 6) {
	case 0:
		save_changes(life);
		life->f.told_len = 0;
		(void)next_life_with(life, options, NULL, after);
		life->f.told_len = 0;
		save_all(life);
		break;
	case 1:
		save_changes(life);
		save_all(life);
		break;
	case 2:
		save_changes(life);
		break;
	default:
		break;
	}
}

/* No series ends: then each is one event, whose count is that of all its occurrences. */
static void run_world(uint64_t *random)
{
	evrec_series_options options = series_options(OBJECTS);
	struct truth truths[OBJECTS] = { { .count = 0 } };
	struct life life;
	int64_t after = 0;

	options.finish_time = 3600 * S;
	options.refresh_interval = 10 * S;
	life_begin(&life, &options, NULL);
	save_all(&life);
	for (unsigned step = 0; step < STEPS; step++) {
		const unsigned i = (unsigned)(unit_random(random) % OBJECTS);
		const char object[] = { (char)('a' + i), '\0' };
		struct truth *t = &truths[i];
		struct observed *o;

		life.f.told_len = 0;
		o = series_see(&life.f, object, unit_random(random) % 2 == 0 ? "m" : "n", after);
		if (t->count++ == 0) {
			(void)snprintf(t->name, sizeof(t->name), "%.*s", (int)o->name.len, o->name.data);
		}
		assert_true(str_eq(o->name, str_from(t->name)));
		assert_int_equal(o->base + (uint32_t)o->count, t->count);
		assert_int_equal(o->patch, t->count != 1);
		if (unit_random(random) % 3 == 0) {
			series_settled(life.f.s, o->handle, 1, 0);
			series_answered(life.f.s, o->handle, EVREC_STR(""), 0);
		}
		live_on(&life, &options, random, after);
		after += (int64_t)(unit_random(random) % 20) * S;
	}
	life.f.told_len = 0;
	life_end(&life);
}

static void test_random_lives_count_on(void **unused)
{
	uint64_t random = unit_seed();

	(void)unused;
	for (unsigned i = 0; i < 300; i++) {
		run_world(&random);
	}
}

/* ---- no memory ---- */

static struct buf whole;

static void ignore(void *ctx, const struct series_told *told)
{
	(void)ctx;
	(void)told;
}

static void scenario(void)
{
	const evrec_series_options options = series_options(10);
	evrec_correlator_options limits;
	struct state_loaded loaded;
	struct state *state;
	struct series *s;
	bool ok;

	evrec_correlator_options_init(&limits);
	s = series_new(&options, &limits, T0, ignore, NULL);
	alloc_failure_arm();
	state = state_new_of_series(s);
	alloc_failure_check(state != NULL);
	if (state != NULL) {
		ok = state_load(state, buf_str(&whole), T0 + S, INT64_MAX, &loaded);
		alloc_failure_check(ok);
		assert_true(!ok || loaded.records == 3);
		state_removed(state, EVREC_STR("key"), 1, T0);
		alloc_failure_ignore();
	}
	alloc_failure_disarm();
	if (state != NULL) {
		struct buf out = { 0 };

		/* Without memory for its record, the end of a series leaves no half of one. */
		(void)state_take_changes(state, SIZE_MAX, &out);
		assert_true(out.len == 0 || state_load(state, buf_str(&out), T0 + S, INT64_MAX, &loaded));
		assert_true(out.len == 0 || loaded.valid_len == out.len);
		buf_free(&out);
	}
	state_free(state);
	series_free(s);
}

static void test_every_allocation_fails_once(void **unused)
{
	struct life life;

	(void)unused;
	alloc_failure_hook_jansson();
	life_begin(&life, NULL, NULL);
	for (const char *object = "abc"; *object != '\0'; object++) {
		const char name[] = { *object, '\0' };

		(void)see_written(&life, name, 2, 0);
		(void)series_see(&life.f, name, "another note", 0);
	}
	life.f.told_len = 0;
	save_all(&life);
	whole = life.file;
	life.file = (struct buf){ 0 };
	life_end(&life);
	alloc_failure_run(scenario, 20);
	buf_free(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_series_goes_on),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_a_single_event_begins_a_series),
		cmocka_unit_test(test_what_was_only_counted_is_due),
		cmocka_unit_test(test_a_dropped_write_is_due),
		cmocka_unit_test(test_what_is_over_is_left_out),
		cmocka_unit_test(test_too_old_to_be_written),
		cmocka_unit_test(test_a_finished_series_stays_finished),
		cmocka_unit_test(test_counts_of_others),
		cmocka_unit_test(test_a_name_without_a_count),
		cmocka_unit_test(test_the_larger_count_of_server_and_state),
		cmocka_unit_test(test_tokens_do_not_come_back),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_damage_is_found),
		cmocka_unit_test(test_values_of_any_bytes),
		cmocka_unit_test(test_random_lives_count_on),
		cmocka_unit_test(test_every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

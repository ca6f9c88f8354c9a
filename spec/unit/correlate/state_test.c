/* The state of a correlator as bytes: a correlator that was loaded goes on as if it had never ended. */
#include "correlations.h"

#include "correlate/state.h"

/* A correlator with its state, and the bytes that a file would have. */
struct life {
	evrec_correlator *c;
	struct state *state;
	struct keys keys;
	struct buf file;
};

static void life_begin(struct life *life, const evrec_correlator_options *options)
{
	*life = (struct life){ .c = correlator_with(options) };
	life->state = state_new(life->c);
	assert_non_null(life->state);
}

static void life_end(struct life *life)
{
	state_free(life->state);
	evrec_correlator_free(life->c);
	keys_free(&life->keys);
	buf_free(&life->file);
}

static struct observed observe(struct life *life, const evrec_fields *event, int64_t now)
{
	struct observed o;

	assert_true(keys_make(&life->keys, event));
	assert_int_equal(correlator_observe(life->c, event, &life->keys, now, NULL, &o), 0);
	state_observed(life->state, &o, now);
	return o;
}

static struct observed observe_pod(struct life *life, const char *object, const char *message, int64_t now)
{
	static evrec_fields event;

	event = pod_event(object, "R", message, now);
	return observe(life, &event, now);
}

static void save_changes(struct life *life)
{
	state_begin_changes(life->state);
	while (state_take_changes(life->state, 3, &life->file) != 0) {
	}
	assert_false(life->file.failed);
	assert_int_equal(state_changes(life->state), 0);
}

static void save_all(struct life *life)
{
	uint64_t cursor = 0;

	buf_clear(&life->file);
	while (state_take_all(life->state, &cursor, 5, &life->file) != 0) {
	}
	assert_false(life->file.failed);
}

/* A new life with the bytes of the old one, of which `len` are left. */
static struct state_loaded next_life(struct life *life, const evrec_correlator_options *options, size_t len,
                                     int64_t now)
{
	struct life next;
	struct state_loaded loaded;

	life_begin(&next, options);
	assert_true(state_load(next.state, (evrec_str){ life->file.data, len }, now, 3600 * EVREC_SECOND, &loaded));
	life_end(life);
	*life = next;
	return loaded;
}

static void test_a_duplicate_after_a_restart_is_a_patch(void **unused)
{
	struct life life;
	struct observed o;
	struct state_loaded loaded;
	char name[64];

	(void)unused;
	life_begin(&life, NULL);
	(void)observe_pod(&life, "a", "m", T0);
	o = observe_pod(&life, "a", "m", T0 + 1);
	correlator_answered(life.c, o.handle, EVREC_STR("other-name"), EVREC_STR("17"));
	(void)snprintf(name, sizeof(name), "other-name");
	save_changes(&life);
	loaded = next_life(&life, NULL, life.file.len, T0 + 5);
	assert_int_equal(loaded.records, 3);
	state_begin_changes(life.state);
	assert_int_equal(state_changes(life.state), 0);
	o = observe_pod(&life, "a", "m", T0 + 6);
	assert_true(o.patch);
	assert_int_equal(o.why, EVREC_DUPLICATE);
	assert_int_equal(o.count, 3);
	assert_int_equal(o.first, T0);
	assert_true(str_eq(o.name, str_from(name)));
	assert_str(o.resource_version, "17");
	life_end(&life);
}

static void test_an_answer_is_a_change(void **unused)
{
	struct life life;
	struct observed o;

	(void)unused;
	life_begin(&life, NULL);
	o = observe_pod(&life, "a", "m", T0);
	save_changes(&life);
	correlator_answered(life.c, o.handle, EVREC_STR("renamed"), EVREC_STR("2"));
	state_answered(life.state, o.handle);
	state_begin_changes(life.state);
	assert_int_equal(state_changes(life.state), 1);
	save_changes(&life);
	(void)next_life(&life, NULL, life.file.len, T0);
	assert_str(observe_pod(&life, "a", "m", T0).name, "renamed");
	/* Of an entry that was evicted, or never was. */
	state_answered(life.state, o.handle + 1000);
	life_end(&life);
}

/* However many entries change while a write goes on, it has those that had changed when it began. */
static void test_a_write_has_what_changed_before_it(void **unused)
{
	struct life life;
	char object[16];
	size_t n = 0;

	(void)unused;
	life_begin(&life, NULL);
	(void)observe_pod(&life, "a", "m", T0);
	state_begin_changes(life.state);
	assert_int_equal(state_changes(life.state), 3);
	while (state_changes(life.state) != 0) {
		assert_int_equal(state_take_changes(life.state, 1, &life.file), 1);
		(void)snprintf(object, sizeof(object), "b%zu", ++n);
		(void)observe_pod(&life, object, "m", T0);
	}
	assert_int_equal(n, 3);
	assert_int_equal(state_take_changes(life.state, 1, &life.file), 0);
	assert_int_equal(next_life(&life, NULL, life.file.len, T0).records, 3);
	assert_int_equal(observe_pod(&life, "a", "m", T0).count, 2);
	life_end(&life);
}

static void test_similar_events_are_combined_after_a_restart(void **unused)
{
	struct life life;
	char message[16];

	(void)unused;
	life_begin(&life, NULL);
	for (int i = 1; i <= 12; i++) {
		enum evrec_why why = i < 10 ? EVREC_NEW : EVREC_AGGREGATED;

		(void)snprintf(message, sizeof(message), "m%d", i);
		assert_int_equal(observe_pod(&life, "a", message, T0 + i).why, why);
		save_changes(&life);
		(void)next_life(&life, NULL, life.file.len, T0 + i);
		save_all(&life);
	}
	life_end(&life);
}

static void test_tokens_do_not_come_back(void **unused)
{
	evrec_correlator_options options;
	struct life life;

	(void)unused;
	evrec_correlator_options_init(&options);
	options.burst_size = 2;
	life_begin(&life, &options);
	assert_false(observe_pod(&life, "a", "m", T0).skip);
	assert_false(observe_pod(&life, "a", "m", T0).skip);
	save_all(&life);
	(void)next_life(&life, &options, life.file.len, T0);
	assert_true(observe_pod(&life, "a", "m", T0 + 299 * EVREC_SECOND).skip);
	/* They are refilled while no process lives. */
	save_all(&life);
	(void)next_life(&life, &options, life.file.len, T0 + 300 * EVREC_SECOND);
	assert_false(observe_pod(&life, "a", "m", T0 + 300 * EVREC_SECOND).skip);
	life_end(&life);
}

/* Saved once, at the end. */
static void test_a_correlator_that_was_not_watched(void **unused)
{
	evrec_correlator_options options;
	struct life life;
	struct state *late;

	(void)unused;
	evrec_correlator_options_init(&options);
	options.lru_cache_size = 2;
	life_begin(&life, &options);
	late = state_new(life.c);
	assert_non_null(late);
	(void)observe_pod(&life, "a", "m", T0);
	(void)observe_pod(&life, "b", "m", T0);
	(void)observe_pod(&life, "a", "m", T0);
	state_free(life.state);
	life.state = late;
	assert_true(state_note_all(late, T0));
	state_begin_changes(late);
	assert_int_equal(state_changes(late), 0);
	save_all(&life);
	assert_int_equal(next_life(&life, &options, life.file.len, T0).records, 6);
	/* The one that was not used for longest makes room. */
	(void)observe_pod(&life, "c", "m", T0);
	assert_int_equal(observe_pod(&life, "a", "m", T0).count, 3);
	life_end(&life);
}

static void test_old_entries_are_left_out(void **unused)
{
	struct state_loaded loaded;
	struct life life;

	(void)unused;
	life_begin(&life, NULL);
	(void)observe_pod(&life, "old", "m", T0);
	(void)observe_pod(&life, "used", "m", T0);
	(void)observe_pod(&life, "used", "m", T0 + 1);
	save_all(&life);
	loaded = next_life(&life, NULL, life.file.len, T0 + 3600 * EVREC_SECOND + 1);
	assert_int_equal(loaded.old, 3);
	assert_int_equal(loaded.records, 3);
	assert_int_equal(observe_pod(&life, "used", "m", T0 + 2).count, 3);
	assert_int_equal(observe_pod(&life, "old", "m", T0 + 2).count, 1);
	life_end(&life);
}

/* Each byte flipped: the records before it are there, and the rest is told. */
static void test_damage_is_found(void **unused)
{
	struct life life;
	struct buf file;

	(void)unused;
	life_begin(&life, NULL);
	(void)observe_pod(&life, "a", "m", T0);
	(void)observe_pod(&life, "b", "m", T0);
	save_all(&life);
	file = life.file;
	life.file = (struct buf){ 0 };
	for (size_t i = 0; i < file.len; i++) {
		struct state_loaded loaded;

		file.data[i] ^= (char)(1 << i % 8);
		buf_put_str(&life.file, buf_str(&file));
		loaded = next_life(&life, NULL, file.len, T0);
		assert_in_range(loaded.valid_len, 0, i);
		assert_in_range(loaded.records, 0, 5);
		file.data[i] ^= (char)(1 << i % 8);
	}
	buf_free(&file);
	life_end(&life);
}

/* ---- random lives ---- */

#define STEPS 120
#define OBJECTS 6
#define MESSAGES 5

struct world {
	uint64_t random;
	int64_t now;
	evrec_correlator_options options;
};

static unsigned pick(struct world *w, unsigned n)
{
	return (unsigned)(unit_random(&w->random) % n);
}

static evrec_fields random_event(struct world *w)
{
	static const char *const objects[OBJECTS] = { "a", "b", "c", "d", "e", "f" };
	static const char *const messages[MESSAGES] = { "m", "mm", "no", "yes",
		                                        "a longer message that takes some bytes" };
	evrec_fields event =
		pod_event(objects[pick(w, OBJECTS)], pick(w, 2) != 0 ? "R" : "Q", messages[pick(w, MESSAGES)], w->now);

	return event;
}

/* Not made by a correlator for an aggregate: such names have a counter of the process. */
static bool is_given(evrec_str name)
{
	return name.len > 5 && memcmp(name.data, "name-", 5) == 0;
}

static void check_same(const struct observed *a, const struct observed *b)
{
	assert_int_equal(a->why, b->why);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->first, b->first);
	assert_int_equal(a->patch, b->patch);
	assert_int_equal(is_given(a->name), is_given(b->name));
	assert_true(!is_given(a->name) || str_eq(a->name, b->name));
	assert_true(str_eq(a->resource_version, b->resource_version));
	assert_true(str_eq(a->note, b->note));
}

static void answer_both(struct world *w, struct life *life, evrec_correlator *eternal, const struct observed *a,
                        const struct observed *b)
{
	char version[16];

	if (pick(w, 3) == 0) {
		(void)snprintf(version, sizeof(version), "%u", pick(w, 1000));
		correlator_answered(eternal, b->handle, EVREC_STR(""), str_from(version));
		correlator_answered(life->c, a->handle, EVREC_STR(""), str_from(version));
		state_answered(life->state, a->handle);
	}
}

/* Once in a while the process ends in good order, or a new file is begun. */
static void live_on(struct world *w, struct life *life)
{
	switch (pick(w, 8)) {
	case 0:
		save_changes(life);
		(void)next_life(life, &w->options, life->file.len, w->now);
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

static void name_event(evrec_fields *event, char name[32], unsigned step)
{
	event->name = (evrec_str){ name, (size_t)snprintf(name, 32, "name-%u", step) };
}

static void run_world(struct world *w)
{
	evrec_correlator *eternal;
	struct life life;
	struct keys keys = { 0 };

	w->now = T0;
	evrec_correlator_options_init(&w->options);
	w->options.lru_cache_size = 2 + pick(w, 8);
	w->options.burst_size = 1 + pick(w, 4);
	w->options.max_events = 1 + pick(w, 4);
	w->options.qps = 0.01;
	eternal = correlator_with(&w->options);
	life_begin(&life, &w->options);
	for (unsigned step = 0; step < STEPS; step++) {
		evrec_fields event = random_event(w);
		struct observed a, b;
		char name[32];

		name_event(&event, name, step);
		a = observe(&life, &event, w->now);
		assert_true(keys_make(&keys, &event));
		assert_int_equal(correlator_observe(eternal, &event, &keys, w->now, NULL, &b), 0);
		check_same(&a, &b);
		answer_both(w, &life, eternal, &a, &b);
		live_on(w, &life);
		w->now += (int64_t)pick(w, 200) * EVREC_SECOND / 2;
	}
	keys_free(&keys);
	life_end(&life);
	evrec_correlator_free(eternal);
}

static void test_random_lives_are_as_one(void **unused)
{
	struct world w = { .random = unit_seed() };

	(void)unused;
	for (unsigned i = 0; i < 400; i++) {
		run_world(&w);
	}
}

/*
 * Killed at any moment: the file is cut at any byte. Then each count is one that it had at the end of a record, so not
 * below that of the last whole write, and not above the truth.
 */
static void run_killed(struct world *w)
{
	unsigned counts[OBJECTS] = { 0 }, saved[OBJECTS] = { 0 };
	static const char *const objects[OBJECTS] = { "a", "b", "c", "d", "e", "f" };
	size_t whole = 0, len;
	struct life life;

	w->options = unlimited_options();
	life_begin(&life, &w->options);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = pick(w, OBJECTS);

		assert_int_equal(observe_pod(&life, objects[i], "m", T0).count, ++counts[i]);
		if (pick(w, 10) == 0) {
			memcpy(saved, counts, sizeof(saved));
			save_changes(&life);
			whole = life.file.len;
		}
	}
	save_changes(&life);
	len = whole + pick(w, (unsigned)(life.file.len - whole) + 1);
	(void)next_life(&life, &w->options, len, T0);
	for (unsigned i = 0; i < OBJECTS; i++) {
		int32_t count = observe_pod(&life, objects[i], "m", T0).count;

		assert_in_range(count, saved[i] + 1, counts[i] + 1);
	}
	life_end(&life);
}

static void test_cut_off_at_any_byte(void **unused)
{
	struct world w = { .random = unit_seed() };

	(void)unused;
	for (unsigned i = 0; i < 400; i++) {
		run_killed(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_duplicate_after_a_restart_is_a_patch),
		cmocka_unit_test(test_an_answer_is_a_change),
		cmocka_unit_test(test_a_write_has_what_changed_before_it),
		cmocka_unit_test(test_similar_events_are_combined_after_a_restart),
		cmocka_unit_test(test_tokens_do_not_come_back),
		cmocka_unit_test(test_a_correlator_that_was_not_watched),
		cmocka_unit_test(test_old_entries_are_left_out),
		cmocka_unit_test(test_damage_is_found),
		cmocka_unit_test(test_random_lives_are_as_one),
		cmocka_unit_test(test_cut_off_at_any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

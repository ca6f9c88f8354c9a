/* The state of a correlator as bytes: damaged ones, random lives, and files that are cut at any byte. */
#include "correlator_life.h"

/* Each byte flipped: the records before it are there, and the rest is told. */
static void test_damage_is_found(void **unused)
{
	struct correlator_life life;
	struct buf file;

	(void)unused;
	correlator_life_begin(&life, NULL);
	(void)correlator_life_observe_pod(&life, "a", "m", T0);
	(void)correlator_life_observe_pod(&life, "b", "m", T0);
	correlator_life_save_all(&life);
	file = life.file;
	life.file = (struct buf){ 0 };
	for (size_t i = 0; i < file.len; i++) {
		struct state_loaded loaded;

		file.data[i] ^= (char)(1 << i % 8);
		buf_put_str(&life.file, buf_str(&file));
		loaded = correlator_life_next(&life, NULL, file.len, T0);
		assert_in_range(loaded.valid_len, 0, i);
		assert_in_range(loaded.records, 0, 5);
		file.data[i] ^= (char)(1 << i % 8);
	}
	buf_free(&file);
	correlator_life_end(&life);
}

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

static void answer_both(struct world *w, struct correlator_life *life, evrec_correlator *eternal,
                        const struct observed *a, const struct observed *b)
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
static void live_on(struct world *w, struct correlator_life *life)
{
	switch (pick(w, 8)) {
	case 0:
		correlator_life_save_changes(life);
		(void)correlator_life_next(life, &w->options, life->file.len, w->now);
		correlator_life_save_all(life);
		break;
	case 1:
		correlator_life_save_changes(life);
		correlator_life_save_all(life);
		break;
	case 2:
		correlator_life_save_changes(life);
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
	struct correlator_life life;
	struct keys keys = { 0 };

	w->now = T0;
	evrec_correlator_options_init(&w->options);
	w->options.lru_cache_size = 2 + pick(w, 8);
	w->options.burst_size = 1 + pick(w, 4);
	w->options.max_events = 1 + pick(w, 4);
	w->options.qps = 0.01;
	eternal = correlator_with(&w->options);
	correlator_life_begin(&life, &w->options);
	for (unsigned step = 0; step < STEPS; step++) {
		evrec_fields event = random_event(w);
		struct observed a, b;
		char name[32];

		name_event(&event, name, step);
		a = correlator_life_observe(&life, &event, w->now);
		assert_true(keys_make(&keys, &event));
		assert_int_equal(correlator_observe(eternal, &event, &keys, w->now, NULL, &b), 0);
		check_same(&a, &b);
		answer_both(w, &life, eternal, &a, &b);
		live_on(w, &life);
		w->now += (int64_t)pick(w, 200) * EVREC_SECOND / 2;
	}
	keys_free(&keys);
	correlator_life_end(&life);
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
	struct correlator_life life;

	w->options = unlimited_options();
	correlator_life_begin(&life, &w->options);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = pick(w, OBJECTS);

		assert_int_equal(correlator_life_observe_pod(&life, objects[i], "m", T0).count, ++counts[i]);
		if (pick(w, 10) == 0) {
			memcpy(saved, counts, sizeof(saved));
			correlator_life_save_changes(&life);
			whole = life.file.len;
		}
	}
	correlator_life_save_changes(&life);
	len = whole + pick(w, (unsigned)(life.file.len - whole) + 1);
	(void)correlator_life_next(&life, &w->options, len, T0);
	for (unsigned i = 0; i < OBJECTS; i++) {
		int32_t count = correlator_life_observe_pod(&life, objects[i], "m", T0).count;

		assert_in_range(count, saved[i] + 1, counts[i] + 1);
	}
	correlator_life_end(&life);
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
		cmocka_unit_test(test_damage_is_found),
		cmocka_unit_test(test_random_lives_are_as_one),
		cmocka_unit_test(test_cut_off_at_any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The state of a series as bytes: damaged ones, random lives, and every allocation fails. */
#include "alloc_failure.h"
#include "series_life.h"

#define S EVREC_SECOND

/* Each byte flipped: what is told is a series that there was. */
static void test_damage_is_found(void **unused)
{
	struct series_life life;
	struct buf file;

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	(void)series_life_see_written(&life, "a", 2, 0);
	(void)series_life_see_written(&life, "b", 2, 0);
	life.f.told_len = 0;
	series_life_save_all(&life);
	file = life.file;
	life.file = (struct buf){ 0 };
	for (size_t i = 0; i < file.len; i++) {
		struct state_loaded loaded;

		file.data[i] ^= (char)(1 << i % 8);
		series_life_end(&life);
		series_life_begin(&life, NULL, NULL);
		assert_true(state_load(life.state, buf_str(&file), T0, INT64_MAX, &loaded));
		assert_in_range(loaded.valid_len, 0, i);
		assert_in_range(loaded.records, 0, 1);
		assert_int_equal(life.f.told_len, loaded.records);
		life.f.told_len = 0;
		file.data[i] ^= (char)(1 << i % 8);
	}
	buf_free(&file);
	series_life_end(&life);
}

/* A value of any bytes whose checksum is right. */
static void test_values_of_any_bytes(void **unused)
{
	uint64_t random = unit_seed();
	const evrec_series_options options = series_options(4);
	struct series_fixture f;
	struct state *state;
	struct series_life life;
	uint64_t cursor = 0;
	struct buf value = { 0 };

	(void)unused;
	series_life_begin(&life, NULL, NULL);
	(void)series_life_see_written(&life, "a", 2, 0);
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
	series_life_end(&life);
}

/* ---- random lives ---- */

#define OBJECTS 5
#define STEPS 150

/* The name of an event, and the number of its occurrences, as the test knows them without the series. */
struct truth {
	char name[64];
	uint32_t count;
};

static void live_on(struct series_life *life, const evrec_series_options *options, uint64_t *random, int64_t after)
{
	switch (unit_random(random) % 6) {
	case 0:
		series_life_save_changes(life);
		life->f.told_len = 0;
		(void)series_life_go_on_with(life, options, NULL, after);
		life->f.told_len = 0;
		series_life_save_all(life);
		break;
	case 1:
		series_life_save_changes(life);
		series_life_save_all(life);
		break;
	case 2:
		series_life_save_changes(life);
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
	struct series_life life;
	int64_t after = 0;

	options.finish_time = 3600 * S;
	options.refresh_interval = 10 * S;
	series_life_begin(&life, &options, NULL);
	series_life_save_all(&life);
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
	series_life_end(&life);
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
	struct series_life life;

	(void)unused;
	alloc_failure_hook_jansson();
	series_life_begin(&life, NULL, NULL);
	for (const char *object = "abc"; *object != '\0'; object++) {
		const char name[] = { *object, '\0' };

		(void)series_life_see_written(&life, name, 2, 0);
		(void)series_see(&life.f, name, "another note", 0);
	}
	life.f.told_len = 0;
	series_life_save_all(&life);
	whole = life.file;
	life.file = (struct buf){ 0 };
	series_life_end(&life);
	alloc_failure_run(scenario, 14);
	buf_free(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damage_is_found),
		cmocka_unit_test(test_values_of_any_bytes),
		cmocka_unit_test(test_random_lives_count_on),
		cmocka_unit_test(test_every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

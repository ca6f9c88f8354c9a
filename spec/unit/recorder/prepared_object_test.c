/* A prepared reference and a plain one with the same fields are the same object, whatever was recorded before. */
#include "recorder_fixture.h"

#define CALLS 20000
#define OBJECTS 3

static unsigned below(uint64_t *seed, unsigned n)
{
	return (unsigned)(unit_random(seed) % n);
}

/* One of the first `n` texts. */
static evrec_str pick(uint64_t *seed, const char *const *texts, unsigned n)
{
	return str_from(texts[below(seed, n)]);
}

static evrec_reference random_pod(uint64_t *seed)
{
	static const char *const names[] = { "a", "b" };
	static const char *const uids[] = { "1", "2" };

	return (evrec_reference){ .kind = EVREC_STR("Pod"),
		                  .ns = EVREC_STR("shop"),
		                  .name = pick(seed, names, 2),
		                  .uid = pick(seed, uids, 2) };
}

static evrec_emit random_emit(uint64_t *seed)
{
	static const char *const types[] = { "Normal", "Warning", "Wrong" };
	static const char *const reasons[] = { "Started", "\xff", "" };
	static const char *const notes[] = { "it runs", "it stops", "it \xff" };

	return (evrec_emit){ .type = pick(seed, types, below(seed, 8) == 0 ? 3 : 2),
		             .reason = pick(seed, reasons, below(seed, 8) == 0 ? 3 : 1),
		             .note = pick(seed, notes, 3),
		             .timestamp = EVREC_UNSET };
}

static void get_stats(const struct recorder_fixture *f, evrec_sink_stats *stats)
{
	assert_true(evrec_broadcaster_get_sink_stats(f->b, 1, stats));
}

static void assert_same_stats(const struct recorder_fixture *f, const struct recorder_fixture *plain)
{
	evrec_sink_stats stats, expected;

	get_stats(f, &stats);
	get_stats(plain, &expected);
	assert_int_equal(stats.received, expected.received);
	assert_int_equal(stats.rate_limited, expected.rate_limited);
	assert_memory_equal(&stats.correlator, &expected.correlator, sizeof(stats.correlator));
}

static void test_prepared_and_plain_references_are_the_same_object(void **state)
{
	uint64_t seed = unit_seed();
	struct recorder_fixture *f = *state, *plain;
	evrec_prepared_ref *objects[OBJECTS] = { NULL };
	evrec_watch *watch, *plain_watch;
	void *other = NULL;

	assert_int_equal(recorder_fixture_setup(&other), 0);
	plain = other;
	watch = recorder_fixture_start(f);
	plain_watch = recorder_fixture_start(plain);
	for (unsigned i = 0; i < CALLS; i++) {
		evrec_prepared_ref **object = &objects[below(&seed, OBJECTS)];
		evrec_reference pod = random_pod(&seed);
		evrec_emit emit = random_emit(&seed);
		int code;

		/* A new reference is often in the place in memory that an old one has left. */
		if (*object == NULL || below(&seed, 4) == 0) {
			evrec_prepared_ref_release(*object);
			*object = evrec_prepared_ref_new(&pod, NULL);
		}
		pod = *evrec_prepared_ref_fields(*object);
		emit.regarding = &pod;
		code = evrec_recorder_emit(plain->r, &emit, NULL);
		if (below(&seed, 4) != 0) {
			emit.regarding = NULL;
			emit.object = *object;
		}
		assert_int_equal(evrec_recorder_emit(f->r, &emit, NULL), code);
		assert_same_stats(f, plain);
	}
	for (unsigned i = 0; i < OBJECTS; i++) {
		evrec_prepared_ref_release(objects[i]);
	}
	evrec_watch_free(watch);
	evrec_watch_free(plain_watch);
	assert_int_equal(recorder_fixture_teardown(&other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORDER_TEST(test_prepared_and_plain_references_are_the_same_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

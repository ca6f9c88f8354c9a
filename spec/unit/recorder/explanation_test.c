/* Explanations: a copy of the suppressions of all sinks; in a worker of a share, those that the owner tells. */
#include "sides.h"
#include "tmpdir.h"

#include <pthread.h>

#include "alloc_failure.h"

/* ---- a process by itself ---- */

struct seen {
	const evrec_explanation *e;
	size_t n;
};

static bool see(void *ctx, const evrec_suppressed *s)
{
	struct seen *seen = ctx;
	const evrec_suppressed *copy = &seen->e->sinks[0].suppressed[seen->n++];

	assert_int_equal(copy->stage, s->stage);
	assert_int_equal(copy->count, s->count);
	assert_true(str_eq(copy->message, s->message));
	assert_true(str_eq(copy->regarding.name, s->regarding.name));
	return true;
}

static void test_explanation_is_a_copy(void **state)
{
	evrec_reference other = sides_pod;
	struct seen seen = { 0 };
	struct side side;
	const evrec_explanation *e;

	other.name = EVREC_STR("other");
	assert_true(sides_open_one(&side, "", "", EVREC_DRIVE_POLL, tmpdir_path(*state, "events")));
	for (unsigned i = 0; i < 4; i++) {
		sides_record(&side, "a");
		sides_record_about(&side, &other, "b");
	}
	e = sides_explain(&side, NULL);
	assert_int_equal(e->sinks_len, 1);
	assert_int_equal(e->sinks[0].number, 1);
	assert_str(e->sinks[0].name, "file");
	assert_int_equal(e->sinks[0].suppressed_len, 2);
	seen.e = e;
	evrec_broadcaster_explain(side.b, 1, NULL, see, &seen);
	assert_int_equal(seen.n, 2);
	/* It does not change. */
	sides_record(&side, "c");
	assert_int_equal(e->sinks[0].suppressed[1].count, 2);
	evrec_explanation_free(e);
	e = sides_explain(&side, &other);
	assert_int_equal(e->sinks[0].suppressed_len, 1);
	assert_str(e->sinks[0].suppressed[0].regarding.name, "other");
	evrec_explanation_free(e);
	evrec_explanation_free(NULL);
	sides_close_one(&side);
}

static const char *memory_path;

static void scenario(void)
{
	const evrec_explanation *e;
	evrec_error err = { 0 };
	struct side side;

	assert_true(sides_open_one(&side, "", "", EVREC_DRIVE_POLL, memory_path));
	for (unsigned i = 0; i < 3; i++) {
		sides_record(&side, "a");
	}
	alloc_failure_arm();
	e = evrec_explanation_new(side.b, NULL, SIDES_LONG, &err);
	alloc_failure_check_error(e != NULL, &err);
	alloc_failure_disarm();
	evrec_explanation_free(e);
	(void)evrec_broadcaster_shutdown(side.b, SIDES_LONG, NULL);
	sides_close_one(&side);
}

static void test_no_memory(void **state)
{
	memory_path = tmpdir_path(*state, "events");
	alloc_failure_run(scenario, 2);
}

/* ---- an owner and a worker ---- */

static void check_equal(const evrec_explanation *a, const evrec_explanation *b)
{
	assert_int_equal(a->sinks_len, b->sinks_len);
	for (size_t i = 0; i < a->sinks_len; i++) {
		assert_int_equal(a->sinks[i].number, b->sinks[i].number);
		assert_true(str_eq(a->sinks[i].name, b->sinks[i].name));
		assert_int_equal(a->sinks[i].suppressed_len, b->sinks[i].suppressed_len);
		for (size_t j = 0; j < a->sinks[i].suppressed_len; j++) {
			const evrec_suppressed *one = &a->sinks[i].suppressed[j], *other = &b->sinks[i].suppressed[j];

			assert_int_equal(one->stage, other->stage);
			assert_int_equal(one->count, other->count);
			assert_int_equal(one->first, other->first);
			assert_int_equal(one->last, other->last);
			assert_int_equal(one->next_token, other->next_token);
			assert_true(one->tokens == other->tokens);
			assert_true(str_eq(one->message, other->message));
			assert_true(str_eq(one->regarding.name, other->regarding.name));
			assert_true(str_eq(one->component, other->component));
		}
	}
}

static void check_worker_gets_the_owners(void **state, enum evrec_drive drive)
{
	const evrec_explanation *worker, *owner;
	struct sides w;

	sides_open(&w, drive, tmpdir_path(*state, "events"));
	/* Two of each: alone neither would be limited. */
	sides_record(&w.sides[0], "a");
	sides_record(&w.sides[0], "a");
	sides_record(&w.sides[1], "a");
	sides_record(&w.sides[1], "a");
	worker = sides_explain(&w.sides[1], &sides_pod);
	owner = sides_explain(&w.sides[0], &sides_pod);
	assert_int_equal(sides_role(&w.sides[1]), EVREC_SHARE_WORKER);
	assert_int_equal(owner->sinks[0].suppressed_len, 1);
	assert_int_equal(owner->sinks[0].suppressed[0].stage, EVREC_STAGE_RATE_LIMITED);
	assert_int_equal(owner->sinks[0].suppressed[0].count, 2);
	check_equal(worker, owner);
	evrec_explanation_free(worker);
	evrec_explanation_free(owner);
	sides_close(&w);
}

static void test_worker_that_polls_gets_the_owners_explanation(void **state)
{
	check_worker_gets_the_owners(state, EVREC_DRIVE_POLL);
}

static void test_worker_with_a_thread_gets_the_owners_explanation(void **state)
{
	check_worker_gets_the_owners(state, EVREC_DRIVE_THREAD);
}

/* More than a frame takes. */
static void test_explanation_of_many_objects(void **state)
{
	const evrec_explanation *worker, *owner;
	struct sides w;
	char name[700];

	sides_open(&w, EVREC_DRIVE_POLL, tmpdir_path(*state, "events"));
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (unsigned i = 0; i < 3 * 128; i++) {
		evrec_reference object = sides_pod;

		name[0] = (char)('a' + i / 3 % 26);
		name[1] = (char)('a' + i / 3 / 26);
		object.name = str_from(name);
		sides_record_about(&w.sides[1], &object, "a");
	}
	worker = sides_explain(&w.sides[1], NULL);
	owner = sides_explain(&w.sides[0], NULL);
	assert_int_equal(owner->sinks[0].suppressed_len, 128);
	check_equal(worker, owner);
	evrec_explanation_free(worker);
	evrec_explanation_free(owner);
	sides_close(&w);
}

struct asker {
	pthread_t thread;
	struct side side;
	bool ok;
};

static void *ask_often(void *ctx)
{
	struct asker *asker = ctx;

	asker->ok = true;
	for (unsigned i = 0; i < 20 && asker->ok; i++) {
		const evrec_explanation *e = evrec_explanation_new(asker->side.b, &sides_pod, SIDES_LONG, NULL);

		asker->ok = e != NULL && e->sinks_len == 1 && e->sinks[0].suppressed_len == 1;
		evrec_explanation_free(e);
	}
	return NULL;
}

/* Handles of one broadcaster, in threads: each gets its own answer. */
static void test_threads_ask_at_once(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	struct asker askers[3];
	struct sides w;

	sides_open(&w, EVREC_DRIVE_POLL, path);
	for (unsigned i = 0; i < 3; i++) {
		sides_record(&w.sides[1], "a");
	}
	for (size_t i = 0; i < 3; i++) {
		assert_true(sides_open_one(&askers[i].side, w.share, "worker", EVREC_DRIVE_POLL, path));
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
	}
	for (size_t i = 0; i < 3; i++) {
		(void)pthread_join(askers[i].thread, NULL);
		assert_true(askers[i].ok);
		sides_close_one(&askers[i].side);
	}
	sides_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_explanation_is_a_copy),
		TMPDIR_TEST(test_no_memory),
		TMPDIR_TEST(test_worker_that_polls_gets_the_owners_explanation),
		TMPDIR_TEST(test_worker_with_a_thread_gets_the_owners_explanation),
		TMPDIR_TEST(test_explanation_of_many_objects),
		TMPDIR_TEST(test_threads_ask_at_once),
	};

	return cmocka_run_group_tests_name("explanation", tests, NULL, NULL);
}

/*
 * The store's writers may be killed, the disk may be full, and several processes may write at once: what was committed is
 * there, and the file opens. EVREC_KILLS is the number of kills, 5 by default.
 */
#define _GNU_SOURCE

#include "store_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define BATCH 20

/* Memory that outlives a child. */
static atomic_uint *shared_number(void)
{
	void *page = mmap(NULL, sizeof(atomic_uint), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	return page;
}

/* Writes a batch of events `prefix`.`n` to `prefix`.`n + BATCH - 1`. False: the store refused it. */
static bool write_batch(struct store *store, const char *prefix, unsigned n, evrec_error *err)
{
	bool ok = store_begin(store, err);

	for (unsigned i = n; ok && i < n + BATCH; i++) {
		char name[32], object[32];
		evrec_fields event;

		(void)snprintf(name, sizeof(name), "%s.%u", prefix, i);
		(void)snprintf(object, sizeof(object), "web-%u", i % 97);
		event = store_event(name, object, T0 + i);
		ok = store_put(store, &event, EVREC_STR("{}"), err);
	}
	ok = ok && store_commit(store, err);
	if (!ok) {
		store_rollback(store);
	}
	return ok;
}

/* A child that writes batches until it is killed; *committed grows after each commit. */
static void write_until_killed(const char *path, atomic_uint *committed)
{
	struct store *store = store_new(evrec_string(path));
	evrec_error err;

	for (unsigned n = atomic_load(committed);; n += BATCH) {
		if (!write_batch(store, "a", n, &err)) {
			(void)fprintf(stderr, "%s\n", err.message);
			_exit(1);
		}
		atomic_store(committed, n + BATCH);
	}
}

static void test_a_kill_loses_nothing_that_was_committed(void **state)
{
	const char *path = tmpdir_path(*state, "events.db"), *kills = getenv("EVREC_KILLS");
	atomic_uint *committed = shared_number();
	uint64_t random = unit_seed();

	for (int left = kills == NULL ? 5 : atoi(kills); left > 0; left--) {
		const unsigned before = atomic_load(committed);
		const struct timespec moment = { 0, (long)(1000000 + unit_random(&random) % 20000000) };
		const pid_t child = fork();

		if (child == 0) {
			write_until_killed(path, committed);
		}
		while (atomic_load(committed) == before) {
			(void)nanosleep(&(struct timespec){ 0, 100000 }, NULL);
		}
		(void)nanosleep(&moment, NULL);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_true(WIFSIGNALED(unit_wait(child)));
		assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM pragma_integrity_check "
		                                         "WHERE integrity_check <> 'ok'"),
		                 0);
		/* A batch may be there that was not told any more. */
		assert_in_range(store_fixture_ask(path, "SELECT count(*) FROM events") - atomic_load(committed), 0,
		                BATCH);
		atomic_store(committed, (unsigned)store_fixture_ask(path, "SELECT count(*) FROM events"));
	}
	assert_int_equal(munmap(committed, sizeof(*committed)), 0);
}

static void test_two_processes_write_and_a_third_reads(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const unsigned batches = 50;
	const evrec_query all = store_query_all();
	pid_t children[2];

	store_free(store_fixture_open(path));
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			struct store *store = store_new(evrec_string(path));
			evrec_error err = { 0 };
			unsigned refused = 0;

			for (unsigned n = 0; n < batches;) {
				if (write_batch(store, i == 0 ? "a" : "b", n * BATCH, &err)) {
					n++;
				} else if (strstr(err.message, "is in use") == NULL || ++refused > 200) {
					(void)fprintf(stderr, "%s\n", err.message);
					_exit(1);
				}
			}
			store_free(store);
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unit_wait(children[i]), 0);
		free(store_fixture_find(path, &all));
	}
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), 2 * batches * BATCH);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM facets"), 1);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM objects"), 97);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM words"), 7);
}

static void test_a_full_disk_is_told_and_survived(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
	struct rlimit limit;
	unsigned n = 0;
	evrec_error err;

	assert_true(write_batch(store, "a", n, &err));
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 400000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	while (write_batch(store, "a", n + BATCH, &err)) {
		n += BATCH;
		assert_true(n < 1000000);
	}
	unit_check_contains(err.message, "events.db: ");
	assert_false(write_batch(store, "a", n + BATCH, &err));
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	(void)signal(SIGXFSZ, old);
	assert_true(write_batch(store, "a", n + BATCH, &err));
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), n + 2 * BATCH);
	store_free(store);
}

/* The parent of a writer ends, and a third process writes and closes meanwhile. */
static void test_a_forked_writer_loses_nothing_when_its_parent_ends(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	atomic_uint *step = shared_number(), *result = step + 1;
	const int64_t deadline = unit_mono() + SOON;
	struct store *third;
	evrec_error err;
	pid_t parent = fork();

	if (parent == 0) {
		struct store *of_parent = store_new(evrec_string(path)), *of_child;

		if (!write_batch(of_parent, "a", 0, &err)) {
			_exit(1);
		}
		if (fork() != 0) {
			_exit(0);
		}
		of_child = store_new(evrec_string(path));
		atomic_store(result, write_batch(of_child, "b", 0, &err) ? 1 : 2);
		atomic_store(step, 1);
		while (atomic_load(step) == 1 && unit_mono() < deadline) {
			(void)usleep(10000);
		}
		atomic_store(result, write_batch(of_child, "c", 0, &err) ? 3 : 4);
		atomic_store(step, 3);
		_exit(0);
	}
	assert_int_equal(unit_wait(parent), 0);
	while (atomic_load(step) == 0) {
		(void)usleep(10000);
	}
	assert_int_equal(atomic_load(result), 1);
	third = store_new(evrec_string(path));
	assert_true(write_batch(third, "d", 0, &err));
	store_free(third);
	atomic_store(step, 2);
	while (atomic_load(step) == 2 && unit_mono() < deadline) {
		(void)usleep(10000);
	}
	assert_int_equal(atomic_load(step), 3);
	assert_int_equal(atomic_load(result), 3);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), 4 * BATCH);
}

struct forked {
	const char *path;
	pid_t child;
};

static void *fork_a_writer(void *ctx)
{
	struct forked *forked = ctx;
	evrec_error err;

	forked->child = fork();
	if (forked->child == 0) {
		_exit(write_batch(store_new(evrec_string(forked->path)), "b", 0, &err) ? 0 : 1);
	}
	return NULL;
}

static void test_a_fork_waits_for_a_transaction(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	const evrec_fields event = store_event("a", "web-0", T0);
	struct forked forked = { path, -1 };
	pthread_t thread;
	evrec_error err;

	store_fixture_put(store, &event);
	assert_true(store_begin(store, &err));
	assert_int_equal(pthread_create(&thread, NULL, fork_a_writer, &forked), 0);
	(void)usleep(50000); /* most likely it forks by then; else the test is easier to pass */
	assert_true(store_put(store, &event, EVREC_STR("{}"), &err));
	assert_true(store_commit(store, &err));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(unit_wait(forked.child), 0);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), 1 + BATCH);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_forked_writer_loses_nothing_when_its_parent_ends),
		TMPDIR_TEST(test_a_fork_waits_for_a_transaction),
		TMPDIR_TEST(test_a_kill_loses_nothing_that_was_committed),
		TMPDIR_TEST(test_two_processes_write_and_a_third_reads),
		TMPDIR_TEST(test_a_full_disk_is_told_and_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Readers and writers of a store that are other users, and readers that were forked from another reader. */
#define _GNU_SOURCE

#include "store_fixture.h"

#include <poll.h>
#include <sqlite3.h>
#include <sys/stat.h>

#define NOBODY 65534

static void put(struct store *store, const char *name)
{
	const evrec_fields event = store_event(name, "web-0", T0);

	store_fixture_put(store, &event);
}

/* ---- another user ---- */

/* Uses the store; false, with *err: it cannot. */
typedef bool use_of_store(const char *path, evrec_error *err);

static bool reads(const char *path, evrec_error *err)
{
	const evrec_query query = store_query_all();
	struct store_cursor *cursor = store_query(evrec_string(path), &query, err);
	struct store_row row;
	const bool found = cursor != NULL && store_cursor_next(cursor, &row, err) == EVREC_READ_EVENT;

	store_cursor_free(cursor);
	return found;
}

static bool writes(const char *path, evrec_error *err)
{
	struct store *store = store_new(evrec_string(path));
	const bool begun = store != NULL && store_begin(store, err);

	store_free(store);
	return begun;
}

/* In a child, where a failing assertion would run the remaining tests twice. */
static int use_as_other(use_of_store *use, const char *path, const char *why)
{
	evrec_error err = { .message = "" };
	bool ok;

	if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) {
		return 2;
	}
	ok = use(path, &err);
	if (ok ? why == NULL : why != NULL && strstr(err.message, why) != NULL) {
		return 0;
	}
	(void)fprintf(stderr, "%s\n", ok ? "it succeeded" : err.message);
	return 1;
}

/* Another user than root can use the store, or fails for the reason `why`. */
static void check_as_other(use_of_store *use, const char *path, const char *why)
{
	const pid_t child = fork();

	if (child == 0) {
		_exit(use_as_other(use, path, why));
	}
	assert_int_equal(unit_wait(child), 0);
}

/* The reader may not write to the folder. */
static void check_reader(const char *folder, const char *path, const char *why)
{
	assert_int_equal(chmod(folder, 0555), 0);
	check_as_other(reads, path, why);
	assert_int_equal(chmod(folder, 0755), 0);
}

static void test_a_reader_who_may_not_write_reads_or_is_told_why(void **state)
{
	const char *folder = tmpdir_path(*state, ""), *path = tmpdir_path(*state, "events.db");
	const char *log = tmpdir_path(*state, "events.db-wal");
	struct store *store = store_fixture_open(path);

	put(store, "a.1");
	store_free(store);
	check_reader(folder, path,
	             geteuid() == 0 ? "events.db: Permission denied" : "needs write permission to its folder");
	assert_int_equal(chmod(path, 0644), 0);
	check_reader(folder, path,
	             "events.db: reading a store needs write permission to its folder, unless a writer has it open");
	/* The files that a writer made beside it are enough. */
	store = store_fixture_open(path);
	put(store, "a.1");
	check_reader(folder, path, NULL);
	put(store, "a.1");
	assert_int_equal(chmod(log, 0), 0);
	check_reader(folder, path, "events.db-wal: Permission denied");
	store_free(store);
}

static void test_a_writer_without_permission_is_told_which_it_lacks(void **state)
{
	const char *folder = tmpdir_path(*state, ""), *path = tmpdir_path(*state, "events.db");
	const char *log = tmpdir_path(*state, "events.db-wal"), *index = tmpdir_path(*state, "events.db-shm");
	struct store *store;

	if (geteuid() != 0) {
		skip();
	}
	store = store_fixture_open(path);
	put(store, "a.1");
	assert_int_equal(chmod(folder, 0755), 0);
	check_as_other(writes, path, "events.db: Permission denied");
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	assert_int_equal(chmod(log, 0644), 0);
	assert_int_equal(chmod(index, 0644), 0);
	check_as_other(writes, path, "events.db-wal: Permission denied");
	store_free(store);
	(void)unlink(log);
	(void)unlink(index);
	check_as_other(writes, path, "events.db: writing a store needs write permission to its folder");
}

/* ---- a file that another process has to itself ---- */

#define HELD_MS 300 /* longer than SQLite waits by itself */

/* In a child: has the file to itself for a while. */
static void hold(const char *path, int ready)
{
	sqlite3 *db = NULL;

	if (sqlite3_open(path, &db) == SQLITE_OK &&
	    sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK) {
		(void)!write(ready, "+", 1);
	} else {
		(void)!write(ready, "-", 1);
	}
	(void)poll(NULL, 0, HELD_MS);
	_exit(0);
}

/* A writer that ends has the file to itself until its log is in the file, which takes seconds on a slow disk. */
static void test_a_reader_waits_for_a_writer_that_ends(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query query = store_query_all();
	struct store_notes *notes;
	pid_t child;
	char byte;
	int ready[2];

	store_fixture_make(path);
	for (int of_notes = 0; of_notes < 2; of_notes++) {
		assert_int_equal(pipe(ready), 0);
		child = fork();
		if (child == 0) {
			hold(path, ready[1]);
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		assert_int_equal(byte, '+');
		if (of_notes) {
			notes = store_read_suppressions(evrec_string(path), &query, NULL);
			assert_non_null(notes);
			store_notes_free(notes);
		} else {
			store_fixture_check(path, &query, "");
		}
		assert_int_equal(unit_wait(child), 0);
		(void)close(ready[0]);
		(void)close(ready[1]);
	}
}

/* ---- forks ---- */

#define EVENTS (2 * STORE_PAGE)

static void put_all(struct store *store, int64_t last)
{
	evrec_error err;

	assert_true(store_begin(store, &err));
	for (int i = 0; i < EVENTS; i++) {
		char name[32];
		evrec_fields event;

		(void)snprintf(name, sizeof(name), "e.%d", i);
		event = store_event(name, "web-0", last + i);
		assert_true(store_put(store, &event, EVREC_STR("{}"), &err));
	}
	assert_true(store_commit(store, &err));
}

/* Whether the cursor has as many events, of the first state. */
static bool has_left(struct store_cursor *cursor, int n)
{
	struct store_row row;
	evrec_error err;

	while (store_cursor_next(cursor, &row, &err) == EVREC_READ_EVENT) {
		n -= row.last < T0 + EVREC_SECOND;
	}
	return n == 0;
}

static bool is_refused(struct store_cursor *cursor)
{
	struct store_row row;
	evrec_error err = { .message = "" };

	return store_cursor_next(cursor, &row, &err) == EVREC_ESYSTEM &&
	       strstr(err.message, "events.db: this reader was opened before the process was forked") != NULL;
}

static bool are_notes_refused(struct store_notes *notes)
{
	evrec_error err = { .message = "" };
	evrec_str json;

	return store_notes_next(notes, &json, &err) == EVREC_ESYSTEM &&
	       strstr(err.message, "events.db: this reader was opened before the process was forked") != NULL;
}

/* The readers that the parent has opened before the fork. */
struct opened {
	struct store_cursor *query, *watch;
	struct store_notes *notes;
};

static bool open_all(struct opened *o, const char *path, const evrec_query *all)
{
	evrec_error err;

	o->query = store_query(evrec_string(path), all, &err);
	o->watch = store_watch(evrec_string(path), all, &err);
	o->notes = store_read_suppressions(evrec_string(path), all, &err);
	return o->query != NULL && o->watch != NULL && o->notes != NULL;
}

static void free_all(const struct opened *o)
{
	store_cursor_free(o->query);
	store_cursor_free(o->watch);
	store_notes_free(o->notes);
}

/* In the child: its own query keeps what the parent writes between two bytes of the pipes. */
static int read_in_child(const char *path, const struct opened *parents, int in, int out)
{
	const evrec_query all = store_query_all();
	struct store_cursor *own;
	evrec_error err;
	char byte = 0;

	if (!is_refused(parents->query) || !is_refused(parents->watch) || !are_notes_refused(parents->notes)) {
		return 1;
	}
	own = store_query(evrec_string(path), &all, &err);
	if (own == NULL || write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1 || !has_left(own, EVENTS)) {
		return 2;
	}
	store_cursor_free(own);
	free_all(parents);
	return 0;
}

static void test_a_forked_child_reads_with_cursors_of_its_own(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query all = store_query_all();
	struct store *store = store_fixture_open(path);
	struct opened opened;
	int to_child[2], to_parent[2];
	char byte = 0;
	pid_t child;

	put_all(store, T0);
	assert_true(open_all(&opened, path, &all) && pipe(to_child) == 0 && pipe(to_parent) == 0);
	child = fork();
	if (child == 0) {
		_exit(read_in_child(path, &opened, to_child[0], to_parent[1]));
	}
	(void)close(to_parent[1]);
	if (read(to_parent[0], &byte, 1) == 1) {
		put_all(store, T0 + EVREC_SECOND);
		assert_true(has_left(opened.query, EVENTS));
		/* The child's locks are its own. */
		assert_int_not_equal(store_fixture_ask(path, "PRAGMA wal_checkpoint(TRUNCATE)"), 0);
		assert_int_equal(write(to_child[1], &byte, 1), 1);
	}
	assert_int_equal(unit_wait(child), 0);
	assert_int_equal(store_fixture_ask(path, "PRAGMA wal_checkpoint(TRUNCATE)"), 0);
	(void)close(to_parent[0]);
	(void)close(to_child[0]);
	(void)close(to_child[1]);
	free_all(&opened);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_reader_who_may_not_write_reads_or_is_told_why),
		TMPDIR_TEST(test_a_writer_without_permission_is_told_which_it_lacks),
		TMPDIR_TEST(test_a_reader_waits_for_a_writer_that_ends),
		TMPDIR_TEST(test_a_forked_child_reads_with_cursors_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

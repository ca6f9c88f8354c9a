/* The store's writer: its file, one row an event, and files that it refuses. */
#define _GNU_SOURCE

#include "store_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#define EVENTS "SELECT count(*) FROM events"

static void test_file_is_made_by_the_first_write_and_private(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	const evrec_fields event = store_event("a.1", "web-0", T0);
	struct stat st;

	assert_int_equal(access(path, F_OK), -1);
	store_fixture_put(store, &event);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(tmpdir_path(*state, "events.db-wal"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(store_fixture_ask(path, "PRAGMA auto_vacuum"), 2);
	store_free(store);
}

static void test_an_empty_file_is_private_before_it_becomes_a_store(void **state)
{
	const char *const names[] = { "events.db", "events.db-wal", "events.db-shm" };
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	const evrec_fields event = store_event("a.1", "web-0", T0);
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0666), 0);
	assert_int_equal(close(fd), 0);
	store_fixture_put(store, &event);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(stat(tmpdir_path(*state, names[i]), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	/* A store whose owner lets others read it stays so. */
	assert_int_equal(chmod(path, 0640), 0);
	store_close(store);
	store_fixture_put(store, &event);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	store_free(store);
}

static void test_an_event_is_one_row_with_a_new_number_for_each_change(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query all = store_query_all();
	struct store *store = store_fixture_open(path);
	evrec_fields event = store_event("web-0.17a", "web-0", T0);

	store_fixture_put(store, &event);
	event.last += EVREC_SECOND;
	event.count = 2;
	store_fixture_put(store, &event);
	assert_int_equal(store_fixture_ask(path, EVENTS), 1);
	assert_int_equal(store_fixture_ask(path, "SELECT rv FROM events"), 2);
	assert_int_equal(store_fixture_ask(path, "SELECT last FROM events"), T0 + EVREC_SECOND);
	assert_int_equal(store_fixture_ask(path, "SELECT first FROM events"), T0);
	/* The same name in another namespace is another event; so is a name that is the first one turned. */
	event.ns = EVREC_STR("other");
	store_fixture_put(store, &event);
	event = store_event("17a.web-0", "web-0", T0);
	store_fixture_put(store, &event);
	event = store_event("17a", "web-0", T0);
	store_fixture_put(store, &event);
	store_fixture_check(path, &all, "web-0.17a web-0.17a 17a 17a.web-0 ");
	store_free(store);
}

static void test_rollback_leaves_nothing(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	const evrec_fields event = store_event("a.1", "web-0", T0);
	evrec_error err;

	assert_true(store_begin(store, &err));
	assert_true(store_put(store, &event, EVREC_STR("{}"), &err));
	store_rollback(store);
	assert_int_equal(store_fixture_ask(path, EVENTS), 0);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM words"), 0);
	/* The numbers that were rolled back are not used again by mistake. */
	store_fixture_put(store, &event);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM words"), 7);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events e JOIN facets f ON f.id = e.facet "
	                                         "JOIN words w ON w.id = f.reason WHERE w.word = 'Started'"),
	                 1);
	store_free(store);
}

static void test_changed_facets_and_objects_leave_nothing_behind(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_fields event = store_event("a.1", "web-0", T0);

	event.related = (evrec_reference){ .kind = EVREC_STR("Node"), .name = EVREC_STR("node-1") };
	store_fixture_put(store, &event);
	event = store_event("a.1", "web-1", T0);
	event.reason = EVREC_STR("Killing");
	store_fixture_put(store, &event);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM facets"), 1);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM objects"), 1);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM words WHERE word IN ('Started', 'Node')"), 0);
	store_free(store);
}

static void test_a_number_that_this_transaction_removed_is_not_used(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_fields event = store_event("a.1", "web-0", T0);
	evrec_query query = store_query_all();
	evrec_error err;

	store_fixture_put(store, &event);
	assert_true(store_begin(store, &err));
	event = store_event("a.1", "web-1", T0);
	event.reason = EVREC_STR("Killing");
	assert_true(store_put(store, &event, EVREC_STR("{\"name\":\"a.1\"}"), &err));
	event = store_event("b.1", "web-0", T0);
	assert_true(store_put(store, &event, EVREC_STR("{\"name\":\"b.1\"}"), &err));
	assert_true(store_commit(store, &err));
	query.reason = EVREC_STR("Started");
	store_fixture_check(path, &query, "b.1 ");
	query = store_query_all();
	query.regarding.name = EVREC_STR("web-0");
	store_fixture_check(path, &query, "b.1 ");
	store_free(store);
}

static void test_a_number_that_another_writer_removed_is_not_used(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *one = store_fixture_open(path), *two = store_fixture_open(path);
	evrec_fields event = store_event("a.1", "web-0", T0);
	evrec_query query = store_query_all();
	evrec_error err;
	bool more;

	store_fixture_put(one, &event);
	event = store_event("b.1", "db-0", T0 + EVREC_SECOND);
	event.reason = EVREC_STR("Other");
	store_fixture_put(two, &event);
	assert_true(store_expire(two, T0 + 1, 0, &more, &err));
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM objects"), 1);
	event = store_event("a.2", "web-0", T0 + EVREC_SECOND);
	store_fixture_put(one, &event);
	query.regarding.name = EVREC_STR("web-0");
	query.reason = EVREC_STR("Started");
	store_fixture_check(path, &query, "a.2 ");
	store_free(one);
	store_free(two);
}

static void test_another_writer_is_waited_for_and_told(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *one = store_fixture_open(path), *two = store_fixture_open(path);
	const evrec_fields event = store_event("a.1", "web-0", T0);
	evrec_error err;

	store_fixture_put(two, &event);
	assert_true(store_begin(one, &err));
	assert_false(store_begin(two, &err));
	unit_check_contains(err.message, "events.db is in use: another process is writing");
	store_rollback(one);
	assert_true(store_begin(two, &err));
	store_rollback(two);
	store_free(one);
	store_free(two);
}

static void test_a_removed_file_is_made_again(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query all = store_query_all();
	struct store *store = store_fixture_open(path);
	evrec_fields event = store_event("a.1", "web-0", T0);

	store_fixture_put(store, &event);
	assert_int_equal(unlink(path), 0);
	(void)unlink(tmpdir_path(*state, "events.db-wal"));
	(void)unlink(tmpdir_path(*state, "events.db-shm"));
	event = store_event("a.2", "web-0", T0);
	store_fixture_put(store, &event);
	store_fixture_check(path, &all, "a.2 ");
	store_free(store);
}

/* ---- files that are refused ---- */

static void test_a_newer_version_is_refused_by_name(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query all = store_query_all();
	struct store *store = store_fixture_open(path);
	const evrec_fields event = store_event("a.1", "web-0", T0);
	evrec_error err;

	store_fixture_put(store, &event);
	store_free(store);
	store_fixture_exec(path, "PRAGMA user_version = 7");
	store_fixture_check_refused(path, "events.db: a store of version 7, this evrec knows version 3 only");
	assert_null(store_query(evrec_string(path), &all, &err));
	unit_check_contains(err.message, "a store of version 7");
	assert_int_equal(store_fixture_ask(path, EVENTS), 1);
}

static void test_other_files_are_refused_and_left_alone(void **state)
{
	const char *path = tmpdir_path(*state, "notes"), *link_path = tmpdir_path(*state, "link");
	const evrec_query all = store_query_all();
	char text[64] = { 0 };
	evrec_error err;
	int fd;

	tmpdir_write_file(path,
	                  "Notes of somebody, longer than the header of a database, which has 100 bytes. And more, "
	                  "and still more.");
	store_fixture_check_refused(path, "notes is not an event store of evrec");
	fd = open(path, O_RDONLY);
	assert_true(read(fd, text, 5) == 5);
	close(fd);
	assert_string_equal(text, "Notes");
	assert_int_equal(symlink(path, link_path), 0);
	store_fixture_check_refused(link_path, "link is a symbolic link");
	assert_null(store_query(evrec_string(link_path), &all, &err));
	unit_check_contains(err.message, "link is a symbolic link");
	path = tmpdir_path(*state, "other.db");
	tmpdir_write_file(path, "");
	store_fixture_exec(path, "CREATE TABLE books (title TEXT)");
	store_fixture_check_refused(path, "other.db is not an event store of evrec");
	path = tmpdir_path(*state, "missing/events.db");
	store_fixture_check_refused(path, "No such file or directory");
	assert_null(store_query(evrec_string(path), &all, &err));
	unit_check_contains(err.message, "No such file or directory");
}

static void test_names_mean_nothing_to_sqlite(void **state)
{
	static const char *const names[] = { "file:events?mode=memory", ":memory:", "a%20b?c#d" };
	char old[512];

	assert_non_null(getcwd(old, sizeof(old)));
	assert_int_equal(chdir(tmpdir_path(*state, "")), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct store *store = store_fixture_open(names[i]);
		const evrec_fields event = store_event("a.1", "web-0", T0);
		const evrec_query all = store_query_all();

		store_fixture_put(store, &event);
		assert_int_equal(access(names[i], F_OK), 0);
		store_fixture_check(names[i], &all, "a.1 ");
		/* The process may change its folder. */
		assert_int_equal(chdir("/"), 0);
		store_fixture_put(store, &event);
		assert_int_equal(chdir(tmpdir_path(*state, "")), 0);
		store_free(store);
	}
	assert_int_equal(chdir(old), 0);
}

static void test_a_damaged_file_is_told(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	char nonsense[4096];
	int fd;

	for (int i = 0; i < 100; i++) {
		char name[32];
		evrec_fields event;

		(void)snprintf(name, sizeof(name), "a.%d", i);
		event = store_event(name, "web-0", T0 + i);
		store_fixture_put(store, &event);
	}
	store_free(store);
	memset(nonsense, 0x5a, sizeof(nonsense));
	fd = open(path, O_WRONLY);
	for (off_t page = 1; page < 40; page++) {
		assert_int_equal(pwrite(fd, nonsense, sizeof(nonsense), page * 4096), 4096);
	}
	close(fd);
	store_fixture_check_refused(path, "malformed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_file_is_made_by_the_first_write_and_private),
		TMPDIR_TEST(test_an_empty_file_is_private_before_it_becomes_a_store),
		TMPDIR_TEST(test_an_event_is_one_row_with_a_new_number_for_each_change),
		TMPDIR_TEST(test_rollback_leaves_nothing),
		TMPDIR_TEST(test_changed_facets_and_objects_leave_nothing_behind),
		TMPDIR_TEST(test_a_number_that_this_transaction_removed_is_not_used),
		TMPDIR_TEST(test_a_number_that_another_writer_removed_is_not_used),
		TMPDIR_TEST(test_another_writer_is_waited_for_and_told),
		TMPDIR_TEST(test_a_removed_file_is_made_again),
		TMPDIR_TEST(test_a_newer_version_is_refused_by_name),
		TMPDIR_TEST(test_other_files_are_refused_and_left_alone),
		TMPDIR_TEST(test_names_mean_nothing_to_sqlite),
		TMPDIR_TEST(test_a_damaged_file_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

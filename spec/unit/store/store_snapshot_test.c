/* A query of a store sees the events as they were when it was opened, and keeps nobody waiting. */
#include "store_fixture.h"

#define EVENTS (5 * STORE_PAGE)

/* Writes all events; their last occurrences are `later` ns after the first ones. */
static void put_all(struct store *store, int64_t later)
{
	evrec_error err;

	assert_true(store_begin(store, &err));
	for (int i = 0; i < EVENTS; i++) {
		char name[32], json[64];
		evrec_fields event;

		(void)snprintf(name, sizeof(name), "e.%d", i);
		(void)snprintf(json, sizeof(json), "%d %d", i, later != 0);
		event = store_event(name, "web-0", T0 + i + later);
		assert_true(store_put(store, &event, evrec_string(json), &err));
	}
	assert_true(store_commit(store, &err));
}

static struct store_cursor *open_query(const char *path, const evrec_query *query)
{
	evrec_error err;
	struct store_cursor *cursor = store_query(evrec_string(path), query, &err);

	assert_non_null(cursor);
	return cursor;
}

/* All events are written again after each page. Each is found once, in its first state. */
static void check_order(const char *path, enum evrec_order order)
{
	struct store *store = store_fixture_open(path);
	evrec_query query = store_query_all();
	struct store_cursor *cursor;
	struct store_row row;
	evrec_error err;
	int n = 0;

	put_all(store, 0);
	query.order = order;
	cursor = open_query(path, &query);
	put_all(store, EVREC_SECOND);
	for (; store_cursor_next(cursor, &row, &err) == EVREC_READ_EVENT; n++) {
		char expected[64];

		(void)snprintf(expected, sizeof(expected), "%d 0", order == EVREC_OLDEST ? n : EVENTS - 1 - n);
		assert_string_equal(row.json.data, expected);
		if (n % STORE_PAGE == 0) {
			put_all(store, (n + 2) * EVREC_SECOND);
		}
	}
	assert_int_equal(n, EVENTS);
	store_cursor_free(cursor);
	store_free(store);
}

static void test_a_query_finds_each_event_once_as_it_was(void **state)
{
	check_order(tmpdir_path(*state, "newest.db"), EVREC_NEWEST);
	check_order(tmpdir_path(*state, "oldest.db"), EVREC_OLDEST);
}

/* A checkpoint that has to wait for a reader does not empty the log, and says so. */
static bool keeps_log(const char *path)
{
	return store_fixture_ask(path, "PRAGMA wal_checkpoint(TRUNCATE)") != 0;
}

static void test_a_query_holds_the_log_until_its_end(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_query query = store_query_all();
	struct store_cursor *cursor;
	struct store_row row;
	evrec_error err;

	put_all(store, 0);
	cursor = open_query(path, &query);
	put_all(store, EVREC_SECOND);
	assert_true(keeps_log(path));
	while (store_cursor_next(cursor, &row, &err) == EVREC_READ_EVENT) {
	}
	assert_false(keeps_log(path));
	put_all(store, 0);
	assert_false(keeps_log(path));
	store_cursor_free(cursor);
	/* One that has its last page, and one that is freed before. */
	query.limit = 3;
	cursor = open_query(path, &query);
	put_all(store, EVREC_SECOND);
	assert_true(keeps_log(path));
	assert_int_equal(store_cursor_next(cursor, &row, &err), EVREC_READ_EVENT);
	assert_false(keeps_log(path));
	store_cursor_free(cursor);
	cursor = open_query(path, &query);
	put_all(store, 0);
	assert_true(keeps_log(path));
	store_cursor_free(cursor);
	assert_false(keeps_log(path));
	store_free(store);
}

static void test_a_watch_holds_no_log(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	const evrec_query query = store_query_all();
	struct store_cursor *cursor;
	struct store_row row;
	evrec_error err;

	put_all(store, 0);
	cursor = store_watch(evrec_string(path), &query, &err);
	assert_non_null(cursor);
	put_all(store, EVREC_SECOND);
	assert_int_equal(store_cursor_next(cursor, &row, &err), EVREC_READ_EVENT);
	put_all(store, 0);
	assert_false(keeps_log(path));
	store_cursor_free(cursor);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_query_finds_each_event_once_as_it_was),
		TMPDIR_TEST(test_a_query_holds_the_log_until_its_end),
		TMPDIR_TEST(test_a_watch_holds_no_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

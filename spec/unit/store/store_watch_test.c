/* A watch of a store: what is written from its begin on, each change as one event, in the order of writing. */
#include "store_fixture.h"

static struct store_cursor *watch(const char *path, const evrec_query *query)
{
	evrec_error err;
	struct store_cursor *cursor = store_watch(evrec_string(path), query, &err);

	assert_non_null(cursor);
	return cursor;
}

static void check_next(struct store_cursor *cursor, const char *json)
{
	struct store_row row;
	evrec_error err;

	assert_int_equal(store_cursor_next(cursor, &row, &err), EVREC_READ_EVENT);
	assert_string_equal(row.json.data, json);
}

static void check_wait(struct store_cursor *cursor)
{
	struct store_row row;
	evrec_error err;

	assert_int_equal(store_cursor_next(cursor, &row, &err), EVREC_READ_WAIT);
}

static void test_a_watch_tells_each_change_once_in_order(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query all = store_query_all();
	struct store *store = store_fixture_open(path);
	evrec_fields a = store_event("a.1", "web-0", T0 + 5), b = store_event("b.1", "web-1", T0);
	struct store_cursor *cursor;

	store_fixture_put(store, &a);
	cursor = watch(path, &all);
	check_wait(cursor);
	store_fixture_put(store, &b);
	store_fixture_put(store, &a);
	check_next(cursor, "{\"name\":\"b.1\"}");
	check_next(cursor, "{\"name\":\"a.1\"}");
	check_wait(cursor);
	check_wait(cursor);
	store_fixture_put(store, &a);
	check_next(cursor, "{\"name\":\"a.1\"}");
	check_wait(cursor);
	for (int i = 0; i < 3 * STORE_PAGE; i++) {
		store_fixture_put(store, &b);
		store_fixture_put(store, &a);
	}
	/* Of an event that was written again meanwhile, its present state alone. */
	check_next(cursor, "{\"name\":\"b.1\"}");
	check_next(cursor, "{\"name\":\"a.1\"}");
	check_wait(cursor);
	store_cursor_free(cursor);
	store_free(store);
}

static void test_a_watch_filters_by_words_that_come_later(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_fields event = store_event("a.1", "web-0", T0);
	evrec_query query = store_query_all();
	struct store_cursor *cursor;
	evrec_error err;
	bool more;

	store_fixture_put(store, &event);
	query.reason = EVREC_STR("Killing");
	query.mentions.kind = EVREC_STR("POD");
	query.mentions.name = EVREC_STR("web-1");
	query.since = T0 + 1;
	cursor = watch(path, &query);
	for (int i = 1; i <= 2; i++) {
		event = store_event("a.2", "web-1", T0 + i);
		store_fixture_put(store, &event);
		check_wait(cursor);
		event.reason = EVREC_STR("Killing");
		store_fixture_put(store, &event);
		check_next(cursor, "{\"name\":\"a.2\"}");
		event.last = T0;
		store_fixture_put(store, &event);
		check_wait(cursor);
		/* All words go, and come again with other numbers. */
		assert_true(store_expire(store, INT64_MAX, 0, &more, &err));
		assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM words"), 0);
		check_wait(cursor);
	}
	store_cursor_free(cursor);
	store_free(store);
}

static void test_a_watch_tells_that_its_file_is_gone(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query all = store_query_all();
	struct store *store = store_fixture_open(path);
	const evrec_fields event = store_event("a.1", "web-0", T0);
	struct store_cursor *cursor;
	struct store_row row;
	evrec_error err;

	store_fixture_put(store, &event);
	cursor = watch(path, &all);
	check_wait(cursor);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(store_cursor_next(cursor, &row, &err), EVREC_ESYSTEM);
	unit_check_contains(err.message, "events.db was removed");
	store_cursor_free(cursor);
	store_free(store);
}

static void test_an_empty_store_can_be_watched(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query all = store_query_all();
	struct store *store = store_fixture_open(path);
	const evrec_fields event = store_event("a.1", "web-0", T0);
	struct store_cursor *cursor;
	evrec_error err;

	assert_true(store_begin(store, &err));
	assert_true(store_commit(store, &err));
	cursor = watch(path, &all);
	check_wait(cursor);
	store_fixture_put(store, &event);
	check_next(cursor, "{\"name\":\"a.1\"}");
	store_cursor_free(cursor);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_watch_tells_each_change_once_in_order),
		TMPDIR_TEST(test_a_watch_filters_by_words_that_come_later),
		TMPDIR_TEST(test_a_watch_tells_that_its_file_is_gone),
		TMPDIR_TEST(test_an_empty_store_can_be_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A reader of a store: field selectors, which evrec itself applies, and types. */
#include "store_fixture.h"

#include "evrec_read.h"

#define EVENTS 200

/* Events of as many names, e.0 the oldest. */
static void put_all(const char *path)
{
	struct store *store = store_fixture_open(path);
	evrec_error err;

	assert_true(store_begin(store, &err));
	for (int i = 0; i < EVENTS; i++) {
		char name[32], json[96];
		evrec_fields event;

		(void)snprintf(name, sizeof(name), "e.%d", i);
		(void)snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\"}}", name);
		event = store_event(name, "web-0", T0 + i);
		assert_true(store_put(store, &event, evrec_string(json), &err));
	}
	assert_true(store_commit(store, &err));
	store_free(store);
}

static evrec_reader *open_query(const char *path, const char *selector, size_t limit)
{
	evrec_source *source = evrec_source_store(evrec_string(path), NULL);
	evrec_reader *reader;
	evrec_query query;

	evrec_query_init(&query);
	query.field_selector = evrec_string(selector);
	query.limit = limit;
	reader = evrec_source_query(source, &query, NULL);
	assert_non_null(reader);
	evrec_source_release(source);
	return reader;
}

static void test_a_timeout_ends_a_call_that_finds_nothing(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	evrec_reader *reader;
	evrec_found found;
	int waits = 0, result;

	put_all(path);
	reader = open_query(path, "metadata.name=e.0", 0);
	while ((result = evrec_reader_next(reader, 0, &found, NULL)) == EVREC_READ_WAIT) {
		waits++;
	}
	assert_int_equal(result, EVREC_READ_EVENT);
	assert_true(waits >= 2);
	assert_int_equal(evrec_reader_next(reader, 0, &found, NULL), EVREC_READ_END);
	evrec_reader_free(reader);
	reader = open_query(path, "metadata.name=e.0", 0);
	assert_int_equal(evrec_reader_next(reader, EVREC_FOREVER, &found, NULL), EVREC_READ_EVENT);
	evrec_reader_free(reader);
}

/* A checkpoint that does not wait for a reader empties the log. */
static void test_a_limit_ends_the_transaction(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	evrec_reader *reader;
	evrec_found found;

	put_all(path);
	reader = open_query(path, "metadata.name!=e.0", 2);
	put_all(path);
	assert_int_equal(evrec_reader_next(reader, SOON, &found, NULL), EVREC_READ_EVENT);
	assert_int_equal(evrec_reader_next(reader, SOON, &found, NULL), EVREC_READ_EVENT);
	assert_int_not_equal(store_fixture_ask(path, "PRAGMA wal_checkpoint(TRUNCATE)"), 0);
	assert_int_equal(evrec_reader_next(reader, SOON, &found, NULL), EVREC_READ_END);
	assert_int_equal(store_fixture_ask(path, "PRAGMA wal_checkpoint(TRUNCATE)"), 0);
	assert_int_equal(evrec_reader_next(reader, SOON, &found, NULL), EVREC_READ_END);
	evrec_reader_free(reader);
}

static void test_a_type_may_be_listed_often(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	evrec_source *source = evrec_source_store(evrec_string(path), NULL);
	evrec_str types[100];
	evrec_reader *reader;
	evrec_query query;
	evrec_found found;
	evrec_error err;

	put_all(path);
	evrec_query_init(&query);
	for (size_t i = 0; i < 100; i++) {
		types[i] = store_event("", "", T0).type;
	}
	query.types = types;
	query.types_len = 100;
	reader = evrec_source_query(source, &query, &err);
	assert_non_null(reader);
	if (evrec_reader_next(reader, SOON, &found, &err) != EVREC_READ_EVENT) {
		fail_msg("%s", err.message);
	}
	evrec_reader_free(reader);
	evrec_source_release(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_timeout_ends_a_call_that_finds_nothing),
		TMPDIR_TEST(test_a_limit_ends_the_transaction),
		TMPDIR_TEST(test_a_type_may_be_listed_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

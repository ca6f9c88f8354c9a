/* The tables of notes: what is put into them, read of them, and deleted; and the conversion of an older store. */
#include "note_fixture.h"
#include "store_fixture.h"

static void put(struct store *store, const struct note *note)
{
	evrec_error err;

	assert_true(store_begin(store, &err));
	assert_true(store_put_note(store, note, &err));
	assert_true(store_commit(store, &err));
}

static unsigned count_rows(struct store_notes *notes, const char *contains)
{
	evrec_error err;
	evrec_str json;
	unsigned n = 0;

	assert_non_null(notes);
	while (store_notes_next(notes, &json, &err) == EVREC_READ_EVENT) {
		n++;
		if (contains != NULL) {
			unit_check_contains(json.data, contains);
		}
	}
	assert_int_equal(store_notes_next(notes, &json, &err), EVREC_READ_END);
	store_notes_free(notes);
	return n;
}

static void test_suppressions_of_a_minute_are_one_row(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const int64_t minute = T0 - T0 % (60 * EVREC_SECOND);
	struct store *store = store_fixture_open(path);
	evrec_query query = store_query_all();
	evrec_error err;

	for (int i = 0; i < 120; i++) {
		const struct note note =
			note_of_suppression("web-0", i % 2 == 0 ? "Failed" : "Pulled", minute + i * EVREC_SECOND, 2);

		put(store, &note);
	}
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM suppressions"), 4);
	assert_int_equal(store_fixture_ask(path, "SELECT sum(count) FROM suppressions"), 240);
	assert_int_equal(store_fixture_ask(path, "SELECT max(last - first) FROM suppressions"), 58 * EVREC_SECOND);
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &query, &err), "a \\\"message\\\""), 4);
	query.regarding.name = EVREC_STR("web-0");
	query.regarding.kind = EVREC_STR("pod");
	query.since = minute + 60 * EVREC_SECOND;
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &query, &err), "\"count\":60"), 2);
	query.regarding.uid = EVREC_STR("u-1");
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &query, &err), NULL), 0);
	store_free(store);
}

static void test_occurrences_are_read_page_by_page_in_order(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_query query = store_query_all();
	struct store_notes *notes;
	evrec_error err;
	evrec_str json;

	for (int i = 299; i >= 0; i--) {
		const struct note note = note_of_occurrence("a.1", T0 + i), other = note_of_occurrence("a.2", T0 + i);

		put(store, &note);
		put(store, &other);
	}
	query.regarding.ns = EVREC_STR("shop");
	query.regarding.name = EVREC_STR("a.1");
	notes = store_read_occurrences(evrec_string(path), &query, &err);
	assert_non_null(notes);
	for (int i = 0; i < 300; i++) {
		char expected[64];

		(void)snprintf(expected, sizeof(expected), "\"time\":%lld,", (long long)(T0 + i));
		assert_int_equal(store_notes_next(notes, &json, &err), EVREC_READ_EVENT);
		unit_check_contains(json.data, expected);
	}
	assert_int_equal(store_notes_next(notes, &json, &err), EVREC_READ_END);
	store_notes_free(notes);
	store_free(store);
}

static void test_notes_are_found_without_a_scan(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store;
	const struct note note = note_of_suppression("web-0", "Failed", T0, 1);
	evrec_query query = store_query_all();
	evrec_error err;
	bool more;

	/* Before the plans are noted: the steps of the schema copy a table whole. */
	store_fixture_make(path);
	store_fixture_trace();
	store = store_fixture_open(path);
	put(store, &note);
	query.regarding.ns = EVREC_STR("shop");
	query.regarding.name = EVREC_STR("web-0");
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &query, &err), NULL), 1);
	assert_int_equal(count_rows(store_read_occurrences(evrec_string(path), &query, &err), NULL), 0);
	assert_true(store_expire(store, T0 + 1, 0, &more, &err));
	store_fixture_check_plans(path, 4);
	store_free(store);
}

static void test_notes_expire_some_at_a_time(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	unsigned turns = 0;
	evrec_error err;
	bool more = true;

	for (int i = 0; i < 700; i++) {
		const struct note when = note_of_occurrence("a.1", T0 + i * 60 * EVREC_SECOND);
		const struct note why = note_of_suppression("web-0", "Failed", T0 + i * 60 * EVREC_SECOND, 1);

		put(store, &when);
		put(store, &why);
	}
	for (; more; turns++) {
		assert_true(store_expire(store, T0 + 690 * 60 * EVREC_SECOND, 0, &more, &err));
		assert_true(turns > 0 || store_fixture_ask(path, "SELECT count(*) FROM occurrences") == 200);
	}
	assert_int_equal(turns, 2);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM occurrences"), 10);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM suppressions"), 10);
	store_free(store);
}

/* The notes of the events that stay are not deleted, though they are many small rows. */
static void test_notes_of_a_full_file_expire_as_events_do(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	char *json = mem_alloc(3000);
	char name[16];
	evrec_error err;
	bool more = true;

	memset(json, 'x', 3000);
	for (int i = 0; i < 700; i++) {
		const int64_t time = T0 + i * 60 * EVREC_SECOND;
		struct note when, why = note_of_suppression("web-0", "Failed", time, 1);
		evrec_fields event;

		(void)snprintf(name, sizeof(name), "a.%d", i);
		when = note_of_occurrence(name, time);
		event = store_event(name, "web-0", time);
		assert_true(store_begin(store, &err) && store_put(store, &event, (evrec_str){ json, 3000 }, &err) &&
		            store_commit(store, &err));
		put(store, &when);
		put(store, &why);
	}
	while (more) {
		assert_true(store_expire(store, INT64_MIN, 1U << 20, &more, &err));
	}
	assert_in_range(store_fixture_ask(path, "SELECT count(*) FROM events"), 100, 400);
	assert_int_equal(store_fixture_ask(path, "SELECT (SELECT count(*) FROM occurrences) - count(*) FROM events"),
	                 0);
	assert_int_equal(store_fixture_ask(path, "SELECT (SELECT min(time) FROM occurrences) - min(last) FROM events"),
	                 0);
	assert_int_equal(store_fixture_ask(path, "SELECT (SELECT min(last) FROM suppressions) - min(last) FROM events"),
	                 0);
	mem_free(json);
	store_free(store);
}

static void test_suppressions_of_each_reporter_are_a_row(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_str reporters[][2] = { { EVREC_STR("kubelet"), EVREC_STR("a") },
		                           { EVREC_STR("proxy"), EVREC_STR("a") },
		                           { EVREC_STR("kubelet"), EVREC_STR("b") } };
	struct store *store = store_fixture_open(path);
	const evrec_query all = store_query_all();
	evrec_error err;

	for (size_t i = 0; i < 6; i++) {
		struct note note = note_of_suppression("web-0", "Failed", T0, 1);

		note.texts[NOTE_COMPONENT] = reporters[i % 3][0];
		note.texts[NOTE_HOST] = reporters[i % 3][1];
		put(store, &note);
	}
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &all, &err), "\"count\":2"), 3);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM suppressions WHERE component = 'kubelet'"), 2);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM suppressions WHERE host = 'a'"), 2);
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &all, &err), "\"component\":\""), 3);
	store_free(store);
}

/* The columns that the table had in version 2. */
#define SUPPRESSIONS_2                                                                                                 \
	"CREATE TABLE suppressions (id INTEGER PRIMARY KEY, span INTEGER NOT NULL, ns TEXT NOT NULL, "                 \
	"name TEXT NOT NULL, kind TEXT NOT NULL, api_version TEXT NOT NULL, uid TEXT NOT NULL, type TEXT NOT NULL, "   \
	"reason TEXT NOT NULL, stage TEXT NOT NULL, cause TEXT NOT NULL, key TEXT NOT NULL, message TEXT NOT NULL, "   \
	"first INTEGER NOT NULL, last INTEGER NOT NULL, count INTEGER NOT NULL, "                                      \
	"UNIQUE (span, name, ns, kind, api_version, uid, type, reason, stage, cause, key));"                           \
	"CREATE INDEX suppressions_name ON suppressions (name);"                                                       \
	"CREATE INDEX suppressions_last ON suppressions (last);"

static void test_a_store_of_version_2_is_read_and_converted(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query all = store_query_all();
	evrec_query named = all;
	struct store *store = store_fixture_open(path);
	struct note note = note_of_suppression("web-0", "Failed", T0, 1);
	evrec_fields event = store_event("a.1", "web-0", T0);
	evrec_error err;

	store_fixture_put(store, &event);
	store_free(store);
	store_fixture_exec(path, "DROP TABLE suppressions;" SUPPRESSIONS_2
	                         "INSERT INTO suppressions VALUES (7, 1, 'shop', 'web-0', 'Pod', 'v1', 'u', 'Normal', "
	                         "'Failed', 'rate_limited', '', '', 'm', 60000000000, 60000000001, 5);"
	                         "PRAGMA user_version = 2");
	/* It is read as it is, as nobody may ever write to it again. */
	store_fixture_check(path, &all, "a.1 ");
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &all, &err), "\"component\":\"\""), 1);
	named.regarding.name = EVREC_STR("web-0");
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &named, &err), "\"host\":\"\""), 1);
	assert_int_equal(count_rows(store_read_occurrences(evrec_string(path), &named, &err), NULL), 0);
	assert_int_equal(store_fixture_ask(path, "PRAGMA user_version"), 2);
	store = store_fixture_open(path);
	note.texts[NOTE_COMPONENT] = EVREC_STR("kubelet");
	put(store, &note);
	put(store, &note);
	assert_int_equal(store_fixture_ask(path, "PRAGMA user_version"), 3);
	store_fixture_check(path, &all, "a.1 ");
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &all, &err), "Failed"), 2);
	assert_int_equal(store_fixture_ask(path, "SELECT count FROM suppressions WHERE id = 7 AND component = '' AND "
	                                         "host = '' AND uid = 'u' AND message = 'm' AND last - first = 1"),
	                 5);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND "
	                                         "tbl_name = 'suppressions'"),
	                 3);
	store_free(store);
}

static void test_a_store_of_version_1_is_converted(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	const evrec_query all = store_query_all();
	struct store *store = store_fixture_open(path);
	const struct note note = note_of_suppression("web-0", "Failed", T0, 1);
	evrec_fields event = store_event("a.1", "web-0", T0);
	evrec_error err;

	store_fixture_put(store, &event);
	store_free(store);
	store_fixture_exec(path, "DROP TABLE occurrences; DROP TABLE suppressions; PRAGMA user_version = 1");
	assert_null(store_query(evrec_string(path), &all, &err));
	unit_check_contains(err.message, "a store of an older version; a sink that writes to it converts it");
	store = store_fixture_open(path);
	put(store, &note);
	assert_int_equal(store_fixture_ask(path, "PRAGMA user_version"), 3);
	store_fixture_check(path, &all, "a.1 ");
	assert_int_equal(count_rows(store_read_suppressions(evrec_string(path), &all, &err), "Failed"), 1);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_suppressions_of_a_minute_are_one_row),
		TMPDIR_TEST(test_occurrences_are_read_page_by_page_in_order),
		TMPDIR_TEST(test_notes_are_found_without_a_scan),
		TMPDIR_TEST(test_notes_expire_some_at_a_time),
		TMPDIR_TEST(test_notes_of_a_full_file_expire_as_events_do),
		TMPDIR_TEST(test_suppressions_of_each_reporter_are_a_row),
		TMPDIR_TEST(test_a_store_of_version_1_is_converted),
		TMPDIR_TEST(test_a_store_of_version_2_is_read_and_converted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

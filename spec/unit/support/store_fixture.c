#include "store_fixture.h"

#include <sqlite3.h>

evrec_fields store_event(const char *name, const char *object, int64_t last)
{
	evrec_fields event;

	evrec_fields_init(&event);
	event.name = evrec_string(name);
	event.ns = EVREC_STR("shop");
	event.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"), .api_version = EVREC_STR("v1"), .ns = event.ns };
	event.regarding.name = evrec_string(object);
	event.type = EVREC_STR("Normal");
	event.reason = EVREC_STR("Started");
	event.component = EVREC_STR("kubelet");
	event.host = EVREC_STR("node-1");
	event.first = event.last = last;
	event.count = 1;
	return event;
}

evrec_query store_query_all(void)
{
	return (evrec_query){ .since = INT64_MIN, .before = INT64_MAX };
}

struct store *store_fixture_open(const char *path)
{
	struct store *store = store_new(evrec_string(path));

	assert_non_null(store);
	return store;
}

void store_fixture_make(const char *path)
{
	struct store *store = store_fixture_open(path);

	assert_true(store_begin(store, NULL) && store_commit(store, NULL));
	store_free(store);
}

static void check_ok(bool ok, const evrec_error *err)
{
	if (!ok) {
		fail_msg("%s", err->message);
	}
}

void store_fixture_put(struct store *store, const evrec_fields *event)
{
	char json[128];
	evrec_error err;

	(void)snprintf(json, sizeof(json), "{\"name\":\"%.*s\"}", (int)event->name.len, event->name.data);
	check_ok(store_begin(store, &err), &err);
	check_ok(store_put(store, event, evrec_string(json), &err), &err);
	check_ok(store_commit(store, &err), &err);
}

void store_fixture_check_refused(const char *path, const char *why)
{
	struct store *store = store_fixture_open(path);
	const evrec_fields event = store_event("refused", "web-0", T0);
	evrec_error err;

	/* A damaged page may be found only once it is read. */
	assert_false(store_begin(store, &err) && store_put(store, &event, EVREC_STR("{}"), &err) &&
	             store_commit(store, &err));
	unit_check_contains(err.message, why);
	store_free(store);
}

char *store_fixture_find(const char *path, const evrec_query *query)
{
	evrec_error err;
	struct store_cursor *cursor = store_query(evrec_string(path), query, &err);
	struct store_row row;
	struct buf names = { 0 };
	char *copy;
	int result;

	check_ok(cursor != NULL, &err);
	while ((result = store_cursor_next(cursor, &row, &err)) == EVREC_READ_EVENT) {
		assert_int_equal(strlen(row.json.data), row.json.len);
		buf_put(&names, row.json.data + 9, row.json.len - 11);
		buf_put(&names, " ", 1);
	}
	check_ok(result == EVREC_READ_END, &err);
	assert_int_equal(store_cursor_next(cursor, &row, &err), EVREC_READ_END);
	store_cursor_free(cursor);
	copy = strdup(buf_cstr(&names));
	assert_non_null(copy);
	buf_free(&names);
	return copy;
}

void store_fixture_check(const char *path, const evrec_query *query, const char *names)
{
	char *found = store_fixture_find(path, query);

	assert_string_equal(found, names);
	free(found);
}

/* ---- behind evrec's back ---- */

static sqlite3 *open_database(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	(void)sqlite3_busy_timeout(db, 1000);
	(void)sqlite3_trace_v2(db, 0, NULL, NULL);
	return db;
}

int64_t store_fixture_ask(const char *path, const char *sql)
{
	sqlite3 *db = open_database(path);
	sqlite3_stmt *statement;
	int64_t number;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	number = sqlite3_column_int64(statement, 0);
	(void)sqlite3_finalize(statement);
	(void)sqlite3_close(db);
	return number;
}

void store_fixture_exec(const char *path, const char *sql)
{
	sqlite3 *db = open_database(path);

	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
}

/* ---- plans ---- */

/* Global, because SQLite's extensions have no context. */
static struct {
	char *statements[8192];
	size_t len;
} noted;

static int note(unsigned type, void *ctx, void *statement, void *text)
{
	const char *sql = sqlite3_sql(statement);

	(void)type;
	(void)ctx;
	(void)text;
	for (size_t i = 0; i < noted.len; i++) {
		if (strcmp(noted.statements[i], sql) == 0) {
			return 0;
		}
	}
	assert_true(noted.len < sizeof(noted.statements) / sizeof(noted.statements[0]));
	noted.statements[noted.len++] = strdup(sql);
	return 0;
}

static int trace(sqlite3 *db, char **message, const void *api)
{
	(void)message;
	(void)api;
	return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, note, NULL);
}

/* The type of an extension's function is not the one that sqlite3_auto_extension takes. */
static void (*const extension)(void) = (void (*)(void))trace;

void store_fixture_trace(void)
{
	assert_int_equal(sqlite3_auto_extension(extension), SQLITE_OK);
}

bool store_fixture_has_run(const char *part)
{
	for (size_t i = 0; i < noted.len; i++) {
		if (strstr(noted.statements[i], part) != NULL) {
			return true;
		}
	}
	return false;
}

static bool has_plan(const char *sql)
{
	static const char *const words[] = { "SELECT", "INSERT", "UPDATE", "DELETE" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strncmp(sql, words[i], strlen(words[i])) == 0) {
			return true;
		}
	}
	return false;
}

static void check_plan(sqlite3 *db, const char *sql)
{
	struct buf explain = { 0 };
	sqlite3_stmt *statement;

	buf_printf(&explain, "EXPLAIN QUERY PLAN %s", sql);
	assert_int_equal(sqlite3_prepare_v2(db, buf_cstr(&explain), -1, &statement, NULL), SQLITE_OK);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		const char *step = (const char *)sqlite3_column_text(statement, 3);

		if (strncmp(step, "SCAN", 4) == 0 || strstr(step, "TEMP B-TREE") != NULL) {
			fail_msg("%s: %s", sql, step);
		}
	}
	(void)sqlite3_finalize(statement);
	buf_free(&explain);
}

void store_fixture_check_plans(const char *path, size_t least)
{
	sqlite3 *db;
	size_t checked = 0;

	sqlite3_reset_auto_extension();
	db = open_database(path);
	for (size_t i = 0; i < noted.len; i++) {
		if (has_plan(noted.statements[i])) {
			check_plan(db, noted.statements[i]);
			checked++;
		}
		free(noted.statements[i]);
	}
	noted.len = 0;
	(void)sqlite3_close(db);
	assert_true(checked >= least);
}

/* Every allocation of evrec's fails once: the store writes and finds nothing or all, and says why. */
#include "alloc_failure.h"
#include "store_fixture.h"

static char path[512]; /* global, because a scenario has no argument */

static void write_one(struct store *store)
{
	evrec_fields event = store_event("web-0.1", "web-0", T0);
	evrec_error err = { 0 };
	bool ok = store_begin(store, &err);

	event.related = (evrec_reference){ .kind = EVREC_STR("Node"), .name = EVREC_STR("node-1") };
	alloc_failure_check_error(ok, &err);
	if (ok) {
		ok = store_put(store, &event, EVREC_STR("{\"name\":\"web-0.1\"}"), &err) && store_commit(store, &err);
		alloc_failure_check_error(ok, &err);
	}
	if (!ok) {
		store_rollback(store);
	}
}

static void read_all(const evrec_query *query)
{
	evrec_error err = { 0 };
	struct store_cursor *cursor = store_query(evrec_string(path), query, &err);
	struct store_row row;
	int result;

	alloc_failure_check_error(cursor != NULL, &err);
	if (cursor != NULL) {
		result = store_cursor_next(cursor, &row, &err);
		alloc_failure_check_error(result >= 0, &err);
		if (result == EVREC_READ_EVENT) {
			assert_str(row.json, "{\"name\":\"web-0.1\"}");
		}
	}
	store_cursor_free(cursor);
}

static void write_and_read(void)
{
	evrec_query query = store_query_all();
	struct store *store;

	alloc_failure_arm();
	store = store_new(evrec_string(path));
	alloc_failure_check(store != NULL);
	if (store != NULL) {
		write_one(store);
		read_all(&query);
		query.reason = EVREC_STR("Started");
		query.mentions.kind = EVREC_STR("node");
		read_all(&query);
		query.mentions.name = EVREC_STR("node-1");
		read_all(&query);
	}
	alloc_failure_disarm();
	store_free(store);
}

static void test_every_failure_is_told(void **state)
{
	(void)snprintf(path, sizeof(path), "%s", tmpdir_path(*state, "events.db"));
	alloc_failure_run(write_and_read, 40);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { TMPDIR_TEST(test_every_failure_is_told) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

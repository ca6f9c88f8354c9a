/* Events expire by their last occurrence, and the oldest ones if the file is too large. */
#include "store_fixture.h"

#include <sys/stat.h>

static void put_many(struct store *store, int first, int n, size_t json_len)
{
	char *json = malloc(json_len);
	evrec_error err;

	assert_non_null(json);
	memset(json, ' ', json_len);
	assert_true(store_begin(store, &err));
	for (int i = first; i < first + n; i++) {
		char name[32], object[32];
		evrec_fields event;

		(void)snprintf(name, sizeof(name), "e.%d", i);
		(void)snprintf(object, sizeof(object), "web-%d", i);
		event = store_event(name, object, T0 + i * EVREC_SECOND);
		event.host = event.regarding.name;
		assert_true(store_put(store, &event, (evrec_str){ json, json_len }, &err));
	}
	assert_true(store_commit(store, &err));
	free(json);
}

static void test_nothing_is_opened_to_expire(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_error err;
	bool more = true;

	assert_true(store_expire(store, INT64_MAX, 0, &more, &err));
	assert_false(more);
	assert_int_equal(access(path, F_OK), -1);
	store_free(store);
}

static void test_old_events_go_some_at_a_time_with_all_that_they_had(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_error err;
	bool more;

	put_many(store, 0, 1200, 20);
	assert_true(store_expire(store, T0, 0, &more, &err));
	assert_false(more);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), 1200);
	assert_true(store_expire(store, T0 + 700 * EVREC_SECOND, 0, &more, &err));
	assert_true(more);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), 700);
	assert_true(store_expire(store, T0 + 700 * EVREC_SECOND, 0, &more, &err));
	assert_false(more);
	assert_int_equal(store_fixture_ask(path, "SELECT min(last) FROM events"), T0 + 700 * EVREC_SECOND);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM facets"), 500);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM objects"), 500);
	/* Of each event its host; for all shop, Normal, Started, kubelet, Pod and v1. */
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM words"), 506);
	store_free(store);
}

static void test_the_file_stays_below_keep_bytes(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	const uint64_t keep_bytes = 2U << 20;
	evrec_error err;
	struct stat st;
	bool more;

	for (int i = 0; i < 60; i++) {
		put_many(store, i * 100, 100, 1000);
		for (int turns = 0; turns < 4; turns++) {
			assert_true(store_expire(store, INT64_MIN, keep_bytes, &more, &err));
		}
	}
	store_fixture_exec(path, "PRAGMA wal_checkpoint(TRUNCATE)");
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size <= (off_t)(keep_bytes + keep_bytes / 16));
	/* The newest are there. */
	assert_int_equal(store_fixture_ask(path, "SELECT max(last) FROM events"), T0 + 5999 * EVREC_SECOND);
	assert_true(store_fixture_ask(path, "SELECT count(*) FROM events") > 600);
	/* So it does with a lower bound. */
	for (more = true; more;) {
		assert_true(store_expire(store, INT64_MIN, keep_bytes / 2, &more, &err));
	}
	assert_true(store_fixture_ask(path, "PRAGMA page_count") * 4096 <= (int64_t)keep_bytes / 2);
	assert_true(store_fixture_ask(path, "SELECT count(*) FROM events") > 300);
	store_free(store);
}

static void test_no_more_events_go_than_keep_bytes_asks_for(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_error err;
	bool more;

	put_many(store, 0, 20, 200000);
	for (more = true; more;) {
		assert_true(store_expire(store, INT64_MIN, 2U << 20, &more, &err));
	}
	assert_in_range(store_fixture_ask(path, "SELECT count(*) FROM events"), 8, 10);
	assert_int_equal(store_fixture_ask(path, "SELECT max(last) FROM events"), T0 + 19 * EVREC_SECOND);
	store_free(store);
}

static void test_pages_of_expired_events_are_given_back(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	int64_t before;
	evrec_error err;
	bool more = true;

	put_many(store, 0, 3000, 3000);
	before = store_fixture_ask(path, "PRAGMA page_count");
	while (more) {
		assert_true(store_expire(store, T0 + 2990 * EVREC_SECOND, 0, &more, &err));
	}
	assert_true(store_fixture_ask(path, "PRAGMA page_count") < before / 2);
	store_free(store);
}

/* Somebody may have rebuilt the file without SQLite's auto_vacuum: then the sink would look for more without a pause. */
static void test_pages_that_cannot_be_given_back_are_no_work_to_do(void **state)
{
	const char *path = tmpdir_path(*state, "events.db");
	struct store *store = store_fixture_open(path);
	evrec_error err;
	bool more = true;

	put_many(store, 0, 3000, 3000);
	store_close(store);
	store_fixture_exec(path, "PRAGMA auto_vacuum = NONE; VACUUM");
	put_many(store, 3000, 1, 10);
	for (int turns = 0; more && turns < 100; turns++) {
		assert_true(store_expire(store, T0 + 2990 * EVREC_SECOND, 0, &more, &err));
	}
	assert_false(more);
	assert_int_equal(store_fixture_ask(path, "SELECT count(*) FROM events"), 11);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_nothing_is_opened_to_expire),
		TMPDIR_TEST(test_old_events_go_some_at_a_time_with_all_that_they_had),
		TMPDIR_TEST(test_the_file_stays_below_keep_bytes),
		TMPDIR_TEST(test_no_more_events_go_than_keep_bytes_asks_for),
		TMPDIR_TEST(test_pages_of_expired_events_are_given_back),
		TMPDIR_TEST(test_pages_that_cannot_be_given_back_are_no_work_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Memory runs out: a reader says so, leaks nothing, and never gives half of the events as if they were all. */
#include "alloc_failure.h"
#include "store_fixture.h"

#include "evrec_read.h"

/* A scenario has no argument. */
static const char *path;

static void read_all(evrec_reader *reader)
{
	evrec_error err = { 0 };
	evrec_found found;
	char *json = NULL;
	unsigned n = 0;
	int result;

	while ((result = evrec_reader_next(reader, EVREC_FOREVER, &found, &err)) == EVREC_READ_EVENT) {
		n++;
		json = n == 1 ? evrec_reader_take_json(reader) : json;
	}
	assert_true(n == 0 || strlen(json) > 20);
	evrec_free(json);
	alloc_failure_check_error(result == EVREC_READ_END, &err);
	assert_true(result < 0 || n == 2);
}

static void query_lines(void)
{
	const evrec_str types[] = { EVREC_STR("Normal"), EVREC_STR("Warning") };
	evrec_error err = { 0 };
	evrec_source *source;
	evrec_reader *reader = NULL;
	evrec_query query;

	evrec_query_init(&query);
	query.types = types;
	query.types_len = 2;
	query.field_selector = EVREC_STR("reason!=a\\,b");
	alloc_failure_arm();
	source = evrec_source_lines(evrec_string(path), &err);
	alloc_failure_check_error(source != NULL, &err);
	if (source != NULL) {
		reader = evrec_source_query(source, &query, &err);
		alloc_failure_check_error(reader != NULL, &err);
	}
	if (reader != NULL) {
		read_all(reader);
	}
	alloc_failure_disarm();
	evrec_reader_free(reader);
	evrec_source_release(source);
}

static void test_a_query_without_memory_says_so(void **state)
{
	path = tmpdir_path(*state, "events");
	tmpdir_write_file(path, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"},\"involvedObject\":{\"kind\":"
	                        "\"Pod\"},\"type\":\"Normal\"}\n"
	                        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"b\"},\"involvedObject\":{\"kind\":"
	                        "\"Pod\"},\"type\":\"Warning\"}\n");
	alloc_failure_run(query_lines, 10);
}

/* Reads what is there, which may be nothing. */
static void drain(evrec_reader *reader)
{
	evrec_error err = { 0 };
	evrec_found found;
	int result = reader != NULL ? evrec_reader_begin(reader, 0, &err) : 0;

	alloc_failure_check_error(result == 0, &err);
	while (reader != NULL && result >= 0 &&
	       (result = evrec_reader_next(reader, 0, &found, &err)) == EVREC_READ_EVENT) {
	}
	alloc_failure_check_error(result >= 0, &err);
	evrec_reader_free(reader);
}

static void read_store(void)
{
	evrec_error err = { 0 };
	evrec_source *source;
	evrec_reader *reader;
	evrec_query query;

	evrec_query_init(&query);
	query.regarding = (evrec_object_filter){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("web-0") };
	alloc_failure_arm();
	source = evrec_source_store(evrec_string(path), &err);
	alloc_failure_check_error(source != NULL, &err);
	if (source != NULL) {
		evrec_source_release(evrec_source_retain(source));
		reader = evrec_source_watch(source, &query, &err);
		alloc_failure_check_error(reader != NULL, &err);
		drain(reader);
		reader = evrec_source_occurrences(source, EVREC_STR("shop"), EVREC_STR("web-0.1"), &err);
		alloc_failure_check_error(reader != NULL, &err);
		drain(reader);
		reader = evrec_source_suppressions(source, &query, &err);
		alloc_failure_check_error(reader != NULL, &err);
		drain(reader);
	}
	alloc_failure_disarm();
	evrec_source_release(source);
}

static void test_a_store_without_memory_says_so(void **state)
{
	const evrec_fields event = store_event("web-0.1", "web-0", T0);
	struct store *store;

	path = tmpdir_path(*state, "events.db");
	store = store_fixture_open(path);
	store_fixture_put(store, &event);
	store_free(store);
	alloc_failure_run(read_store, 10);
}

/* There is no server: each request fails, for want of memory or of the server. */
static void read_cluster(void)
{
	evrec_kubernetes_options options;
	evrec_error err = { 0 };
	evrec_source *source = NULL;
	evrec_reader *reader = NULL;
	evrec_query query;
	evrec_sink *sink;

	evrec_kubernetes_options_init(&options);
	options.server = EVREC_STR("http://127.0.0.1:1");
	evrec_query_init(&query);
	alloc_failure_arm();
	sink = evrec_sink_kubernetes(&options, &err);
	alloc_failure_check_error(sink != NULL, &err);
	if (sink != NULL) {
		source = evrec_source_cluster(sink, &err);
		alloc_failure_check_error(source != NULL, &err);
	}
	if (source != NULL) {
		reader = evrec_source_watch(source, &query, &err);
		alloc_failure_check_error(reader != NULL, &err);
		assert_null(evrec_cluster_get(source, EVREC_STR("/apis"), SOON, &err));
		assert_true(err.code == EVREC_ENOMEM || err.code == EVREC_ESYSTEM);
	}
	if (reader != NULL) {
		(void)evrec_reader_begin(reader, 0, &err);
	}
	alloc_failure_ignore();
	alloc_failure_disarm();
	evrec_reader_free(reader);
	evrec_source_release(source);
	evrec_sink_release(sink);
}

static void test_a_cluster_without_memory_says_so(void **state)
{
	(void)state;
	alloc_failure_run(read_cluster, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_a_query_without_memory_says_so),
		TMPDIR_TEST(test_a_store_without_memory_says_so),
		cmocka_unit_test(test_a_cluster_without_memory_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

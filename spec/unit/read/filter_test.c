/* Filters: the events that a query wants, and the selectors that a server is asked for. */
#include "unit.h"

#include "read/filter.h"

#define NAMED(text) ((evrec_object_filter){ .kind = EVREC_STR("Pod"), .name = EVREC_STR(text) })

static evrec_fields some_event(void)
{
	evrec_fields e;

	evrec_fields_init(&e);
	e.name = EVREC_STR("web-0.1");
	e.ns = EVREC_STR("shop");
	e.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"),
		                         .api_version = EVREC_STR("v1"),
		                         .name = EVREC_STR("web-0"),
		                         .ns = EVREC_STR("shop"),
		                         .uid = EVREC_STR("u1"),
		                         .resource_version = EVREC_STR("7"),
		                         .field_path = EVREC_STR("spec") };
	e.related = (evrec_reference){ .kind = EVREC_STR("Node"), .name = EVREC_STR("n1") };
	e.type = EVREC_STR("Warning");
	e.reason = EVREC_STR("BackOff");
	e.action = EVREC_STR("Restart");
	e.controller = EVREC_STR("kubelet");
	e.instance = EVREC_STR("kubelet-n1");
	e.component = EVREC_STR("old");
	e.host = EVREC_STR("h1");
	e.first = T0;
	e.last = T0 + 5 * EVREC_SECOND;
	return e;
}

static evrec_query all(void)
{
	evrec_query q;

	evrec_query_init(&q);
	return q;
}

static bool matches(const evrec_query *q, const evrec_fields *event)
{
	struct filter *f = filter_new(q, NULL);
	bool result;

	assert_non_null(f);
	result = filter_matches(f, event);
	filter_free(f);
	return result;
}

/* With the query `q`, in which the statement has set one filter, the event matches or not. */
#define CHECK(wanted, statement)                                                                                       \
	do {                                                                                                           \
		const evrec_fields one = some_event();                                                                 \
		evrec_query q = all();                                                                                 \
		statement;                                                                                             \
		assert_int_equal(matches(&q, &one), wanted);                                                           \
	} while (0)

static void test_an_empty_query_wants_every_event(void **state)
{
	(void)state;
	CHECK(true, (void)0);
}

static void test_each_filter_compares_its_field(void **state)
{
	(void)state;
	CHECK(true, q.ns = EVREC_STR("shop"));
	CHECK(false, q.ns = EVREC_STR("sho"));
	CHECK(true, q.reason = EVREC_STR("BackOff"));
	CHECK(false, q.reason = EVREC_STR("backoff"));
	CHECK(true, q.action = EVREC_STR("Restart"));
	CHECK(false, q.action = EVREC_STR("Start"));
	CHECK(true, q.regarding = NAMED("web-0"));
	CHECK(true, q.regarding.kind = EVREC_STR("pOD"));
	CHECK(false, q.regarding.kind = EVREC_STR("Pods"));
	CHECK(false, q.regarding = NAMED("web-1"));
	CHECK(false, q.regarding.ns = EVREC_STR("other"));
	CHECK(false, q.regarding.uid = EVREC_STR("u2"));
	CHECK(false, q.regarding.api_version = EVREC_STR("apps/v1"));
}

static void test_mentions_is_regarding_or_related(void **state)
{
	(void)state;
	CHECK(true, q.mentions = NAMED("web-0"));
	CHECK(true, q.mentions.name = EVREC_STR("n1"));
	CHECK(false, q.mentions = NAMED("n1"));
	CHECK(false, q.regarding.name = EVREC_STR("n1"));
}

static void test_an_unset_controller_is_the_source(void **state)
{
	evrec_fields event = some_event();
	evrec_query source = all(), host = all();

	(void)state;
	CHECK(true, q.controller = EVREC_STR("kubelet"));
	CHECK(false, q.controller = EVREC_STR("old"));
	CHECK(true, q.instance = EVREC_STR("kubelet-n1"));
	CHECK(false, q.instance = EVREC_STR("h1"));
	event.controller = event.instance = (evrec_str){ NULL, 0 };
	source.controller = EVREC_STR("old");
	host.instance = EVREC_STR("h1");
	assert_true(matches(&source, &event));
	assert_true(matches(&host, &event));
}

static void test_any_of_the_types(void **state)
{
	const evrec_str types[] = { EVREC_STR("Normal"), EVREC_STR("Warning") };

	(void)state;
	CHECK(true, (q.types = types, q.types_len = 2));
	CHECK(true, (q.types = types + 1, q.types_len = 1));
	CHECK(false, (q.types = types, q.types_len = 1));
}

static void test_times_are_of_the_last_occurrence(void **state)
{
	evrec_fields event = some_event();
	const int64_t last = event.last;
	evrec_query since = all();

	(void)state;
	CHECK(true, q.since = last);
	CHECK(false, q.since = last + 1);
	CHECK(true, q.before = last + 1);
	CHECK(false, q.before = last);
	since.since = last + 1;
	event.series_count = 2;
	event.series_last = last + 1;
	assert_true(matches(&since, &event));
	event.series_count = 0;
	assert_false(matches(&since, &event));
	event.last = EVREC_UNSET;
	event.event_time = last + 1;
	assert_true(matches(&since, &event));
	event.event_time = EVREC_UNSET;
	assert_false(matches(&since, &event));
	since = all();
	assert_true(matches(&since, &event));
}

static bool selects(const char *text, const evrec_fields *event)
{
	evrec_query q = all();

	q.field_selector = str_from(text);
	return matches(&q, event);
}

static void test_selectors_select_by_every_field_of_the_api(void **state)
{
	static const struct {
		const char *field, *value;
	} fields[] = {
		{ "metadata.name", "web-0.1" },
		{ "metadata.namespace", "shop" },
		{ "involvedObject.kind", "Pod" },
		{ "involvedObject.namespace", "shop" },
		{ "involvedObject.name", "web-0" },
		{ "involvedObject.uid", "u1" },
		{ "involvedObject.apiVersion", "v1" },
		{ "involvedObject.resourceVersion", "7" },
		{ "involvedObject.fieldPath", "spec" },
		{ "reason", "BackOff" },
		{ "reportingComponent", "kubelet" },
		{ "source", "old" },
		{ "type", "Warning" },
	};
	const evrec_fields event = some_event();
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		(void)snprintf(text, sizeof(text), "%s=%s", fields[i].field, fields[i].value);
		assert_true(selects(text, &event));
		(void)snprintf(text, sizeof(text), "%s==%s", fields[i].field, fields[i].value);
		assert_true(selects(text, &event));
		(void)snprintf(text, sizeof(text), "%s!=%s", fields[i].field, fields[i].value);
		assert_false(selects(text, &event));
		(void)snprintf(text, sizeof(text), "%s=%s-", fields[i].field, fields[i].value);
		assert_false(selects(text, &event));
	}
}

static void test_selectors_are_read_as_the_api_server_reads_them(void **state)
{
	evrec_fields event = some_event();

	(void)state;
	assert_true(selects("type=Warning,reason!=Killing", &event));
	assert_false(selects("type=Warning,reason!=BackOff", &event));
	assert_true(selects(",type=Warning,", &event));
	assert_true(selects("involvedObject.uid!=", &event));
	event.reason = EVREC_STR("a,b=c\\d");
	assert_true(selects("reason=a\\,b\\=c\\\\d", &event));
	event.component = (evrec_str){ NULL, 0 };
	assert_true(selects("source=kubelet", &event));
}

static void check_refused(const char *text, const char *why)
{
	evrec_query q = all();
	evrec_error err;

	q.field_selector = str_from(text);
	assert_null(filter_new(&q, &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, "field_selector: ");
	unit_check_contains(err.message, why);
}

static void test_wrong_selectors_are_refused(void **state)
{
	(void)state;
	check_refused("related.name=x", "cannot be selected by the field 'related.name'");
	check_refused("type", "expected FIELD=VALUE");
	check_refused("type=Normal,reason", "'reason'");
	check_refused("=x", "the field ''");
	check_refused("reason=a=b", "backslash");
	check_refused("reason=a\\n", "backslash");
	check_refused("reason=a\\", "backslash");
}

static void test_the_server_is_asked_for_what_it_can_select(void **state)
{
	const evrec_str types[] = { EVREC_STR("Warning") };
	struct buf out = { 0 };
	struct filter *f;
	evrec_query q = all();

	(void)state;
	q.ns = EVREC_STR("shop");
	q.regarding = NAMED("web-0");
	q.mentions = NAMED("n1");
	q.controller = EVREC_STR("kubelet");
	q.types = types;
	q.types_len = 1;
	q.reason = EVREC_STR("a,b");
	q.field_selector = EVREC_STR("type==Warning,source!=x\\=y");
	f = filter_new(&q, NULL);
	filter_put_selector(f, &out);
	assert_string_equal(buf_cstr(&out),
	                    "involvedObject.name=web-0,reason=a\\,b,type=Warning,type=Warning,source!=x\\=y");
	buf_free(&out);
	filter_free(f);
}

static void test_a_filter_has_a_copy_of_the_query(void **state)
{
	char reason[] = "BackOff", type[] = "Warning";
	evrec_str types[] = { { type, 7 } };
	const evrec_fields event = some_event();
	struct filter *f;
	evrec_query q = all();

	(void)state;
	q.reason = str_from(reason);
	q.types = types;
	q.types_len = 1;
	f = filter_new(&q, NULL);
	reason[0] = type[0] = 'x';
	types[0] = EVREC_STR("Normal");
	assert_true(filter_matches(f, &event));
	filter_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_query_wants_every_event),
		cmocka_unit_test(test_each_filter_compares_its_field),
		cmocka_unit_test(test_mentions_is_regarding_or_related),
		cmocka_unit_test(test_an_unset_controller_is_the_source),
		cmocka_unit_test(test_any_of_the_types),
		cmocka_unit_test(test_times_are_of_the_last_occurrence),
		cmocka_unit_test(test_selectors_select_by_every_field_of_the_api),
		cmocka_unit_test(test_selectors_are_read_as_the_api_server_reads_them),
		cmocka_unit_test(test_wrong_selectors_are_refused),
		cmocka_unit_test(test_the_server_is_asked_for_what_it_can_select),
		cmocka_unit_test(test_a_filter_has_a_copy_of_the_query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

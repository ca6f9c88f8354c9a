/* Which field of an event becomes what in a log record. */
#include "otlp/record.h"

#include "unit.h"

#define OBSERVED (T0 + EVREC_SECOND)

static evrec_fields empty(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	return f;
}

static void check(const struct otlp_attribute *attributes, size_t n, const char *const expected[][2])
{
	for (size_t i = 0; i < n; i++) {
		assert_non_null(expected[i][0]);
		assert_true(str_eq(attributes[i].name, str_from(expected[i][0])));
		assert_true(str_eq(attributes[i].text, str_from(expected[i][1])));
	}
	assert_null(expected[n][0]);
}

static void check_resource(const evrec_fields *f, const char *const expected[][2])
{
	const struct otlp_record record = { f, OBSERVED };
	struct otlp_attribute attributes[OTLP_RESOURCE_MAX];

	check(attributes, otlp_record_resource(&record, attributes), expected);
}

static void the_resource_is_the_regarding_object_and_the_node(void **state)
{
	evrec_fields f = empty();

	(void)state;
	f.ns = EVREC_STR("not this");
	f.regarding = (evrec_reference){ EVREC_STR("K"), EVREC_STR("A"), EVREC_STR("N"), EVREC_STR("S"),
		                         EVREC_STR("U"), EVREC_STR("R"), EVREC_STR("F") };
	f.related = f.regarding;
	f.host = EVREC_STR("H");
	check_resource(&f, (const char *const[][2]){ { "k8s.node.name", "H" },
	                                             { "k8s.namespace.name", "S" },
	                                             { "k8s.object.kind", "K" },
	                                             { "k8s.object.name", "N" },
	                                             { "k8s.object.uid", "U" },
	                                             { "k8s.object.fieldpath", "F" },
	                                             { "k8s.object.api_version", "A" },
	                                             { "k8s.object.resource_version", "R" },
	                                             { NULL, NULL } });
}

static void names_of_the_object_and_the_node_are_the_events(void **state)
{
	static const char *const the_events[] = { "k8s.object.kind", "k8s.object.", "k8s.object.of.no.field",
		                                  "k8s.namespace.name", "k8s.node.name" };
	static const char *const others[] = {
		"", "k8s.object", "k8s.pod.name", "k8s.node.uid", "k8s.namespace.name.x", "service.name"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(the_events) / sizeof(*the_events); i++) {
		assert_true(otlp_record_owns(str_from(the_events[i])));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		assert_false(otlp_record_owns(str_from(others[i])));
	}
}

/* The attributes of a record with a number at index `count`. */
static void check_log(const struct otlp_log *log, size_t count, int64_t number, const char *const expected[][2])
{
	check(log->attributes, log->attributes_len, expected);
	assert_string_equal(expected[count][0], "k8s.event.count");
	assert_null(log->attributes[count].text.data);
	assert_int_equal(log->attributes[count].number, number);
}

static void unset_fields_have_no_attribute_but_the_count(void **state)
{
	const evrec_fields f = empty();
	const struct otlp_record record = { &f, EVREC_UNSET };
	struct otlp_log log;

	(void)state;
	check_resource(&f, (const char *const[][2]){ { NULL, NULL } });
	otlp_record_log(&record, &log);
	check_log(&log, 0, 1, (const char *const[][2]){ { "k8s.event.count", NULL }, { NULL, NULL } });
	assert_true(log.time == 0 && log.observed == 0 && log.severity == 0);
	assert_true(log.severity_text.len == 0 && log.body.len == 0);
}

static void an_event_of_core_has_source_and_count(void **state)
{
	evrec_fields f = empty();
	const struct otlp_record record = { &f, OBSERVED };
	struct otlp_log log;

	(void)state;
	f.name = EVREC_STR("N");
	f.type = EVREC_STR("Normal");
	f.reason = EVREC_STR("R");
	f.note = EVREC_STR("M");
	f.component = EVREC_STR("C");
	f.host = EVREC_STR("H");
	f.first = T0 - 60 * EVREC_SECOND + 5;
	f.last = T0 + 5;
	f.count = INT32_MAX;
	otlp_record_log(&record, &log);
	assert_true(log.time == T0 + 5 && log.observed == OBSERVED);
	assert_int_equal(log.severity, 9);
	assert_str(log.severity_text, "Normal");
	assert_str(log.body, "M");
	check_log(&log, 3, INT32_MAX,
	          (const char *const[][2]){ { "k8s.event.reason", "R" },
	                                    { "k8s.event.start_time", "2023-11-14T22:12:20Z" },
	                                    { "k8s.event.name", "N" },
	                                    { "k8s.event.count", NULL },
	                                    { "reporting_controller", "C" },
	                                    { "reporting_instance", "H" },
	                                    { NULL, NULL } });
}

static void an_event_of_a_series_has_its_count_and_last_time(void **state)
{
	evrec_fields f = empty();
	const struct otlp_record record = { &f, OBSERVED };
	struct otlp_log log;

	(void)state;
	f.name = EVREC_STR("N");
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("R");
	f.action = EVREC_STR("A");
	f.controller = EVREC_STR("example.com/c");
	f.instance = EVREC_STR("i");
	f.event_time = T0 + 1000;
	f.count = 1;
	f.series_count = 7;
	f.series_last = T0 + 2000;
	f.series_state = EVREC_STR("Ongoing");
	otlp_record_log(&record, &log);
	assert_true(log.time == T0 + 2000);
	assert_int_equal(log.severity, 13);
	assert_str(log.severity_text, "Warning");
	check_log(&log, 4, 7,
	          (const char *const[][2]){ { "k8s.event.reason", "R" },
	                                    { "k8s.event.action", "A" },
	                                    { "k8s.event.start_time", "2023-11-14T22:13:20.000001Z" },
	                                    { "k8s.event.name", "N" },
	                                    { "k8s.event.count", NULL },
	                                    { "k8s.event.series.state", "Ongoing" },
	                                    { "reporting_controller", "example.com/c" },
	                                    { "reporting_instance", "i" },
	                                    { NULL, NULL } });
}

static void another_type_has_no_number_but_its_text(void **state)
{
	evrec_fields f = empty();
	const struct otlp_record record = { &f, OBSERVED };
	struct otlp_log log;

	(void)state;
	f.type = EVREC_STR("normal");
	otlp_record_log(&record, &log);
	assert_int_equal(log.severity, 0);
	assert_str(log.severity_text, "normal");
}

static void times_before_1970_are_left_out_and_counts_are_at_least_1(void **state)
{
	evrec_fields f = empty();
	const struct otlp_record record = { &f, -1 };
	struct otlp_log log;

	(void)state;
	f.first = f.last = -EVREC_SECOND;
	f.count = -1;
	otlp_record_log(&record, &log);
	assert_true(log.time == 0 && log.observed == 0);
	check_log(&log, 0, 1, (const char *const[][2]){ { "k8s.event.count", NULL }, { NULL, NULL } });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_resource_is_the_regarding_object_and_the_node),
		cmocka_unit_test(names_of_the_object_and_the_node_are_the_events),
		cmocka_unit_test(unset_fields_have_no_attribute_but_the_count),
		cmocka_unit_test(an_event_of_core_has_source_and_count),
		cmocka_unit_test(an_event_of_a_series_has_its_count_and_last_time),
		cmocka_unit_test(another_type_has_no_number_but_its_text),
		cmocka_unit_test(times_before_1970_are_left_out_and_counts_are_at_least_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

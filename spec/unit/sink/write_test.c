/* A write: the event that an item stands for, in the new style and in the old one. */
#include "write_fixture.h"

#include "alloc_failure.h"

#define METADATA "\"metadata\":{\"name\":\"web-0.1\",\"namespace\":\"shop\"}"
#define POD "{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web-0\"}"
#define EVENT_TIME "\"eventTime\":\"2023-11-14T22:13:20.123456Z\""

/* The first occurrence has neither series nor state, in either API; the deprecated fields are unset. */
static void test_first_write_in_the_new_style_has_an_event_time_alone(void **state)
{
	evrec_fields event = write_fixture_event();
	void *item = write_fixture_make(&event, 1);

	(void)state;
	write_fixture_check(item, BODY_CREATE, EVREC_EVENTS_V1, READER_ANY,
	                    "{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\"," METADATA "," EVENT_TIME ","
	                    "\"reportingController\":\"kubelet\",\"reportingInstance\":\"kubelet-node-1\","
	                    "\"action\":\"Restarting\",\"reason\":\"BackOff\",\"regarding\":" POD ",\"note\":\"first\","
	                    "\"type\":\"Warning\"}");
	write_fixture_check(item, BODY_CREATE, EVREC_CORE_V1, READER_SERVER,
	                    "{\"kind\":\"Event\",\"apiVersion\":\"v1\"," METADATA ",\"involvedObject\":" POD ","
	                    "\"reason\":\"BackOff\",\"message\":\"first\",\"type\":\"Warning\"," EVENT_TIME ","
	                    "\"action\":\"Restarting\",\"reportingComponent\":\"kubelet\","
	                    "\"reportingInstance\":\"kubelet-node-1\"}");
	write_free(item);
}

/* An event whose patch was answered by 404 is created with all that its series has counted. */
static void test_create_of_a_series_has_the_series(void **state)
{
	evrec_fields event = write_fixture_event();
	void *item = write_fixture_make(&event, 2);
	const evrec_fields fields = write_fields(item, BODY_CREATE);

	(void)state;
	assert_int_equal(fields.event_time, T0 + 123456789);
	assert_int_equal(fields.series_count, 2);
	assert_int_equal(fields.series_last, T0 + 123456789 + EVREC_SECOND);
	assert_str(fields.series_state, "Ongoing");
	assert_int_equal(fields.count, 0);
	assert_int_equal(fields.first, EVREC_UNSET);
	assert_int_equal(fields.last, EVREC_UNSET);
	assert_int_equal(fields.component.len + fields.host.len + fields.resource_version.len, 0);
	write_fixture_check(item, BODY_CREATE, EVREC_CORE_V1, READER_SERVER,
	                    "{\"kind\":\"Event\",\"apiVersion\":\"v1\"," METADATA ",\"involvedObject\":" POD ","
	                    "\"reason\":\"BackOff\",\"message\":\"first\",\"type\":\"Warning\"," EVENT_TIME
	                    "," WRITE_SERIES_OF_2 ","
	                    "\"action\":\"Restarting\",\"reportingComponent\":\"kubelet\","
	                    "\"reportingInstance\":\"kubelet-node-1\"}");
	write_free(item);
}

/* A series that an earlier process began keeps its own event time. */
static void test_event_time_of_the_event_wins(void **state)
{
	evrec_fields event = write_fixture_event();
	void *item;

	(void)state;
	event.event_time = T0 - 60 * EVREC_SECOND;
	item = write_fixture_make(&event, 2);
	assert_int_equal(write_fields(item, BODY_WHOLE).event_time, T0 - 60 * EVREC_SECOND);
	write_free(item);
}

/* The patch is the series, in either API; an API server is told no state. */
static void test_patch_in_the_new_style_is_the_series(void **state)
{
	evrec_fields event = write_fixture_event();
	void *item = write_fixture_make(&event, 2);

	(void)state;
	write_fixture_check_patch(item, READER_SERVER, "{" WRITE_SERIES_OF_2 "}");
	write_fixture_check_patch(item, READER_ANY,
	                          "{\"series\":{\"count\":2,\"lastObservedTime\":\"2023-11-14T22:13:21.123456Z\","
	                          "\"state\":\"Ongoing\"}}");
	write_free(item);
}

/* Whoever reads lines or calls gets the event in the new style too, with its state. */
static void test_event_of_a_write_has_the_series(void **state)
{
	evrec_fields event = write_fixture_event();
	void *item = write_fixture_make(&event, 2);
	evrec_event view;
	const evrec_fields *fields = &view.fields;

	(void)state;
	write_view(item, BODY_WHOLE, &view);
	assert_int_equal(fields->series_count, 2);
	assert_str(fields->series_state, "Ongoing");
	assert_int_equal(fields->count, 0);
	write_free(item);
	item = write_fixture_make(&event, 1);
	write_view(item, BODY_WHOLE, &view);
	assert_int_equal(fields->event_time, T0 + 123456789);
	assert_int_equal(fields->count, 0);
	write_free(item);
}

static void check_copy(const void *item, enum body body, int32_t count, const char *note)
{
	const evrec_fields fields = write_fields(item, body);
	evrec_packed *copy;
	evrec_fields read;
	evrec_event view;
	char *json, *expected;

	write_view(item, body, &view);
	copy = evrec_packed_copy(mem_alloc(evrec_packed_size(&view)), &view);
	evrec_packed_read(copy, &read);
	assert_int_equal(read.count, count);
	assert_true(str_eq(read.note, str_from(note)));
	json = evrec_fields_json(&read, EVREC_CORE_V1, NULL);
	expected = evrec_fields_json(&fields, EVREC_CORE_V1, NULL);
	assert_string_equal(json, expected);
	evrec_free(json);
	evrec_free(expected);
	mem_free(copy);
}

/* A copy of a write's event is that of its packed bytes, as long as these have all strings. */
static void test_event_of_a_write_is_copied_with_what_has_changed(void **state)
{
	evrec_fields event = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&event, 1);
	void *item;

	(void)state;
	event.resource_version = EVREC_STR("17");
	draft.new_style = false;
	item = write_new(&draft);
	check_copy(item, BODY_WHOLE, 1, "first");
	check_copy(item, BODY_CREATE, 1, "first"); /* which has no resource version */
	draft.count = 7;
	assert_true(write_ops.fold(item, &draft));
	check_copy(item, BODY_WHOLE, 7, "first");
	draft.note = EVREC_STR("another");
	draft.note_changes = true;
	assert_true(write_ops.fold(item, &draft));
	check_copy(item, BODY_WHOLE, 7, "another");
	write_free(item);
	item = write_fixture_make(&event, 3);
	check_copy(item, BODY_WHOLE, 0, "first");
	write_free(item);
}

/* An API server takes the old style in core/v1 alone; everyone else gets the API that is asked for. */
static void test_old_style_goes_to_a_server_in_core_v1(void **state)
{
	evrec_fields event = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&event, 1);
	struct encoded encoded;
	void *item, *new_style = write_fixture_make(&event, 1);

	(void)state;
	draft.new_style = false;
	item = write_new(&draft);
	assert_true(write_encode(item, BODY_CREATE, EVREC_EVENTS_V1, READER_SERVER, &encoded));
	assert_int_equal(encoded.api, EVREC_CORE_V1);
	unit_check_contains(encoded.body, "\"apiVersion\":\"v1\"");
	unit_check_contains(encoded.body, "\"firstTimestamp\":\"2023-11-14T22:13:20Z\"");
	encoded_free(&encoded);
	assert_true(write_encode(item, BODY_WHOLE, EVREC_EVENTS_V1, READER_ANY, &encoded));
	assert_int_equal(encoded.api, EVREC_EVENTS_V1);
	unit_check_contains(encoded.body, "\"deprecatedCount\":1");
	encoded_free(&encoded);
	assert_true(write_encode(new_style, BODY_CREATE, EVREC_EVENTS_V1, READER_SERVER, &encoded));
	assert_int_equal(encoded.api, EVREC_EVENTS_V1);
	encoded_free(&encoded);
	write_free(new_style);
	write_free(item);
}

/* ---- memory ---- */

static void scenario(void)
{
	evrec_fields event = write_fixture_event();
	struct write_draft draft = write_fixture_draft(&event, 2);
	struct encoded encoded;
	struct buf out = { 0 };
	void *item, *copy;
	bool important;

	alloc_failure_arm();
	draft.note = EVREC_STR("a longer note");
	draft.note_changes = true;
	item = write_new(&draft);
	alloc_failure_check(item != NULL);
	if (item != NULL) {
		alloc_failure_check(write_ops.fold(item, &draft));
		copy = write_ops.copy(item);
		alloc_failure_check(copy != NULL);
		write_free(copy);
		alloc_failure_check(write_encode(item, BODY_PATCH, EVREC_EVENTS_V1, READER_SERVER, &encoded));
		encoded_free(&encoded);
		alloc_failure_check(write_codec.serialize(item, &out));
		write_free(item);
	}
	item = write_codec.parse(buf_str(&out), &important);
	alloc_failure_check(item != NULL || out.failed || out.len == 0);
	write_free(item);
	buf_free(&out);
	alloc_failure_disarm();
}

static void test_every_allocation_may_fail(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_write_in_the_new_style_has_an_event_time_alone),
		cmocka_unit_test(test_create_of_a_series_has_the_series),
		cmocka_unit_test(test_event_time_of_the_event_wins),
		cmocka_unit_test(test_patch_in_the_new_style_is_the_series),
		cmocka_unit_test(test_event_of_a_write_has_the_series),
		cmocka_unit_test(test_event_of_a_write_is_copied_with_what_has_changed),
		cmocka_unit_test(test_old_style_goes_to_a_server_in_core_v1),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	alloc_failure_hook_jansson();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The JSON of an event: it has the names of both APIs, and each row of the schema is written and read back. */
#include "unit.h"

#include <jansson.h>

#include "event/event.h"
#include "event/schema.h"

/* ---- the names ---- */

static evrec_reference reference_named(const char *name)
{
	return (evrec_reference){ EVREC_STR("K"), EVREC_STR("A"), str_from(name),  EVREC_STR("NS"),
		                  EVREC_STR("U"), EVREC_STR("R"), EVREC_STR("F.P") };
}

#define REFERENCE_JSON(name)                                                                                           \
	"{\"kind\":\"K\",\"namespace\":\"NS\",\"name\":\"" name "\",\"uid\":\"U\",\"apiVersion\":\"A\","               \
	"\"resourceVersion\":\"R\",\"fieldPath\":\"F.P\"}"
#define METADATA_JSON                                                                                                  \
	"\"metadata\":{\"name\":\"my-name\",\"namespace\":\"my-namespace\",\"resourceVersion\":\"my-version\","        \
	"\"labels\":{\"my-label\":\"1\"},\"annotations\":{\"my-annotation\":\"2\"},\"ownerReferences\":["              \
	"{\"apiVersion\":\"oa\",\"kind\":\"ok\",\"name\":\"on\",\"uid\":\"ou\",\"controller\":true,"                   \
	"\"blockOwnerDeletion\":false},{\"kind\":\"second\"}]}"
#define SERIES_JSON "\"series\":{\"count\":5,\"lastObservedTime\":\"2023-11-14T22:13:23.000004Z\"}"
#define EVENT_TIME_JSON "\"eventTime\":\"2023-11-14T22:13:22.000003Z\""
#define SOURCE_JSON "{\"component\":\"my-component\",\"host\":\"my-host\"}"

static const char core_json[] =
	"{\"kind\":\"Event\",\"apiVersion\":\"v1\"," METADATA_JSON ",\"involvedObject\":" REFERENCE_JSON(
		"regarding") ","
			     "\"reason\":\"my-reason\",\"message\":\"my-note\",\"source\":" SOURCE_JSON ","
			     "\"firstTimestamp\":\"2023-11-14T22:13:20Z\",\"lastTimestamp\":\"2023-11-14T22:13:21Z\","
			     "\"count\":4,"
			     "\"type\":\"my-type\"," EVENT_TIME_JSON "," SERIES_JSON ",\"action\":\"my-action\","
			     "\"related\":" REFERENCE_JSON("related") ",\"reportingComponent\":\"my-controller\","
								      "\"reportingInstance\":\"my-instance\"}";

static const char events_json[] =
	"{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\"," METADATA_JSON "," EVENT_TIME_JSON "," SERIES_JSON ","
	"\"reportingController\":\"my-controller\",\"reportingInstance\":\"my-instance\",\"action\":\"my-action\","
	"\"reason\":\"my-reason\",\"regarding\":" REFERENCE_JSON(
		"regarding") ","
			     "\"related\":" REFERENCE_JSON(
				     "related") ",\"note\":\"my-note\",\"type\":\"my-type\","
						"\"deprecatedSource\":" SOURCE_JSON
						",\"deprecatedFirstTimestamp\":\"2023-11-14T22:13:20Z\","
						"\"deprecatedLastTimestamp\":\"2023-11-14T22:13:21Z\","
						"\"deprecatedCount\":4}";

static void check_json(const evrec_fields *f, enum evrec_api api, const char *expected)
{
	struct buf out = { 0 }, again = { 0 };
	evrec_event *event;

	json_event(&out, f, api);
	assert_string_equal(buf_cstr(&out), expected);
	event = event_from_json(str_from(expected));
	assert_non_null(event);
	json_event(&again, evrec_event_fields(event), api);
	assert_string_equal(buf_cstr(&again), expected);
	evrec_event_release(event);
	buf_free(&out);
	buf_free(&again);
}

/* The expected JSON is written by hand, after Kubernetes' API reference, so that a wrong name in the schema shows. */
static void test_json_has_the_names_of_both_apis(void **state)
{
	static const evrec_pair label = { { "my-label", 8 }, { "1", 1 } },
				annotation = { { "my-annotation", 13 }, { "2", 1 } };
	static const evrec_owner owners[] = {
		{ { "ok", 2 }, { "oa", 2 }, { "on", 2 }, { "ou", 2 }, 1, 0 },
		{ { "second", 6 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, -1, -1 },
	};
	const evrec_fields f = {
		.name = EVREC_STR("my-name"),
		.ns = EVREC_STR("my-namespace"),
		.resource_version = EVREC_STR("my-version"),
		.labels = { &label, 1 },
		.annotations = { &annotation, 1 },
		.owners = owners,
		.owners_len = 2,
		.regarding = reference_named("regarding"),
		.related = reference_named("related"),
		.type = EVREC_STR("my-type"),
		.reason = EVREC_STR("my-reason"),
		.action = EVREC_STR("my-action"),
		.note = EVREC_STR("my-note"),
		.component = EVREC_STR("my-component"),
		.host = EVREC_STR("my-host"),
		.controller = EVREC_STR("my-controller"),
		.instance = EVREC_STR("my-instance"),
		.first = T0,
		.last = T0 + EVREC_SECOND,
		.event_time = T0 + 2 * EVREC_SECOND + 3000,
		.count = 4,
		.series_count = 5,
		.series_last = T0 + 3 * EVREC_SECOND + 4000,
	};

	(void)state;
	check_json(&f, EVREC_CORE_V1, core_json);
	check_json(&f, EVREC_EVENTS_V1, events_json);
}

/* An object is left out if its essential fields are unset, though others are set. */
static void test_objects_without_essential_fields_are_left_out(void **state)
{
	evrec_fields f;

	(void)state;
	evrec_fields_init(&f);
	f.name = EVREC_STR("n");
	f.ns = EVREC_STR("s");
	f.regarding.uid = f.related.ns = EVREC_STR("u");
	f.series_last = T0;
	check_json(&f, EVREC_CORE_V1,
	           "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\",\"namespace\":\"s\"},"
	           "\"eventTime\":null}");
	check_json(&f, EVREC_EVENTS_V1,
	           "{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\",\"metadata\":{\"name\":\"n\","
	           "\"namespace\":\"s\"},\"eventTime\":null}");
}

/* ---- written and read back, row by row ---- */

/* A row, and the row of the object that it is in. */
struct spot {
	const struct spot *in;
	const evrec_field *field;
};

/* An event with few fields set, and the values that it points to. */
struct sparse {
	evrec_fields fields;
	evrec_owner owner;
};

static const evrec_pair pair = { { "key", 3 }, { "value", 5 } };

static void set(const evrec_field *field, char *base)
{
	void *at = base + field->offset;

	switch (field->type) {
	case EVREC_FIELD_STRING:
		*(evrec_str *)at = EVREC_STR("text");
		break;
	case EVREC_FIELD_TIME:
		*(int64_t *)at = T0;
		break;
	case EVREC_FIELD_MICROTIME:
		*(int64_t *)at = T0 + 1000;
		break;
	case EVREC_FIELD_INTEGER:
		*(int32_t *)at = 7;
		break;
	case EVREC_FIELD_TRISTATE:
		*(int *)at = 0;
		break;
	case EVREC_FIELD_MAP:
		*(evrec_map *)at = (evrec_map){ &pair, 1 };
		break;
	default:
		assert_int_equal(field->type, EVREC_FIELD_CONSTANT);
	}
}

static json_t *expected_json(const evrec_field *field, enum evrec_api api)
{
	switch (field->type) {
	case EVREC_FIELD_STRING:
		return json_string("text");
	case EVREC_FIELD_TIME:
		return json_string("2023-11-14T22:13:20Z");
	case EVREC_FIELD_MICROTIME:
		return json_string("2023-11-14T22:13:20.000001Z");
	case EVREC_FIELD_INTEGER:
		return json_integer(7);
	case EVREC_FIELD_TRISTATE:
		return json_false();
	case EVREC_FIELD_MAP:
		return json_pack("{ss}", "key", "value");
	default:
		return json_string(field->constant[api]);
	}
}

/* Returns the struct that the row's offset is counted in, and sets the essential fields of the row's object. */
static char *base_of(const struct spot *spot, struct sparse *event)
{
	const evrec_field *field;
	char *base;

	if (spot->in == NULL) {
		return (char *)&event->fields;
	}
	base = base_of(spot->in, event) + spot->in->field->offset;
	if (spot->in->field->type == EVREC_FIELD_OWNERS) {
		event->fields.owners = &event->owner;
		event->fields.owners_len = 1;
		base = (char *)&event->owner;
	}
	for (field = spot->in->field->fields; field->name[0] != NULL; field++) {
		if (field->essential) {
			set(field, base);
		}
	}
	return base;
}

static json_t *json_of(const struct spot *spot, enum evrec_api api, json_t *root)
{
	json_t *parent = spot->in == NULL ? root : json_of(spot->in, api, root);

	if (json_is_array(parent)) {
		parent = json_array_get(parent, 0);
	}
	return json_object_get(parent, spot->field->name[api]);
}

static json_t *parse(const struct buf *json)
{
	return json_loadb(json->data, json->len, JSON_REJECT_DUPLICATES, NULL);
}

static void check_leaf(const struct spot *spot, enum evrec_api api)
{
	struct sparse event = { .owner = { .controller = -1, .block_owner_deletion = -1 } };
	struct buf before = { 0 }, after = { 0 };
	json_t *root, *expected;
	evrec_event *copy;

	evrec_fields_init(&event.fields);
	event.fields.name = event.fields.ns = EVREC_STR("not-empty");
	set(spot->field, base_of(spot, &event));
	json_event(&before, &event.fields, api);
	root = parse(&before);
	expected = expected_json(spot->field, api);
	assert_true(json_equal(json_of(spot, api, root), expected));
	json_decref(expected);
	json_decref(root);
	copy = event_from_json(buf_str(&before));
	assert_non_null(copy);
	json_event(&after, evrec_event_fields(copy), api);
	assert_string_equal(buf_cstr(&after), buf_cstr(&before));
	evrec_event_release(copy);
	buf_free(&before);
	buf_free(&after);
}

/* Checks each value of the row. Returns their number. */
static size_t check_row(const struct spot *spot, enum evrec_api api)
{
	const evrec_field *field;
	size_t n = 0;

	if (spot->field->fields == NULL) {
		check_leaf(spot, api);
		return 1;
	}
	for (field = spot->field->fields; field->name[0] != NULL; field++) {
		n += check_row(&(struct spot){ spot, field }, api);
	}
	return n;
}

static void test_every_row_is_written_and_read_back(void **state)
{
	int api;

	(void)state;
	for (api = EVREC_CORE_V1; api <= EVREC_EVENTS_V1; api++) {
		size_t i, n = 0;

		for (i = 0; i < SCHEMA_ROWS; i++) {
			n += check_row(&(struct spot){ NULL, &evrec_event_schema[i] }, (enum evrec_api)api);
		}
		/* kind, apiVersion, 11 of metadata, two references of 7, source's 2, series' 3, and the 10 others. */
		assert_int_equal(n, 42);
	}
}

/* ---- values of the wrong type ---- */

static void test_values_of_other_types_are_ignored(void **state)
{
	const char *json = "{\"metadata\":{\"name\":\"n\",\"namespace\":\"s\",\"labels\":[1],\"annotations\":{\"a\":1},"
			   "\"ownerReferences\":[1,{\"name\":2,\"controller\":\"x\"}]},\"reason\":{},\"count\":-1,"
			   "\"firstTimestamp\":\"x\",\"source\":\"s\",\"series\":{\"count\":4294967297}}";
	evrec_event *event = event_from_json(str_from(json));
	const evrec_fields *f;

	(void)state;
	assert_non_null(event);
	f = evrec_event_fields(event);
	assert_int_equal(f->labels.len, 0);
	assert_int_equal(f->annotations.len, 1);
	assert_int_equal(f->annotations.pairs[0].value.len, 0);
	assert_int_equal(f->owners_len, 2);
	assert_int_equal(f->owners[0].controller, -1);
	assert_int_equal(f->owners[1].controller, -1);
	assert_int_equal(f->owners[1].name.len, 0);
	assert_int_equal(f->reason.len, 0);
	assert_int_equal(f->count, 0);
	assert_int_equal(f->series_count, 0);
	assert_true(f->first == EVREC_UNSET && f->component.len == 0);
	evrec_event_release(event);
}

/* Of equal keys the last one counts, also if they are many; keys that are no UTF-8 are equal once they are cleaned. */
static void test_repeated_keys_count_once(void **state)
{
	evrec_pair pairs[42];
	char keys[42][16], values[42][16];
	evrec_fields fields;
	struct buf text = { 0 };
	json_t *json, *labels;

	(void)state;
	for (int i = 0; i < 42; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "%s%d", i % 21 == 20 ? (i < 21 ? "\377" : "\376") : "k",
		               i % 21);
		(void)snprintf(values[i], sizeof(values[i]), "%d", i);
		pairs[i] = (evrec_pair){ str_from(keys[i]), str_from(values[i]) };
	}
	for (size_t n = 1; n <= 42; n++) {
		evrec_fields_init(&fields);
		fields.labels = (evrec_map){ pairs, n };
		buf_clear(&text);
		json_event(&text, &fields, EVREC_CORE_V1);
		assert_false(text.failed);
		json = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(json);
		labels = json_object_get(json_object_get(json, "metadata"), "labels");
		assert_int_equal(json_object_size(labels), n < 21 ? n : 21);
		for (size_t i = n < 21 ? 0 : n - 21; i < n; i++) {
			const char *key = i % 21 == 20 ? "\357\277\27520" : keys[i];

			assert_string_equal(json_string_value(json_object_get(labels, key)), values[i]);
		}
		json_decref(json);
	}
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_has_the_names_of_both_apis),
		cmocka_unit_test(test_objects_without_essential_fields_are_left_out),
		cmocka_unit_test(test_every_row_is_written_and_read_back),
		cmocka_unit_test(test_values_of_other_types_are_ignored),
		cmocka_unit_test(test_repeated_keys_count_once),
	};

	return cmocka_run_group_tests_name("event: JSON", tests, NULL, NULL);
}

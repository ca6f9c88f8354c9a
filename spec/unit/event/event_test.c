/* An event: its JSON, its PATCH, its copies, and the keys that the correlator uses. */
#include "unit.h"

#include "event/event.h"
#include "event/key.h"

static evrec_fields sample(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.name = EVREC_STR("web-0.17");
	f.ns = EVREC_STR("shop");
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"),
		                         .api_version = EVREC_STR("v1"),
		                         .name = EVREC_STR("web-0"),
		                         .ns = EVREC_STR("shop"),
		                         .uid = EVREC_STR("u-1"),
		                         .field_path = EVREC_STR("spec.containers{app}") };
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("BackOff");
	f.note = EVREC_STR("tab\there, \"quotes\", \xE2\x82\xAC");
	f.component = f.controller = EVREC_STR("kubelet");
	f.host = f.instance = EVREC_STR("node-1");
	f.first = T0;
	f.last = T0 + 60 * EVREC_SECOND;
	f.count = 3;
	return f;
}

static void check_json(const evrec_fields *f, enum evrec_api api, const char *expected)
{
	struct buf out = { 0 };

	json_event(&out, f, api);
	assert_string_equal(buf_cstr(&out), expected);
	buf_free(&out);
}

static void test_json_has_all_fields(void **state)
{
	evrec_fields f = sample();

	(void)state;
	check_json(
		&f, EVREC_CORE_V1,
		"{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-0.17\",\"namespace\":\"shop\"},"
		"\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web-0\",\"uid\":\"u-1\","
		"\"apiVersion\":\"v1\",\"fieldPath\":\"spec.containers{app}\"},\"reason\":\"BackOff\","
		"\"message\":\"tab\\there, \\\"quotes\\\", \xE2\x82\xAC\",\"source\":{\"component\":\"kubelet\","
		"\"host\":\"node-1\"},\"firstTimestamp\":\"2023-11-14T22:13:20Z\","
		"\"lastTimestamp\":\"2023-11-14T22:14:20Z\",\"count\":3,\"type\":\"Warning\",\"eventTime\":null,"
		"\"reportingComponent\":\"kubelet\",\"reportingInstance\":\"node-1\"}");
	f.regarding.field_path = f.regarding.uid = f.host = f.instance = (evrec_str){ NULL, 0 };
	f.note = EVREC_STR("m");
	f.event_time = T0 + 1000;
	f.series_count = 2;
	f.series_last = T0 + EVREC_SECOND;
	check_json(&f, EVREC_EVENTS_V1,
	           "{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\",\"metadata\":{\"name\":\"web-0.17\","
	           "\"namespace\":\"shop\"},\"eventTime\":\"2023-11-14T22:13:20.000001Z\",\"series\":{\"count\":2,"
	           "\"lastObservedTime\":\"2023-11-14T22:13:21.000000Z\"},\"reportingController\":\"kubelet\","
	           "\"reason\":\"BackOff\",\"regarding\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web-0\","
	           "\"apiVersion\":\"v1\"},\"note\":\"m\",\"type\":\"Warning\",\"deprecatedSource\":{\"component\":"
	           "\"kubelet\"},\"deprecatedFirstTimestamp\":\"2023-11-14T22:13:20Z\",\"deprecatedLastTimestamp\":"
	           "\"2023-11-14T22:14:20Z\",\"deprecatedCount\":3}");
}

static void test_invalid_text_becomes_valid_json(void **state)
{
	const evrec_pair label = { EVREC_STR("k\xFF"), EVREC_STR("") };
	const evrec_owner owner = {
		EVREC_STR("ReplicaSet"), EVREC_STR("apps/v1"), EVREC_STR("rs"), EVREC_STR("u"), 1, -1
	};
	evrec_fields f;

	(void)state;
	evrec_fields_init(&f);
	f.note = (evrec_str){ "a\0\x1B\xFF", 4 };
	f.labels = (evrec_map){ &label, 1 };
	f.owners = &owner;
	f.owners_len = 1;
	check_json(&f, EVREC_CORE_V1,
	           "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"labels\":{\"k\xEF\xBF\xBD\":\"\"},"
	           "\"ownerReferences\":[{\"apiVersion\":\"apps/"
	           "v1\",\"kind\":\"ReplicaSet\",\"name\":\"rs\",\"uid\":\"u\","
	           "\"controller\":true}]},\"message\":\"a\\u0000\\u001B\xEF\xBF\xBD\",\"eventTime\":null}");
}

static void test_patch_has_the_changed_fields(void **state)
{
	evrec_fields f = sample();
	size_t len;
	char *patch;

	(void)state;
	f.count = 2;
	f.note = EVREC_STR("(combined from similar events): m10");
	patch = evrec_fields_patch(&f, &len);
	assert_string_equal(patch, "{\"count\":2,\"lastTimestamp\":\"2023-11-14T22:14:20Z\","
	                           "\"message\":\"(combined from similar events): m10\"}");
	assert_int_equal(len, strlen(patch));
	evrec_free(patch);
	f.note = (evrec_str){ NULL, 0 };
	patch = evrec_fields_patch(&f, NULL);
	assert_string_equal(patch, "{\"count\":2,\"lastTimestamp\":\"2023-11-14T22:14:20Z\"}");
	evrec_free(patch);
}

static void check_patch(const evrec_fields *fields, const char *expected)
{
	char *patch = evrec_fields_patch(fields, NULL);

	assert_string_equal(patch, expected);
	evrec_free(patch);
}

/* An event that only its series counts, in the new style, is patched by the series; one with a count by that. */
static void test_patch_of_a_series_has_the_series(void **state)
{
	evrec_fields f = sample();

	(void)state;
	f.first = f.last = EVREC_UNSET;
	f.count = 0;
	f.event_time = T0;
	f.series_count = 2;
	f.series_last = T0 + 1500000;
	check_patch(&f, "{\"series\":{\"count\":2,\"lastObservedTime\":\"2023-11-14T22:13:20.001500Z\"}}");
	f.series_state = EVREC_STR("Finished");
	check_patch(&f, "{\"series\":{\"count\":2,\"lastObservedTime\":\"2023-11-14T22:13:20.001500Z\","
	                "\"state\":\"Finished\"}}");
	f.count = 3;
	f.last = T0;
	f.note = (evrec_str){ NULL, 0 };
	check_patch(&f, "{\"count\":3,\"lastTimestamp\":\"2023-11-14T22:13:20Z\"}");
}

/* A copy shares no memory with its original. */
static void test_copy_shares_no_memory(void **state)
{
	char key[] = "team", value[] = "blue", note[] = "note";
	evrec_pair annotation = { str_from(key), str_from(value) };
	evrec_fields f = sample();
	evrec_event *event;
	char *json;

	(void)state;
	f.annotations = (evrec_map){ &annotation, 1 };
	f.note = str_from(note);
	event = evrec_event_new(&f);
	memset(key, 'x', 4);
	memset(value, 'x', 4);
	memset(note, 'x', 4);
	memset(&annotation, 0, sizeof(annotation));
	assert_str(evrec_event_fields(event)->note, "note");
	json = evrec_fields_json(evrec_event_fields(event), EVREC_CORE_V1, NULL);
	assert_non_null(strstr(json, "\"annotations\":{\"team\":\"blue\"}"));
	evrec_free(json);
	evrec_event_release(evrec_event_retain(event));
	evrec_event_release(event);
}

/* The comparison that a cache makes. */
static bool same_key(const struct key *a, const struct key *b)
{
	struct buf x = { 0 }, y = { 0 };
	bool same;

	buf_put_str(&x, a->head);
	buf_put_str(&x, a->tail);
	buf_put_str(&y, b->head);
	buf_put_str(&y, b->tail);
	same = str_eq(buf_str(&x), buf_str(&y));
	buf_free(&x);
	buf_free(&y);
	return same;
}

/* ("ab","c") and ("a","bc") are different keys, for every pair of neighbouring parts. */
static void test_keys_never_collide(void **state)
{
	evrec_fields a = sample(), b;
	evrec_str *parts[] = { &b.component,
		               &b.host,
		               &b.regarding.kind,
		               &b.regarding.ns,
		               &b.regarding.name,
		               &b.regarding.uid,
		               &b.regarding.api_version,
		               &b.type,
		               &b.reason,
		               &b.controller,
		               &b.instance };
	struct keys x = { 0 }, y = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i + 1 < sizeof(parts) / sizeof(parts[0]); i++) {
		b = a;
		*parts[i] = EVREC_STR("ab");
		*parts[i + 1] = EVREC_STR("c");
		assert_true(keys_make(&x, &b));
		*parts[i] = EVREC_STR("a");
		*parts[i + 1] = EVREC_STR("bc");
		assert_true(keys_make(&y, &b));
		assert_false(same_key(&x.aggregate, &y.aggregate));
	}
	/* Event keys and aggregate keys share a cache: keys with equal tails of three parts must differ. */
	b = a;
	b.regarding.field_path = EVREC_STR("p");
	b.reason = EVREC_STR("q");
	b.note = EVREC_STR("r");
	assert_true(keys_make(&x, &b));
	b.reason = EVREC_STR("p");
	b.controller = EVREC_STR("q");
	b.instance = EVREC_STR("r");
	assert_true(keys_make(&y, &b));
	assert_false(same_key(keys_event(&x), &y.aggregate));
	assert_true(same_key(&x.spam, &y.spam));
	keys_free(&x);
	keys_free(&y);
}

/* A changed byte in any part changes the keys; a field outside the keys does not. */
static void test_keys_depend_on_their_parts_only(void **state)
{
	evrec_fields event = sample();
	evrec_str *parts[] = { &event.component,
		               &event.host,
		               &event.controller,
		               &event.instance,
		               &event.regarding.kind,
		               &event.regarding.ns,
		               &event.regarding.name,
		               &event.regarding.uid,
		               &event.regarding.api_version,
		               &event.regarding.field_path,
		               &event.type,
		               &event.reason,
		               &event.note };
	/* The first `source` parts are the source's, the first `object` parts the source's and the object's. */
	const size_t source = 4, object = KEY_PARTS - 3, note = KEY_PARTS - 1;
	static const size_t lengths[] = { 1, 3, 4, 7, 8, 9, 16, 17, 32, 33, 40 };
	struct keys keys = { 0 };
	char text[40], own[40];
	size_t i, j, k;

	(void)state;
	assert_int_equal(sizeof(parts) / sizeof(parts[0]), KEY_PARTS);
	assert_int_equal(keys_match(&keys, &event), KEYS_DIFFER);
	assert_int_equal(keys_match_of_source(&keys, &event), KEYS_DIFFER);
	assert_int_equal(keys_match_of_object(&keys, &event), KEYS_DIFFER);
	memset(text, 'x', sizeof(text));
	for (j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
		for (i = 0; i < KEY_PARTS; i++) {
			*parts[i] = (evrec_str){ text, lengths[j] };
		}
		assert_true(keys_make(&keys, &event));
		for (i = 0; i < KEY_PARTS; i++) {
			const enum keys_match changed = i == note ? KEYS_OF_OTHER_NOTE : KEYS_DIFFER;

			memcpy(own, text, sizeof(own));
			*parts[i] = (evrec_str){ own, lengths[j] };
			event.action = event.regarding.resource_version = (evrec_str){ own, i };
			assert_int_equal(keys_match(&keys, &event), KEYS_MATCH);
			assert_int_equal(keys_match_of_source(&keys, &event), KEYS_MATCH);
			assert_int_equal(keys_match_of_object(&keys, &event), KEYS_MATCH);
			for (k = 0; k < lengths[j]; k++) {
				own[k] = 'y';
				assert_int_equal(keys_match(&keys, &event), changed);
				assert_int_equal(keys_match_of_source(&keys, &event),
				                 i < source ? KEYS_MATCH : changed);
				assert_int_equal(keys_match_of_object(&keys, &event),
				                 i < object ? KEYS_MATCH : changed);
				own[k] = 'x';
			}
			parts[i]->len--;
			assert_int_equal(keys_match(&keys, &event), changed);
			assert_int_equal(keys_match_of_source(&keys, &event), i < source ? KEYS_MATCH : changed);
			*parts[i] = (evrec_str){ text, lengths[j] };
		}
	}
	keys_free(&keys);
}

static bool is_same_key(const struct key *a, const struct key *b)
{
	return str_eq(a->head, b->head) && str_eq(a->tail, b->tail) && a->hash == b->hash;
}

/* Notes of all lengths: the text of the keys lies in the same memory, or in more. */
static void test_keys_of_another_note(void **state)
{
	struct keys changed = { 0 }, made = { 0 };
	evrec_fields event = sample();
	char note[5000];

	(void)state;
	memset(note, 'n', sizeof(note));
	assert_true(keys_make(&changed, &event));
	for (size_t i = 0; i < 200; i++) {
		event.note = (evrec_str){ note, i * 7919 % sizeof(note) };
		assert_true(keys_change_note(&changed, &event));
		assert_true(keys_make(&made, &event));
		assert_true(is_same_key(keys_event(&changed), keys_event(&made)));
		assert_true(is_same_key(&changed.aggregate, &made.aggregate));
		assert_true(is_same_key(&changed.spam, &made.spam));
		assert_true(str_eq(buf_str(&changed.text), buf_str(&made.text)));
		assert_int_equal(keys_match(&changed, &event), KEYS_MATCH);
		assert_true(str_eq(keys_note(&changed), event.note));
	}
	keys_free(&changed);
	keys_free(&made);
}

static void test_keys_are_split_into_their_parts(void **state)
{
	evrec_fields event;
	struct keys keys = { 0 };
	struct buf text = { 0 };
	struct key key;
	evrec_suppressed parts = { 0 };
	evrec_str chosen;

	(void)state;
	evrec_fields_init(&event);
	event.component = EVREC_STR("scheduler");
	event.regarding.kind = EVREC_STR("Pod");
	event.regarding.uid = EVREC_STR("u");
	event.type = EVREC_STR("Normal");
	event.reason = EVREC_STR("R");
	event.instance = EVREC_STR("node-1");
	assert_true(keys_make(&keys, &event));
	buf_put_str(&text, keys.aggregate.head);
	buf_put_str(&text, keys.aggregate.tail);
	keys_split_aggregate(buf_str(&text), &parts);
	assert_str(parts.component, "scheduler");
	assert_str(parts.host, "");
	assert_str(parts.regarding.kind, "Pod");
	assert_str(parts.regarding.ns, "");
	assert_str(parts.regarding.uid, "u");
	assert_str(parts.type, "Normal");
	assert_str(parts.reason, "R");
	assert_str(parts.controller, "");
	assert_str(parts.instance, "node-1");
	assert_false(key_split_custom(buf_str(&text), &chosen));
	assert_false(key_split_custom(EVREC_STR("x"), &chosen));
	buf_clear(&text);
	assert_true(key_custom(&key, &text, EVREC_STR("mine")));
	assert_true(key_split_custom(buf_str(&text), &chosen));
	assert_str(chosen, "mine");
	buf_free(&text);
	keys_free(&keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_has_all_fields),
		cmocka_unit_test(test_invalid_text_becomes_valid_json),
		cmocka_unit_test(test_patch_has_the_changed_fields),
		cmocka_unit_test(test_patch_of_a_series_has_the_series),
		cmocka_unit_test(test_copy_shares_no_memory),
		cmocka_unit_test(test_keys_never_collide),
		cmocka_unit_test(test_keys_depend_on_their_parts_only),
		cmocka_unit_test(test_keys_of_another_note),
		cmocka_unit_test(test_keys_are_split_into_their_parts),
	};

	return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}

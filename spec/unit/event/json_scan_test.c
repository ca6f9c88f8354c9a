/* Events that are scanned: as jansson reads them; and the texts that are left to jansson. */
#include "unit.h"

#include "event/event.h"
#include "event/json_scan.h"

#include <jansson.h>

static char *json_of(const evrec_event *event)
{
	char *text = evrec_fields_json(evrec_event_fields(event), EVREC_EVENTS_V1, NULL);

	assert_non_null(text);
	return text;
}

/* Scans the text, which goes on behind the object by `rest`. NULL: it is left to jansson. */
static evrec_event *scan(const char *text, const char *rest)
{
	struct json_room room = { 0 };
	evrec_event *event = NULL;
	evrec_fields fields;
	const char *at = text;

	if (json_scan_event(&at, text + strlen(text), &room, &fields)) {
		assert_string_equal(at, rest);
		event = evrec_event_new(&fields);
		assert_non_null(event);
	}
	json_room_free(&room);
	return event;
}

static void check_scanned(const char *text)
{
	json_t *root = json_loads(text, JSON_ALLOW_NUL, NULL);
	evrec_event *scanned = scan(text, ""), *read = event_from_object(root);
	char *one, *other;

	assert_non_null(root);
	assert_non_null(scanned);
	one = json_of(scanned);
	other = json_of(read);
	assert_string_equal(one, other);
	evrec_free(one);
	evrec_free(other);
	evrec_event_release(scanned);
	evrec_event_release(read);
	json_decref(root);
}

static void test_events_are_as_jansson_reads_them(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"},"
		"\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"c\"},\"reason\":\"R\",\"message\":\"say "
		"\\\"m\\\"\\n\\/\\t\","
		"\"source\":{\"component\":\"k\",\"host\":\"h\"},\"firstTimestamp\":\"2023-11-14T22:13:20Z\","
		"\"lastTimestamp\":null,\"count\":3,\"type\":\"Warning\",\"eventTime\":null}",
		"{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/"
		"v1\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\","
		"\"z\":1,\"\":\"e\"},\"annotations\":{},\"ownerReferences\":[{\"kind\":\"K\",\"controller\":true},7,"
		"{\"blockOwnerDeletion\":false}]},\"eventTime\":\"2023-11-14T22:13:20.000001Z\",\"series\":{\"count\":"
		"2,"
		"\"lastObservedTime\":\"2023-11-14T22:13:21.5Z\"},\"note\":\"\303\251\",\"regarding\":{\"kind\":"
		"\"Pod\"},"
		"\"deprecatedCount\":-1,\"reportingController\":\"c\"}",
		/* An API that comes last, or that is none. */
		"{\"note\":\"n\",\"message\":\"m\",\"apiVersion\":\"events.k8s.io/v1\"}",
		"{\"note\":\"n\",\"message\":\"m\",\"apiVersion\":\"v2\"}",
		"{\"note\":\"n\",\"message\":\"m\",\"apiVersion\":7}",
		/* Values of the wrong type, and fields that no event has. */
		(" {\t\"metadata\" : [ ] ,\r\n\"reason\":{\"a\":[1,-2,{\"b\":null}]}, \"count\":\"3\", \"type\":true,"
		 "\"firstTimestamp\":\"yesterday\",\"series\":\"none\",\"managedFields\":[{\"x\":{\"y\":{}}},[]] }"),
		"{\"count\":2147483648,\"metadata\":{\"labels\":[],\"ownerReferences\":{}}}",
		"{\"count\":0}",
		"{\"count\":-0}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		check_scanned(texts[i]);
	}
}

static void test_rare_and_broken_texts_are_left_to_jansson(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{\"reason\":\"\\u0041\"}",
		"{\"reason\":\"\\x\"}",
		"{\"reason\":\"a\nb\"}",
		"{\"reason\":\"\377\"}",
		"{\"reason\":\"a\",\"reason\":\"b\"}",
		"{\"source\":{\"host\":\"a\"},\"source\":{}}",
		"{\"metadata\":{\"labels\":{\"a\":\"b\",\"a\":\"c\"}}}",
		"{\"count\":1.5}",
		"{\"count\":1e3}",
		"{\"count\":01}",
		"{\"count\":-}",
		"{\"count\":1234567890123456789}",
		"{\"a\":1,}",
		"{\"a\":[1,]}",
		"{,}",
		"{\"a\" 1}",
		"{\"a\":1",
		"{\"a\":\"b",
		"{\"a\":\"b\\",
		"{\"a\":nul}",
		"{\"a\":truefalse}",
		"{\"a\":'b'}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		evrec_event *event = scan(texts[i], "");

		if (event != NULL) {
			fail_msg("%s", texts[i]);
		}
	}
}

/*
 * A string of 24 bytes that has `piece` at an offset, in memory that ends with the text. True: it was scanned, and is as
 * jansson reads it.
 */
static bool scan_piece(evrec_str piece, size_t offset)
{
	struct json_room room = { 0 };
	struct buf text = { 0 };
	evrec_fields fields;
	const char *at;
	bool scanned;
	char *exact;

	buf_printf(&text, "{\"reason\":\"%.*s", (int)offset, "aaaaaaaaaaaaaaaaaaaaaaaa");
	buf_put_str(&text, piece);
	buf_printf(&text, "%.*s\"}", 24 - (int)offset, "aaaaaaaaaaaaaaaaaaaaaaaa");
	exact = malloc(text.len);
	assert_non_null(exact);
	memcpy(exact, text.data, text.len);
	at = exact;
	scanned = json_scan_event(&at, exact + text.len, &room, &fields);
	if (scanned) {
		check_scanned(buf_cstr(&text));
	}
	json_room_free(&room);
	buf_free(&text);
	free(exact);
	return scanned;
}

static void test_each_byte_of_a_word_is_looked_at(void **state)
{
	const evrec_str fine[] = { EVREC_STR("\303\251"), EVREC_STR("\\\""), EVREC_STR("\\n"), EVREC_STR(" ") };
	const evrec_str rare[] = { EVREC_STR("\377"), EVREC_STR("\200"), EVREC_STR("\n"),   EVREC_STR("\001"),
		                   EVREC_STR("\037"), EVREC_STR("\0"),   EVREC_STR("\303"), EVREC_STR("\\\303\251") };

	(void)state;
	for (size_t offset = 0; offset <= 24; offset++) {
		for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
			assert_true(scan_piece(fine[i], offset));
		}
		for (size_t i = 0; i < sizeof(rare) / sizeof(rare[0]); i++) {
			assert_false(scan_piece(rare[i], offset));
		}
	}
}

static void test_depth_and_maps_are_bounded(void **state)
{
	struct buf text = { 0 };

	(void)state;
	buf_printf(&text, "{\"a\":");
	for (int i = 0; i < 10000; i++) {
		buf_put(&text, "[", 1);
	}
	assert_null(scan(buf_cstr(&text), ""));
	buf_clear(&text);
	buf_printf(&text, "{\"metadata\":{\"labels\":{");
	for (int i = 0; i < 65; i++) {
		buf_printf(&text, "%s\"%d\":\"\"", i == 0 ? "" : ",", i);
	}
	buf_printf(&text, "}}}");
	assert_null(scan(buf_cstr(&text), ""));
	buf_free(&text);
}

static void test_what_follows_is_not_read(void **state)
{
	evrec_event *event = scan("{\"reason\":\"R\"}}", "}");

	(void)state;
	assert_non_null(event);
	evrec_event_release(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_are_as_jansson_reads_them),
		cmocka_unit_test(test_rare_and_broken_texts_are_left_to_jansson),
		cmocka_unit_test(test_each_byte_of_a_word_is_looked_at),
		cmocka_unit_test(test_depth_and_maps_are_bounded),
		cmocka_unit_test(test_what_follows_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Any bytes as an event, as a list of events, as a change of a watch, and as a field selector. */
#include "fuzz.h"

#include "event/event.h"
#include "event/json_scan.h"
#include "read/selector.h"

#include <jansson.h>

/* The text of an event is one of the same event, and the same text comes out of that. */
static bool check_event(void *ctx, const evrec_fields *event, const struct event_item *item)
{
	struct buf text = { 0 };
	enum json_fault fault;
	evrec_event *again;

	(void)ctx;
	event_item_json(item, EVREC_CORE_V1, &text);
	CHECK(!text.failed);
	again = event_from_json_or_fault(buf_str(&text), &fault);
	/* An item may say that it is of another API, by which it reads otherwise. */
	CHECK((again == NULL) == (fault != JSON_SOUND));
	if (again != NULL) {
		CHECK(str_eq(evrec_event_fields(again)->name, event->name));
		CHECK(str_eq(evrec_event_fields(again)->ns, event->ns));
	}
	evrec_event_release(again);
	buf_free(&text);
	return true;
}

/* A selector's written form is read as the same selector. */
static void check_selector(evrec_str text)
{
	struct selector first, second;
	struct buf written = { 0 }, again = { 0 };

	if (selector_parse(&first, text, NULL) == 0) {
		selector_put(&first, &written);
		CHECK(selector_parse(&second, buf_str(&written), NULL) == 0);
		CHECK(first.len == second.len);
		selector_put(&second, &again);
		CHECK(str_eq(buf_str(&written), buf_str(&again)));
		selector_free(&second);
	}
	selector_free(&first);
	buf_free(&written);
	buf_free(&again);
}

/* A text that is scanned is JSON, of the event that jansson's tree has. */
static void check_scan(evrec_str text)
{
	json_t *root = json_loadb(text.data, text.len, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, NULL);
	struct json_room room = { 0 };
	const char *at = text.data;
	evrec_fields fields;

	if (json_scan_event(&at, text.data + text.len, &room, &fields)) {
		evrec_event *read, *scanned = evrec_event_new(&fields);

		CHECK(root != NULL);
		read = event_from_object(root);
		for (int api = EVREC_CORE_V1; api <= EVREC_EVENTS_V1; api++) {
			char *one = evrec_fields_json(evrec_event_fields(scanned), (enum evrec_api)api, NULL);
			char *other = evrec_fields_json(evrec_event_fields(read), (enum evrec_api)api, NULL);

			CHECK(strcmp(one, other) == 0);
			evrec_free(one);
			evrec_free(other);
		}
		evrec_event_release(scanned);
		evrec_event_release(read);
	}
	json_room_free(&room);
	json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const evrec_str text = { (const char *)data, size };
	struct buf token = { 0 }, version = { 0 };
	int status;

	(void)event_list_from_json(text, EVREC_CORE_V1, check_event, NULL, &token, &version);
	CHECK(event_change_from_json(text, EVREC_CORE_V1, check_event, NULL, &version, &status) == EVENT_ERROR ||
	      status == 0);
	check_selector(text);
	check_scan(text);
	buf_free(&token);
	buf_free(&version);
	return 0;
}

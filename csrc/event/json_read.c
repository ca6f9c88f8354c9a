#include "event/event.h"

#include "base/fork_lock.h"
#include "event/json_scan.h"
#include "event/schema.h"

#include <jansson.h>
#include <pthread.h>

static void seed(void)
{
	fork_lock_enter();
	json_object_seed(0);
	fork_lock_leave();
}

void json_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, seed);
}

struct reader {
	enum evrec_api api;
	struct json_room room; /* of maps and owners; freed once the event has copied them */
};

static void read_fields(struct reader *r, const json_t *object, const evrec_field *table, char *base);

static evrec_str text(const json_t *value)
{
	return (evrec_str){ json_string_value(value), json_string_length(value) };
}

static int64_t timestamp(const json_t *value)
{
	int64_t ns;

	return evrec_rfc3339_parse(text(value), &ns) ? ns : EVREC_UNSET;
}

static int32_t integer(const json_t *value)
{
	json_int_t n = json_integer_value(value);

	return n >= 0 && n <= INT32_MAX ? (int32_t)n : 0;
}

static evrec_map read_map(struct reader *r, json_t *object)
{
	const size_t size = json_object_size(object);
	evrec_pair *pairs = size == 0 ? NULL : json_room_take(&r->room, size * sizeof(*pairs));
	evrec_map map = { pairs, 0 };
	const char *key;
	json_t *value;

	if (pairs == NULL) {
		return map;
	}
	json_object_foreach(object, key, value)
	{
		pairs[map.len++] = (evrec_pair){ str_from(key), text(value) };
	}
	return map;
}

static void read_owners(struct reader *r, const json_t *array, const evrec_field *table, evrec_fields *fields)
{
	const size_t n = json_array_size(array);
	evrec_owner *owners = n == 0 ? NULL : json_room_take(&r->room, n * sizeof(*owners));
	size_t i;

	if (owners == NULL) {
		return;
	}
	for (i = 0; i < n; i++) {
		read_fields(r, json_array_get(array, i), table, (char *)&owners[i]);
	}
	fields->owners = owners;
	fields->owners_len = n;
}

/* `value` is NULL if the object lacks the field. NULL and a value of the wrong type are read as unset. */
static void read_value(struct reader *r, json_t *value, const evrec_field *field, char *base)
{
	void *at = base + field->offset;

	switch (field->type) {
	case EVREC_FIELD_CONSTANT:
		break;
	case EVREC_FIELD_STRING:
		*(evrec_str *)at = text(value);
		break;
	case EVREC_FIELD_TIME:
	case EVREC_FIELD_MICROTIME:
		*(int64_t *)at = timestamp(value);
		break;
	case EVREC_FIELD_INTEGER:
		*(int32_t *)at = integer(value);
		break;
	case EVREC_FIELD_TRISTATE:
		*(int *)at = json_is_boolean(value) ? json_is_true(value) : -1;
		break;
	case EVREC_FIELD_MAP:
		*(evrec_map *)at = read_map(r, value);
		break;
	case EVREC_FIELD_OBJECT:
		read_fields(r, value, field->fields, at);
		break;
	case EVREC_FIELD_OWNERS:
		read_owners(r, value, field->fields, (evrec_fields *)(void *)base);
		break;
	}
}

static void read_fields(struct reader *r, const json_t *object, const evrec_field *table, char *base)
{
	const evrec_field *field;

	for (field = table; field->name[0] != NULL; field++) {
		read_value(r, json_object_get(object, field->name[r->api]), field, base);
	}
}

/* An event that names no API is taken for one of core/v1. */
static enum evrec_api api_of(const json_t *root)
{
	const char *key = evrec_event_schema[SCHEMA_API_VERSION].name[EVREC_CORE_V1];
	enum evrec_api api = EVREC_CORE_V1;

	(void)evrec_api_parse(text(json_object_get(root, key)), &api);
	return api;
}

static enum json_fault fault_of(const json_error_t *error)
{
	/* jansson sets no message for most failed allocations. */
	if (error->text[0] == '\0') {
		return JSON_NO_MEMORY;
	}
	switch (json_error_code(error)) {
	case json_error_premature_end_of_input:
		return JSON_CUT;
	case json_error_out_of_memory:
		return JSON_NO_MEMORY;
	default:
		return JSON_NO_EVENT;
	}
}

/* An event without a name and a namespace is refused. */
static evrec_event *copy_named(const evrec_fields *fields, enum json_fault *fault)
{
	evrec_event *event;

	if (fields->name.len == 0 || fields->ns.len == 0) {
		*fault = JSON_NO_EVENT;
		return NULL;
	}
	event = evrec_event_new(fields);
	*fault = event == NULL ? JSON_NO_MEMORY : JSON_SOUND;
	return event;
}

static evrec_event *read_tree(evrec_str json, enum json_fault *fault)
{
	json_error_t error = { 0 };
	evrec_event *event = NULL;
	evrec_fields fields;
	struct reader r;
	json_t *root;

	json_init();
	root = json_loadb(json.data, json.len, JSON_ALLOW_NUL, &error);
	if (root == NULL) {
		*fault = fault_of(&error);
		return NULL;
	}
	r = (struct reader){ .api = api_of(root) };
	evrec_fields_init(&fields);
	read_fields(&r, root, evrec_event_schema, (char *)&fields);
	*fault = JSON_NO_MEMORY;
	if (!r.room.failed) {
		event = copy_named(&fields, fault);
	}
	json_room_free(&r.room);
	json_decref(root);
	return event;
}

/* Scanning takes a tenth of the time of a tree. */
evrec_event *event_from_json_or_fault(evrec_str json, enum json_fault *fault)
{
	const char *at = json.data, *end = json.len == 0 ? at : at + json.len;
	struct json_room room = { 0 };
	evrec_fields fields;
	evrec_event *event;

	if (json_scan_event(&at, end, &room, &fields) && at == end) {
		event = copy_named(&fields, fault);
	} else {
		event = read_tree(json, fault);
	}
	json_room_free(&room);
	return event;
}

evrec_event *event_scan(const char **at, const char *end)
{
	struct json_room room = { 0 };
	evrec_event *event = NULL;
	evrec_fields fields;

	if (json_scan_event(at, end, &room, &fields)) {
		event = evrec_event_new(&fields);
	}
	json_room_free(&room);
	return event;
}

evrec_event *event_from_object(const struct json_t *object)
{
	struct reader r = { .api = api_of(object) };
	evrec_event *event = NULL;
	evrec_fields fields;

	evrec_fields_init(&fields);
	read_fields(&r, object, evrec_event_schema, (char *)&fields);
	if (!r.room.failed) {
		event = evrec_event_new(&fields);
	}
	json_room_free(&r.room);
	return event;
}

evrec_event *event_from_json(evrec_str json)
{
	enum json_fault fault;

	return event_from_json_or_fault(json, &fault);
}

/* ---- answers of an API server ---- */

static int append(const char *data, size_t len, void *ctx)
{
	struct buf *out = ctx;

	buf_put(out, data, len);
	return out->failed ? -1 : 0;
}

void event_item_json(const struct event_item *item, enum evrec_api api, struct buf *out)
{
	/* These two members, followed by the item's, in a new object: the item is the caller's. */
	json_t *whole = json_object();
	json_t *members = (json_t *)(uintptr_t)item;
	bool ok = whole != NULL;

	for (int row = SCHEMA_KIND; ok && row <= SCHEMA_API_VERSION; row++) {
		const evrec_field *field = &evrec_event_schema[row];

		ok = json_object_set_new(whole, field->name[api], json_string(field->constant[api])) == 0;
	}
	ok = ok && json_object_update(whole, members) == 0 && json_dump_callback(whole, append, out, JSON_COMPACT) == 0;
	out->failed = out->failed || !ok;
	json_decref(whole);
}

static bool read_item(const json_t *item, enum evrec_api api, event_found_func *found, void *ctx)
{
	struct reader r = { .api = api };
	evrec_fields fields;
	bool ok = true;

	evrec_fields_init(&fields);
	read_fields(&r, item, evrec_event_schema, (char *)&fields);
	if (r.room.failed) {
		ok = false;
	} else if (fields.name.len != 0 && fields.ns.len != 0) {
		ok = found(ctx, &fields, (const struct event_item *)item);
	}
	json_room_free(&r.room);
	return ok;
}

static evrec_str metadata_of(const json_t *object, const char *key)
{
	return text(json_object_get(json_object_get(object, "metadata"), key));
}

bool event_list_from_json(evrec_str json, enum evrec_api api, event_found_func *found, void *ctx, struct buf *next,
                          struct buf *version)
{
	json_t *root, *items, *item;
	bool ok;
	size_t i;

	json_init();
	root = json_loadb(json.data, json.len, JSON_ALLOW_NUL, NULL);
	items = json_object_get(root, "items");
	ok = json_is_array(items) || json_is_null(items); /* Go's empty list may be null */
	json_array_foreach(items, i, item)
	{
		ok = ok && read_item(item, api, found, ctx);
	}
	buf_clear(next);
	buf_put_str(next, metadata_of(root, "continue"));
	if (version != NULL) {
		buf_clear(version);
		buf_put_str(version, metadata_of(root, "resourceVersion"));
		ok = ok && !version->failed;
	}
	json_decref(root);
	return ok && !next->failed;
}

static enum event_change change_of(evrec_str type)
{
	static const struct {
		const char *type;
		enum event_change change;
	} types[] = {
		{ "ADDED", EVENT_CHANGED },     { "MODIFIED", EVENT_CHANGED }, { "DELETED", EVENT_DELETED },
		{ "BOOKMARK", EVENT_BOOKMARK }, { "ERROR", EVENT_ERROR },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (str_eq(type, str_from(types[i].type))) {
			return types[i].change;
		}
	}
	return EVENT_UNKNOWN;
}

enum event_change event_change_from_json(evrec_str json, enum evrec_api api, event_found_func *found, void *ctx,
                                         struct buf *version, int *status)
{
	json_t *root = (json_init(), json_loadb(json.data, json.len, JSON_ALLOW_NUL, NULL));
	const json_t *object = json_object_get(root, "object");
	enum event_change change = change_of(text(json_object_get(root, "type")));

	*status = change == EVENT_ERROR ? integer(json_object_get(object, "code")) : 0;
	buf_clear(version);
	buf_put_str(version, metadata_of(object, "resourceVersion"));
	if (version->failed ||
	    ((change == EVENT_CHANGED || change == EVENT_DELETED) && !read_item(object, api, found, ctx))) {
		change = EVENT_UNKNOWN;
	}
	json_decref(root);
	return change;
}

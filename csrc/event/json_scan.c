#include "event/json_scan.h"

#include "base/json_tokens.h"
#include "event/schema.h"

#define PAIRS_MAX 64 /* of a map: each key is compared with those before */

struct scan {
	struct json_tokens tokens;
	enum evrec_api api; /* whose names the fields have; once an apiVersion was read, the API that it names */
};

static bool scan_fields(struct scan *s, const evrec_field *table, char *base);

/* A value that is no string has no text. */
static bool scan_text(struct scan *s, evrec_str *text)
{
	*text = (evrec_str){ NULL, 0 };
	return json_next_byte(&s->tokens) == '"' ? json_take_string(&s->tokens, text) : json_skip_value(&s->tokens, 0);
}

static bool scan_time(struct scan *s, int64_t *ns)
{
	evrec_str text;

	if (!scan_text(s, &text)) {
		return false;
	}
	*ns = evrec_rfc3339_parse(text, ns) ? *ns : EVREC_UNSET;
	return true;
}

static bool scan_integer(struct scan *s, int32_t *number)
{
	int64_t n;

	if (!json_begins_number(json_next_byte(&s->tokens))) {
		return json_skip_value(&s->tokens, 0);
	}
	if (!json_take_integer(&s->tokens, &n)) {
		return false;
	}
	*number = n >= 0 && n <= INT32_MAX ? (int32_t)n : 0;
	return true;
}

static bool scan_tristate(struct scan *s, int *value)
{
	const char first = json_next_byte(&s->tokens);

	*value = first == 't' ? 1 : first == 'f' ? 0 : -1;
	return json_skip_value(&s->tokens, 0);
}

/* Room for the *n values, of `size` bytes each, of an object or array whose first bracket was taken. */
static bool make_room(const struct scan *s, char close, size_t size, size_t *n, void **room)
{
	struct json_tokens ahead = s->tokens;

	if (!json_skip_rest(&ahead, close, 0, n)) {
		return false;
	}
	*room = *n == 0 ? NULL : json_room_take(s->tokens.room, *n * size);
	return *n == 0 || *room != NULL;
}

static bool scan_map(struct scan *s, evrec_map *map)
{
	evrec_pair *pairs;
	evrec_str key;
	void *room;
	size_t n;

	if (!json_take(&s->tokens, '{')) {
		return json_skip_value(&s->tokens, 0);
	}
	if (!make_room(s, '}', sizeof(*pairs), &n, &room) || n > PAIRS_MAX) {
		return false;
	}
	pairs = room;
	for (size_t i = 0; i < n; i++) {
		if (json_next_member(&s->tokens, i == 0, &key) != JSON_STEP_VALUE) {
			return false;
		}
		for (size_t j = 0; j < i; j++) {
			if (str_eq(pairs[j].key, key)) {
				return false;
			}
		}
		pairs[i].key = key;
		if (!scan_text(s, &pairs[i].value)) {
			return false;
		}
	}
	*map = (evrec_map){ pairs, n };
	return json_take(&s->tokens, '}');
}

static bool scan_owners(struct scan *s, const evrec_field *table, evrec_fields *event)
{
	evrec_owner *owners;
	void *room;
	size_t n;

	if (!json_take(&s->tokens, '[')) {
		return json_skip_value(&s->tokens, 0);
	}
	if (!make_room(s, ']', sizeof(*owners), &n, &room)) {
		return false;
	}
	owners = room;
	for (size_t i = 0; i < n; i++) {
		owners[i].controller = owners[i].block_owner_deletion = -1;
		if (json_next_element(&s->tokens, ']', i == 0) != JSON_STEP_VALUE ||
		    !scan_fields(s, table, (char *)&owners[i])) {
			return false;
		}
	}
	event->owners = owners;
	event->owners_len = n;
	return json_take(&s->tokens, ']');
}

/* The API that an apiVersion names has to be that of the scan. */
static bool scan_constant(struct scan *s, const evrec_field *field)
{
	const enum evrec_api api = s->api;
	evrec_str text;

	if (!scan_text(s, &text)) {
		return false;
	}
	if (field == &evrec_event_schema[SCHEMA_API_VERSION]) {
		s->api = EVREC_CORE_V1;
		(void)evrec_api_parse(text, &s->api);
	}
	return s->api == api;
}

static bool scan_value(struct scan *s, const evrec_field *field, char *base)
{
	void *at = base + field->offset;

	switch (field->type) {
	case EVREC_FIELD_CONSTANT:
		return scan_constant(s, field);
	case EVREC_FIELD_STRING:
		return scan_text(s, at);
	case EVREC_FIELD_TIME:
	case EVREC_FIELD_MICROTIME:
		return scan_time(s, at);
	case EVREC_FIELD_INTEGER:
		return scan_integer(s, at);
	case EVREC_FIELD_TRISTATE:
		return scan_tristate(s, at);
	case EVREC_FIELD_MAP:
		return scan_map(s, at);
	case EVREC_FIELD_OBJECT:
		return scan_fields(s, field->fields, at);
	case EVREC_FIELD_OWNERS:
		return scan_owners(s, field->fields, (evrec_fields *)(void *)base);
	}
	return false;
}

/* The row of a key. NULL: there is none. */
static const evrec_field *find(const evrec_field *table, enum evrec_api api, evrec_str key)
{
	for (const evrec_field *field = table; field->name[0] != NULL; field++) {
		if (str_eq(key, str_from(field->name[api]))) {
			return field;
		}
	}
	return NULL;
}

/* Fields that the object lacks, and those of a value that is no object, stay as they are. */
static bool scan_fields(struct scan *s, const evrec_field *table, char *base)
{
	const evrec_field *likely = table;
	uint32_t seen = 0;
	evrec_str key;
	enum json_step step;

	if (!json_take(&s->tokens, '{')) {
		return json_skip_value(&s->tokens, 0);
	}
	for (bool first = true; (step = json_next_element(&s->tokens, '}', first)) == JSON_STEP_VALUE; first = false) {
		const evrec_field *field = likely;

		/* Most texts have the fields in the order of the table. */
		if (likely->name[0] == NULL || !json_take_key(&s->tokens, str_from(likely->name[s->api]))) {
			if (!json_take_string(&s->tokens, &key) || !json_take(&s->tokens, ':')) {
				return false;
			}
			field = find(table, s->api, key);
		}
		if (field == NULL) {
			if (!json_skip_value(&s->tokens, 0)) {
				return false;
			}
			continue;
		}
		if ((seen & UINT32_C(1) << (field - table)) != 0 || !scan_value(s, field, base)) {
			return false;
		}
		seen |= UINT32_C(1) << (field - table);
		likely = field + 1;
	}
	return step == JSON_STEP_END;
}

bool json_scan_event(const char **at, const char *end, struct json_room *room, evrec_fields *event)
{
	struct scan s = { { *at, end, room }, EVREC_CORE_V1 };
	enum evrec_api api;

	do {
		api = s.api;
		s.tokens.at = *at;
		evrec_fields_init(event);
		if (json_next_byte(&s.tokens) == '{' && scan_fields(&s, evrec_event_schema, (char *)event)) {
			(void)json_next_byte(&s.tokens);
			*at = s.tokens.at;
			return true;
		}
	} while (s.api == EVREC_EVENTS_V1 && api == EVREC_CORE_V1);
	return false;
}

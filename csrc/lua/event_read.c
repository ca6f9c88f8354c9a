#include "lua/event.h"

#include <math.h>
#include <string.h>

enum field_type { TEXT, TIME, COUNT, TRISTATE, MAP, OWNERS, OBJECT, IGNORED };

/* A field of a table: what it must hold, and where that goes, counted from where the table goes. */
struct field {
	const char *name;
	enum field_type type;
	size_t offset;
	const struct field *fields; /* of an OBJECT */
};

#define AT(member) offsetof(evrec_fields, member)

static const struct field reference_fields[] = {
	{ "kind", TEXT, offsetof(evrec_reference, kind), NULL },
	{ "apiVersion", TEXT, offsetof(evrec_reference, api_version), NULL },
	{ "name", TEXT, offsetof(evrec_reference, name), NULL },
	{ "namespace", TEXT, offsetof(evrec_reference, ns), NULL },
	{ "uid", TEXT, offsetof(evrec_reference, uid), NULL },
	{ "resourceVersion", TEXT, offsetof(evrec_reference, resource_version), NULL },
	{ "fieldPath", TEXT, offsetof(evrec_reference, field_path), NULL },
	{ NULL, TEXT, 0, NULL },
};

static const struct field owner_fields[] = {
	{ "kind", TEXT, offsetof(evrec_owner, kind), NULL },
	{ "apiVersion", TEXT, offsetof(evrec_owner, api_version), NULL },
	{ "name", TEXT, offsetof(evrec_owner, name), NULL },
	{ "uid", TEXT, offsetof(evrec_owner, uid), NULL },
	{ "controller", TRISTATE, offsetof(evrec_owner, controller), NULL },
	{ "blockOwnerDeletion", TRISTATE, offsetof(evrec_owner, block_owner_deletion), NULL },
	{ NULL, TEXT, 0, NULL },
};

static const struct field metadata_fields[] = {
	{ "name", TEXT, AT(name), NULL },
	{ "namespace", TEXT, AT(ns), NULL },
	{ "resourceVersion", TEXT, AT(resource_version), NULL },
	{ "labels", MAP, AT(labels), NULL },
	{ "annotations", MAP, AT(annotations), NULL },
	{ "ownerReferences", OWNERS, AT(owners), NULL },
	{ NULL, TEXT, 0, NULL },
};

static const struct field source_fields[] = {
	{ "component", TEXT, AT(component), NULL },
	{ "host", TEXT, AT(host), NULL },
	{ NULL, TEXT, 0, NULL },
};

static const struct field series_fields[] = {
	{ "count", COUNT, AT(series_count), NULL },
	{ "lastObservedTime", TIME, AT(series_last), NULL },
	{ NULL, TEXT, 0, NULL },
};

/* What the two APIs call alike. */
#define COMMON_FIELDS                                                                                                  \
	{ "kind", IGNORED, 0, NULL }, { "apiVersion", IGNORED, 0, NULL }, { "metadata", OBJECT, 0, metadata_fields },  \
		{ "related", OBJECT, AT(related), reference_fields }, { "action", TEXT, AT(action), NULL },            \
		{ "reason", TEXT, AT(reason), NULL }, { "type", TEXT, AT(type), NULL },                                \
		{ "eventTime", TIME, AT(event_time), NULL }, { "series", OBJECT, 0, series_fields },                   \
	{                                                                                                              \
		"reportingInstance", TEXT, AT(instance), NULL                                                          \
	}

static const struct field core_fields[] = {
	COMMON_FIELDS,
	{ "involvedObject", OBJECT, AT(regarding), reference_fields },
	{ "message", TEXT, AT(note), NULL },
	{ "source", OBJECT, 0, source_fields },
	{ "firstTimestamp", TIME, AT(first), NULL },
	{ "lastTimestamp", TIME, AT(last), NULL },
	{ "count", COUNT, AT(count), NULL },
	{ "reportingComponent", TEXT, AT(controller), NULL },
	{ NULL, TEXT, 0, NULL },
};

static const struct field events_fields[] = {
	COMMON_FIELDS,
	{ "regarding", OBJECT, AT(regarding), reference_fields },
	{ "note", TEXT, AT(note), NULL },
	{ "deprecatedSource", OBJECT, 0, source_fields },
	{ "deprecatedFirstTimestamp", TIME, AT(first), NULL },
	{ "deprecatedLastTimestamp", TIME, AT(last), NULL },
	{ "deprecatedCount", COUNT, AT(count), NULL },
	{ "reportingController", TEXT, AT(controller), NULL },
	{ NULL, TEXT, 0, NULL },
};

/* Where a value was found, for messages: a list that leads from the inside out. */
struct place {
	const struct place *in;
	const char *name;
};

static void push_place(lua_State *L, const struct place *place)
{
	if (place->in == NULL || place->in->name == NULL) {
		lua_pushstring(L, place->name);
		return;
	}
	push_place(L, place->in);
	lua_pushfstring(L, "%s.%s", lua_tostring(L, -1), place->name);
	lua_remove(L, -2);
}

static void refuse(lua_State *L, const struct place *place, const char *expected)
{
	const char *got = luaL_typename(L, -1);

	if (place->name == NULL) {
		luaL_error(L, "evrec.event: expected %s, got %s", expected, got);
	}
	push_place(L, place);
	luaL_error(L, "evrec.event: field '%s': expected %s, got %s", lua_tostring(L, -1), expected, got);
}

static void read_fields(lua_State *L, const struct place *place, const struct field *fields, char *into);

static evrec_str read_text(lua_State *L, const struct place *place)
{
	evrec_str s;

	if (lua_type(L, -1) != LUA_TSTRING) {
		refuse(L, place, "a string");
	}
	s.data = lua_tolstring(L, -1, &s.len);
	return s;
}

static int64_t read_time(lua_State *L, const struct place *place)
{
	int64_t ns;

	if (!evrec_rfc3339_parse(read_text(L, place), &ns)) {
		refuse(L, place, "an RFC 3339 time from 1678 to 2261");
	}
	return ns;
}

/* lua-cjson decodes integers to floats. */
static int32_t read_count(lua_State *L, const struct place *place)
{
	double count = lua_type(L, -1) == LUA_TNUMBER ? (double)lua_tonumber(L, -1) : -1.0;

	if (!(count >= 0 && count <= INT32_MAX && count == floor(count))) {
		refuse(L, place, "an integer from 0 to 2147483647");
	}
	return (int32_t)count;
}

/* What a map is copied to: pairs, and behind them the bytes that they point to. */
struct map_size {
	size_t pairs, bytes;
};

static struct map_size map_measure(lua_State *L)
{
	struct map_size size = { 0, 0 };

	lua_pushnil(L);
	while (lua_next(L, -2) != 0) {
		if (is_unset(L, -1)) {
			lua_pop(L, 1);
			continue;
		}
		if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING) {
			lua_pushfstring(L, "expected strings by name, got a %s under a %s", luaL_typename(L, -1),
			                luaL_typename(L, -2));
			(void)lua_error(L);
		}
		size.pairs++;
		size.bytes += lua_rawlen(L, -2) + lua_rawlen(L, -1);
		lua_pop(L, 1);
	}
	return size;
}

static evrec_str copy(lua_State *L, int index, char **to)
{
	evrec_str s;
	const char *data = lua_tolstring(L, index, &s.len);

	s.data = memcpy(*to, data, s.len);
	*to += s.len;
	return s;
}

evrec_map map_read(lua_State *L)
{
	struct map_size size;
	evrec_pair *pairs;
	size_t i = 0;
	char *bytes;

	luaL_checkstack(L, LUA_MINSTACK, "map");
	if (!lua_istable(L, -1)) {
		lua_pushfstring(L, "expected a table of strings, got %s", luaL_typename(L, -1));
		(void)lua_error(L);
	}
	size = map_measure(L);
	pairs = lua_newuserdata(L, size.pairs * sizeof(*pairs) + size.bytes + 1);
	bytes = (char *)(pairs + size.pairs);
	lua_insert(L, -2);
	lua_pushnil(L);
	while (lua_next(L, -2) != 0) {
		if (!is_unset(L, -1)) {
			pairs[i].key = copy(L, -2, &bytes);
			pairs[i].value = copy(L, -1, &bytes);
			i++;
		}
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return (evrec_map){ pairs, size.pairs };
}

static int map_read_protected(lua_State *L)
{
	evrec_map *map = lua_touserdata(L, 2);

	lua_settop(L, 1);
	*map = map_read(L);
	return 1;
}

static void read_map(lua_State *L, const struct place *place, evrec_map *map)
{
	lua_pushcfunction(L, map_read_protected);
	lua_insert(L, -2);
	lua_pushlightuserdata(L, map);
	if (lua_pcall(L, 2, 1, 0) != 0) {
		push_place(L, place);
		luaL_error(L, "evrec.event: field '%s': %s", lua_tostring(L, -1), lua_tostring(L, -2));
	}
}

static void read_owners(lua_State *L, const struct place *place, evrec_fields *fields)
{
	const struct place element = { place, "[]" };
	const int array = lua_gettop(L);
	evrec_owner *owners;
	size_t i, n;

	if (!lua_istable(L, array)) {
		refuse(L, place, "an array");
	}
	n = lua_rawlen(L, array);
	owners = lua_newuserdata(L, (n + 1) * sizeof(*owners));
	for (i = 0; i < n; i++) {
		owners[i] = (evrec_owner){ .controller = -1, .block_owner_deletion = -1 };
		luaL_checkstack(L, LUA_MINSTACK, "ownerReferences");
		lua_rawgeti(L, array, (int)i + 1);
		read_fields(L, &element, owner_fields, (char *)&owners[i]);
	}
	fields->owners = owners;
	fields->owners_len = n;
}

/* The value at the top of the stack, which stays there, and is set. */
static void read_value(lua_State *L, const struct place *place, const struct field *field, char *into)
{
	void *at = into + field->offset;

	switch (field->type) {
	case TEXT:
		*(evrec_str *)at = read_text(L, place);
		break;
	case TIME:
		*(int64_t *)at = read_time(L, place);
		break;
	case COUNT:
		*(int32_t *)at = read_count(L, place);
		break;
	case TRISTATE:
		if (!lua_isboolean(L, -1)) {
			refuse(L, place, "a boolean");
		}
		*(int *)at = lua_toboolean(L, -1);
		break;
	case MAP:
		read_map(L, place, at);
		break;
	case OWNERS:
		read_owners(L, place, (evrec_fields *)(void *)into);
		break;
	case OBJECT:
		read_fields(L, place, field->fields, at);
		break;
	case IGNORED:
		(void)read_text(L, place);
		break;
	}
}

/* The table at the top of the stack, where what was read from it is left too. */
static void read_fields(lua_State *L, const struct place *place, const struct field *fields, char *into)
{
	const int table = lua_gettop(L);
	const struct field *field;

	if (!lua_istable(L, table)) {
		refuse(L, place, "a table");
	}
	for (field = fields; field->name != NULL; field++) {
		const struct place inner = { place, field->name };

		luaL_checkstack(L, LUA_MINSTACK, "event");
		lua_getfield(L, table, field->name);
		if (is_unset(L, -1)) {
			lua_pop(L, 1);
		} else {
			read_value(L, &inner, field, into);
		}
	}
}

void event_read(lua_State *L, int index, evrec_fields *fields)
{
	const struct place outermost = { NULL, NULL };
	const char *api = NULL;

	evrec_fields_init(fields);
	luaL_checkstack(L, LUA_MINSTACK, "event");
	lua_pushvalue(L, index);
	if (lua_istable(L, -1)) {
		lua_getfield(L, -1, "apiVersion");
		api = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
		lua_pop(L, 1);
	}
	read_fields(L, &outermost, api != NULL && strcmp(api, "events.k8s.io/v1") == 0 ? events_fields : core_fields,
	            (char *)fields);
}

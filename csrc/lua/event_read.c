#include "lua/event.h"

#include <math.h>
#include <string.h>

/* The place of a value in the event, for messages: its name, and the place of the table that holds it. */
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

static void read_fields(lua_State *L, const struct place *place, enum evrec_api api, const evrec_field *table,
                        char *into);

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

/* Accepts floats, too, because lua-cjson decodes integers to floats. */
static int32_t read_count(lua_State *L, const struct place *place)
{
	double count = lua_type(L, -1) == LUA_TNUMBER ? (double)lua_tonumber(L, -1) : -1.0;

	if (!(count >= 0 && count <= INT32_MAX && count == floor(count))) {
		refuse(L, place, "an integer from 0 to 2147483647");
	}
	return (int32_t)count;
}

/* The size of the copy of a map: pairs, followed by the bytes that they point to. */
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
	struct map_size room, size;
	evrec_pair *pairs;
	size_t i = 0;
	char *bytes;

	luaL_checkstack(L, LUA_MINSTACK, "map");
	if (!lua_istable(L, -1)) {
		lua_pushfstring(L, "expected a table of strings, got %s", luaL_typename(L, -1));
		(void)lua_error(L);
	}
	room = map_measure(L);
	pairs = lua_newuserdata(L, room.pairs * sizeof(*pairs) + room.bytes + 1);
	lua_insert(L, -2);
	/* Making the userdata may have run a finalizer, which may have changed the table. */
	size = map_measure(L);
	if (size.pairs > room.pairs || size.bytes > room.bytes) {
		lua_pushliteral(L, "changed while it was read");
		(void)lua_error(L);
	}
	bytes = (char *)(pairs + room.pairs);
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

int map_read_call(lua_State *L)
{
	evrec_map *map = lua_touserdata(L, 2);

	lua_settop(L, 1);
	*map = map_read(L);
	return 1;
}

static void read_map(lua_State *L, const struct place *place, evrec_map *map)
{
	lua_pushcfunction(L, map_read_call);
	lua_insert(L, -2);
	lua_pushlightuserdata(L, map);
	if (lua_pcall(L, 2, 1, 0) != 0) {
		push_place(L, place);
		luaL_error(L, "evrec.event: field '%s': %s", lua_tostring(L, -1), lua_tostring(L, -2));
	}
}

static void read_owners(lua_State *L, const struct place *place, enum evrec_api api, const evrec_field *table,
                        evrec_fields *fields)
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
		read_fields(L, &element, api, table, (char *)&owners[i]);
	}
	fields->owners = owners;
	fields->owners_len = n;
}

/* Reads the value at the top of the stack, which must not be unset, and leaves it there. */
static void read_value(lua_State *L, const struct place *place, enum evrec_api api, const evrec_field *field,
                       char *into)
{
	void *at = into + field->offset;

	switch (field->type) {
	case EVREC_FIELD_CONSTANT:
		(void)read_text(L, place);
		break;
	case EVREC_FIELD_STRING:
		*(evrec_str *)at = read_text(L, place);
		break;
	case EVREC_FIELD_TIME:
	case EVREC_FIELD_MICROTIME:
		*(int64_t *)at = read_time(L, place);
		break;
	case EVREC_FIELD_INTEGER:
		*(int32_t *)at = read_count(L, place);
		break;
	case EVREC_FIELD_TRISTATE:
		if (!lua_isboolean(L, -1)) {
			refuse(L, place, "a boolean");
		}
		*(int *)at = lua_toboolean(L, -1);
		break;
	case EVREC_FIELD_MAP:
		read_map(L, place, at);
		break;
	case EVREC_FIELD_OBJECT:
		read_fields(L, place, api, field->fields, at);
		break;
	case EVREC_FIELD_OWNERS:
		read_owners(L, place, api, field->fields, (evrec_fields *)(void *)into);
		break;
	}
}

/* A name that a field has besides its own in `api`: in the other API, or in emit; NULL: it has no i-th. */
static const char *other_name(const evrec_field *field, enum evrec_api api, int i)
{
	const char *other = field->name[api == EVREC_CORE_V1 ? EVREC_EVENTS_V1 : EVREC_CORE_V1];
	const bool regarding = strcmp(field->name[EVREC_EVENTS_V1], "regarding") == 0;

	if (i == 0) {
		return strcmp(other, field->name[api]) == 0 ? NULL : other;
	}
	return i == 1 && regarding ? "object" : NULL;
}

/* Pushes the value under another name of a field. If the field is set, a metatable is not asked for a second value. */
static void get_other(lua_State *L, int index, const char *name)
{
	if (is_unset(L, -1)) {
		lua_getfield(L, index, name);
	} else {
		lua_pushstring(L, name);
		lua_rawget(L, index);
	}
}

/*
 * Pushes the value that the table at `index` has for the field, by whatever name. Sets *name to that name. False, and
 * nothing is pushed: it is unset.
 */
static bool push_field(lua_State *L, int index, const struct place *place, const evrec_field *field, enum evrec_api api,
                       const char **name)
{
	const char *next;
	int i;

	*name = field->name[api];
	lua_getfield(L, index, *name);
	for (i = 0; (next = other_name(field, api, i)) != NULL; i++) {
		get_other(L, index, next);
		if (is_unset(L, -1)) {
			lua_pop(L, 1);
		} else if (is_unset(L, -2)) {
			lua_remove(L, -2);
			*name = next;
		} else {
			const struct place inner = { place, *name };

			push_place(L, &inner);
			luaL_error(L, "evrec.event: '%s' and '%s' are the same field: give one of them",
			           lua_tostring(L, -1), next);
		}
	}
	if (is_unset(L, -1)) {
		lua_pop(L, 1);
		return false;
	}
	return true;
}

/* Reads the Lua table at the top of the stack. Leaves it, and all values read from it, on the stack. */
static void read_fields(lua_State *L, const struct place *place, enum evrec_api api, const evrec_field *table,
                        char *into)
{
	const int index = lua_gettop(L);
	const evrec_field *field;

	if (!lua_istable(L, index)) {
		refuse(L, place, "a table");
	}
	for (field = table; field->name[api] != NULL; field++) {
		struct place inner = { place, NULL };

		luaL_checkstack(L, LUA_MINSTACK, "event");
		if (push_field(L, index, place, field, api, &inner.name)) {
			read_value(L, &inner, api, field, into);
		}
	}
}

/* The API of the event in the table at the top of the stack: core/v1 if its apiVersion names no API. */
static enum evrec_api api_of(lua_State *L)
{
	enum evrec_api api = EVREC_CORE_V1;
	evrec_str version;

	lua_getfield(L, -1, "apiVersion");
	if (lua_type(L, -1) == LUA_TSTRING) {
		version.data = lua_tolstring(L, -1, &version.len);
		(void)evrec_api_parse(version, &api);
	}
	lua_pop(L, 1);
	return api;
}

void event_read(lua_State *L, int index, evrec_fields *fields)
{
	const struct place outermost = { NULL, NULL };

	evrec_fields_init(fields);
	luaL_checkstack(L, LUA_MINSTACK, "event");
	lua_pushvalue(L, index);
	read_fields(L, &outermost, lua_istable(L, -1) ? api_of(L) : EVREC_CORE_V1, evrec_event_schema, (char *)fields);
}

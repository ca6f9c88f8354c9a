#include "lua/event.h"

#include <string.h>

#include "lua/colon.h"
#include "lua/message.h"
#include "lua/seconds.h"

void *event_allocate(lua_State *L, const evrec_fields *fields)
{
	return compat_newuserdata(L, evrec_packed_room(fields));
}

void event_set_type(lua_State *L)
{
	box_push_metatable(L, &event_type);
	lua_setmetatable(L, -2);
}

void event_complete(lua_State *L, void *memory, const evrec_fields *fields)
{
	(void)evrec_packed_make(memory, fields);
	event_set_type(L);
}

void event_push(lua_State *L, const evrec_fields *fields)
{
	event_complete(L, event_allocate(L, fields), fields);
}

static int owner_gc(lua_State *L)
{
	evrec_event **owner = lua_touserdata(L, 1);

	evrec_event_release(*owner);
	*owner = NULL;
	return 0;
}

static const luaL_Reg owner_metamethods[] = { { "__gc", owner_gc }, { NULL, NULL } };

const struct box_type event_owner_type = { "evrec.event.owner", NULL, owner_metamethods };

evrec_event **event_push_owner(lua_State *L)
{
	return box_new(L, &event_owner_type, sizeof(evrec_event *));
}

void event_push_owned(lua_State *L, evrec_event **owner)
{
	(void)evrec_packed_copy(compat_newuserdata(L, evrec_packed_size(*owner)), *owner);
	event_set_type(L);
	evrec_event_release(*owner);
	*owner = NULL;
}

int event_new(lua_State *L)
{
	evrec_fields fields;

	lua_settop(L, 1);
	if (box_test(L, 1, &event_type) == NULL) {
		colon_refuse(L, 1, "evrec.event");
		event_read(L, 1, &fields);
		event_push(L, &fields);
	}
	return 1;
}

bool event_at(lua_State *L, int index, evrec_fields *fields, evrec_error *err)
{
	int status;

	index = lua_absindex(L, index);
	if (box_test(L, index, &event_type) != NULL) {
		lua_pushvalue(L, index);
		evrec_packed_read(lua_touserdata(L, index), fields);
		return true;
	}
	lua_pushcfunction(L, event_new);
	lua_pushvalue(L, index);
	status = lua_pcall(L, 1, 1, 0);
	if (status == 0) {
		evrec_packed_read(lua_touserdata(L, -1), fields);
		return true;
	}
	err->code = status == LUA_ERRMEM ? EVREC_ENOMEM : EVREC_EINVALID;
	message_format(err->message, sizeof(err->message), "%s",
	               lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "not an event");
	return false;
}

/* ---- from the core's fields to Lua values ---- */

struct builder {
	lua_State *L;
	int depth;
};

/*
 * Pops the value at the top of the stack, and puts it into the table below, under `key`, or, if NULL, at the end.
 * Leaves the outermost value where it is.
 */
static void attach(const struct builder *b, const char *key, size_t len)
{
	if (b->depth == 0) {
		return;
	}
	if (key == NULL) {
		lua_rawseti(b->L, -2, (int)lua_rawlen(b->L, -2) + 1);
	} else {
		lua_pushlstring(b->L, key, len);
		lua_insert(b->L, -2);
		lua_rawset(b->L, -3);
	}
}

static bool begin_table(void *ctx, const char *key)
{
	struct builder *b = ctx;

	luaL_checkstack(b->L, LUA_MINSTACK, "event");
	lua_newtable(b->L);
	if (b->depth > 0) {
		lua_pushvalue(b->L, -1);
		lua_insert(b->L, -3);
		attach(b, key, key == NULL ? 0 : strlen(key));
		lua_insert(b->L, -2);
	}
	b->depth++;
	return true;
}

static bool end_table(void *ctx)
{
	struct builder *b = ctx;

	b->depth--;
	if (b->depth > 0) {
		lua_pop(b->L, 1);
	}
	return true;
}

static bool put_string(void *ctx, evrec_str key, evrec_str value)
{
	const struct builder *b = ctx;

	lua_pushlstring(b->L, value.data, value.len);
	attach(b, key.data, key.len);
	return true;
}

static bool put_integer(void *ctx, const char *key, int64_t value)
{
	const struct builder *b = ctx;

	lua_pushinteger(b->L, (lua_Integer)value);
	attach(b, key, strlen(key));
	return true;
}

static bool put_boolean(void *ctx, const char *key, bool value)
{
	const struct builder *b = ctx;

	lua_pushboolean(b->L, value);
	attach(b, key, strlen(key));
	return true;
}

static bool skip_null(void *ctx, const char *key)
{
	(void)ctx;
	(void)key;
	return true;
}

static const evrec_visitor visitor = {
	begin_table, begin_table, end_table, put_string, put_integer, put_boolean, skip_null,
};

/* Reads the event at stack index 1. Raises if the value is none. */
static void check_event(lua_State *L, evrec_fields *fields)
{
	evrec_packed_read(box_check(L, 1, &event_type), fields);
}

static enum evrec_api check_api(lua_State *L)
{
	enum evrec_api api = EVREC_CORE_V1;
	evrec_str version;

	if (!lua_isnoneornil(L, 2)) {
		version.data = luaL_checklstring(L, 2, &version.len);
		luaL_argcheck(L, evrec_api_parse(version, &api), 2, "expected \"v1\" or \"events.k8s.io/v1\"");
	}
	return api;
}

int event_time(lua_State *L)
{
	evrec_fields fields;

	check_event(L, &fields);
	if (fields.first == EVREC_UNSET) {
		lua_pushnil(L);
	} else {
		seconds_push(L, fields.first);
	}
	return 1;
}

static int event_to_table(lua_State *L)
{
	struct builder b = { L, 0 };
	evrec_fields fields;

	check_event(L, &fields);
	if (!evrec_fields_visit(&fields, check_api(L), NULL, &visitor, &b)) {
		return luaL_error(L, "no memory");
	}
	return 1;
}

static char *core_json(const void *fields, size_t *len)
{
	return evrec_fields_json(fields, EVREC_CORE_V1, len);
}

static char *events_json(const void *fields, size_t *len)
{
	return evrec_fields_json(fields, EVREC_EVENTS_V1, len);
}

static int event_to_json(lua_State *L)
{
	evrec_fields fields;

	check_event(L, &fields);
	box_push_text(L, check_api(L) == EVREC_CORE_V1 ? core_json : events_json, &fields);
	return 1;
}

/* Pushes the method or the field of that name. The table of methods is the upvalue. */
static int event_index(lua_State *L)
{
	const evrec_packed *event = box_check(L, 1, &event_type);
	struct builder b = { L, 0 };
	evrec_fields fields;
	const char *key;

	lua_settop(L, 2);
	if (lua_type(L, 2) != LUA_TSTRING) {
		return 0;
	}
	lua_pushvalue(L, 2);
	lua_rawget(L, lua_upvalueindex(1));
	if (!lua_isnil(L, -1)) {
		return 1;
	}
	lua_settop(L, 2);
	key = lua_tostring(L, 2);
	if (strlen(key) == lua_rawlen(L, 2)) {
		evrec_packed_read(event, &fields);
		if (!evrec_fields_visit(&fields, EVREC_CORE_V1, key, &visitor, &b)) {
			return luaL_error(L, "no memory");
		}
	}
	return lua_gettop(L) - 2;
}

static int event_newindex(lua_State *L)
{
	return luaL_error(L, "evrec.event: an event is read-only");
}

static void push_str(lua_State *L, evrec_str s)
{
	lua_pushlstring(L, s.len == 0 ? "" : s.data, s.len);
}

static int event_tostring(lua_State *L)
{
	evrec_fields f;

	check_event(L, &f);
	lua_pushliteral(L, "evrec.event: ");
	push_str(L, f.type);
	lua_pushliteral(L, " ");
	push_str(L, f.reason);
	lua_pushliteral(L, " ");
	push_str(L, f.regarding.kind);
	lua_pushliteral(L, " ");
	push_str(L, f.regarding.ns);
	lua_pushliteral(L, "/");
	push_str(L, f.regarding.name);
	lua_pushfstring(L, " x%d: ", f.count);
	push_str(L, f.note);
	if (f.series_state.len != 0) {
		lua_pushliteral(L, " (series ");
		push_str(L, f.series_state);
		lua_pushfstring(L, ", %d)", f.series_count);
	}
	lua_concat(L, lua_gettop(L) - 1);
	return 1;
}

static const luaL_Reg methods[] = {
	{ "to_table", event_to_table },
	{ "to_json", event_to_json },
	{ NULL, NULL },
};
static const luaL_Reg metamethods[] = {
	{ "__index", event_index },
	{ "__newindex", event_newindex },
	{ "__tostring", event_tostring },
	{ NULL, NULL },
};

const struct box_type event_type = { "evrec.event", methods, metamethods };

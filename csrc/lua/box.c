#include "lua/box.h"

#include <string.h>

/* Its address is the key of the table of anchors in the registry. */
static const char anchors_key = 0;

static int box_tostring(lua_State *L)
{
	lua_pushfstring(L, "%s: %p", lua_tostring(L, lua_upvalueindex(1)), lua_touserdata(L, 1));
	return 1;
}

void box_define(lua_State *L, const struct box_type *type)
{
	static const luaL_Reg none[] = { { NULL, NULL } };

	lua_rawgetp(L, LUA_REGISTRYINDEX, type);
	if (!lua_isnil(L, -1)) {
		lua_pop(L, 1);
		return;
	}
	lua_pop(L, 1);
	lua_newtable(L);
	lua_pushstring(L, type->name);
	lua_setfield(L, -2, "__name");
	lua_pushboolean(L, 0);
	lua_setfield(L, -2, "__metatable");
	lua_pushstring(L, type->name);
	lua_pushcclosure(L, box_tostring, 1);
	lua_setfield(L, -2, "__tostring");
	lua_newtable(L);
	luaL_setfuncs(L, type->methods == NULL ? none : type->methods, 0);
	lua_pushvalue(L, -1);
	lua_rawseti(L, -3, 1);
	lua_pushvalue(L, -1);
	lua_setfield(L, -3, "__index");
	/* The metamethods of the type get the table of methods as their upvalue. */
	lua_pushvalue(L, -2);
	lua_insert(L, -2);
	luaL_setfuncs(L, type->metamethods == NULL ? none : type->metamethods, 1);
	lua_pop(L, 1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, type);
}

void box_push_metatable(lua_State *L, const struct box_type *type)
{
	lua_rawgetp(L, LUA_REGISTRYINDEX, type);
}

void box_push_methods(lua_State *L, const struct box_type *type)
{
	box_push_metatable(L, type);
	lua_rawgeti(L, -1, 1);
	lua_remove(L, -2);
}

void *box_new(lua_State *L, const struct box_type *type, size_t size)
{
	void *box = compat_newuserdata(L, size);

	memset(box, 0, size);
	box_push_metatable(L, type);
	lua_setmetatable(L, -2);
	return box;
}

void *box_test(lua_State *L, int index, const struct box_type *type)
{
	bool same;

	if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index)) {
		return NULL;
	}
	box_push_metatable(L, type);
	same = lua_rawequal(L, -1, -2) != 0;
	lua_pop(L, 2);
	return same ? lua_touserdata(L, index) : NULL;
}

void *box_check(lua_State *L, int index, const struct box_type *type)
{
	void *box = box_test(L, index, type);

	if (box == NULL) {
		/* The first argument of a method is its object, and is wrong if there was a dot for the colon. */
		lua_pushfstring(L, "expected %s, got %s%s", type->name, luaL_typename(L, index),
		                index == 1 ? ": called with '.', use ':'" : "");
		(void)luaL_argerror(L, index, lua_tostring(L, -1));
	}
	return box;
}

void anchors_push(lua_State *L)
{
	lua_rawgetp(L, LUA_REGISTRYINDEX, &anchors_key);
}

void anchor_set(lua_State *L)
{
	anchors_push(L);
	lua_pushvalue(L, -2);
	lua_rawsetp(L, -2, lua_touserdata(L, -1));
	lua_pop(L, 1);
}

void anchor_push(lua_State *L, const void *address)
{
	anchors_push(L);
	lua_rawgetp(L, -1, address);
	lua_remove(L, -2);
}

static int text_gc(lua_State *L)
{
	char **text = lua_touserdata(L, 1);

	evrec_free(*text);
	*text = NULL;
	return 0;
}

static const luaL_Reg text_metamethods[] = { { "__gc", text_gc }, { NULL, NULL } };
static const struct box_type text_type = { "evrec.text", NULL, text_metamethods };

char **box_push_owner(lua_State *L)
{
	return box_new(L, &text_type, sizeof(char *));
}

void box_push_text(lua_State *L, char *(*make)(const void *from, size_t *len), const void *from)
{
	char **text = box_push_owner(L);
	size_t len;

	*text = make(from, &len);
	if (*text == NULL) {
		luaL_error(L, "evrec: no memory");
	}
	lua_pushlstring(L, *text, len);
	evrec_free(*text);
	*text = NULL;
	lua_remove(L, -2);
}

int push_failure(lua_State *L, const evrec_error *err)
{
	lua_pushnil(L);
	lua_pushstring(L, err->message);
	lua_pushstring(L, evrec_code_name(err->code));
	return 3;
}

void box_open(lua_State *L)
{
	lua_rawgetp(L, LUA_REGISTRYINDEX, &anchors_key);
	if (lua_isnil(L, -1)) {
		lua_newtable(L);
		lua_newtable(L);
		lua_pushliteral(L, "v");
		lua_setfield(L, -2, "__mode");
		lua_setmetatable(L, -2);
		lua_rawsetp(L, LUA_REGISTRYINDEX, &anchors_key);
	}
	lua_pop(L, 1);
	box_define(L, &text_type);
}

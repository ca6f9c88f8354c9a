#include "lua/colon.h"

/* Its address is the key of the set of tables in the registry. */
static const char modules_key = 0;

int colon_set_modules(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &modules_key);
	return 0;
}

void colon_refuse(lua_State *L, int index, const char *function)
{
	if (!lua_istable(L, index)) {
		return;
	}
	lua_rawgetp(L, LUA_REGISTRYINDEX, &modules_key);
	if (lua_istable(L, -1)) {
		lua_pushvalue(L, index);
		lua_rawget(L, -2);
		if (lua_toboolean(L, -1)) {
			luaL_error(L, "%s: called with ':', use '.'", function);
		}
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

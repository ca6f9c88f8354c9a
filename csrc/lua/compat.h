/*
 * compat.h - functions that Lua 5.4, 5.3 or LuaJIT 2.1 lacks, or has under another name.
 */
#ifndef EVREC_LUA_COMPAT_H
#define EVREC_LUA_COMPAT_H

#include <stdbool.h>

#include <lauxlib.h>
#include <lua.h>

/* Only LuaJIT's headers define LUA_LJDIR; it has functions that other Luas 5.1 lack. */
#if !(LUA_VERSION_NUM == 501 && defined(LUA_LJDIR)) && LUA_VERSION_NUM != 503 && LUA_VERSION_NUM != 504
#error "evrec is for Lua 5.4, Lua 5.3 and LuaJIT 2.1. For LuaJIT, let LUA_INCDIR be the folder of its headers."
#endif

/*
 * compat_newuserdata    a userdata with room for one user value
 * compat_setuservalue   pops a table, and makes it the user value of the userdata at `index`
 * compat_getuservalue   pushes the user value, which must have been set
 * compat_rawget         lua_rawget, which returns the value's type
 * compat_has_room       whether LUA_MINSTACK slots are free; true on LuaJIT. Never raises
 * compat_checkstack     lua_checkstack, which never raises. `grow`: the index of compat_grow, which LuaJIT needs
 * compat_cpcall         calls f(lightuserdata) protected, without results. Returns false if f raises, and leaves the
 *                       error on the stack. Needs three free stack slots. Allocates nothing outside of the protection
 */
#if LUA_VERSION_NUM >= 504

#define compat_newuserdata(L, size) lua_newuserdatauv(L, size, 1)
#define compat_setuservalue(L, index) ((void)lua_setiuservalue(L, index, 1))
#define compat_getuservalue(L, index) ((void)lua_getiuservalue(L, index, 1))
#define compat_rawget(L, index) lua_rawget(L, index)

#elif LUA_VERSION_NUM == 503

#define compat_newuserdata(L, size) lua_newuserdata(L, size)
#define compat_setuservalue(L, index) lua_setuservalue(L, index)
#define compat_getuservalue(L, index) ((void)lua_getuservalue(L, index))
#define compat_rawget(L, index) lua_rawget(L, index)

#else

#define compat_newuserdata(L, size) lua_newuserdata(L, size)
#define compat_setuservalue(L, index) ((void)lua_setfenv(L, index))
#define compat_getuservalue(L, index) lua_getfenv(L, index)

#define lua_rawlen(L, index) lua_objlen(L, index)

static inline int compat_rawget(lua_State *L, int index)
{
	lua_rawget(L, index);
	return lua_type(L, -1);
}

static inline int lua_absindex(lua_State *L, int index)
{
	return index > 0 || index <= LUA_REGISTRYINDEX ? index : lua_gettop(L) + 1 + index;
}

static inline void lua_rawgetp(lua_State *L, int index, const void *p)
{
	index = lua_absindex(L, index);
	lua_pushlightuserdata(L, (void *)p);
	lua_rawget(L, index);
}

static inline void lua_rawsetp(lua_State *L, int index, const void *p)
{
	index = lua_absindex(L, index);
	lua_pushlightuserdata(L, (void *)p);
	lua_insert(L, -2);
	lua_rawset(L, index);
}

#endif

/* Lua: (slots) -> nothing; raises if the stack cannot have so many free slots. */
static inline int compat_grow(lua_State *L)
{
	luaL_checkstack(L, (int)lua_tointeger(L, 1), "evrec");
	return 0;
}

/* LuaJIT's lua_checkstack raises if the stack cannot grow. A C function has LUA_MINSTACK slots besides its arguments. */
static inline bool compat_has_room(lua_State *L)
{
#if LUA_VERSION_NUM >= 503
	return lua_checkstack(L, LUA_MINSTACK) != 0;
#else
	(void)L;
	return true;
#endif
}

static inline bool compat_checkstack(lua_State *L, int slots, int grow)
{
#if LUA_VERSION_NUM >= 503
	(void)grow;
	return lua_checkstack(L, slots) != 0;
#else
	lua_pushvalue(L, grow);
	lua_pushinteger(L, slots);
	if (lua_pcall(L, 1, 0, 0) == 0) {
		return true;
	}
	lua_pop(L, 1);
	return false;
#endif
}

static inline bool compat_cpcall(lua_State *L, lua_CFunction f, void *ud)
{
#if LUA_VERSION_NUM >= 503
	lua_pushcfunction(L, f);
	lua_pushlightuserdata(L, ud);
	return lua_pcall(L, 1, 0, 0) == 0;
#else
	return lua_cpcall(L, f, ud) == 0;
#endif
}

#endif

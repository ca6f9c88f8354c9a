/* require "ticks" returns a function that returns CLOCK_MONOTONIC in nanoseconds, for measuring from Lua. */
#include <lauxlib.h>
#include <lua.h>
#include <time.h>

int luaopen_ticks(lua_State *L);

static int ticks(lua_State *L)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	lua_pushinteger(L, (lua_Integer)now.tv_sec * 1000000000 + now.tv_nsec);
	return 1;
}

int luaopen_ticks(lua_State *L)
{
	lua_pushcfunction(L, ticks);
	return 1;
}

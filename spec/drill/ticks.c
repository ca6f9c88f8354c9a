/*
 * require "ticks", for measuring from Lua:
 *
 *   ticks.now()     CLOCK_MONOTONIC in nanoseconds
 *   ticks.usage()   how many page faults the calling thread has had, and how often it has waited, as for a lock
 */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <lauxlib.h>
#include <lua.h>
#include <sys/resource.h>
#include <time.h>

int luaopen_ticks(lua_State *L);

static int now(lua_State *L)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	lua_pushinteger(L, (lua_Integer)t.tv_sec * 1000000000 + t.tv_nsec);
	return 1;
}

static int usage(lua_State *L)
{
	struct rusage used;

	(void)getrusage(RUSAGE_THREAD, &used);
	lua_pushinteger(L, used.ru_minflt + used.ru_majflt);
	lua_pushinteger(L, used.ru_nvcsw);
	return 2;
}

int luaopen_ticks(lua_State *L)
{
	static const luaL_Reg functions[] = { { "now", now }, { "usage", usage }, { NULL, NULL } };

	luaL_newlib(L, functions);
	return 1;
}

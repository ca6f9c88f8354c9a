#include "lua/drive.h"

/* Its address is the key of the program's function in the registry. */
static const char host_key = 0;

int drive_set_host(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TFUNCTION);
	lua_settop(L, 1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key);
	return 0;
}

void drive_refuse_thread(lua_State *L, const char *function, const char *instead)
{
	if (!lua_istable(L, 1)) {
		return;
	}
	lua_pushliteral(L, "thread");
	lua_rawget(L, 1);
	if (!is_unset(L, -1)) {
		luaL_error(L, "%s: option 'thread': %s", function, instead);
	}
	lua_pop(L, 1);
}

enum poller drive_poller(lua_State *L)
{
	bool has_host;

	lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key);
	has_host = !lua_isnil(L, -1);
	lua_pop(L, 1);
	return has_host ? POLLER_WANTED : POLLER_SCRIPT;
}

struct question {
	const void *broadcaster;
	bool yes; /* the program polls it from now on */
};

/* Runs protected. */
static int ask(lua_State *L)
{
	struct question *question = lua_touserdata(L, 1);

	lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key);
	anchor_push(L, question->broadcaster);
	if (lua_isuserdata(L, -1)) {
		lua_call(L, 1, 1);
		question->yes = lua_toboolean(L, -1) != 0;
	}
	return 0;
}

bool drive_ask(lua_State *L, const void *broadcaster)
{
	struct question question = { .broadcaster = broadcaster };

	/* In a context in which the program does not allow this the function raises; then the next call asks again. */
	if (compat_has_room(L) && !compat_cpcall(L, ask, &question)) {
		lua_pop(L, 1);
	}
	return question.yes;
}

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

int drive_let_go(lua_State *L)
{
	struct broadcaster *b = box_check(L, 1, &broadcaster_type);

	b->poller = POLLER_WANTED;
	return 0;
}

int drive_may_own(lua_State *L)
{
	const struct broadcaster *b = box_check(L, 1, &broadcaster_type);

	if (broadcaster_is_open(b)) {
		evrec_broadcaster_may_own(b->host.b);
	}
	return 0;
}

int drive_poll_delay(lua_State *L)
{
	const struct broadcaster *b = box_check(L, 1, &broadcaster_type);
	const int64_t delay = broadcaster_is_open(b) ? evrec_broadcaster_poll_delay(b->host.b) : -1;

	if (delay < 0) {
		return 0;
	}
	if (delay == INT64_MAX) {
		lua_pushboolean(L, 0);
	} else {
		lua_pushnumber(L, (lua_Number)delay / EVREC_SECOND);
	}
	return 1;
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

/* Runs protected. */
static int ask(lua_State *L)
{
	struct broadcaster *b = lua_touserdata(L, 1);

	lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key);
	anchor_push(L, b);
	if (lua_isuserdata(L, -1)) {
		lua_call(L, 1, 1);
		if (lua_toboolean(L, -1) != 0) {
			b->poller = POLLER_HOST;
		}
	}
	return 0;
}

void drive_begin(struct broadcaster *b)
{
	lua_State *L = b->host.L;

	/* A function that the program does not allow in this place raises; then the next call asks again. */
	if (lua_checkstack(L, LUA_MINSTACK) && !compat_cpcall(L, ask, b)) {
		lua_pop(L, 1);
	}
}

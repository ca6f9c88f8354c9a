#include "lua/telling.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define PERIOD (10 * EVREC_SECOND)
#define PLACE_SIZE (LUA_IDSIZE + 16)
#define LINES_MAX 32  /* at once: more than there are kinds of trouble */
#define LEVELS_MAX 20 /* of functions that may lie between a C function and the Lua code that called it */

/* Its address is the key of the logger in the registry. */
static const char logger_key = 0;

int telling_set_logger(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TFUNCTION);
	lua_settop(L, 1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &logger_key);
	return 0;
}

struct telling {
	const char *line;
	bool told;
};

/* Runs protected. */
static int call_logger(lua_State *L)
{
	struct telling *telling = lua_touserdata(L, 1);

	lua_rawgetp(L, LUA_REGISTRYINDEX, &logger_key);
	if (!lua_isnil(L, -1)) {
		lua_pushstring(L, telling->line);
		lua_call(L, 1, 1);
		telling->told = lua_toboolean(L, -1) != 0;
	}
	return 0;
}

static bool log_line(lua_State *L, const char *line)
{
	struct telling telling = { line, false };

	if (L == NULL || !compat_has_room(L)) {
		return false;
	}
	if (!compat_cpcall(L, call_logger, &telling)) {
		lua_pop(L, 1);
	}
	return telling.told;
}

/* The program's log may be a Lua function that records each line. After shutdown this is refused, which causes a new line. */
HOT static void tell(struct broadcaster *b, lua_State *L, bool all)
{
	char line[EVREC_LINE_SIZE];
	int i;

	for (i = 0; i < LINES_MAX && evrec_broadcaster_next_line(b->host.b, all, line); i++) {
		if (!log_line(L, line) && !evrec_line_to_stderr(line)) {
			evrec_broadcaster_not_told(b->host.b);
			return;
		}
	}
}

HOT void telling_due(struct broadcaster *b, lua_State *L)
{
	tell(b, L, false);
}

void telling_all(struct broadcaster *b, lua_State *L)
{
	tell(b, L, true);
}

/*
 * Whether the source is evrec's own: a recorder of evrec.testing calls the real one, and the caller of the former is
 * wanted.
 */
static bool is_evrecs(const char *source)
{
	static const char own[] = "/evrec/testing.lua";
	const size_t len = strlen(source), tail = sizeof(own) - 1;

	return len >= tail && strcmp(source + len - tail, own) == 0;
}

/* Finds the file and line of the Lua code that called. False: no Lua code did. */
static bool find_place(lua_State *L, char place[PLACE_SIZE])
{
	lua_Debug caller;
	int level;

	for (level = 1; level < LEVELS_MAX && lua_getstack(L, level, &caller) != 0; level++) {
		if (lua_getinfo(L, "Sl", &caller) != 0 && caller.currentline > 0 && !is_evrecs(caller.source)) {
			(void)snprintf(place, PLACE_SIZE, "%s:%d", caller.short_src, caller.currentline);
			return true;
		}
	}
	return false;
}

void telling_refused(struct broadcaster *b, lua_State *L)
{
	char place[PLACE_SIZE];

	if (b->loud && b->host.b != NULL && evrec_broadcaster_wants_place(b->host.b) && find_place(L, place)) {
		evrec_broadcaster_set_place(b->host.b, place);
	}
}

void telling_refused_by_none(lua_State *L, const char *message)
{
	static _Atomic int64_t due = INT64_MIN;
	const int64_t now = evrec_clock_now(evrec_clock_real());
	char place[PLACE_SIZE] = "?", line[EVREC_LINE_SIZE];

	if (now < atomic_load(&due)) {
		return;
	}
	atomic_store(&due, now + PERIOD);
	(void)find_place(L, place);
	(void)snprintf(line, sizeof(line), "evrec: a recording call was refused: invalid: %s (%s)", message, place);
	if (!log_line(L, line)) {
		(void)evrec_line_to_stderr(line);
	}
}

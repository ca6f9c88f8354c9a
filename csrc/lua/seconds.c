#include "lua/seconds.h"

#include <math.h>
#include <stdio.h>

void number_format(double number, char text[NUMBER_SIZE])
{
	/* printf may print "-nan". The sign of a NaN means nothing. */
	(void)snprintf(text, NUMBER_SIZE, isnan(number) ? "nan" : "%.14g", number);
}

const char *number_describe(lua_State *L)
{
	char text[NUMBER_SIZE];

	if (lua_type(L, -1) != LUA_TNUMBER) {
		return luaL_typename(L, -1);
	}
	number_format((double)lua_tonumber(L, -1), text);
	return lua_pushfstring(L, "%s", text);
}

const char *seconds_read(lua_State *L, int index, int64_t *ns)
{
	double seconds = lua_type(L, index) == LUA_TNUMBER ? (double)lua_tonumber(L, index) : -1.0;

	if (!(seconds >= 0)) {
		return "a number of seconds >= 0";
	}
	/* Milliseconds by mistake, or math.huge. */
	return evrec_seconds_to_ns(seconds, ns) ? NULL : "a number of seconds <= 9223372036";
}

int64_t seconds_check(lua_State *L, int index, const char *function, const char *name, int64_t missing)
{
	const char *expected;
	int64_t ns = 0;

	if (missing != EVREC_UNSET && lua_isnoneornil(L, index)) {
		return missing;
	}
	expected = seconds_read(L, index, &ns);
	if (expected != NULL) {
		lua_settop(L, index);
		luaL_error(L, "%s: '%s': expected %s, got %s", function, name, expected, number_describe(L));
	}
	return ns;
}

/* Whole seconds and the rest apart, because a double cannot hold nanoseconds since 1970. */
static double seconds_of(int64_t ns)
{
	return (double)(ns / EVREC_SECOND) + (double)(ns % EVREC_SECOND) / 1e9;
}

void seconds_push(lua_State *L, int64_t ns)
{
	lua_pushnumber(L, (lua_Number)seconds_of(ns));
}

int64_t seconds_first(double seconds)
{
	int64_t ns = 0;

	/* At most 2 microseconds away, in the year 2262. */
	(void)evrec_seconds_to_ns(seconds, &ns);
	while (seconds_of(ns) < seconds) {
		ns++;
	}
	while (seconds_of(ns - 1) >= seconds) {
		ns--;
	}
	return ns;
}

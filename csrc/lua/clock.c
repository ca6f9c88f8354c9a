#include "lua/clock.h"

#include "lua/colon.h"
#include "lua/seconds.h"

int clock_new_real(lua_State *L)
{
	evrec_clock **box = box_new(L, &clock_type, sizeof(*box));

	*box = evrec_clock_real();
	return 1;
}

int clock_new_fake(lua_State *L)
{
	evrec_clock **box;
	int64_t now;

	colon_refuse(L, 1, "evrec.fake_clock");
	now = seconds_check(L, 1, "evrec.fake_clock", "seconds", EVREC_UNSET);
	box = box_new(L, &clock_type, sizeof(*box));
	*box = evrec_clock_fake(now);
	return *box != NULL ? 1 : luaL_error(L, "evrec.fake_clock: no memory");
}

static evrec_clock *check_clock(lua_State *L)
{
	evrec_clock **box = box_check(L, 1, &clock_type);

	/* NULL: the clock was collected, and a finalizer at the end of the Lua state still uses it. */
	return *box != NULL ? *box : evrec_clock_real();
}

static evrec_clock *check_fake(lua_State *L, const char *function)
{
	evrec_clock *clock = check_clock(L);

	if (!evrec_clock_is_fake(clock)) {
		luaL_error(L, "%s: not a fake clock", function);
	}
	return clock;
}

static int clock_now(lua_State *L)
{
	seconds_push(L, evrec_clock_now(check_clock(L)));
	return 1;
}

static int clock_set(lua_State *L)
{
	evrec_clock *clock = check_fake(L, "clock:set");

	evrec_clock_set(clock, seconds_check(L, 2, "clock:set", "seconds", EVREC_UNSET));
	return 0;
}

static int clock_advance(lua_State *L)
{
	evrec_clock *clock = check_fake(L, "clock:advance");
	int64_t by, now;

	/* A negative number is legal: a step of the real clock can go backwards, too. */
	if (lua_type(L, 2) != LUA_TNUMBER || !evrec_seconds_to_ns((double)lua_tonumber(L, 2), &by)) {
		return luaL_error(L, "clock:advance: 'seconds': expected a finite number of seconds");
	}
	if (__builtin_add_overflow(evrec_clock_now(clock), by, &now)) {
		return luaL_error(L, "clock:advance: 'seconds': beyond the years 1678 to 2262");
	}
	evrec_clock_set(clock, now);
	return 0;
}

static int clock_gc(lua_State *L)
{
	evrec_clock **box = lua_touserdata(L, 1);

	evrec_clock_release(*box);
	*box = NULL;
	return 0;
}

static const luaL_Reg methods[] = {
	{ "now", clock_now },
	{ "set", clock_set },
	{ "advance", clock_advance },
	{ NULL, NULL },
};
static const luaL_Reg metamethods[] = { { "__gc", clock_gc }, { NULL, NULL } };

const struct box_type clock_type = { "evrec.clock", methods, metamethods };

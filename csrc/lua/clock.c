#include "lua/clock.h"

#include "lua/options.h"

int clock_new_real(lua_State *L)
{
	evrec_clock **box = box_new(L, &clock_type, sizeof(*box));

	*box = evrec_clock_real();
	return 1;
}

int clock_new_fake(lua_State *L)
{
	int64_t now = seconds_check(L, 1, "evrec.fake_clock", "seconds", EVREC_UNSET);
	evrec_clock **box = box_new(L, &clock_type, sizeof(*box));

	*box = evrec_clock_fake(now);
	return *box != NULL ? 1 : luaL_error(L, "evrec.fake_clock: no memory");
}

static evrec_clock *check_clock(lua_State *L)
{
	evrec_clock **box = box_check(L, 1, &clock_type);

	/* Only a finalizer at the end of a Lua state meets one that is gone. */
	return *box != NULL ? *box : evrec_clock_real();
}

static evrec_clock *check_fake(lua_State *L, const char *what)
{
	evrec_clock *clock = check_clock(L);

	if (!evrec_clock_is_fake(clock)) {
		luaL_error(L, "%s: not a fake clock", what);
	}
	return clock;
}

/* Whole seconds by themselves: nanoseconds since 1970 are more than a double holds. */
static int clock_now(lua_State *L)
{
	int64_t now = evrec_clock_now(check_clock(L));

	lua_pushnumber(L, (lua_Number)(now / EVREC_SECOND) + (lua_Number)(now % EVREC_SECOND) / 1e9);
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

	/* Backwards too: real clocks are stepped. */
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

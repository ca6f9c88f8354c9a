/*
 * clock.h - evrec.clock(), evrec.fake_clock(seconds): userdata that hold an evrec_clock.
 */
#ifndef EVREC_LUA_CLOCK_H
#define EVREC_LUA_CLOCK_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

extern const struct box_type clock_type;

/* Returns the clock of the userdata at `index`, which must be of clock_type. Borrowed. */
static inline evrec_clock *clock_at(lua_State *L, int index)
{
	return *(evrec_clock **)lua_touserdata(L, index);
}

/* Lua: evrec.clock() -> clock, the real one */
int clock_new_real(lua_State *L);
/* Lua: evrec.fake_clock(seconds) -> clock; raises on misuse */
int clock_new_fake(lua_State *L);

#pragma GCC visibility pop

#endif

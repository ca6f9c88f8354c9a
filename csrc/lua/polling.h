/* polling.h - the functions by which lua/evrec/polling.lua polls broadcasters that the program has taken over (drive.h). */
#ifndef EVREC_LUA_POLLING_H
#define EVREC_LUA_POLLING_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

/* Lua: core.let_go(broadcaster): the program polls it no more, until it is asked again */
int polling_let_go(lua_State *L);
/* Lua: core.may_own(broadcaster): this process has an event loop, so it may be the owner of a share */
int polling_may_own(lua_State *L);
/*
 * Lua: core.poll_delay(broadcaster) -> the seconds until its next poll; false: it has nothing to do; nil: it is to be
 * polled never again
 */
int polling_poll_delay(lua_State *L);

#pragma GCC visibility pop

#endif

/*
 * signal.h - evrec.on_signal { "TERM", "INT", timeout = 2 }.
 */
#ifndef EVREC_LUA_SIGNAL_H
#define EVREC_LUA_SIGNAL_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

/*
 * Lua: on_signal(signals, host) -> true; nil, message, name. `host` is the name of a program with handlers of its own,
 * where the call is refused; nil: there is none. Raises on misuse.
 */
int signal_watch(lua_State *L);
/*
 * Lua: core.wait_for_signal(seconds) -> "TERM" or "INT", or nil after that time, an hour at most. From the first call on this
 * thread gets these signals in no other way.
 */
int signal_wait(lua_State *L);

#pragma GCC visibility pop

#endif

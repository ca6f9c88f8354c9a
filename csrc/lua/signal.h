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

#pragma GCC visibility pop

#endif

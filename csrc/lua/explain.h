/*
 * explain.h - broadcaster:explain(object).
 */
#ifndef EVREC_LUA_EXPLAIN_H
#define EVREC_LUA_EXPLAIN_H

#include "lua/compat.h"

#pragma GCC visibility push(hidden)

/*
 * Lua: explain(broadcaster, reference or nil) -> an array with a table for each sink; nil, message, "closed". Raises on
 * misuse. lua/evrec/init.lua calls it, with a reference to the object that the script gave.
 */
int broadcaster_explain(lua_State *L);

#pragma GCC visibility pop

#endif

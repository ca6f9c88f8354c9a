/*
 * explain.h - what a sink suppressed, as Lua tables: broadcaster:explain(object), and a part of stats().
 */
#ifndef EVREC_LUA_EXPLAIN_H
#define EVREC_LUA_EXPLAIN_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

/*
 * Lua: explain(broadcaster, reference or nil) -> a table for each sink; nil, message, "closed". Raises on misuse. What
 * else may be an object is made a reference by its caller, lua/evrec/init.lua.
 */
int broadcaster_explain(lua_State *L);

/* Pushes an array of the objects and reasons that the i-th sink's rate limit suppressed. */
void explain_push_rate_limited(lua_State *L, const evrec_broadcaster *b, size_t i);

#pragma GCC visibility pop

#endif

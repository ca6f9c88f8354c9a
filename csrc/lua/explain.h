/*
 * explain.h - broadcaster:explain(object, timeout).
 */
#ifndef EVREC_LUA_EXPLAIN_H
#define EVREC_LUA_EXPLAIN_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

/* Holds an evrec_explanation while tables are made of it. No script gets to see it. */
extern const struct box_type explanation_type;

/*
 * Lua: explain(broadcaster, reference or nil, timeout or nil) -> an array with a table for each sink; nil, message, name.
 * Raises on misuse. lua/evrec/init.lua calls it, with a reference to the object that the script gave.
 */
int broadcaster_explain(lua_State *L);

#pragma GCC visibility pop

#endif

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
 * Lua: broadcaster:explain(object or nil, timeout or nil) -> an array with a table for each sink; nil, message, name. Raises
 * on misuse. Replaces the function evrec.reference at the top of the stack, by which it reads the object, by this one.
 */
void explain_push(lua_State *L);

#pragma GCC visibility pop

#endif

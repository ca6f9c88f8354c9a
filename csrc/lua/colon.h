/*
 * colon.h - refuses calls such as evrec:broadcaster {}, with a colon for the dot: the first argument is then the table
 * that holds the function.
 */
#ifndef EVREC_LUA_COLON_H
#define EVREC_LUA_COLON_H

#include "lua/compat.h"

#pragma GCC visibility push(hidden)

/* Raises if the value at the absolute stack index `index` is a table of the module. `function` is the called function. */
void colon_refuse(lua_State *L, int index, const char *function);

/* Lua: core.set_modules(modules), whose keys are the tables of the module */
int colon_set_modules(lua_State *L);

#pragma GCC visibility pop

#endif

/*
 * table.h - C values as fields of a Lua table. Each function sets the field `name` of the table at the top of the
 * stack, needs three free stack slots, and raises only if Lua has no memory.
 */
#ifndef EVREC_LUA_TABLE_H
#define EVREC_LUA_TABLE_H

#include "evrec.h"
#include "lua/compat.h"

#pragma GCC visibility push(hidden)

void table_set_count(lua_State *L, const char *name, uint64_t count);
void table_set_number(lua_State *L, const char *name, double number);
/* Nanoseconds, shown as seconds. */
void table_set_seconds(lua_State *L, const char *name, int64_t ns);
/* A NUL-terminated string. */
void table_set_word(lua_State *L, const char *name, const char *word);
/* A string that may be unset: then the field is "". */
void table_set_text(lua_State *L, const char *name, evrec_str text);
/* A string that may be unset: then the field stays nil. */
void table_set_optional(lua_State *L, const char *name, evrec_str text);

#pragma GCC visibility pop

#endif

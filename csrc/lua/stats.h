/*
 * stats.h - counters as Lua tables.
 */
#ifndef EVREC_LUA_STATS_H
#define EVREC_LUA_STATS_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

/* Sets a field of the table at the top of the stack. */
static inline void stats_set(lua_State *L, const char *name, uint64_t value)
{
	lua_pushinteger(L, (lua_Integer)value);
	lua_setfield(L, -2, name);
}

/* Pushes what b:stats() returns. */
void stats_push(lua_State *L, const evrec_broadcaster *b);
/* Pushes the counters of one sink. */
void stats_push_sink(lua_State *L, const evrec_sink_stats *stats);

#pragma GCC visibility pop

#endif

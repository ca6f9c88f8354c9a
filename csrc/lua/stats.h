/*
 * stats.h - counters as Lua tables. They are made of copies, because making them may run finalizers, which may change
 * the counters.
 */
#ifndef EVREC_LUA_STATS_H
#define EVREC_LUA_STATS_H

#include "lua/snapshot.h"

#pragma GCC visibility push(hidden)

/*
 * Pushes the table that broadcaster:stats() returns. Returns false, and pushes nothing, if the broadcaster was ended.
 */
bool stats_push(lua_State *L, const struct broadcaster *b);
/* Pushes a table of the counters of one sink. */
void stats_push_sink(lua_State *L, const evrec_sink_stats *stats);

#pragma GCC visibility pop

#endif

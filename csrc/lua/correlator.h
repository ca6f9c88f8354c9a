/*
 * correlator.h - evrec.correlator{}, and the options that sinks' correlators share with it.
 */
#ifndef EVREC_LUA_CORRELATOR_H
#define EVREC_LUA_CORRELATOR_H

#include "lua/callback.h"
#include "lua/options.h"

#pragma GCC visibility push(hidden)

extern const struct box_type correlator_type;

/* The options of a correlator, read into an evrec_correlator_options. Functions go to the table of functions. */
extern const struct option correlator_rows[];

/* Lua: evrec.correlator(options) -> correlator; raises on misuse */
int correlator_new(lua_State *L);

/* Pushes a table of the counters. */
void correlator_push_stats(lua_State *L, const evrec_correlator_stats *stats);

#pragma GCC visibility pop

#endif

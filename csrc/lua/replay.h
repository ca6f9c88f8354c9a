/*
 * replay.h - evrec.replay(variants): runs recorded events through correlators.
 */
#ifndef EVREC_LUA_REPLAY_H
#define EVREC_LUA_REPLAY_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

extern const struct box_type replay_type;

/* Lua: evrec.replay(variants) -> replay; raises on misuse */
int replay_new(lua_State *L);

#pragma GCC visibility pop

#endif

/*
 * recorder.h - the userdata of a recorder. Its methods never raise, whatever their arguments are.
 */
#ifndef EVREC_LUA_RECORDER_H
#define EVREC_LUA_RECORDER_H

#include "lua/broadcaster.h"

#pragma GCC visibility push(hidden)

extern const struct box_type recorder_type;

struct recorder {
	/* &recorder_type. A method knows by it, faster than by the metatable, that it was called on a recorder. */
	const struct box_type *type;
	struct broadcaster *b; /* alive as long as the recorder: its user value holds the broadcaster */
	evrec_recorder *recorder;
};

/* Lua: broadcaster:new_recorder(options) -> recorder; nil, message, name; raises on misuse */
int recorder_new(lua_State *L);

/* Defines recorder_type, whose methods have upvalues, which box_define does not set. */
void recorder_define(lua_State *L);

#pragma GCC visibility pop

#endif

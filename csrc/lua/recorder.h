/*
 * recorder.h - recorders, whose methods never raise, whatever they are given.
 */
#ifndef EVREC_LUA_RECORDER_H
#define EVREC_LUA_RECORDER_H

#include "lua/broadcaster.h"

#pragma GCC visibility push(hidden)

extern const struct box_type recorder_type;

struct recorder {
	/* recorder_type: tells a recorder from other userdata sooner than its metatable does. */
	const struct box_type *type;
	struct broadcaster *b; /* held by the user value */
	evrec_recorder *recorder;
};

/* Lua method of a broadcaster: (options) -> recorder, or nil, message, name; raises on misuse. */
int recorder_new(lua_State *L);

/* Defines the type: its methods have upvalues. */
void recorder_define(lua_State *L);

#pragma GCC visibility pop

#endif

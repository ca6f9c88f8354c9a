/*
 * prepared.h - the userdata of a prepared event. Its method never raises, whatever its arguments are.
 */
#ifndef EVREC_LUA_PREPARED_H
#define EVREC_LUA_PREPARED_H

#include "lua/recorder.h"

#pragma GCC visibility push(hidden)

#define PREPARE_NAME "recorder:prepare"

/*
 * Pushes the prepared event of the recorder, which is at stack index 1. `emit` borrows from values on the Lua stack.
 * Returns the number of results: 1, or 3 for nil, message, name. Raises if *emit is invalid.
 */
int prepared_new(lua_State *L, struct recorder *recorder, const evrec_emit *emit);

/* Defines the type of prepared events, whose method has upvalues, which box_define does not set. */
void prepared_define(lua_State *L);

#pragma GCC visibility pop

#endif

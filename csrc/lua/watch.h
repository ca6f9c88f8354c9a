/*
 * watch.h - the userdata that start_recording_to_sink, start_event_watcher and watch of a broadcaster return.
 */
#ifndef EVREC_LUA_WATCH_H
#define EVREC_LUA_WATCH_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

extern const struct box_type watch_type;

/* Lua: methods of a broadcaster -> watch; nil, message, name; they raise on misuse */
int watch_new_sink(lua_State *L);     /* (sink, options) */
int watch_new_trace(lua_State *L);    /* (path, options) */
int watch_new_function(lua_State *L); /* (function) */
int watch_new_queue(lua_State *L);    /* (options) */

#pragma GCC visibility pop

#endif

/*
 * sink.h - evrec.sink.kubernetes, .file, .lua: userdata that say where events are written.
 */
#ifndef EVREC_LUA_SINK_H
#define EVREC_LUA_SINK_H

#include "lua/callback.h"

#pragma GCC visibility push(hidden)

extern const struct box_type sink_type, hooks_type;

/* Lua: the constructors; they raise on misuse. */
int sink_new_kubernetes(lua_State *L); /* what lua/evrec/kubernetes.lua made of the user's options */
int sink_new_file(lua_State *L);
int sink_new_lua(lua_State *L);

/*
 * What a broadcaster calls for one of its sinks: pushes a userdata, anchored, whose user value is the table of functions
 * at stack index 4.
 */
struct hooks *hooks_push(lua_State *L, struct host *host);

/*
 * The core's sink of the userdata at `index`, for one broadcaster; borrowed, valid while the userdata and the hooks are.
 * That of a sink in Lua is made here: it calls back through the hooks, to whose functions, at stack index `functions`,
 * it adds its own. NULL: err.
 */
evrec_sink *sink_open(lua_State *L, int index, struct hooks *hooks, int functions, evrec_error *err);

#pragma GCC visibility pop

#endif

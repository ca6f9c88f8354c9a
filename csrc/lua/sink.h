/*
 * sink.h - evrec.sink.kubernetes, .file, .store, .otlp and .lua: userdata that describe where events are written.
 */
#ifndef EVREC_LUA_SINK_H
#define EVREC_LUA_SINK_H

#include "lua/callback.h"

#pragma GCC visibility push(hidden)

extern const struct box_type sink_type, hooks_type;

/* Lua: (options) -> sink; these raise on misuse. */
/* lua/evrec/kubernetes.lua calls it with complete options, and the table of exec_read or nil. */
int sink_new_kubernetes(lua_State *L);
int sink_new_file(lua_State *L);
int sink_new_store(lua_State *L);
int sink_new_lua(lua_State *L);
/* lua/evrec/otlp.lua calls it with the texts of PEM files in place of their paths, and resolve_early. */
int sink_new_otlp(lua_State *L);

/* Pushes a userdata without a sink of the core. The caller puts one into the returned slot, which then owns it. */
evrec_sink **sink_push(lua_State *L);

/*
 * Pushes the hooks of a sink that is about to start in a broadcaster: an anchored userdata, whose user value is the
 * table of functions at stack index 4.
 */
struct hooks *hooks_push(lua_State *L, struct host *host);

/*
 * Returns the core's sink for the userdata at `index`, to be started in one broadcaster. Borrowed: valid while the
 * userdata and the hooks live. The core's sink of a sink in Lua is made here, is owned by the hooks, and calls back
 * through them; its functions are added to the table at stack index `functions`. NULL, with *err set, if the userdata
 * was collected, or there is no memory.
 */
evrec_sink *sink_open(lua_State *L, int index, struct hooks *hooks, int functions, evrec_error *err);

/* The core's sink of the userdata at `index`, borrowed. NULL: of a sink in Lua, or collected. */
evrec_sink *sink_core(lua_State *L, int index);

#pragma GCC visibility pop

#endif

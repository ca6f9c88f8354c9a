/*
 * read.h - sources of events and their readers. lua/evrec/reading.lua makes the iterators.
 */
#ifndef EVREC_LUA_READ_H
#define EVREC_LUA_READ_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

extern const struct box_type source_type, reader_type;

/* Lua: core.source_lines { path = }, core.source_store { path = } -> source; raise on misuse */
int source_new_lines(lua_State *L);
int source_new_store(lua_State *L);
/* Lua: core.source_cluster(sink) -> source; raises on misuse. `sink` is one of core.sink_kubernetes */
int source_new_cluster(lua_State *L);
/*
 * Lua: core.source_open(source, filters, watch, function) -> reader; or nil, message, name. `filters` is a table as of
 * reader_rows; `function` names the called Lua function in messages. Raises if a filter is wrong.
 */
int source_open(lua_State *L);
/*
 * Likewise of a store: core.source_suppressions(source, filters, function) and core.source_occurrences(source, filters,
 * function), with filters as of suppression_rows and event_rows.
 */
int source_open_suppressions(lua_State *L);
int source_open_occurrences(lua_State *L);
/* Lua: core.cluster_get(source, path, timeout) -> text; or nil, message, name */
int source_get(lua_State *L);
/* Lua: core.parse_time(text) -> seconds since 1970, or nil if the text is no RFC 3339, or the time fits no double */
int read_parse_time(lua_State *L);

#pragma GCC visibility pop

#endif

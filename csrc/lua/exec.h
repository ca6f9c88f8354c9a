/*
 * exec.h - reads a credential plugin, as lua/evrec/kubernetes.lua passes it to evrec.core.sink_kubernetes.
 */
#ifndef EVREC_LUA_EXEC_H
#define EVREC_LUA_EXEC_H

#include "evrec.h"
#include "lua/compat.h"

#pragma GCC visibility push(hidden)

/*
 * Reads the table at the absolute stack index `index`: strings `command`, `api_version` and, if it is set,
 * `cluster_config`; the boolean `provide_cluster_info`; the list `args`; the list `env`, in which each name is followed
 * by its value. Fills *exec with strings and arrays that the stack holds: the values that this function pushes must stay
 * there, and nothing may be allocated by Lua, for as long as *exec is used. Raises if a field is of another type.
 */
void exec_read(lua_State *L, int index, evrec_exec *exec);

#pragma GCC visibility pop

#endif

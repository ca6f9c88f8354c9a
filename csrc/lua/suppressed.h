/*
 * suppressed.h - suppressed events (evrec_suppressed) as Lua tables, for explain() and stats().
 */
#ifndef EVREC_LUA_SUPPRESSED_H
#define EVREC_LUA_SUPPRESSED_H

#include "evrec.h"
#include "lua/compat.h"

#pragma GCC visibility push(hidden)

/*
 * Both push a table, need ten free stack slots, and raise if Lua has no memory. `suppressed` must survive whatever a
 * finalizer does meanwhile.
 */

/* An evrec.ExplainedEvent of lua/evrec/meta.lua. */
void suppressed_push_explained(lua_State *L, const evrec_suppressed *suppressed);
/* An evrec.Suppressed of lua/evrec/meta.lua. */
void suppressed_push_summary(lua_State *L, const evrec_suppressed *suppressed);

#pragma GCC visibility pop

#endif

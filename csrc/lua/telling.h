/*
 * telling.h - the lines in which a loud broadcaster sums up losses and errors: to the host's log, or to standard error.
 */
#ifndef EVREC_LUA_TELLING_H
#define EVREC_LUA_TELLING_H

#include "lua/broadcaster.h"

#pragma GCC visibility push(hidden)

/*
 * Lua: core.set_logger(function(line) -> told). The function gets the lines of all broadcasters of this Lua state. A line
 * for which it raises, or returns a false value, goes to standard error, as all lines do without such a function.
 */
int telling_set_logger(lua_State *L);

/*
 * Tell the lines that are due, or all that is not told yet, for a broadcaster that is loud and open. Never raise, and
 * leave the stack as it was. `L` is NULL if no Lua may run: then the lines go to standard error.
 */
void telling_due(struct broadcaster *b, lua_State *L);
void telling_all(struct broadcaster *b, lua_State *L);

/*
 * A recording call was refused: keeps the file and line of its caller, if a line will show them. Call it right after the
 * core has counted the call.
 */
void telling_refused(struct broadcaster *b, lua_State *L);
/*
 * Tells of a recording call that was made on no recorder, so that no broadcaster counts it: one line in 10 s for the whole
 * process. Never raises, and leaves the stack as it was.
 */
void telling_refused_by_none(lua_State *L, const char *message);

#pragma GCC visibility pop

#endif

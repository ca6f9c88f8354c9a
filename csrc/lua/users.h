/* users.h - the option `share_users`: users of the system, by name or by number. */
#ifndef EVREC_LUA_USERS_H
#define EVREC_LUA_USERS_H

#include "lua/options.h"

#pragma GCC visibility push(hidden)

/*
 * Pushes a userdata with the uids of these users, and returns them; a word of digits is a uid. NULL, with *err set as
 * the core does for an option: there is no such user.
 */
const unsigned *users_push(lua_State *L, const struct option_strings *users, evrec_error *err);

#pragma GCC visibility pop

#endif

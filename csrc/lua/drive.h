/*
 * drive.h - lets the program that runs the script poll a broadcaster by itself.
 *
 * A program with an event loop has a function in Lua that takes a broadcaster over (lua/evrec/polling.lua). It is called
 * at the end of the broadcaster's first recording call, poll or flush, as a constructor must have no effects; again at the
 * end of each later one, for as long as it returns false; and at the end of the next one after the broadcaster was let
 * go, as it had nothing to do for a second.
 */
#ifndef EVREC_LUA_DRIVE_H
#define EVREC_LUA_DRIVE_H

#include "lua/broadcaster.h"

#pragma GCC visibility push(hidden)

/* Lua: core.set_host(function(broadcaster) -> boolean): whether the program polls the broadcaster from now on */
int drive_set_host(lua_State *L);
/* Lua: core.let_go(broadcaster): the program polls it no more, until it is asked again */
int drive_let_go(lua_State *L);
/* Lua: core.may_own(broadcaster): this process has an event loop, so it may be the owner of a share */
int drive_may_own(lua_State *L);
/*
 * Lua: core.poll_delay(broadcaster) -> the seconds until its next poll; false: it has nothing to do; nil: it is to be
 * polled never again
 */
int drive_poll_delay(lua_State *L);

/* Raises if the options at stack index 1 have `thread`, as a sink's did in earlier versions. `instead` ends the message. */
void drive_refuse_thread(lua_State *L, const char *function, const char *instead);

/* Who polls a new broadcaster of this Lua state: the script, or the program, if that has a function for it. */
enum poller drive_poller(lua_State *L);
/* Asks the program to poll it: POLLER_WANTED. In a call of the core (host_enter). Never raises. */
void drive_begin(struct broadcaster *b);

#pragma GCC visibility pop

#endif

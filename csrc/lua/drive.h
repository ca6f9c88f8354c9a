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

#include "lua/box.h"

#pragma GCC visibility push(hidden)

/* Who polls a broadcaster. */
enum poller {
	POLLER_SCRIPT, /* the script, if it wants to */
	POLLER_WANTED, /* the program that runs the script, once it takes the broadcaster over */
	POLLER_HOST,   /* that program */
};

/* Lua: core.set_host(function(broadcaster) -> boolean): whether the program polls the broadcaster from now on */
int drive_set_host(lua_State *L);

/* Raises if the options at stack index 1 have `thread`, as a sink's did in earlier versions. `instead` ends the message. */
void drive_refuse_thread(lua_State *L, const char *function, const char *instead);

/* Who polls a new broadcaster of this Lua state: the script, or the program, if that has a function for it. */
enum poller drive_poller(lua_State *L);
/*
 * Asks the program to poll a broadcaster, whose userdata has this address and is POLLER_WANTED. In a call of the core
 * (host_enter), whose Lua state is L. Never raises. False: it does not poll it yet.
 */
bool drive_ask(lua_State *L, const void *broadcaster);

#pragma GCC visibility pop

#endif

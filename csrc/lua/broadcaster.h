/*
 * broadcaster.h - evrec.broadcaster{}, and what its recorders and watches see of it.
 *
 * The userdata's user value is a table that holds Lua functions by name (on_error, key_func, ...) and, under their
 * addresses, the watches and sinks that have to live as long as the broadcaster does. Recorders and watches have a user
 * value that holds the broadcaster. All of that is collected together.
 */
#ifndef EVREC_LUA_BROADCASTER_H
#define EVREC_LUA_BROADCASTER_H

#include "lua/callback.h"

#pragma GCC visibility push(hidden)

extern const struct box_type broadcaster_type;

struct broadcaster {
	struct host host;                    /* host.b: the broadcaster; NULL once it was closed by __close or __gc */
	evrec_correlator_options correlator; /* the sinks' defaults, without the functions */
	bool reporting;                      /* on_error runs */
	bool closing;                        /* __close was called from inside a callback: what is left to do */
};

/* Around each call of the core that may call back. Between the two nothing raises. */
static inline lua_State *broadcaster_enter(struct broadcaster *b, lua_State *L)
{
	return host_enter(&b->host, L);
}
void broadcaster_leave(struct broadcaster *b, lua_State *outer);

/* Lua: evrec.broadcaster(options) -> broadcaster; raises on misuse */
int broadcaster_new(lua_State *L);

/* The broadcaster at stack index 1; raises where it is none. NULL: closed; then nil, message, "closed" were pushed. */
struct broadcaster *broadcaster_check(lua_State *L);

/* Makes the table { broadcaster at index 1 } the user value of the userdata at the top of the stack. */
void broadcaster_hold(lua_State *L);

/* Raises where an option was refused; else pushes nil, message, name. Returns 3. */
int broadcaster_failure(lua_State *L, const char *what, const evrec_error *err);

/* The seconds that flush, shutdown and close wait by themselves. */
#define DEFAULT_TIMEOUT (5 * EVREC_SECOND)

#pragma GCC visibility pop

#endif

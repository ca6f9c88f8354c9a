/*
 * broadcaster.h - evrec.broadcaster{}, and its struct, which recorders and watches share.
 *
 * The user value of a broadcaster's userdata is a table. It holds Lua functions by name and by number (on_error,
 * key_func, ...; callback.h), and, under their addresses, the watches and hooks that must live as long as the
 * broadcaster. The user value of a recorder or watch holds the broadcaster. So the collector frees all of them together.
 */
#ifndef EVREC_LUA_BROADCASTER_H
#define EVREC_LUA_BROADCASTER_H

#include "lua/callback.h"
#include "lua/drive.h"

#pragma GCC visibility push(hidden)

extern const struct box_type broadcaster_type;

struct broadcaster {
	struct host host;                    /* host.b: the broadcaster; NULL once it was closed by __close or __gc */
	evrec_correlator_options correlator; /* the sinks' defaults, without the functions */
	enum evrec_drive drive;
	enum poller poller;
	bool loud;     /* there is no on_error: what it would get is summed up in lines (telling.h), until the end */
	bool closing;  /* a callback called __close: the broadcaster ends when the outermost call is done */
	uint64_t left; /* occurrences that were not written when __close or __gc ended it */
	size_t hooks;  /* how many of its sinks' hooks (callback.h) the user value keeps alive */
};

/* Enclose each call of the core that may call back. Nothing between the two may raise. */
static inline lua_State *broadcaster_enter(struct broadcaster *b, lua_State *L)
{
	return host_enter(&b->host, L);
}
void broadcaster_leave(struct broadcaster *b, lua_State *outer);

/* EVREC_ETIMEOUT, with *err set, if __close ended the broadcaster before all was written; otherwise 0. */
int broadcaster_was_left(const struct broadcaster *b, evrec_error *err);

/* Lua: evrec.broadcaster(options) -> broadcaster; raises on misuse */
int broadcaster_new(lua_State *L);

/*
 * Drops the references to the hooks of sinks that the core has forgotten, so that their functions can be collected. The
 * broadcaster is at stack index 1. Needs six free stack slots. Does nothing inside a callback, for the callback may
 * belong to such a sink.
 */
void broadcaster_forget_hooks(lua_State *L);

/*
 * Returns the broadcaster at stack index 1. Raises if the value is not a broadcaster. Returns NULL if it is closed,
 * after pushing the three results nil, message, "closed".
 */
struct broadcaster *broadcaster_check(lua_State *L);

/*
 * Whether the broadcaster is open. A function that has made Lua values must ask again before it calls the core, because
 * making a value may run a finalizer that closes the broadcaster.
 */
static inline bool broadcaster_is_open(const struct broadcaster *b)
{
	return b->host.b != NULL && !b->closing;
}
/* Pushes nil, message, "closed". Returns 3, the number of results. */
int broadcaster_closed(lua_State *L);

/* Makes the table { value at index 1 } the user value of the userdata at the top of the stack. */
void broadcaster_hold(lua_State *L);

/*
 * Raises if the core refused an option (EVREC_EINVALID), else pushes nil, message, name. Returns 3, the number of
 * results. `function` names the called Lua function.
 */
int broadcaster_failure(lua_State *L, const char *function, const evrec_error *err);

/* How long flush, shutdown and close wait without a timeout argument, in nanoseconds. */
#define DEFAULT_TIMEOUT (5 * EVREC_SECOND)

#pragma GCC visibility pop

#endif

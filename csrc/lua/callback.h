/*
 * callback.h - from the core back into Lua.
 *
 * The core's callbacks run inside a call that Lua made (record, poll, flush, ...): on the Lua thread that made it, which
 * the host remembers meanwhile. They run protected, with no lock held, and cannot yield. What owns Lua functions is a
 * userdata that keeps them in its user value by name, and that is anchored (box.h): closures which refer to their own
 * broadcaster are collected with it.
 */
#ifndef EVREC_LUA_CALLBACK_H
#define EVREC_LUA_CALLBACK_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

/* What calls back: a broadcaster, or a correlator by itself. */
struct host {
	lua_State *L;         /* of the innermost call under way; NULL: there is none */
	evrec_broadcaster *b; /* counts and reports what callbacks do wrong; NULL: nobody does here */
};

/* Around each call of the core that may call back. Between the two nothing raises. */
static inline lua_State *host_enter(struct host *host, lua_State *L)
{
	lua_State *outer = host->L;

	host->L = L;
	return outer;
}

static inline void host_leave(struct host *host, lua_State *outer)
{
	host->L = outer;
}

/* Calls the function at the top of the stack, with its owner's user value at CALLBACK_FUNCTIONS. May raise. */
typedef void callback_body(lua_State *L, void *arg);
#define CALLBACK_FUNCTIONS 3

#define CALLBACK_MESSAGE 256

/*
 * Looks up the function `name` of `owner`, and calls the body, protected. False where that raised: what it said is in
 * `message`, where not NULL, and was counted and reported.
 */
bool callback_run(struct host *host, const void *owner, const char *name, callback_body *body, void *arg,
                  char message[CALLBACK_MESSAGE]);
/* The same without counting and reporting. */
bool callback_try(struct host *host, const void *owner, const char *name, callback_body *body, void *arg,
                  char message[CALLBACK_MESSAGE]);

/* Whether the table of functions at `functions` has that one. */
bool functions_have(lua_State *L, int functions, const char *name);

/* ---- the callbacks of a correlator ---- */

/* The first field of a userdata that owns them: the ctx of evrec_correlator_options, and of a sink in Lua. */
struct hooks {
	struct host *host;
	evrec_sink *sink;   /* in Lua: owned */
	bool patch, update; /* it has these functions */
};

/*
 * Points the options at the functions that the table at `functions` holds: key_func, message_func, spam_key_func.
 * `hooks` will have that table as its user value.
 */
void hooks_set(lua_State *L, int functions, struct hooks *hooks, evrec_correlator_options *options);

#pragma GCC visibility pop

#endif

/*
 * callback.h - calls from the core back into Lua.
 *
 * The core calls back inside a call that Lua made (record, poll, flush, ...). The host remembers the lua_State of that
 * call, and the callback runs on it: protected, with no lock held, unable to yield.
 *
 * The owner of Lua functions is a userdata. Its user value is a table with the functions by number, of some also by
 * name, and the userdata is anchored (box.h). So the collector can free a function that refers to its own broadcaster
 * together with it.
 */
#ifndef EVREC_LUA_CALLBACK_H
#define EVREC_LUA_CALLBACK_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

/*
 * The functions that the core calls, by their numbers in a table of functions; number 1 of a watch's table is its
 * broadcaster (broadcaster_hold). All but the watcher are options, and have the names of these.
 */
enum callback {
	CALLBACK_ON_ERROR = 2,
	CALLBACK_ON_DROP,
	CALLBACK_WATCHER,
	CALLBACK_CREATE,
	CALLBACK_PATCH,
	CALLBACK_UPDATE,
	CALLBACK_KEY_FUNC,
	CALLBACK_MESSAGE_FUNC,
	CALLBACK_SPAM_KEY_FUNC,
	CALLBACKS,
};

/* The object whose core calls back: a broadcaster, or a correlator without one. */
struct host {
	lua_State *L;          /* of the innermost call under way; NULL: no call is under way */
	evrec_broadcaster *b;  /* counts and reports callbacks that fail; NULL: of a correlator, which does not */
	struct caller *caller; /* of the Lua state; host_begin sets it */
};

/* Makes the caller of this Lua state if it does not have it yet. After box_open, and once event_type is defined. */
void callback_open(lua_State *L);
/* Before a function of the host is called back. */
void host_begin(struct host *host, lua_State *L);

/* Enclose each call of the core that may call back. Nothing between the two may raise. host_enter returns `outer`. */
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

/*
 * Calls the function at the top of the stack. The table of its owner's functions is at stack index CALLBACK_FUNCTIONS.
 * May raise.
 */
typedef void callback_body(lua_State *L, void *arg);
#define CALLBACK_FUNCTIONS 2

/* Pushes a copy of the event. For the body of a callback alone. May raise. */
void callback_push_event(lua_State *L, const evrec_event *event);

#define CALLBACK_MESSAGE 256

/*
 * Finds the function `which` of `owner`, the address of a userdata, and runs `body` protected. If that raises, counts
 * and reports the error, copies it to `message`, unless NULL, and returns false.
 */
bool callback_run(struct host *host, const void *owner, enum callback which, callback_body *body, void *arg,
                  char message[CALLBACK_MESSAGE]);

/*
 * Puts the function that the table at stack index `options` has under the name of `which` into the table at `functions`,
 * under its number, where callback_run looks. The two may be one table. False: there is none.
 */
bool functions_number(lua_State *L, int options, int functions, enum callback which);

/* ---- the callbacks of a correlator ---- */

/*
 * The ctx of evrec_correlator_options, and of a sink in Lua. The first field of the userdata that owns the functions,
 * so that both have one address.
 */
struct hooks {
	struct host *host;
	evrec_sink *sink;   /* owned, of a sink in Lua; else NULL */
	size_t number;      /* of the sink in its broadcaster; SIZE_MAX: the sink was not started */
	bool patch, update; /* whether a sink in Lua has these functions */
};

/*
 * Sets the callbacks of the options, for those of key_func, message_func and spam_key_func that the table at stack
 * index `functions` holds. The caller makes that table the user value of the hooks' userdata.
 */
void hooks_set(lua_State *L, int functions, struct hooks *hooks, evrec_correlator_options *options);

#pragma GCC visibility pop

#endif

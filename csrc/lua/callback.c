#include "lua/callback.h"

#include <stdio.h>

#include "lua/event.h"

struct frame {
	const void *owner;
	const char *name;
	callback_body *body;
	void *arg;
};

/*
 * Runs protected. Pushes above the frame at stack index 1: the owner, which must stay alive during the call, the table
 * of its functions (CALLBACK_FUNCTIONS), and the function to call.
 */
static int run(lua_State *L)
{
	const struct frame *frame = lua_touserdata(L, 1);

	luaL_checkstack(L, LUA_MINSTACK, "callback");
	anchor_push(L, frame->owner);
	if (!lua_isuserdata(L, -1)) {
		return luaL_error(L, "its owner is being collected");
	}
	compat_getuservalue(L, -1);
	lua_getfield(L, -1, frame->name);
	frame->body(L, frame->arg);
	return 0;
}

bool callback_try(struct host *host, const void *owner, const char *name, callback_body *body, void *arg,
                  char message[CALLBACK_MESSAGE])
{
	struct frame frame = { owner, name, body, arg };
	lua_State *L = host->L;
	bool ok;

	if (L == NULL || !lua_checkstack(L, LUA_MINSTACK)) {
		(void)snprintf(message, CALLBACK_MESSAGE, "%s: no room on Lua's stack", name);
		return false;
	}
	ok = compat_cpcall(L, run, &frame);
	if (!ok) {
		if (lua_type(L, -1) == LUA_TSTRING) {
			(void)snprintf(message, CALLBACK_MESSAGE, "%s: %s", name, lua_tostring(L, -1));
		} else {
			(void)snprintf(message, CALLBACK_MESSAGE, "%s: raised a %s", name, luaL_typename(L, -1));
		}
		lua_pop(L, 1);
	}
	return ok;
}

bool callback_run(struct host *host, const void *owner, const char *name, callback_body *body, void *arg,
                  char message[CALLBACK_MESSAGE])
{
	char own[CALLBACK_MESSAGE];
	char *text = message != NULL ? message : own;

	if (callback_try(host, owner, name, body, arg, text)) {
		return true;
	}
	if (host->b != NULL) {
		evrec_broadcaster_callback_error(host->b, text);
	}
	return false;
}

/* ---- the callbacks of a correlator ---- */

struct question {
	const evrec_fields *event;
	int answers; /* how many strings the function must return, 1 or 2 */
	evrec_str *first, *second;
};

/*
 * Keeps an answer alive in the table of functions, under a name that no function has, until the next answer replaces
 * it.
 */
static evrec_str keep(lua_State *L, int index, const char *as)
{
	evrec_str s;

	s.data = lua_tolstring(L, index, &s.len);
	lua_pushvalue(L, index);
	lua_setfield(L, CALLBACK_FUNCTIONS, as);
	return s;
}

static void ask(lua_State *L, void *arg)
{
	const struct question *q = arg;
	const int function = lua_gettop(L);
	int i;

	event_push(L, q->event);
	lua_call(L, 1, q->answers);
	for (i = 0; i < q->answers; i++) {
		if (lua_type(L, function + i) != LUA_TSTRING) {
			luaL_error(L, "expected %s, got %s%s%s", q->answers == 2 ? "two strings" : "a string",
			           luaL_typename(L, function), q->answers == 2 ? " and " : "",
			           q->answers == 2 ? luaL_typename(L, function + 1) : "");
		}
	}
	*q->first = keep(L, function, "first answer");
	if (q->answers == 2) {
		*q->second = keep(L, function + 1, "second answer");
	}
}

static bool ask_key(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	struct hooks *hooks = ctx;
	struct question q = { event, 2, aggregate_key, local_key };

	return callback_run(hooks->host, hooks, "key_func", ask, &q, NULL);
}

static bool ask_message(void *ctx, const evrec_fields *event, evrec_str *message)
{
	struct hooks *hooks = ctx;
	struct question q = { event, 1, message, NULL };

	return callback_run(hooks->host, hooks, "message_func", ask, &q, NULL);
}

static bool ask_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	struct hooks *hooks = ctx;
	struct question q = { event, 1, key, NULL };

	return callback_run(hooks->host, hooks, "spam_key_func", ask, &q, NULL);
}

bool functions_have(lua_State *L, int functions, const char *name)
{
	bool found;

	lua_getfield(L, functions, name);
	found = !lua_isnil(L, -1);
	lua_pop(L, 1);
	return found;
}

void hooks_set(lua_State *L, int functions, struct hooks *hooks, evrec_correlator_options *options)
{
	options->key_func = functions_have(L, functions, "key_func") ? ask_key : NULL;
	options->message_func = functions_have(L, functions, "message_func") ? ask_message : NULL;
	options->spam_key_func = functions_have(L, functions, "spam_key_func") ? ask_spam_key : NULL;
	options->ctx = hooks;
}

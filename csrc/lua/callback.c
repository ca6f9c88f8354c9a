#include "lua/callback.h"

#include <stdio.h>

#include "lua/event.h"
#include "lua/message.h"

static const char *const callback_names[CALLBACKS] = {
	[CALLBACK_ON_ERROR] = "on_error",
	[CALLBACK_ON_DROP] = "on_drop",
	[CALLBACK_WATCHER] = "event watcher",
	[CALLBACK_CREATE] = "create",
	[CALLBACK_PATCH] = "patch",
	[CALLBACK_UPDATE] = "update",
	[CALLBACK_KEY_FUNC] = "key_func",
	[CALLBACK_MESSAGE_FUNC] = "message_func",
	[CALLBACK_SPAM_KEY_FUNC] = "spam_key_func",
};

/* ---- the function of a Lua state that runs callbacks ---- */

struct frame {
	const void *owner;
	enum callback which;
	callback_body *body;
	void *arg;
};

/*
 * A callback passes its frame by this struct, and takes the function `run` from the registry: LuaJIT would allocate a C
 * function for each callback, and may need memory for a light userdata.
 */
struct caller {
	const struct frame *frame; /* of the innermost callback */
	int run;                   /* the reference of the function in the registry */
};

/* Its address is the key of the caller, a userdata, in the registry. */
static const char caller_key = 0;

enum upvalue { UP_CALLER = 1, UP_ANCHORS, UP_EVENT_METATABLE, UP_LAST = UP_EVENT_METATABLE };

/* Pushes the owner, which must stay alive during the call, the table of its functions, and the function to call. */
static int run(lua_State *L)
{
	const struct frame *frame = ((const struct caller *)lua_touserdata(L, lua_upvalueindex(UP_CALLER)))->frame;

	luaL_checkstack(L, LUA_MINSTACK, "callback");
	lua_rawgetp(L, lua_upvalueindex(UP_ANCHORS), frame->owner);
	if (!lua_isuserdata(L, 1)) {
		return luaL_error(L, "its owner is being collected");
	}
	compat_getuservalue(L, 1);
	lua_rawgeti(L, CALLBACK_FUNCTIONS, (int)frame->which);
	frame->body(L, frame->arg);
	return 0;
}

void callback_open(lua_State *L)
{
	struct caller *caller;

	lua_rawgetp(L, LUA_REGISTRYINDEX, &caller_key);
	if (lua_isnil(L, -1)) {
		caller = lua_newuserdata(L, sizeof(*caller));
		lua_pushvalue(L, -1);
		anchors_push(L);
		box_push_metatable(L, &event_type);
		lua_pushcclosure(L, run, UP_LAST);
		caller->frame = NULL;
		caller->run = luaL_ref(L, LUA_REGISTRYINDEX);
		lua_rawsetp(L, LUA_REGISTRYINDEX, &caller_key);
	}
	lua_pop(L, 1);
}

void host_begin(struct host *host, lua_State *L)
{
	lua_rawgetp(L, LUA_REGISTRYINDEX, &caller_key);
	host->caller = lua_touserdata(L, -1);
	lua_pop(L, 1);
}

void callback_push_event(lua_State *L, const evrec_event *event)
{
	(void)evrec_packed_copy(compat_newuserdata(L, evrec_packed_size(event)), event);
	lua_pushvalue(L, lua_upvalueindex(UP_EVENT_METATABLE));
	lua_setmetatable(L, -2);
}

/* ---- one callback ---- */

static bool call(const struct host *host, const struct frame *frame, char message[CALLBACK_MESSAGE])
{
	const char *name = callback_names[frame->which];
	const struct frame *outer;
	lua_State *L = host->L;
	bool ok;

	if (L == NULL || !compat_has_room(L)) {
		(void)snprintf(message, CALLBACK_MESSAGE, "%s: no room on Lua's stack", name);
		return false;
	}
	outer = host->caller->frame;
	host->caller->frame = frame;
	lua_rawgeti(L, LUA_REGISTRYINDEX, host->caller->run);
	ok = lua_pcall(L, 0, 0, 0) == 0;
	host->caller->frame = outer;
	if (!ok) {
		if (lua_type(L, -1) == LUA_TSTRING) {
			message_format(message, CALLBACK_MESSAGE, "%s: %s", name, lua_tostring(L, -1));
		} else {
			(void)snprintf(message, CALLBACK_MESSAGE, "%s: raised a %s", name, luaL_typename(L, -1));
		}
		lua_pop(L, 1);
	}
	return ok;
}

bool callback_run(struct host *host, const void *owner, enum callback which, callback_body *body, void *arg,
                  char message[CALLBACK_MESSAGE])
{
	const struct frame frame = { owner, which, body, arg };
	char own[CALLBACK_MESSAGE];
	char *text = message != NULL ? message : own;

	if (call(host, &frame, text)) {
		return true;
	}
	if (host->b != NULL) {
		evrec_broadcaster_callback_error(host->b, text);
	}
	return false;
}

bool functions_number(lua_State *L, int options, int functions, enum callback which)
{
	bool found;

	lua_getfield(L, options, callback_names[which]);
	found = !lua_isnil(L, -1);
	lua_rawseti(L, functions, (int)which);
	return found;
}

/* ---- the callbacks of a correlator ---- */

struct question {
	const evrec_fields *event;
	int answers; /* how many strings the function must return, 1 or 2 */
	evrec_str *first, *second;
};

/* Indexes in the table of functions, after those of the functions. */
enum answer { FIRST_ANSWER = CALLBACKS, SECOND_ANSWER };

/* Keeps an answer alive in the table of functions until the next answer replaces it. */
static evrec_str keep(lua_State *L, int index, enum answer as)
{
	evrec_str s;

	s.data = lua_tolstring(L, index, &s.len);
	lua_pushvalue(L, index);
	lua_rawseti(L, CALLBACK_FUNCTIONS, (int)as);
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
	*q->first = keep(L, function, FIRST_ANSWER);
	if (q->answers == 2) {
		*q->second = keep(L, function + 1, SECOND_ANSWER);
	}
}

static bool ask_key(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	struct hooks *hooks = ctx;
	struct question q = { event, 2, aggregate_key, local_key };

	return callback_run(hooks->host, hooks, CALLBACK_KEY_FUNC, ask, &q, NULL);
}

static bool ask_message(void *ctx, const evrec_fields *event, evrec_str *message)
{
	struct hooks *hooks = ctx;
	struct question q = { event, 1, message, NULL };

	return callback_run(hooks->host, hooks, CALLBACK_MESSAGE_FUNC, ask, &q, NULL);
}

static bool ask_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	struct hooks *hooks = ctx;
	struct question q = { event, 1, key, NULL };

	return callback_run(hooks->host, hooks, CALLBACK_SPAM_KEY_FUNC, ask, &q, NULL);
}

void hooks_set(lua_State *L, int functions, struct hooks *hooks, evrec_correlator_options *options)
{
	options->key_func = functions_number(L, functions, functions, CALLBACK_KEY_FUNC) ? ask_key : NULL;
	options->message_func = functions_number(L, functions, functions, CALLBACK_MESSAGE_FUNC) ? ask_message : NULL;
	options->spam_key_func =
		functions_number(L, functions, functions, CALLBACK_SPAM_KEY_FUNC) ? ask_spam_key : NULL;
	options->ctx = hooks;
}

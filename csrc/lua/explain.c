#include "lua/explain.h"

#include "lua/broadcaster.h"
#include "lua/reference.h"
#include "lua/seconds.h"
#include "lua/suppressed.h"
#include "lua/table.h"

#include <string.h>

#define FUNCTION "broadcaster:explain"

static int explanation_gc(lua_State *L)
{
	const evrec_explanation **box = lua_touserdata(L, 1);

	evrec_explanation_free(*box);
	*box = NULL;
	return 0;
}

static const luaL_Reg metamethods[] = { { "__gc", explanation_gc }, { NULL, NULL } };

const struct box_type explanation_type = { "evrec.explanation", NULL, metamethods };

static void push_sink(lua_State *L, const evrec_explained_sink *sink)
{
	size_t i;

	lua_createtable(L, 0, 3);
	table_set_text(L, "name", sink->name);
	table_set_count(L, "number", sink->number);
	lua_newtable(L);
	for (i = 0; i < sink->suppressed_len; i++) {
		suppressed_push_explained(L, &sink->suppressed[i]);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, -2, "suppressed");
}

/* Raises the error at the top of the stack, in the name of this function. */
static void refuse_object(lua_State *L)
{
	static const char prefix[] = REFERENCE_NAME ": ";
	const char *message = lua_tostring(L, -1);

	if (message == NULL || strncmp(message, prefix, sizeof(prefix) - 1) != 0) {
		lua_error(L);
		return;
	}
	luaL_error(L, FUNCTION ": %s", message + sizeof(prefix) - 1);
}

/* Replaces the object at stack index 2, unless it is nil, by its reference. */
static const evrec_reference *check_object(lua_State *L)
{
	const struct reference *box;

	if (lua_isnil(L, 2)) {
		return NULL;
	}
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_pushvalue(L, 2);
	if (lua_pcall(L, 1, 1, 0) != 0) {
		refuse_object(L);
	}
	lua_replace(L, 2);
	box = box_check(L, 2, &reference_type);
	if (box->ref == NULL) {
		luaL_error(L, FUNCTION ": object: the reference was collected");
	}
	return evrec_prepared_ref_fields(box->ref);
}

static int broadcaster_explain(lua_State *L)
{
	struct broadcaster *b = broadcaster_check(L);
	const evrec_reference *object;
	const evrec_explanation **box;
	evrec_error err = { 0 };
	lua_State *outer;
	int64_t timeout;
	size_t i;

	if (b == NULL) {
		return 3;
	}
	lua_settop(L, 3);
	timeout = seconds_check(L, 3, FUNCTION, "timeout", EVREC_SECOND);
	luaL_checkstack(L, LUA_MINSTACK, "explain");
	object = check_object(L);
	box = box_new(L, &explanation_type, sizeof(*box));
	/* Making the userdata may have run a finalizer that ended the broadcaster. */
	if (!broadcaster_is_open(b)) {
		return broadcaster_closed(L);
	}
	outer = broadcaster_enter(b, L);
	*box = evrec_explanation_new(b->host.b, object, timeout, &err);
	broadcaster_leave(b, outer);
	if (*box == NULL) {
		return push_failure(L, &err);
	}
	lua_newtable(L);
	for (i = 0; i < (*box)->sinks_len; i++) {
		push_sink(L, &(*box)->sinks[i]);
		lua_rawseti(L, -2, (int)i + 1);
	}
	return 1;
}

void explain_push(lua_State *L)
{
	lua_pushcclosure(L, broadcaster_explain, 1);
}

#include "lua/recording.h"

#include <stdio.h>
#include <string.h>

#include "lua/event.h"
#include "lua/message.h"
#include "lua/seconds.h"
#include "lua/telling.h"

/* ---- results ---- */

/*
 * Calls a function, which lies on the stack below its arguments, protected. Returns the status. The function gets the
 * address by its upvalue, as LuaJIT may need memory to push a light userdata, and would raise outside of the protection.
 */
static int call_with(lua_State *L, void *address, int arguments, int results)
{
	void **const slot = lua_touserdata(L, lua_upvalueindex(UP_ADDRESS)), *const outer = *slot;
	int status;

	*slot = address;
	status = lua_pcall(L, arguments, results, 0);
	*slot = outer;
	return status;
}

/* In a function that call_with calls. */
static void *get_address(lua_State *L)
{
	return *(void **)lua_touserdata(L, lua_upvalueindex(1));
}

static int failure(lua_State *L)
{
	return push_failure(L, get_address(L));
}

/* As map_read_call, whose address is an argument. */
static int copy_map(lua_State *L)
{
	evrec_map *map = get_address(L);

	*map = map_read(L);
	return 1;
}

int recording_fail(lua_State *L, evrec_error *err)
{
	lua_pushvalue(L, lua_upvalueindex(UP_FAILURE));
	if (call_with(L, err, 0, 3) == 0) {
		return 3;
	}
	lua_pushnil(L);
	lua_pushvalue(L, lua_upvalueindex(UP_NO_MEMORY));
	lua_pushvalue(L, lua_upvalueindex(UP_DROPPED));
	return 3;
}

/* Prints due lines after a call that the core counted without recording_make. */
static void tell(lua_State *L, struct broadcaster *b)
{
	if (b->loud && b->host.b != NULL) {
		broadcaster_leave(b, broadcaster_enter(b, L));
	}
}

int recording_refuse(struct recording *r)
{
	struct broadcaster *b = r->recorder->b;
	char message[sizeof(r->err.message)];

	memcpy(message, r->err.message, sizeof(message));
	if (r->err.code == EVREC_EDROPPED) {
		(void)evrec_recorder_drop(r->recorder->recorder, message, &r->err);
	} else {
		(void)evrec_recorder_refuse(r->recorder->recorder, message, &r->err);
		telling_refused(b, r->L);
	}
	tell(r->L, b);
	return recording_fail(r->L, &r->err);
}

HOT int recording_make(struct recording *r)
{
	struct broadcaster *b = r->recorder->b;
	lua_State *outer = broadcaster_enter(b, r->L);
	int code = evrec_recorder_emit(r->recorder->recorder, &r->emit, &r->err);

	if (code == EVREC_EINVALID) {
		telling_refused(b, r->L);
	}
	broadcaster_leave(b, outer);
	if (code != 0) {
		return recording_fail(r->L, &r->err);
	}
	lua_pushboolean(r->L, 1);
	return 1;
}

/* ---- arguments ---- */

static bool wrong(struct recording *r, const char *message)
{
	r->err.code = EVREC_EINVALID;
	(void)snprintf(r->err.message, sizeof(r->err.message), "%s", message);
	return false;
}

bool recording_decline(lua_State *L, struct recording *r, struct recorder *recorder)
{
	if (recorder == NULL) {
		(void)wrong(r, "called with '.', use ':', as in recorder:event(object, ...)");
		telling_refused_by_none(L, r->err.message);
	} else if (recorder->recorder == NULL) {
		r->err = (evrec_error){ EVREC_ECLOSED, "the recorder was collected" };
	} else {
		(void)evrec_recorder_drop(recorder->recorder, "no room on Lua's stack", &r->err);
	}
	(void)recording_fail(L, &r->err);
	return false;
}

bool recording_optional(struct recording *r, int index, const char *name, evrec_str *out)
{
	return is_unset(r->L, index) || recording_string(r, index, name, out);
}

bool recording_related_type(struct recording *r, int index)
{
	return is_unset(r->L, index) || lua_istable(r->L, index) || lua_isuserdata(r->L, index) ||
	       refuse_type(r->L, index, "related", "", "an object, a reference or nil", &r->err);
}

bool recording_related(struct recording *r, int index)
{
	const evrec_prepared_ref *ref = NULL;

	if (is_unset(r->L, index)) {
		return true;
	}
	if (!recording_related_type(r, index) || !reference_read(r->L, index, "related", &ref, &r->related, &r->err)) {
		return false;
	}
	r->emit.related = ref != NULL ? evrec_prepared_ref_fields(ref) : &r->related;
	return true;
}

bool recording_time(struct recording *r, int index)
{
	const char *expected = seconds_read(r->L, index, &r->emit.timestamp);
	char text[NUMBER_SIZE];

	if (expected == NULL) {
		return true;
	}
	if (lua_type(r->L, index) != LUA_TNUMBER) {
		return refuse_type(r->L, index, "timestamp", "", expected, &r->err);
	}
	r->err.code = EVREC_EINVALID;
	number_format((double)lua_tonumber(r->L, index), text);
	(void)snprintf(r->err.message, sizeof(r->err.message), "timestamp: expected %s, got %s", expected, text);
	return false;
}

bool recording_raised(struct recording *r, int status, const char *name)
{
	r->err.code = status == LUA_ERRMEM ? EVREC_EDROPPED : EVREC_EINVALID;
	message_format(r->err.message, sizeof(r->err.message), "%s: %s", name,
	               lua_type(r->L, -1) == LUA_TSTRING ? lua_tostring(r->L, -1) : "raised an error");
	return false;
}

bool recording_map_type(struct recording *r, int index, const char *name)
{
	return is_unset(r->L, index) || lua_istable(r->L, index) ||
	       refuse_type(r->L, index, name, "", "a table of strings", &r->err);
}

bool recording_map(struct recording *r, int index, const char *name, evrec_map *out)
{
	lua_State *L = r->L;
	int status;

	if (is_unset(L, index)) {
		return true;
	}
	lua_pushvalue(L, lua_upvalueindex(UP_MAP));
	lua_pushvalue(L, index);
	status = call_with(L, out, 1, 1);
	return status == 0 || recording_raised(r, status, name);
}

bool recording_format(struct recording *r, int index)
{
	lua_State *L = r->L;
	const int last = lua_gettop(L);
	int i, status;

	if (!recording_string(r, index, "format", &r->emit.note)) {
		return false;
	}
	if (memchr(r->emit.note.data, '%', r->emit.note.len) == NULL) {
		return true;
	}
	if (!compat_checkstack(L, RECORDING_SLOTS + last, lua_upvalueindex(UP_GROW))) {
		r->err = (evrec_error){ EVREC_EDROPPED, "format: no room on Lua's stack" };
		return false;
	}
	lua_pushvalue(L, lua_upvalueindex(UP_FORMAT));
	for (i = index; i <= last; i++) {
		lua_pushvalue(L, i);
	}
	status = lua_pcall(L, last - index + 1, 1, 0);
	if (status != 0) {
		return recording_raised(r, status, "format");
	}
	return recording_string(r, -1, "format", &r->emit.note);
}

void recording_push_upvalues(lua_State *L)
{
	luaL_checkstack(L, UP_RECORDING_LAST + LUA_MINSTACK, "evrec");
	reference_push_upvalues(L);
	lua_getglobal(L, "string");
	lua_getfield(L, -1, "format");
	lua_remove(L, -2);
	lua_pushcfunction(L, compat_grow);
	*(void **)lua_newuserdata(L, sizeof(void *)) = NULL;
	lua_pushvalue(L, -1);
	lua_pushcclosure(L, copy_map, 1);
	lua_pushvalue(L, -2);
	lua_pushcclosure(L, failure, 1);
	lua_pushliteral(L, "no memory");
	lua_pushliteral(L, "dropped");
}

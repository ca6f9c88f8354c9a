#include "lua/prepared.h"

#include "lua/recording.h"
#include "lua/telling.h"

struct prepared {
	/* &prepared_type. The method knows by it, faster than by the metatable, that it was called on a prepared event. */
	const struct box_type *type;
	struct broadcaster *b; /* the recorder's */
	evrec_prepared_event *event;
	struct recorder *recorder; /* alive as long as the prepared event: its user value holds the recorder */
};

static const struct box_type prepared_type;

/* Self is no prepared event (NULL), or was collected, itself or its recorder. */
COLD static int decline(lua_State *L, const struct prepared *p)
{
	evrec_error err = { EVREC_ECLOSED, "the prepared event was collected" };

	if (p == NULL) {
		err = (evrec_error){ EVREC_EINVALID, "called with '.', use ':', as in prepared:record()" };
		telling_refused_by_none(L, err.message);
	}
	return recording_fail(L, &err);
}

COLD static int record_message(lua_State *L, struct prepared *p)
{
	struct recording r = { .L = L, .recorder = p->recorder };
	evrec_str message = { NULL, 0 };
	lua_State *outer;
	int code;

	if (p->recorder->recorder == NULL) {
		return decline(L, p);
	}
	if (!recording_string(&r, 2, "message", &message)) {
		return recording_refuse(&r);
	}
	outer = broadcaster_enter(p->b, L);
	code = evrec_prepared_event_record_note(p->event, message, &r.err);
	broadcaster_leave(p->b, outer);
	if (code != 0) {
		return recording_fail(L, &r.err);
	}
	lua_pushboolean(L, 1);
	return 1;
}

/* Lua: prepared:record(message) -> true; nil, message, name */
HOT static int prepared_record(lua_State *L)
{
	struct prepared *p = lua_touserdata(L, 1);
	lua_State *outer;
	evrec_error err;
	int code;

	/* The length of a light userdata is 0, so the pointer is not dereferenced. */
	if (p == NULL || lua_rawlen(L, 1) != sizeof(*p) || p->type != &prepared_type) {
		return decline(L, NULL);
	}
	if (p->event == NULL) {
		return decline(L, p);
	}
	if (!is_unset(L, 2)) {
		return record_message(L, p);
	}
	outer = broadcaster_enter(p->b, L);
	code = evrec_prepared_event_record(p->event, &err);
	broadcaster_leave(p->b, outer);
	if (code != 0) {
		return recording_fail(L, &err);
	}
	lua_pushboolean(L, 1);
	return 1;
}

int prepared_new(lua_State *L, struct recorder *recorder, const evrec_emit *emit)
{
	struct prepared *p = box_new(L, &prepared_type, sizeof(*p));
	evrec_error err;

	p->type = &prepared_type;
	broadcaster_hold(L);
	p->b = recorder->b;
	p->recorder = recorder;
	p->event = evrec_prepared_event_new(recorder->recorder, emit, &err);
	if (p->event != NULL) {
		return 1;
	}
	return err.code == EVREC_EINVALID ? luaL_error(L, PREPARE_NAME ": %s", err.message) : push_failure(L, &err);
}

static int prepared_gc(lua_State *L)
{
	struct prepared *p = lua_touserdata(L, 1);

	evrec_prepared_event_free(p->event);
	p->event = NULL;
	return 0;
}

static const luaL_Reg methods[] = { { "record", prepared_record }, { NULL, NULL } };
static const luaL_Reg metamethods[] = { { "__gc", prepared_gc }, { NULL, NULL } };

static const struct box_type prepared_type = { "evrec.prepared_event", NULL, metamethods };

void prepared_define(lua_State *L)
{
	luaL_checkstack(L, UP_RECORDING_LAST + LUA_MINSTACK, "evrec");
	box_define(L, &prepared_type);
	box_push_methods(L, &prepared_type);
	recording_push_upvalues(L);
	luaL_setfuncs(L, methods, UP_RECORDING_LAST);
	lua_pop(L, 1);
}

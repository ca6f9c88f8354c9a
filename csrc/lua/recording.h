/*
 * recording.h - one recording call: its arguments, read without raising whatever they are, and its results.
 *
 * Recording allocates nothing in Lua where the object is a table without a metatable, or a reference, and the message is
 * given. Whatever else can raise, or run out of memory, is a function called protected.
 */
#ifndef EVREC_LUA_RECORDING_H
#define EVREC_LUA_RECORDING_H

#include "lua/recorder.h"
#include "lua/reference.h"

#pragma GCC visibility push(hidden)

/* The upvalues of a recorder's methods, in the order in which recording_push_upvalues pushes them. */
enum recording_upvalue {
	UP_FORMAT = UP_REFERENCE_LAST + 1, /* string.format */
	UP_MAP,                            /* copies a map */
	UP_FAILURE,                        /* makes nil, message, name */
	UP_NO_MEMORY,                      /* "no memory" */
	UP_DROPPED,                        /* "dropped" */
	UP_RECORDING_LAST = UP_DROPPED
};

void recording_push_upvalues(lua_State *L);

/* While the arguments are read everything stays on the stack until the call is made. */
struct recording {
	lua_State *L;
	struct recorder *recorder;
	evrec_emit what;
	evrec_reference regarding, related;
	evrec_error err;
};

/* What recording_begin does where `recorder` is none (NULL), or was collected, or there is no room: returns false. */
bool recording_decline(lua_State *L, struct recording *r, struct recorder *recorder);

/*
 * Begins a call that takes that many arguments, self included: missing ones become nil. It will need so many slots of
 * the stack: 0, the 20 that any C function has, is enough for the arguments and one reference; RECORDING_SLOTS for two,
 * the fields of emit, two maps, and what is pushed to do all that. False where self is no recorder, or there is no room,
 * which is counted: then the method returns the three values pushed.
 */
#define RECORDING_SLOTS (2 * REFERENCE_SLOTS + 48)
static inline bool recording_begin(lua_State *L, struct recording *r, int arguments, int slots)
{
	struct recorder *recorder = lua_touserdata(L, 1);

	/* A light userdata has no length. */
	if (recorder == NULL || lua_rawlen(L, 1) != sizeof(*recorder) || recorder->type != &recorder_type) {
		return recording_decline(L, r, NULL);
	}
	if (recorder->recorder == NULL || (slots != 0 && !lua_checkstack(L, slots))) {
		return recording_decline(L, r, recorder);
	}
	r->L = L;
	r->recorder = recorder;
	/* Field by field, as any other way takes longer. */
	r->what.object = NULL;
	r->what.regarding = r->what.related = NULL;
	r->what.action = (evrec_str){ NULL, 0 };
	r->what.annotations = r->what.labels = (evrec_map){ NULL, 0 };
	r->what.timestamp = EVREC_UNSET;
	if (lua_gettop(L) < arguments) {
		lua_settop(L, arguments);
	}
	return true;
}

/*
 * These read the argument at `index`. False: r->err says what is wrong with it. Those of something optional take nil for
 * unset.
 */
static inline bool recording_object(struct recording *r, int index)
{
	r->what.regarding = &r->regarding;
	return reference_read(r->L, index, "object", &r->what.object, &r->regarding, &r->err);
}
bool recording_related(struct recording *r, int index); /* optional */
static inline bool recording_string(struct recording *r, int index, const char *name, evrec_str *out)
{
	if (lua_type(r->L, index) != LUA_TSTRING) {
		return refuse_type(r->L, index, name, "", "a string", &r->err);
	}
	out->data = lua_tolstring(r->L, index, &out->len);
	return true;
}
bool recording_optional(struct recording *r, int index, const char *name, evrec_str *out);
bool recording_map(struct recording *r, int index, const char *name, evrec_map *out); /* optional */
bool recording_time(struct recording *r, int index);
/* The note, from the format at `index` and its arguments, up to the top of the stack: to be read first. */
bool recording_format(struct recording *r, int index);

/* For what a protected function raised, now at the top of the stack; `status` is lua_pcall's. Returns false. */
bool recording_raised(struct recording *r, int status, const char *name);

/* The ends of a call: counted as invalid, or as dropped, or made. Both return how many results were pushed. */
int recording_refuse(struct recording *r);
int recording_make(struct recording *r);

#pragma GCC visibility pop

#endif

/*
 * recording.h - one recording call: reads its arguments, of any type, without raising, and pushes its results.
 *
 * A call allocates no Lua memory if its object is a reference, or a table without a metatable, and its message needs no
 * formatting. Code that can raise, or run out of memory, runs as a protected call of a function that is an upvalue.
 */
#ifndef EVREC_LUA_RECORDING_H
#define EVREC_LUA_RECORDING_H

#include "lua/recorder.h"
#include "lua/reference.h"

#pragma GCC visibility push(hidden)

/* The upvalues of the methods of a recorder, in the order in which recording_push_upvalues pushes them. */
enum recording_upvalue {
	UP_FORMAT = UP_REFERENCE_LAST + 1, /* string.format */
	UP_GROW,                           /* compat_grow */
	UP_ADDRESS,                        /* a userdata that holds the address for the next two functions */
	UP_MAP,                            /* a function that copies a map to the evrec_map at the address */
	UP_FAILURE,                        /* a function that returns nil, message, name of the evrec_error there */
	UP_NO_MEMORY,                      /* "no memory" */
	UP_DROPPED,                        /* "dropped" */
	UP_RECORDING_LAST = UP_DROPPED
};

void recording_push_upvalues(lua_State *L);

/* `emit` borrows from values on the Lua stack, which stay there until recording_make or recording_refuse. */
struct recording {
	lua_State *L;
	struct recorder *recorder;
	evrec_emit emit;
	evrec_reference regarding, related;
	evrec_error err;
};

/*
 * The slow path of recording_begin, out of line: self is no recorder (NULL), was collected, or the stack cannot grow.
 * Pushes nil, message, name, and returns false.
 */
COLD bool recording_decline(lua_State *L, struct recording *r, struct recorder *recorder);

/*
 * Begins a call with that many arguments, self included. Missing arguments become nil. `slots` is how many stack slots
 * the call needs: 0, for the 20 that every C function has, suffices for the arguments and one reference;
 * RECORDING_SLOTS for two references, the fields of emit, two maps, and the calls that read them. Returns false if self
 * is no recorder, or if the stack cannot grow, which counts as a drop. Then the method returns the three values that
 * were pushed.
 */
#define RECORDING_SLOTS (2 * REFERENCE_SLOTS + 48)
static inline bool recording_begin(lua_State *L, struct recording *r, int arguments, int slots)
{
	struct recorder *recorder = lua_touserdata(L, 1);

	/* The length of a light userdata is 0, so the pointer is not dereferenced. */
	if (recorder == NULL || lua_rawlen(L, 1) != sizeof(*recorder) || recorder->type != &recorder_type) {
		return recording_decline(L, r, NULL);
	}
	if (recorder->recorder == NULL || (slots != 0 && !compat_checkstack(L, slots, lua_upvalueindex(UP_GROW)))) {
		return recording_decline(L, r, recorder);
	}
	r->L = L;
	r->recorder = recorder;
	/* Faster than an assignment of the whole struct, which is large. */
	r->emit.object = NULL;
	r->emit.regarding = r->emit.related = NULL;
	r->emit.action = (evrec_str){ NULL, 0 };
	r->emit.annotations = r->emit.labels = (evrec_map){ NULL, 0 };
	r->emit.timestamp = EVREC_UNSET;
	if (lua_gettop(L) < arguments) {
		lua_settop(L, arguments);
	}
	return true;
}

/*
 * These read the argument at `index`. They return false, with r->err set, if it is wrong. Optional arguments are unset
 * if they are nil.
 */
static inline bool recording_object(struct recording *r, int index)
{
	r->emit.regarding = &r->regarding;
	return reference_read(r->L, index, "object", &r->emit.object, &r->regarding, &r->err);
}
bool recording_related(struct recording *r, int index); /* optional */
/* Checks the type alone: an object, a reference or unset. */
bool recording_related_type(struct recording *r, int index);
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
/* Checks the type alone: a table or unset. */
bool recording_map_type(struct recording *r, int index, const char *name);
bool recording_time(struct recording *r, int index);
/* Formats the note. `index` is that of the format; its arguments end at the top of the stack, so this comes first. */
bool recording_format(struct recording *r, int index);

/* Sets r->err to the error at the top of the stack, for which lua_pcall returned `status`. Returns false. */
bool recording_raised(struct recording *r, int status, const char *name);

/*
 * The ends of a call. recording_refuse counts it as dropped or invalid, as r->err says; recording_make records the
 * event. Both push the results, and return how many they are.
 */
COLD int recording_refuse(struct recording *r);
int recording_make(struct recording *r);
/* Pushes the results of a call for which the core returned an error. Returns how many they are. */
COLD int recording_fail(lua_State *L, evrec_error *err);

#pragma GCC visibility pop

#endif

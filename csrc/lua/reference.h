/*
 * reference.h - object references: evrec.reference(object), and reading one from what a recording call is given.
 *
 * Reading is in the way of every event: names of fields come from the upvalues of the C function that reads, where they
 * are interned already, and the values stay on the Lua stack, which keeps them alive while the core borrows them.
 */
#ifndef EVREC_LUA_REFERENCE_H
#define EVREC_LUA_REFERENCE_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

extern const struct box_type reference_type;

/* The upvalues of a C function that calls reference_read, in the order in which reference_push_upvalues pushes them. */
enum reference_upvalue {
	UP_REFERENCE = 1, /* the metatable of references */
	UP_GET,           /* function(table, key) return table[key] end */
	UP_KIND,
	UP_API_VERSION,
	UP_NAME,
	UP_NAMESPACE,
	UP_UID,
	UP_RESOURCE_VERSION,
	UP_FIELD_PATH,
	UP_METADATA,
	UP_REFERENCE_LAST = UP_METADATA
};
void reference_push_upvalues(lua_State *L);

/* How many stack slots one reading may leave taken. The caller has seen to it that they, and four more, are there. */
#define REFERENCE_SLOTS 8

/* "what name: expected ..., got ..." into err; returns false. `index` is the culprit's. */
bool refuse_type(lua_State *L, int index, const char *what, const char *name, const char *expected, evrec_error *err);

/*
 * Reads the object at `index`: sets *ref where it is a userdata of evrec.reference, else *reference, borrowed from the
 * Lua stack. Raises nothing. False: err says what is wrong.
 */
bool reference_read(lua_State *L, int index, const char *what, const evrec_ref **ref, evrec_reference *reference,
                    evrec_error *err);

/* Lua: evrec.reference(object) -> reference; raises on misuse. Has the upvalues above. */
int reference_new(lua_State *L);

#pragma GCC visibility pop

#endif

/*
 * reference.h - object references: evrec.reference(object), and reading the objects of recording calls.
 *
 * Every recording call reads a reference, so reading is fast: the names of fields are upvalues of the C function that
 * reads, where they are interned already. The values stay on the Lua stack, which keeps them alive while the core borrows them.
 */
#ifndef EVREC_LUA_REFERENCE_H
#define EVREC_LUA_REFERENCE_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

#define REFERENCE_NAME "evrec.reference"
extern const struct box_type reference_type;

struct reference {
	/* &reference_type. A recording call knows a reference by it, faster than by the metatable. */
	const struct box_type *type;
	evrec_prepared_ref *ref; /* NULL: it was collected */
};

/* The upvalues of a C function that calls reference_read, in the order in which reference_push_upvalues pushes them. */
enum reference_upvalue {
	UP_GET = 1, /* function(table, key) return table[key] end */
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

/* How many values one reading may leave on the stack. The caller makes room for them, and for four more. */
#define REFERENCE_SLOTS 8

/* Sets *err to "<argument><name>: expected <expected>, got <type of the value at index>". Returns false. */
COLD bool refuse_type(lua_State *L, int index, const char *argument, const char *name, const char *expected,
                      evrec_error *err);

/*
 * Reads the object at `index`. If it is a userdata of evrec.reference, sets *ref, else sets *ref to NULL, and
 * *reference, which borrows from values left on the Lua stack. Returns false, with *err set, if it is no object. Never
 * raises. `argument` names the argument in messages.
 */
bool reference_read(lua_State *L, int index, const char *argument, const evrec_prepared_ref **ref,
                    evrec_reference *reference, evrec_error *err);

/* Pushes the Lua function evrec.reference(object) -> reference, with a cache of its own. It raises on misuse. */
void reference_push_function(lua_State *L);

#pragma GCC visibility pop

#endif

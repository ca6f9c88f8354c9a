/*
 * box.h - userdata: their types, and how callbacks find them again. One Lua state, one thread at a time.
 */
#ifndef EVREC_LUA_BOX_H
#define EVREC_LUA_BOX_H

#include "evrec.h"
#include "lua/compat.h"

#pragma GCC visibility push(hidden)

/*
 * A type of userdata. Its metatable lies in the registry under the type's address, a key that no other library has.
 * Metamethods are in the metatable alone: `object:__gc()` finds nothing.
 */
struct box_type {
	const char *name;            /* "evrec.clock": __name, and the word in messages */
	const luaL_Reg *methods;     /* may be NULL */
	const luaL_Reg *metamethods; /* likewise; without an __index here, methods are what is looked up */
};

/* Makes the metatable, once for a Lua state. */
void box_define(lua_State *L, const struct box_type *type);
/* Push the table of the methods, or the metatable. The type must have been defined. */
void box_push_methods(lua_State *L, const struct box_type *type);
void box_push_metatable(lua_State *L, const struct box_type *type);

/* Pushes a zeroed userdata with its metatable set: only then open what it is to own, so that __gc finds it. */
void *box_new(lua_State *L, const struct box_type *type, size_t size);
/* The userdata at `index`, or NULL where it is something else. Raises nothing. */
void *box_test(lua_State *L, int index, const struct box_type *type);
/* Likewise, but raises. */
void *box_check(lua_State *L, int index, const struct box_type *type);

/*
 * Anchors: from the address of a userdata to the userdata, weakly, for callbacks, which have the address alone.
 * anchor_set takes it from the top of the stack and leaves it there.
 */
void anchor_set(lua_State *L);
void anchor_push(lua_State *L, const void *address);

/*
 * Memory of evrec's, put into a string on top of the stack: freed even where there is no memory for the string.
 * `make` returns what evrec_free frees, or NULL: then this raises.
 */
void box_push_text(lua_State *L, char *(*make)(const void *from, size_t *len), const void *from);

/* nil, or what lua-cjson decodes null to. */
static inline bool is_unset(lua_State *L, int index)
{
	int type = lua_type(L, index);

	return type <= LUA_TNIL || (type == LUA_TLIGHTUSERDATA && lua_touserdata(L, index) == NULL);
}

/* Pushes nil, the message, and the code's name. Returns 3. */
int push_failure(lua_State *L, const evrec_error *err);

/* Defines the types of this file. */
void box_open(lua_State *L);

#pragma GCC visibility pop

#endif

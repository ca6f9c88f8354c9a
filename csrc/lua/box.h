/*
 * box.h - the types of userdata, and how callbacks find a userdata by its address. A Lua state is used by one thread at
 * a time.
 */
#ifndef EVREC_LUA_BOX_H
#define EVREC_LUA_BOX_H

#include "evrec.h"
#include "lua/compat.h"

#pragma GCC visibility push(hidden)

/*
 * As in the core: HOT functions, which each known event passes, lie side by side in memory. COLD is a function that
 * hardly any event passes.
 */
#define HOT __attribute__((hot))
#define COLD __attribute__((cold))

/*
 * A type of userdata. The registry holds its metatable under the type's address, a key that no other library has. The
 * table of methods does not hold the metamethods, so a script cannot call `object:__gc()`.
 */
struct box_type {
	const char *name;        /* such as "evrec.clock": the metatable's __name, and the type in messages */
	const luaL_Reg *methods; /* may be NULL */
	const luaL_Reg
		*metamethods; /* may be NULL. Without an __index among them, fields are looked up in the methods */
};

/* Makes the metatable if this Lua state does not have it yet. */
void box_define(lua_State *L, const struct box_type *type);
/* These push the table of methods, and the metatable. The type must be defined. */
void box_push_methods(lua_State *L, const struct box_type *type);
void box_push_metatable(lua_State *L, const struct box_type *type);

/*
 * Pushes a zeroed userdata with its metatable set. Open a resource that it is to own only afterwards, so that __gc
 * frees the resource even if something raises in between.
 */
void *box_new(lua_State *L, const struct box_type *type, size_t size);
/* Returns the userdata at `index`, or NULL if the value is not of that type. Never raises. */
void *box_test(lua_State *L, int index, const struct box_type *type);
/* Returns the userdata at `index`. Raises if the value is not of that type. */
void *box_check(lua_State *L, int index, const struct box_type *type);

/*
 * A weak table of anchors maps the address of a userdata to the userdata, because the core gives callbacks an address.
 * anchor_set anchors the userdata at the top of the stack, and leaves it there. anchor_push pushes it, or nil if it was
 * not anchored or is being collected.
 */
void anchor_set(lua_State *L);
void anchor_push(lua_State *L, const void *address);
/* Pushes the table of anchors, by the addresses of the userdata. */
void anchors_push(lua_State *L);

/*
 * Pushes a userdata that owns a block of the core's memory. The caller puts the block into the returned slot, which
 * holds NULL until then, and the userdata's __gc calls evrec_free on it, even if something raises.
 */
char **box_push_owner(lua_State *L);
/*
 * Pushes the text that `make` returns, and frees it with evrec_free. Raises if `make` returns NULL, for want of memory.
 * `from` must survive whatever a finalizer does.
 */
void box_push_text(lua_State *L, char *(*make)(const void *from, size_t *len), const void *from);

/* Whether the value is nil, nothing, or the NULL pointer that lua-cjson decodes null to. */
static inline bool is_unset(lua_State *L, int index)
{
	int type = lua_type(L, index);

	return type <= LUA_TNIL || (type == LUA_TLIGHTUSERDATA && lua_touserdata(L, index) == NULL);
}

/* Pushes nil, the message and the name of the code. Returns 3, the number of results. */
int push_failure(lua_State *L, const evrec_error *err);

/* Makes the table of anchors, and defines the types of box.c. */
void box_open(lua_State *L);

#pragma GCC visibility pop

#endif

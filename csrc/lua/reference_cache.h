/*
 * reference_cache.h - the references that evrec.reference made last, for scripts that make an equal table anew at each
 * request. References are immutable, so equal tables can share one.
 */
#ifndef EVREC_LUA_REFERENCE_CACHE_H
#define EVREC_LUA_REFERENCE_CACHE_H

#include "lua/reference.h"

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The most references that a cache keeps. */
#define REFERENCE_CACHE_SIZE 1024
/* A reference whose fields are longer together is not kept. */
#define REFERENCE_CACHE_MAX_BYTES 1024

/* A place in the cache. */
struct reference_place {
	int index; /* of `kept`; 0: the reference is too long to be kept */
	uint64_t hash;
	bool found;
};

/* Pushes the two upvalues of a function with a cache: the cache itself, and the table `kept`, which anchors userdata. */
void reference_cache_push(lua_State *L);

/*
 * Pushes the userdata of an equal reference, and returns its place, if the cache has one; else returns the place for a
 * new one. Never raises, never allocates. `kept` is the stack index of the table.
 */
struct reference_place reference_cache_find(lua_State *L, void *cache, int kept, const evrec_reference *reference);

/* Keeps the userdata at the top of the stack in the place, and forgets the reference that was there. */
void reference_cache_keep(lua_State *L, void *cache, int kept, struct reference_place place);

#pragma GCC visibility pop

#endif

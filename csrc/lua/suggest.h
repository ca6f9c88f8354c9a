/*
 * suggest.h - finds the name that a misspelt one was probably meant to be.
 *
 *   struct suggestion s = suggest_begin("reasn");
 *   suggest_consider(&s, "reason");
 *   suggest_push(L, &s, "");     ": did you mean 'reason'?", or ""
 */
#ifndef EVREC_LUA_SUGGEST_H
#define EVREC_LUA_SUGGEST_H

#include "lua/compat.h"

#pragma GCC visibility push(hidden)

struct suggestion {
	const char *word; /* borrowed */
	const char *best; /* the nearest name so far, borrowed; NULL: none is near */
	size_t distance;  /* a nearer name has a lower one */
};

struct suggestion suggest_begin(const char *word);
void suggest_consider(struct suggestion *s, const char *name);
/* Pushes a text that ends a message; `path` goes before the name. */
void suggest_push(lua_State *L, const struct suggestion *s, const char *path);

/* Lua: core.suggest(word, names) -> text; `names` is a table whose keys are the names. */
int suggest_call(lua_State *L);

#pragma GCC visibility pop

#endif

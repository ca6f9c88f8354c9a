/*
 * fuzz_lua.h - Lua 5.4 inside a target. The Lua checks of a target NAME are in spec/fuzz/NAME.lua, which returns a
 * function, or a table of functions. Run the target from the top of the repository.
 */
#ifndef EVREC_FUZZ_LUA_H
#define EVREC_FUZZ_LUA_H

#include "fuzz.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* Tells libFuzzer of pairs of lines of Lua that ran one after the other, as it counts edges in C. */
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t fuzz_lines[8192];

static inline void fuzz_count_line(lua_State *L, lua_Debug *ar)
{
	static size_t before;
	size_t here;

	(void)lua_getinfo(L, "S", ar);
	here = (size_t)ar->currentline * 31 + (size_t)ar->linedefined * 7 + ar->srclen;
	fuzz_lines[(before * 17 + here) % sizeof(fuzz_lines)]++;
	before = here;
}

/*
 * Counts the memory of the core. LeakSanitizer would search all memory of Lua after every input, which takes too long.
 */
static size_t fuzz_blocks;

static inline void *fuzz_realloc(void *ctx, void *block, size_t size)
{
	(void)ctx;
	if (size == 0) {
		fuzz_blocks -= block != NULL;
		free(block);
		return NULL;
	}
	fuzz_blocks += block == NULL;
	return realloc(block, size);
}

/* Prints the error at the top of the stack, and ends the target. */
_Noreturn static inline void fuzz_lua_fail(lua_State *L)
{
	(void)fprintf(stderr, "does not hold: %s\n", luaL_tolstring(L, -1, NULL));
	abort();
}

static inline int fuzz_traceback(lua_State *L)
{
	luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
	return 1;
}

/* Calls the function that lies below `arguments` values. An error ends the target. */
static inline void fuzz_lua_call(lua_State *L, int arguments, int results)
{
	int function = lua_gettop(L) - arguments;

	lua_pushcfunction(L, fuzz_traceback);
	lua_insert(L, function);
	if (lua_pcall(L, arguments, results, function) != LUA_OK) {
		fuzz_lua_fail(L);
	}
	lua_remove(L, function);
}

/* Opens a state and runs the file, whose result is at stack index 1. */
static inline lua_State *fuzz_lua_open(const char *file)
{
	static const char path[] = "package.path = './lua/?.lua;./spec/support/?.lua;' .. package.path";
	lua_State *L = luaL_newstate();

	CHECK(L != NULL);
	evrec_set_allocator(fuzz_realloc, NULL);
	luaL_openlibs(L);
	if (luaL_dostring(L, path) != LUA_OK || luaL_loadfile(L, file) != LUA_OK) {
		fuzz_lua_fail(L);
	}
	fuzz_lua_call(L, 0, 1);
	return L;
}

#endif

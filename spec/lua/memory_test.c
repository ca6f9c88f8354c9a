/*
 * Each allocation of Lua, or of the core, fails in turn. A recording call must not raise, and must be counted. Any
 * other call may raise, but must not leak. memory.lua makes the calls.
 */
#include "unit.h"

#include "lua/compat.h"

#include <lualib.h>
#if LUA_VERSION_NUM == 501
#include <luajit.h>
#endif

int luaopen_evrec_core(lua_State *L);

/* ---- memory ---- */

/*
 * `width` allocations fail, from number `at` on. If an allocation fails, Lua 5.3 and 5.4 collect garbage and try again.
 * So a width of 1 tests that nothing in use is garbage, 2 makes one allocation really fail, and FOR_EVER lets no
 * further one succeed.
 */
struct alloc_failure {
	size_t at, width, calls, failures;
	bool armed;
};
#define FOR_EVER SIZE_MAX
static const size_t widths[] = { 1, 2, FOR_EVER };

static struct alloc_failure lua_memory, core_memory;
static size_t core_blocks;

static bool fails(struct alloc_failure *s)
{
	size_t n;

	if (!s->armed) {
		return false;
	}
	n = ++s->calls;
	if (n < s->at || n - s->at >= s->width) {
		return false;
	}
	s->failures++;
	return true;
}

static void arm(struct alloc_failure *s, size_t at, size_t width)
{
	*s = (struct alloc_failure){ .at = at, .width = width, .armed = true };
}

/* Returns how many allocations failed. */
static size_t disarm(struct alloc_failure *s)
{
	s->armed = false;
	return s->failures;
}

/* Never fails to shrink a block, on which Lua relies. */
static void *lua_alloc(void *ctx, void *block, size_t old, size_t size)
{
	(void)ctx;
	if (size == 0) {
		free(block);
		return NULL;
	}
	return (block == NULL || size > old) && fails(&lua_memory) ? NULL : realloc(block, size);
}

static void *core_alloc(void *ctx, void *block, size_t size)
{
	(void)ctx;
	if (size == 0) {
		core_blocks -= block != NULL;
		free(block);
		return NULL;
	}
	if (fails(&core_memory)) {
		return NULL;
	}
	core_blocks += block == NULL;
	return realloc(block, size);
}

/* ---- Lua ---- */

static void must(lua_State *L, int status)
{
	if (status != 0) {
		fail_msg("%s", lua_tostring(L, -1));
	}
}

static void preload(lua_State *L)
{
	lua_getglobal(L, "package");
	lua_getfield(L, -1, "preload");
	lua_pushcfunction(L, luaopen_evrec_core);
	lua_setfield(L, -2, "evrec.core");
	lua_settop(L, 0);
	must(L,
	     luaL_dostring(L, "package.path = './lua/?.lua;./lua/?/init.lua;./spec/support/?.lua;' .. package.path"));
}

#ifdef __SANITIZE_THREAD__
#define SKIPPED true /* it keeps every call that Lua leaves by longjmp; and the test has one thread */
#else
#define SKIPPED false
#endif

/* NULL: the sanitizer cannot run this test, or this Lua takes no allocator. */
static lua_State *open_state(void)
{
	lua_State *L = SKIPPED ? NULL : lua_newstate(lua_alloc, NULL);

	if (L != NULL) {
		luaL_openlibs(L);
#ifdef LUAJIT_VERSION
		/* Compiled code does not survive a lack of memory. */
		(void)luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
#endif
		preload(L);
	}
	return L;
}

/* Opens a state with the table that memory.lua returns at stack index 1. */
static lua_State *open_script(void)
{
	lua_State *L = open_state();

	if (L == NULL) {
		skip();
	}
	must(L, luaL_dofile(L, "spec/lua/memory.lua"));
	assert_int_equal(lua_gettop(L), 1);
	return L;
}

static int push_call(lua_State *L, const char *name)
{
	lua_getfield(L, 1, name);
	return lua_gettop(L);
}

static void call(lua_State *L, const char *name)
{
	(void)push_call(L, name);
	must(L, lua_pcall(L, 0, 0, 0));
}

/* The first cycle runs finalizers, the second one frees their objects. */
static void collect(lua_State *L)
{
	(void)lua_gc(L, LUA_GCCOLLECT, 0);
	(void)lua_gc(L, LUA_GCCOLLECT, 0);
}

static void close_state(lua_State *L)
{
	lua_close(L);
	assert_int_equal(core_blocks, 0);
}

/* ---- recording ---- */

static int nothing(lua_State *L)
{
	(void)L;
	return 0;
}

/* Makes a coroutine whose stack has room for one call, so that anything more must be allocated. */
static lua_State *new_coroutine(lua_State *L)
{
	lua_State *co = lua_newthread(L);

	lua_pushcfunction(co, nothing);
	must(co, lua_pcall(co, 0, 0, 0));
	return co;
}

struct counters {
	lua_Integer recorded, invalid, inner;
};

static struct counters counters(lua_State *L)
{
	struct counters c;
	int top = push_call(L, "recorded");

	must(L, lua_pcall(L, 0, 3, 0));
	c.recorded = lua_tointeger(L, -3);
	c.invalid = lua_tointeger(L, -2);
	c.inner = lua_tointeger(L, -1);
	lua_settop(L, top - 1);
	return c;
}

/* A recording call returns true, or nil, a message and a name, and nothing else. */
static void check_results(lua_State *co, bool valid, bool failed, const struct counters *before,
                          const struct counters *now)
{
	const char *name = lua_tostring(co, 3);
	bool ok = lua_toboolean(co, 1) != 0;

	assert_in_range(now->recorded, before->recorded + 1, before->recorded + 1 + now->inner - before->inner);
	if (ok) {
		assert_true(valid && lua_gettop(co) == 1);
		return;
	}
	assert_int_equal(lua_gettop(co), 3);
	assert_true(lua_isnil(co, 1) && lua_isstring(co, 2) && name != NULL);
	assert_true(strcmp(name, "dropped") == 0 || strcmp(name, "invalid") == 0);
	/* Without memory a valid call is dropped, and counted as such; an invalid call is invalid or dropped. */
	if (valid) {
		assert_true(failed);
		assert_string_equal(name, "dropped");
		assert_int_equal(now->invalid, before->invalid);
	} else if (!failed) {
		assert_string_equal(name, "invalid");
		assert_int_equal(now->invalid, before->invalid + 1);
	}
}

/* Makes the call at the top of the stack while the n-th allocation fails. False: it made fewer allocations. */
static bool record(lua_State *L, struct alloc_failure *memory, size_t n, size_t width)
{
	const int list = lua_gettop(L);
	const int len = (int)lua_rawlen(L, list);
	struct counters before = counters(L), now;
	lua_State *co = new_coroutine(L);
	bool valid, failed;
	int i, status;

	lua_rawgeti(L, list, 1);
	valid = lua_toboolean(L, -1) != 0;
	lua_pop(L, 1);
	for (i = 2; i <= len; i++) {
		lua_rawgeti(L, list, i);
		lua_xmove(L, co, 1);
	}
	arm(memory, n, width);
	status = lua_pcall(co, len - 2, LUA_MULTRET, 0);
	failed = disarm(memory) != 0;
	must(co, status);
	now = counters(L);
	check_results(co, valid, failed, &before, &now);
	lua_settop(L, list);
	return failed;
}

static void record_all(struct alloc_failure *memory, size_t width)
{
	lua_State *L = open_script();
	size_t n, total = 0;
	int i, calls;

	call(L, "open");
	(void)push_call(L, "recordings");
	must(L, lua_pcall(L, 0, 1, 0));
	calls = (int)lua_rawlen(L, 2);
	for (i = 1; i <= calls; i++) {
		lua_rawgeti(L, 2, i);
		for (n = 1; record(L, memory, n, width); n++) {
			call(L, "settle");
		}
		total += n - 1;
		lua_settop(L, 2);
	}
	assert_true(total > 20);
	close_state(L);
}

/* ---- everything else ---- */

/* Calls a function of memory.lua, which may raise, while the n-th allocation fails, and checks that nothing leaks. */
static bool try(lua_State *L, const char *name, struct alloc_failure *memory, size_t n, size_t width)
{
	size_t blocks;
	bool failed;

	blocks = core_blocks;
	(void)push_call(L, name);
	arm(memory, n, width);
	(void)lua_pcall(L, 0, 0, 0);
	failed = disarm(memory) != 0;
	lua_settop(L, 1);
	call(L, "forget");
	collect(L);
	assert_int_equal(core_blocks, blocks);
	return failed;
}

static void try_all(const char *name, struct alloc_failure *memory, size_t width)
{
	lua_State *L = open_script();
	size_t n = 1;

	while (try(L, name, memory, n, width)) {
		n++;
	}
	assert_true(n > 20);
	close_state(L);
}

static int require_core(lua_State *L)
{
	lua_getglobal(L, "require");
	lua_pushliteral(L, "evrec.core");
	lua_call(L, 1, 0);
	return 0;
}

static void test_opening(void **state)
{
	size_t w, n;
	bool failed;

	(void)state;
	for (w = 0; w < 3; w++) {
		n = 0;
		do {
			lua_State *L = open_state();

			if (L == NULL) {
				skip();
			}
			lua_pushcfunction(L, require_core);
			arm(&lua_memory, ++n, widths[w]);
			(void)lua_pcall(L, 0, 0, 0);
			failed = disarm(&lua_memory) != 0;
			close_state(L);
		} while (failed);
		assert_true(n > 50);
	}
}

static void test_recording(void **state)
{
	size_t w;

	(void)state;
	for (w = 0; w < 3; w++) {
		record_all(&lua_memory, widths[w]);
	}
}

static void test_recording_without_evrecs_memory(void **state)
{
	(void)state;
	record_all(&core_memory, 1);
	record_all(&core_memory, FOR_EVER);
}

/* Calls a function of memory.lua while memory of Lua, or of the core, runs out. */
static void run_out(const char *name)
{
	size_t w;

	for (w = 0; w < 3; w++) {
		try_all(name, &lua_memory, widths[w]);
	}
	try_all(name, &core_memory, 1);
	try_all(name, &core_memory, FOR_EVER);
}

static void test_values(void **state)
{
	(void)state;
	run_out("values");
}

static void test_life(void **state)
{
	(void)state;
	run_out("life");
}

static void test_interrupted_correlation(void **state)
{
	(void)state;
	run_out("interrupted");
}

static void test_queue(void **state)
{
	(void)state;
	run_out("take");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_recording),
		cmocka_unit_test(test_recording_without_evrecs_memory),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_interrupted_correlation),
		cmocka_unit_test(test_queue),
	};

	evrec_set_allocator(core_alloc, NULL);
	return cmocka_run_group_tests_name("memory: Lua", tests, NULL, NULL);
}

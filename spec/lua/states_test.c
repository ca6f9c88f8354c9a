/* Lua states in threads of their own use one broadcaster with a name, as HAProxy has them. states.lua is what each runs. */
#include "unit.h"

#include "lua/compat.h"
#include "tmpdir.h"

#include <lualib.h>
#include <pthread.h>

#define STATES 4

int luaopen_evrec_core(lua_State *L);

static lua_State *open_state(const char *path)
{
	lua_State *L = luaL_newstate();

	assert_non_null(L);
	luaL_openlibs(L);
	lua_getglobal(L, "package");
	lua_getfield(L, -1, "preload");
	lua_pushcfunction(L, luaopen_evrec_core);
	lua_setfield(L, -2, "evrec.core");
	lua_pushstring(L, path);
	lua_setglobal(L, "path");
	lua_settop(L, 0);
	return L;
}

static void must(lua_State *L, int status)
{
	if (status != 0) {
		fail_msg("%s", lua_tostring(L, -1));
	}
}

struct life {
	const char *path;
	char message[256]; /* empty: no error */
	int code;          /* of the script */
	lua_Number recorded;
};

/* No assertion of cmocka's may fail in another thread than the test's. */
static void *run(void *ctx)
{
	struct life *life = ctx;
	lua_State *L = open_state(life->path);

	life->code = luaL_loadfile(L, "spec/lua/states.lua");
	if (life->code == 0) {
		life->code = lua_pcall(L, 0, 1, 0);
	}
	if (life->code != 0) {
		(void)snprintf(life->message, sizeof(life->message), "%s", lua_tostring(L, -1));
	} else {
		life->recorded = lua_tonumber(L, -1);
	}
	lua_close(L);
	return NULL;
}

static void test_states_in_threads_share_a_broadcaster(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	lua_State *first = open_state(path);
	struct life lives[STATES] = { 0 };
	pthread_t threads[STATES];
	lua_Number recorded = 0;

	must(first, luaL_dofile(first, "spec/lua/states.lua"));
	recorded = lua_tonumber(first, -1);
	for (size_t i = 0; i < STATES; i++) {
		lives[i].path = path;
		assert_int_equal(pthread_create(&threads[i], NULL, run, &lives[i]), 0);
	}
	for (size_t i = 0; i < STATES; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	for (size_t i = 0; i < STATES; i++) {
		assert_string_equal(lives[i].message, "");
		recorded += lives[i].recorded;
	}
	/* The script of the first state keeps its broadcaster open, whose counters are those of all. */
	must(first, luaL_dostring(first, "local ok, stats, message = shared:shutdown(20)\n"
	                                 "assert(ok, message)\n"
	                                 "assert(stats.callback_errors == 0)\n"
	                                 "return stats.recorded, stats.created + stats.patched + stats.coalesced"));
	assert_true(lua_tonumber(first, -2) == recorded);
	assert_true(lua_tonumber(first, -1) == recorded);
	lua_close(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = { TMPDIR_TEST(test_states_in_threads_share_a_broadcaster) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

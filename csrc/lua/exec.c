#include "lua/exec.h"

/* Pushes the field. */
static int push_field(lua_State *L, int index, const char *name)
{
	lua_pushstring(L, name);
	lua_rawget(L, index);
	return lua_type(L, -1);
}

static void expect(lua_State *L, bool fits, const char *name, const char *expected)
{
	if (!fits) {
		luaL_error(L, "evrec.sink.kubernetes: option 'exec': %s: expected %s", name, expected);
	}
}

static evrec_str push_string(lua_State *L, int index, const char *name)
{
	int type = push_field(L, index, name);
	evrec_str s = { NULL, 0 };

	expect(L, type == LUA_TSTRING || type == LUA_TNIL, name, "a string");
	if (type == LUA_TSTRING) {
		s.data = lua_tolstring(L, -1, &s.len);
	}
	return s;
}

/* Pushes a list of strings, and a block with room for them; returns the block. */
static evrec_str *push_list(lua_State *L, int index, const char *name)
{
	int type = push_field(L, index, name);

	expect(L, type == LUA_TTABLE, name, "a list");
	return lua_newuserdata(L, (lua_rawlen(L, -1) + 1) * sizeof(evrec_str));
}

/* Fills the block `items` above the list at stack index `list`; returns their number. */
static size_t read_list(lua_State *L, int list, evrec_str *items, const char *name)
{
	size_t n = lua_rawlen(L, list + 1) / sizeof(evrec_str) - 1;

	for (size_t i = 0; i < n; i++) {
		lua_rawgeti(L, list, (int)(i + 1));
		expect(L, lua_type(L, -1) == LUA_TSTRING, name, "strings");
		items[i].data = lua_tolstring(L, -1, &items[i].len);
		lua_pop(L, 1);
	}
	return n;
}

void exec_read(lua_State *L, int index, evrec_exec *exec)
{
	evrec_str *args, *env;
	int args_list, env_list;

	luaL_checkstack(L, LUA_MINSTACK, "exec");
	*exec = (evrec_exec){ .args_len = 0 };
	exec->command = push_string(L, index, "command");
	exec->api_version = push_string(L, index, "api_version");
	exec->cluster_config = push_string(L, index, "cluster_config");
	expect(L, push_field(L, index, "provide_cluster_info") == LUA_TBOOLEAN, "provide_cluster_info", "a boolean");
	exec->provide_cluster_info = lua_toboolean(L, -1) != 0;
	args_list = lua_gettop(L) + 1;
	args = push_list(L, index, "args");
	env_list = lua_gettop(L) + 1;
	env = push_list(L, index, "env");
	/* From here on nothing is allocated, so no finalizer changes a list. */
	exec->args_len = read_list(L, args_list, args, "args");
	exec->args = args;
	exec->env.len = read_list(L, env_list, env, "env") / 2;
	exec->env.pairs = (const evrec_pair *)(const void *)env; /* a pair is two strings */
}

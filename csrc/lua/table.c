#include "lua/table.h"

void table_set_count(lua_State *L, const char *name, uint64_t count)
{
	lua_pushinteger(L, (lua_Integer)count);
	lua_setfield(L, -2, name);
}

void table_set_number(lua_State *L, const char *name, double number)
{
	lua_pushnumber(L, (lua_Number)number);
	lua_setfield(L, -2, name);
}

void table_set_seconds(lua_State *L, const char *name, int64_t ns)
{
	table_set_number(L, name, (double)ns / (double)EVREC_SECOND);
}

void table_set_word(lua_State *L, const char *name, const char *word)
{
	lua_pushstring(L, word);
	lua_setfield(L, -2, name);
}

void table_set_text(lua_State *L, const char *name, evrec_str text)
{
	lua_pushlstring(L, text.len == 0 ? "" : text.data, text.len);
	lua_setfield(L, -2, name);
}

void table_set_optional(lua_State *L, const char *name, evrec_str text)
{
	if (text.len != 0) {
		table_set_text(L, name, text);
	}
}

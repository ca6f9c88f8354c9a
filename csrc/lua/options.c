#include "lua/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lua/clock.h"
#include "lua/colon.h"
#include "lua/event.h"
#include "lua/seconds.h"
#include "lua/suggest.h"

struct reading {
	lua_State *L;
	const char *function;
	const char *path; /* the place of the table being read: "correlator.", or "" for the outermost */
	int functions;
};

static void refuse(const struct reading *r, const char *name, const char *expected, const char *got)
{
	luaL_error(r->L, "%s: option '%s%s': expected %s, got %s", r->function, r->path, name, expected, got);
}

static void refuse_number(const struct reading *r, const struct option *o, const char *kind)
{
	char expected[96];

	/* A very large bound is shown only if the value exceeds it. */
	if (o->max >= 1e9 && !(lua_type(r->L, -1) == LUA_TNUMBER && (double)lua_tonumber(r->L, -1) > o->max)) {
		(void)snprintf(expected, sizeof(expected), "%s >= %.14g", kind, o->min);
	} else {
		(void)snprintf(expected, sizeof(expected), "%s from %.14g to %.14g", kind, o->min, o->max);
	}
	refuse(r, o->name, expected, number_describe(r->L));
}

static double number(const struct reading *r, const struct option *o, const char *kind)
{
	double value = lua_type(r->L, -1) == LUA_TNUMBER ? (double)lua_tonumber(r->L, -1) : (double)NAN;

	if (!isfinite(value) || value < o->min || value > o->max) {
		refuse_number(r, o, kind);
	}
	return value;
}

static double integer(const struct reading *r, const struct option *o)
{
	double value = number(r, o, "an integer");

	if (value != floor(value)) {
		refuse_number(r, o, "an integer");
	}
	return value;
}

static void expect(const struct reading *r, const struct option *o, int type, const char *expected)
{
	if (lua_type(r->L, -1) != type) {
		refuse(r, o->name, expected, luaL_typename(r->L, -1));
	}
}

/* A string, of `min` bytes at least. */
static evrec_str string(const struct reading *r, const struct option *o)
{
	evrec_str s;

	s.data = lua_tolstring(r->L, -1, &s.len);
	if ((double)s.len < o->min) {
		refuse(r, o->name, "a string that is not empty", "\"\"");
	}
	return s;
}

/* Pushes the words as a list for people: "a", "b" or "c". */
static void push_words(lua_State *L, const struct option *words)
{
	const struct option *w;

	lua_pushfstring(L, "\"%s\"", words[0].name);
	for (w = words + 1; w->name != NULL; w++) {
		lua_pushfstring(L, "%s%s\"%s\"", lua_tostring(L, -1), w[1].name == NULL ? " or " : ", ", w->name);
		lua_remove(L, -2);
	}
}

static int word(const struct reading *r, const struct option *o)
{
	const struct option *w;
	lua_State *L = r->L;

	if (lua_type(L, -1) == LUA_TSTRING) {
		for (w = o->rows; w->name != NULL; w++) {
			if (strlen(w->name) == lua_rawlen(L, -1) && strcmp(w->name, lua_tostring(L, -1)) == 0) {
				return (int)w->offset;
			}
		}
		lua_pushfstring(L, "\"%s\"", lua_tostring(L, -1));
	} else {
		lua_pushstring(L, luaL_typename(L, -1));
	}
	push_words(L, o->rows);
	refuse(r, o->name, lua_tostring(L, -1), lua_tostring(L, -2));
	return 0;
}

static void read_rows(const struct reading *r, const struct option *rows, char *into);

/*
 * Replaces the table at `index`, or nil, by a copy. Reading the copy may run finalizers, which may change the table of
 * the caller, but not the copy.
 */
static void copy_table(lua_State *L, int index)
{
	lua_newtable(L);
	if (lua_istable(L, index)) {
		lua_pushnil(L);
		while (lua_next(L, index) != 0) {
			lua_pushvalue(L, -2);
			lua_insert(L, -2);
			lua_rawset(L, -4);
		}
	}
	lua_replace(L, index);
}

static void read_table(const struct reading *r, const struct option *o, char *into)
{
	struct reading inner = *r;

	expect(r, o, LUA_TTABLE, "a table");
	luaL_checkstack(r->L, LUA_MINSTACK, "options");
	inner.path = lua_pushfstring(r->L, "%s%s.", r->path, o->name);
	lua_pushvalue(r->L, -2);
	read_rows(&inner, o->rows, into);
	lua_pop(r->L, 2);
}

/* Stack: the table of options, the name of the option, its value. The table then holds the copy of the map. */
static void read_map(const struct reading *r, const struct option *o, evrec_map *map)
{
	lua_State *L = r->L;

	lua_pushvalue(L, -2);
	lua_pushcfunction(L, map_read_call);
	lua_pushvalue(L, -3);
	lua_pushlightuserdata(L, map);
	if (lua_pcall(L, 2, 1, 0) != 0) {
		luaL_error(L, "%s: option '%s%s': %s", r->function, r->path, o->name, lua_tostring(L, -1));
	}
	lua_rawset(L, -5);
}

/* The value, a table, becomes a copy in the table that it is in, which keeps the strings that are borrowed from it. */
static void read_copied_table(const struct reading *r, const struct option *o, char *into)
{
	lua_State *L = r->L;

	if (!lua_istable(L, -1)) {
		refuse(r, o->name, "a string or a table", luaL_typename(L, -1));
	}
	copy_table(L, lua_gettop(L));
	lua_pushstring(L, o->name);
	lua_pushvalue(L, -2);
	lua_rawset(L, -5);
	read_table(r, o, into);
}

static size_t count_keys(lua_State *L, int index)
{
	size_t n = 0;

	lua_pushnil(L);
	while (lua_next(L, index) != 0) {
		lua_pop(L, 1);
		n++;
	}
	return n;
}

/* Likewise a list. The copy also keeps the block of its strings. */
static void read_strings(const struct reading *r, const struct option *o, struct option_strings *strings)
{
	lua_State *L = r->L;
	const int list = lua_gettop(L);
	const char *expected = o->type == OPTION_NAMES ? "a list of strings and numbers" : "a list of strings";
	evrec_str *items;

	expect(r, o, LUA_TTABLE, expected);
	luaL_checkstack(L, LUA_MINSTACK, "options");
	copy_table(L, list);
	strings->len = lua_rawlen(L, list);
	if (count_keys(L, list) != strings->len) {
		refuse(r, o->name, expected, "a table with other keys");
	}
	items = lua_newuserdata(L, (strings->len + 1) * sizeof(*items));
	strings->items = items;
	for (size_t i = 0; i < strings->len; i++) {
		lua_rawgeti(L, list, (int)(i + 1));
		if (o->type == OPTION_NAMES && lua_type(L, -1) == LUA_TNUMBER) {
			(void)number_describe(L);
			lua_remove(L, -2);
		}
		expect(r, o, LUA_TSTRING, expected);
		items[i].data = lua_tolstring(L, -1, &items[i].len);
		lua_rawseti(L, list, (int)(i + 1));
	}
	lua_setfield(L, list, "block");
	lua_pushstring(L, o->name);
	lua_pushvalue(L, list);
	lua_rawset(L, list - 2);
}

static void read_function(const struct reading *r, const struct option *o, const char *expected)
{
	expect(r, o, LUA_TFUNCTION, expected);
	lua_pushvalue(r->L, -1);
	lua_setfield(r->L, r->functions, o->name);
}

/* Reads the value at the top of the stack, and leaves it there. The table that it is in is two places below. */
static void read_value(const struct reading *r, const struct option *o, char *into)
{
	lua_State *L = r->L;
	void *at = into + o->offset;

	switch (o->type) {
	case OPTION_STRING:
		expect(r, o, LUA_TSTRING, "a string");
		*(evrec_str *)at = string(r, o);
		break;
	case OPTION_BOOLEAN:
		expect(r, o, LUA_TBOOLEAN, "a boolean");
		*(bool *)at = lua_toboolean(L, -1) != 0;
		break;
	case OPTION_UNSIGNED:
		*(unsigned *)at = (unsigned)integer(r, o);
		break;
	case OPTION_SIZE:
		*(size_t *)at = (size_t)integer(r, o);
		break;
	case OPTION_NUMBER:
		*(double *)at = number(r, o, "a number");
		break;
	case OPTION_WORD:
		*(int *)at = word(r, o);
		break;
	case OPTION_DURATION:
		if (!evrec_seconds_to_ns(number(r, o, "a number of seconds"), at)) {
			refuse_number(r, o, "a number of seconds");
		}
		break;
	case OPTION_BOUND:
		*(int64_t *)at = seconds_first(number(r, o, "a number of seconds"));
		break;
	case OPTION_CLOCK:
		if (box_test(L, -1, &clock_type) == NULL) {
			refuse(r, o->name, "a clock", luaL_typename(L, -1));
		}
		*(evrec_clock **)at = clock_at(L, -1);
		break;
	case OPTION_FUNCTION_OR_FALSE:
		if (lua_isboolean(L, -1) && !lua_toboolean(L, -1)) {
			*(bool *)at = true;
		} else {
			read_function(r, o, "a function or false");
		}
		break;
	case OPTION_MAP:
		read_map(r, o, at);
		break;
	case OPTION_STRINGS:
	case OPTION_NAMES:
		read_strings(r, o, at);
		break;
	case OPTION_FUNCTION:
		read_function(r, o, "a function");
		break;
	case OPTION_TABLE:
		read_table(r, o, at);
		break;
	case OPTION_STRING_OR_TABLE:
		if (lua_type(L, -1) == LUA_TSTRING) {
			*(evrec_str *)at = string(r, o);
		} else {
			read_copied_table(r, o, at);
		}
		break;
	case OPTION_VALUE:
	case OPTION_ROWS:
		break;
	}
}

/* Finds the row of that name. Sets *into to the struct that the offset of the row counts from. NULL: there is none. */
static const struct option *find(const struct option *rows, const char *name, char **into)
{
	const struct option *o;

	for (o = rows; o->name != NULL; o++) {
		if (o->type == OPTION_ROWS) {
			char *inner = *into + o->offset;
			const struct option *found = find(o->rows, name, &inner);

			if (found != NULL) {
				*into = inner;
				return found;
			}
		} else if (strcmp(o->name, name) == 0) {
			return o;
		}
	}
	return NULL;
}

static void consider(struct suggestion *s, const struct option *rows)
{
	const struct option *o;

	for (o = rows; o->name != NULL; o++) {
		if (o->type == OPTION_ROWS) {
			consider(s, o->rows);
		} else {
			suggest_consider(s, o->name);
		}
	}
}

static void unknown(const struct reading *r, const struct option *rows)
{
	struct suggestion s;
	lua_State *L = r->L;

	if (lua_type(L, -2) != LUA_TSTRING) {
		luaL_error(L, "%s: options are named by strings, found %s as a name", r->function,
		           luaL_typename(L, -2));
	}
	s = suggest_begin(lua_tostring(L, -2));
	consider(&s, rows);
	suggest_push(L, &s, r->path);
	luaL_error(L, "%s: unknown option '%s%s'%s", r->function, r->path, s.word, lua_tostring(L, -1));
}

static void check_required(const struct reading *r, const struct option *rows)
{
	const struct option *o;

	for (o = rows; o->name != NULL; o++) {
		if (o->required) {
			lua_pushstring(r->L, o->name);
			lua_rawget(r->L, -2);
			if (is_unset(r->L, -1)) {
				luaL_error(r->L, "%s: option '%s%s' is missing", r->function, r->path, o->name);
			}
			lua_pop(r->L, 1);
		}
	}
}

/* Reads the table at the top of the stack, and leaves it there. */
static void read_rows(const struct reading *r, const struct option *rows, char *into)
{
	lua_State *L = r->L;

	lua_pushnil(L);
	while (lua_next(L, -2) != 0) {
		const struct option *o = NULL;
		char *at = into;

		if (lua_type(L, -2) == LUA_TSTRING) {
			const char *name = lua_tostring(L, -2);

			o = strlen(name) == lua_rawlen(L, -2) ? find(rows, name, &at) : NULL;
		}
		if (o == NULL) {
			unknown(r, rows);
		} else if (!is_unset(L, -1)) {
			read_value(r, o, at);
		}
		lua_pop(L, 1);
	}
	check_required(r, rows);
}

void options_read(lua_State *L, int index, const char *function, const struct option *rows, void *into, int functions)
{
	struct reading r = { L, function, "", functions };

	luaL_checkstack(L, LUA_MINSTACK, "options");
	/* A method has its object at index 1. */
	if (index == 1) {
		colon_refuse(L, index, function);
	}
	if (!lua_isnoneornil(L, index) && !lua_istable(L, index)) {
		luaL_error(L, "%s: expected a table of options, got %s", function, luaL_typename(L, index));
	}
	copy_table(L, index);
	lua_pushvalue(L, index);
	read_rows(&r, rows, into);
	lua_pop(L, 1);
}

int options_refused(lua_State *L, const char *function, const evrec_error *err)
{
	const char *colon = strchr(err->message, ':');

	if (err->code != EVREC_EINVALID || colon == NULL) {
		return luaL_error(L, "%s: %s", function, err->message);
	}
	lua_pushlstring(L, err->message, (size_t)(colon - err->message));
	return luaL_error(L, "%s: option '%s'%s", function, lua_tostring(L, -1), colon);
}

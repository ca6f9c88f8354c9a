#include "lua/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lua/clock.h"

struct reading {
	lua_State *L;
	const char *what;
	const char *path; /* of the options' table within the caller's: "correlator.", or "" */
	int functions;
};

static void refuse(const struct reading *r, const char *name, const char *expected, const char *got)
{
	luaL_error(r->L, "%s: option '%s%s': expected %s, got %s", r->what, r->path, name, expected, got);
}

/* What a message says about the value at the top where a number is wanted: the number that it is, else its type. */
static const char *wrong_number(lua_State *L)
{
	char text[32];
	double number;

	if (lua_type(L, -1) != LUA_TNUMBER) {
		return luaL_typename(L, -1);
	}
	number = (double)lua_tonumber(L, -1);
	(void)snprintf(text, sizeof(text), "%.14g", number);
	/* The sign of a NaN says nothing. */
	return lua_pushfstring(L, "%s", isnan(number) ? "nan" : text);
}

static void refuse_number(const struct reading *r, const struct option *o, const char *kind)
{
	char expected[96];

	if (o->max >= 1e9) {
		(void)snprintf(expected, sizeof(expected), "%s >= %.14g", kind, o->min);
	} else {
		(void)snprintf(expected, sizeof(expected), "%s from %.14g to %.14g", kind, o->min, o->max);
	}
	refuse(r, o->name, expected, wrong_number(r->L));
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

static void read_rows(const struct reading *r, const struct option *rows, char *into);

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

/* The value is at the top of the stack, and stays there. */
static void read_value(const struct reading *r, const struct option *o, char *into)
{
	lua_State *L = r->L;
	void *at = into + o->offset;
	evrec_str *str = at;

	switch (o->type) {
	case OPTION_STRING:
		expect(r, o, LUA_TSTRING, "a string");
		str->data = lua_tolstring(L, -1, &str->len);
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
	case OPTION_DURATION:
		if (!evrec_seconds_to_ns(number(r, o, "a number of seconds"), at)) {
			refuse_number(r, o, "a number of seconds");
		}
		break;
	case OPTION_CLOCK:
		if (box_test(L, -1, &clock_type) == NULL) {
			refuse(r, o->name, "a clock", luaL_typename(L, -1));
		}
		*(evrec_clock **)at = clock_at(L, -1);
		break;
	case OPTION_FUNCTION:
		expect(r, o, LUA_TFUNCTION, "a function");
		lua_pushvalue(L, -1);
		lua_setfield(L, r->functions, o->name);
		break;
	case OPTION_TABLE:
		read_table(r, o, at);
		break;
	case OPTION_ROWS:
		break;
	}
}

/* Finds the row of the key at -2 of the stack, moving *into along with the list that has it. */
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

static void unknown(const struct reading *r)
{
	lua_State *L = r->L;

	if (lua_type(L, -2) != LUA_TSTRING) {
		luaL_error(L, "%s: options are named by strings, found %s as a name", r->what, luaL_typename(L, -2));
	}
	luaL_error(L, "%s: unknown option '%s%s'", r->what, r->path, lua_tostring(L, -2));
}

static void check_required(const struct reading *r, const struct option *rows)
{
	const struct option *o;

	for (o = rows; o->name != NULL; o++) {
		if (o->required) {
			lua_pushstring(r->L, o->name);
			lua_rawget(r->L, -2);
			if (is_unset(r->L, -1)) {
				luaL_error(r->L, "%s: option '%s%s' is missing", r->what, r->path, o->name);
			}
			lua_pop(r->L, 1);
		}
	}
}

/* The table is at the top of the stack, and stays there. */
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
			unknown(r);
		} else if (!is_unset(L, -1)) {
			read_value(r, o, at);
		}
		lua_pop(L, 1);
	}
	check_required(r, rows);
}

void options_read(lua_State *L, int index, const char *what, const struct option *rows, void *into, int functions)
{
	struct reading r = { L, what, "", functions };

	luaL_checkstack(L, LUA_MINSTACK, "options");
	if (lua_isnoneornil(L, index)) {
		lua_newtable(L);
	} else if (lua_istable(L, index)) {
		lua_pushvalue(L, index);
	} else {
		luaL_error(L, "%s: expected a table of options, got %s", what, luaL_typename(L, index));
	}
	read_rows(&r, rows, into);
	lua_pop(L, 1);
}

int options_refused(lua_State *L, const char *what, const evrec_error *err)
{
	const char *colon = strchr(err->message, ':');

	if (err->code != EVREC_EINVALID || colon == NULL) {
		return luaL_error(L, "%s: %s", what, err->message);
	}
	lua_pushlstring(L, err->message, (size_t)(colon - err->message));
	return luaL_error(L, "%s: option '%s'%s", what, lua_tostring(L, -1), colon);
}

const char *seconds_read(lua_State *L, int index, int64_t *ns)
{
	double seconds = lua_type(L, index) == LUA_TNUMBER ? (double)lua_tonumber(L, index) : -1.0;

	return seconds >= 0 && evrec_seconds_to_ns(seconds, ns) ? NULL : "a number of seconds >= 0";
}

int64_t seconds_check(lua_State *L, int index, const char *what, const char *name, int64_t missing)
{
	const char *expected;
	int64_t ns = 0;

	if (missing != EVREC_UNSET && lua_isnoneornil(L, index)) {
		return missing;
	}
	expected = seconds_read(L, index, &ns);
	if (expected != NULL) {
		lua_settop(L, index);
		luaL_error(L, "%s: '%s': expected %s, got %s", what, name, expected, wrong_number(L));
	}
	return ns;
}

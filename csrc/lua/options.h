/*
 * options.h - tables of options, read by a list of rows: a constructor's misuse raises, and the message names the option.
 *
 *   static const struct option rows[] = {
 *   	{ "path", OPTION_STRING, offsetof(struct settings, path), .required = true },
 *   	{ "max_pending", OPTION_SIZE, offsetof(struct settings, max_pending), 1, 1e7 },
 *   	{ 0 },
 *   };
 *   options_read(L, 1, "evrec.sink.file", rows, &settings, 0);
 */
#ifndef EVREC_LUA_OPTIONS_H
#define EVREC_LUA_OPTIONS_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

enum option_type {
	OPTION_STRING,   /* evrec_str, borrowed from the table */
	OPTION_BOOLEAN,  /* bool */
	OPTION_UNSIGNED, /* unsigned: an integer from min to max */
	OPTION_SIZE,     /* size_t: likewise */
	OPTION_NUMBER,   /* double, from min to max */
	OPTION_DURATION, /* int64_t of nanoseconds, given in seconds, from min to max */
	OPTION_CLOCK,    /* evrec_clock *, borrowed from the userdata */
	OPTION_FUNCTION, /* kept in the table `functions` under its name; nothing at the offset */
	OPTION_TABLE,    /* a table with `rows` of its own, whose offsets count from this one's */
	OPTION_ROWS,     /* no option: `rows` which this list has too */
};

struct option {
	const char *name;
	enum option_type type;
	size_t offset;
	double min, max; /* of numbers */
	const struct option *rows;
	bool required;
};

/*
 * Reads the options at `index`, a table, or nil for none, into the struct `into`, which holds the defaults. `what` is
 * who asks. `functions` is the stack index of a table, 0 where no row is a function. nil and lua-cjson's null are unset.
 * Raises where an option is unknown, of a wrong type, out of its range, or missing. Metatables are not asked.
 */
void options_read(lua_State *L, int index, const char *what, const struct option *rows, void *into, int functions);

/* Raises what the core said against options, `option: why`, in the same form. Does not return. */
int options_refused(lua_State *L, const char *what, const evrec_error *err);

/*
 * Seconds at stack index `index` in nanoseconds: a number, finite, not negative. Where it is something else, NULL is not
 * returned but what was expected, for a message. Raises nothing.
 */
const char *seconds_read(lua_State *L, int index, int64_t *ns);
/* The same for an argument of that name: raises. nil: `missing` nanoseconds, where that is not EVREC_UNSET. */
int64_t seconds_check(lua_State *L, int index, const char *what, const char *name, int64_t missing);

#pragma GCC visibility pop

#endif

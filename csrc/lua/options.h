/*
 * options.h - reads a table of options, described by an array of rows. Misuse raises, and the message names the option.
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
	OPTION_STRING,   /* evrec_str, borrowed from the copy of the table; not in the rows of an OPTION_TABLE */
	OPTION_BOOLEAN,  /* bool */
	OPTION_UNSIGNED, /* unsigned: an integer from min to max */
	OPTION_SIZE,     /* size_t: an integer from min to max */
	OPTION_NUMBER,   /* double, from min to max */
	OPTION_WORD,     /* int: a string, the name of one of `rows`, which are of OPTION_VALUE */
	OPTION_VALUE,    /* no option: a word of an OPTION_WORD; its offset is the value that it stands for */
	OPTION_DURATION, /* int64_t, nanoseconds: given as seconds from min to max */
	OPTION_BOUND,    /* likewise, of times: the first nanosecond of these seconds (seconds_first) */
	OPTION_CLOCK,    /* evrec_clock *, borrowed from the copy of the table */
	OPTION_MAP,      /* evrec_map: a table of strings, borrowed like a string */
	OPTION_STRINGS,  /* struct option_strings: a list of strings, borrowed likewise */
	OPTION_NAMES,    /* the same; numbers in the list become strings */
	OPTION_FUNCTION, /* stored in the table `functions` under its name; the offset is unused */
	OPTION_FUNCTION_OR_FALSE, /* likewise; of false, sets the bool at the offset */
	OPTION_TABLE,             /* a table of options, described by `rows`, whose offsets count from this offset */
	OPTION_STRING_OR_TABLE, /* a string, or a table as OPTION_TABLE, which may have strings; both count from this offset */
	OPTION_ROWS,            /* no option: includes `rows`, whose offsets count from this offset */
};

struct option_strings {
	const evrec_str *items;
	size_t len;
};

struct option {
	const char *name; /* NULL in the row that ends an array */
	enum option_type type;
	size_t offset;
	double min, max; /* of numbers; of strings, min is 1 if they must not be empty */
	const struct option *rows;
	bool required;
};

/*
 * Reads the table of options at the absolute stack index `index`, or nil for no options, into the struct `into`, which
 * holds the defaults. Replaces the table on the stack by a copy: the strings that `into` borrows are valid while the
 * copy is there, even if a finalizer changes the table of the caller. `function` names the called Lua function in
 * messages. `functions` is the stack index of a table for functions, or 0 if no row is one. nil and lua-cjson's
 * null are unset. Raises if an option is unknown, of a wrong type, out of its range, or missing. Ignores metatables.
 */
void options_read(lua_State *L, int index, const char *function, const struct option *rows, void *into, int functions);

/* Raises an error of the core, `option: why`, in the form of options_read. Does not return. */
int options_refused(lua_State *L, const char *function, const evrec_error *err);

#pragma GCC visibility pop

#endif

/*
 * seconds.h - the core's nanoseconds, and the seconds of scripts.
 */
#ifndef EVREC_LUA_SECONDS_H
#define EVREC_LUA_SECONDS_H

#include "evrec.h"
#include "lua/compat.h"

#pragma GCC visibility push(hidden)

/*
 * Reads the seconds at stack index `index` into *ns, in nanoseconds. They must be a finite number, not negative, and at
 * most what 64 bits of nanoseconds hold. Returns NULL, or, if the value is anything else, the name of the expected type
 * for a message: "a number of seconds >= 0". Never raises.
 */
const char *seconds_read(lua_State *L, int index, int64_t *ns);
/*
 * Returns the seconds at stack index `index` in nanoseconds. nil stands for `missing` nanoseconds, or, if `missing` is
 * EVREC_UNSET, is refused. Raises on misuse: `function` names the called Lua function, `name` its argument.
 */
int64_t seconds_check(lua_State *L, int index, const char *function, const char *name, int64_t missing);

/* Pushes nanoseconds since 1970 as seconds. */
void seconds_push(lua_State *L, int64_t ns);
/*
 * A script has the time of an event, or of a clock, as a number to which many nanoseconds are rounded. Returns the first of
 * these: neither the event with this time is before it, nor one that was recorded after the clock showed it. `seconds` is in
 * the range that seconds_read accepts. Pure.
 */
int64_t seconds_first(double seconds);

/* A number as text for a message. Pure. */
#define NUMBER_SIZE 32
void number_format(double number, char text[NUMBER_SIZE]);
/*
 * Describes a refused value at the top of the stack, for a message: a number as text, which it pushes, and any other
 * value by its type.
 */
const char *number_describe(lua_State *L);

#pragma GCC visibility pop

#endif

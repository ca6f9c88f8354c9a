/*
 * event.h - evrec.event(table) and the event userdata: an immutable event, seen as core/v1 JSON would be.
 */
#ifndef EVREC_LUA_EVENT_H
#define EVREC_LUA_EVENT_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

extern const struct box_type event_type;

/* Pushes an event userdata that holds none yet: the caller puts one into the slot returned, which then owns it. */
evrec_event **event_push(lua_State *L);
/* Pushes an event that is a copy of `fields`. Raises where there is no memory. */
void event_push_copy(lua_State *L, const evrec_fields *fields);

/* Lua: evrec.event(table) -> event; raises on misuse, naming the field */
int event_new(lua_State *L);

/*
 * An event userdata, or a table that evrec.event takes, at `index`. Its fields stay valid while what this leaves on the
 * top of the stack does. NULL where it is neither: err says why. Raises nothing.
 */
const evrec_fields *event_at(lua_State *L, int index, evrec_error *err);

/*
 * Reads the table at `index` into `fields`, borrowed from what this leaves on the stack. Raises, naming the field.
 */
void event_read(lua_State *L, int index, evrec_fields *fields);

/*
 * Copies a table of strings at the top of the stack into a userdata that takes its place. Raises a message without a
 * subject, such as "expected a table of strings".
 */
evrec_map map_read(lua_State *L);

#pragma GCC visibility pop

#endif

/*
 * event.h - evrec.event(table), and the userdata of an immutable event, whose fields have their core/v1 JSON names.
 */
#ifndef EVREC_LUA_EVENT_H
#define EVREC_LUA_EVENT_H

#include "lua/box.h"

#pragma GCC visibility push(hidden)

extern const struct box_type event_type, event_owner_type;

/*
 * Push an event: a userdata whose memory is an evrec_packed. It owns nothing else, so it needs no finalizer. They raise
 * if there is no memory, and may run finalizers of the script, which must not free what is copied. event_allocate pushes
 * the userdata without its event, which event_complete puts there.
 */
void event_push(lua_State *L, const evrec_fields *fields);
void *event_allocate(lua_State *L, const evrec_fields *fields);
void event_complete(lua_State *L, void *memory, const evrec_fields *fields);
/* Makes an event of the userdata at the top of the stack, which has one in its memory. */
void event_set_type(lua_State *L);

/*
 * Pushes a userdata that owns a counted event of the core while event_push copies it. The caller puts the event into
 * the returned slot, which holds NULL until then.
 */
evrec_event **event_push_owner(lua_State *L);
/* Pushes a copy of the event, and releases the event itself. The owner is still on the stack. */
void event_push_owned(lua_State *L, evrec_event **owner);

/* Lua: evrec.event(table) -> event; raises on misuse, and the message names the field */
int event_new(lua_State *L);

/* Lua: core.event_time(event) -> seconds since 1970 when it happened first, or nil */
int event_time(lua_State *L);

/*
 * Reads the event at `index`, a userdata or a table that evrec.event takes. Pushes one value, from which the fields
 * borrow. False, with *err set, if the value is no event. Never raises.
 */
bool event_at(lua_State *L, int index, evrec_fields *fields, evrec_error *err);

/*
 * Reads the table at `index` into `fields`, which borrow from values that this function leaves on the stack. Raises on
 * misuse, and the message names the field.
 */
void event_read(lua_State *L, int index, evrec_fields *fields);

/*
 * Copies the table of strings at the top of the stack, and replaces it by a userdata that holds the copy. Raises on
 * misuse. The message lacks the name of the field, such as "expected a table of strings", and the caller adds it.
 */
evrec_map map_read(lua_State *L);
/* Lua: (table, evrec_map *) -> userdata; map_read as a function to be called protected, which sets *map */
int map_read_call(lua_State *L);

#pragma GCC visibility pop

#endif

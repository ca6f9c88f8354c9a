/*
 * json_room.h - memory for values that cannot be borrowed from a text of JSON, such as unescaped strings. Pure. Any
 * thread.
 */
#ifndef EVREC_JSON_ROOM_H
#define EVREC_JSON_ROOM_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* All zero is empty. */
struct json_room {
	struct json_block *blocks;
	bool failed; /* there was no memory */
};

/* Zeroed, and aligned for any type. Valid until json_room_free. NULL: no memory. */
void *json_room_take(struct json_room *room, size_t size);
void json_room_free(struct json_room *room);

#pragma GCC visibility pop

#endif

#include "base/json_room.h"

#include <stddef.h>

struct json_block {
	struct json_block *next;
	max_align_t room[];
};

void *json_room_take(struct json_room *room, size_t size)
{
	struct json_block *block = mem_zalloc(sizeof(*block) + size);

	if (block == NULL) {
		room->failed = true;
		return NULL;
	}
	block->next = room->blocks;
	room->blocks = block;
	return block->room;
}

void json_room_free(struct json_room *room)
{
	while (room->blocks != NULL) {
		struct json_block *block = room->blocks;

		room->blocks = block->next;
		mem_free(block);
	}
}

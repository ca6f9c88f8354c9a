#include "counting_allocator.h"

#include <malloc.h>

void *counting_realloc(void *ctx, void *block, size_t size)
{
	struct counting_allocator *allocator = ctx;

	allocator->live -= malloc_usable_size(block);
	if (size == 0) {
		free(block);
		return NULL;
	}
	allocator->calls++;
	block = realloc(block, size);
	allocator->live += malloc_usable_size(block);
	return block;
}

#include "base/base.h"

#include <stdlib.h>

static evrec_realloc_func *allocator;
static void *allocator_ctx;

void evrec_set_allocator(evrec_realloc_func *func, void *ctx)
{
	allocator = func;
	allocator_ctx = ctx;
}

void *mem_realloc(void *block, size_t size)
{
	if (allocator != NULL) {
		return allocator(allocator_ctx, block, size);
	}
	return realloc(block, size);
}

void *mem_alloc(size_t size)
{
	return mem_realloc(NULL, size);
}

void *mem_zalloc(size_t size)
{
	void *block = mem_alloc(size);

	if (block != NULL) {
		memset(block, 0, size);
	}
	return block;
}

void mem_free(void *block)
{
	if (block == NULL) {
		return;
	}
	if (allocator != NULL) {
		allocator(allocator_ctx, block, 0);
		return;
	}
	free(block);
}

void evrec_free(void *block)
{
	mem_free(block);
}

char *str_dup(evrec_str s)
{
	char *copy = mem_alloc(s.len + 1);

	if (copy != NULL) {
		if (s.len != 0) {
			memcpy(copy, s.data, s.len);
		}
		copy[s.len] = '\0';
	}
	return copy;
}

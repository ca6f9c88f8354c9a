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
	void *block;

	if (allocator == NULL) {
		return calloc(1, size); /* which leaves pages that the system has cleared untouched */
	}
	block = mem_alloc(size);
	if (block != NULL) {
		memset(block, 0, size);
	}
	return block;
}

#define PAGE 4096

void mem_touch(void *block, size_t size)
{
	for (size_t at = 0; at < size; at += PAGE) {
		((volatile char *)block)[at] = 0;
	}
	/* A block that does not begin at a page may have one more. */
	if (size != 0) {
		((volatile char *)block)[size - 1] = 0;
	}
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

bool str_copy(char **to, evrec_str s)
{
	*to = s.len == 0 ? NULL : str_dup(s);
	return s.len == 0 || *to != NULL;
}

static evrec_str put_string(char **to, evrec_str s)
{
	const evrec_str copy = { *to, s.len };

	if (s.len != 0) {
		memcpy(*to, s.data, s.len);
	}
	(*to)[s.len] = '\0';
	*to += s.len + 1;
	return copy;
}

char *strings_dup(evrec_str *const *strings, size_t n)
{
	size_t len = 1;
	char *block, *end;

	for (size_t i = 0; i < n; i++) {
		len += strings[i]->len + 1;
	}
	block = end = mem_alloc(len);
	for (size_t i = 0; block != NULL && i < n; i++) {
		*strings[i] = put_string(&end, *strings[i]);
	}
	return block;
}

void *map_dup(const evrec_map *map, evrec_map *copy)
{
	size_t size = map->len * sizeof(evrec_pair) + 1;
	evrec_pair *pairs;
	char *strings;

	for (size_t i = 0; i < map->len; i++) {
		size += map->pairs[i].key.len + map->pairs[i].value.len + 2;
	}
	pairs = mem_alloc(size);
	if (pairs == NULL) {
		return NULL;
	}
	strings = (char *)(pairs + map->len);
	for (size_t i = 0; i < map->len; i++) {
		pairs[i].key = put_string(&strings, map->pairs[i].key);
		pairs[i].value = put_string(&strings, map->pairs[i].value);
	}
	*copy = (evrec_map){ pairs, map->len };
	return pairs;
}

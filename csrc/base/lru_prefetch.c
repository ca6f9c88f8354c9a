#include "base/lru_inner.h"

#define CACHE_LINE 64

/* The number of a node that probably has the key, by its tag alone; 0: no node has it. */
static uint32_t guess(const struct lru *lru, const struct key *key)
{
	uint32_t i = (uint32_t)key->hash & lru->mask;

	if (lru->slots == NULL) {
		return 0;
	}
	while (lru->slots[i].number != 0 && lru->slots[i].tag != (uint32_t)key->hash) {
		i = (i + 1) & lru->mask;
	}
	return lru->slots[i].number;
}

static void prefetch_bytes(const char *block, size_t len)
{
	for (size_t i = 0; i < len; i += CACHE_LINE) {
		__builtin_prefetch(block + i, 1);
	}
}

static void prefetch_around(const struct lru *lru, const struct node *node)
{
	const size_t owned_at = lru->type->owned_at;
	const char *owned;

	/* The slot of the oldest entry, which is about to be evicted. That of any other entry was fetched before. */
	__builtin_prefetch(&lru->slots[(uint32_t)node->hash & lru->mask], 1);
	if (owned_at != 0) {
		memcpy(&owned, (const char *)(node + 1) + owned_at, sizeof(owned));
		if (owned != NULL) {
			__builtin_prefetch(owned, 1);
			__builtin_prefetch(owned + CACHE_LINE, 1);
		}
	}
	if (node->long_room != 0) {
		prefetch_bytes(key_of_node(lru, node), node->key_len);
	}
}

void lru_prefetch(const struct lru_search *searches, size_t n)
{
	const struct node *nodes[LRU_SEARCHES];
	size_t i;

	/* Each loop reads the memory that the loop before fetched: slots, nodes, then what they refer to. */
	for (i = 0; i < n; i++) {
		const struct lru *lru = searches[i].lru;

		if (lru->slots != NULL) {
			__builtin_prefetch(&lru->slots[(uint32_t)searches[i].key->hash & lru->mask]);
		}
	}
	for (i = 0; i < n; i++) {
		const struct lru *lru = searches[i].lru;
		uint32_t number = guess(lru, searches[i].key);

		if (number == 0 && lru->len == lru->capacity) {
			number = lru->order[0].newer;
		}
		nodes[i] = number == 0 ? NULL : node_of(lru, number);
		if (nodes[i] != NULL) {
			prefetch_bytes((const char *)nodes[i], lru->cell_size);
		}
	}
	for (i = 0; i < n; i++) {
		if (nodes[i] != NULL) {
			prefetch_around(searches[i].lru, nodes[i]);
		}
	}
}

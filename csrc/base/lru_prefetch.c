#include "base/lru_inner.h"

#define CACHE_LINE 64

/* The index of a node that probably has the key, by its tag alone; NONE: no node has it. */
static uint32_t guess(const struct lru *lru, const struct key *key)
{
	uint32_t i = (uint32_t)key->hash & lru->mask;

	while (lru->slots[i].place != NONE && lru->slots[i].tag != (uint32_t)key->hash) {
		i = (i + 1) & lru->mask;
	}
	return lru->slots[i].place;
}

static void prefetch_bytes(const char *block, size_t len)
{
	size_t i;

	for (i = 0; i < len; i += CACHE_LINE) {
		__builtin_prefetch(block + i, 1);
	}
}

static void prefetch_around(const struct lru *lru, uint32_t place)
{
	const struct node *node = node_at(lru, place);

	prefetch_bytes(node->key, node->key_len);
	if (node->newer != NONE) {
		__builtin_prefetch(node_at(lru, node->newer), 1);
	}
	if (node->older != NONE) {
		__builtin_prefetch(node_at(lru, node->older), 1);
	}
}

void lru_prefetch(const struct lru_search *searches, size_t n)
{
	uint32_t places[LRU_SEARCHES];
	size_t i;

	/* Each loop reads the memory that the loop before fetched: slots, nodes, then keys and neighbours. */
	for (i = 0; i < n; i++) {
		const struct lru *lru = searches[i].lru;

		__builtin_prefetch(&lru->slots[(uint32_t)searches[i].key->hash & lru->mask]);
	}
	for (i = 0; i < n; i++) {
		const struct lru *lru = searches[i].lru;

		places[i] = guess(lru, searches[i].key);
		if (places[i] == NONE && lru->len == lru->capacity) {
			places[i] = lru->oldest;
		}
		if (places[i] != NONE) {
			prefetch_bytes((const char *)node_at(lru, places[i]), lru->node_size);
		}
	}
	for (i = 0; i < n; i++) {
		if (places[i] != NONE) {
			prefetch_around(searches[i].lru, places[i]);
		}
	}
}

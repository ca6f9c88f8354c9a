/*
 * lru.h - a cache of bounded size, strictly least recently used: a lookup and an insert both count as use.
 *
 *   struct key key = key_of(EVREC_STR("some"), EVREC_STR("thing"));
 *   struct record *r = lru_put(cache, &key, &fresh);
 *   if (fresh) { ... } r->count++;
 *
 * Values live inside the cache, in one block that grows up to the capacity; a pointer to one holds until the next
 * lru_put. What an evicted entry had allocated (its key, what its value owns) is reused by the one that takes its
 * place, so that a full cache allocates nothing.
 *
 * Keys are compared, not only their hashes. One thread at a time.
 */
#ifndef EVREC_LRU_H
#define EVREC_LRU_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct lru;

struct lru_type {
	size_t value_size; /* a multiple of 8 */
	void (*recycle)(
		void *value);      /* evicted: make it as new as zeroed memory, but buffers may stay; NULL: zero it */
	void (*fini)(void *value); /* the cache ends: free what the value owns; may be NULL */
};

/* Nothing but the head is allocated before the first put. NULL where there is no memory. */
struct lru *lru_new(const struct lru_type *type, size_t capacity);
void lru_free(struct lru *lru); /* NULL is fine */

/*
 * A key: the bytes of head and tail, one after the other, borrowed, and their hash. Two parts, so that keys which begin
 * alike need not be copied whole, nor their beginning be hashed twice. Keys that are to be one must be parted alike.
 */
struct key {
	evrec_str head, tail;
	uint64_t hash;
	/* Where it was found last: the cache's number, 0 for none, and the entry. Not looked for there. Kept by lru_put. */
	uint64_t cache, handle;
};

uint64_t lru_hash(evrec_str s);

/* The hash of a key whose parts have these. */
static inline uint64_t key_hash(uint64_t head, uint64_t tail)
{
	return head ^ (tail * UINT64_C(0x9E3779B97F4A7C15));
}

struct key key_of(evrec_str head, evrec_str tail);

void *lru_get(struct lru *lru, const struct key *key); /* NULL: not there */
/* Finds the entry of a key, or makes it (*fresh) in the place of the least recently used one; NULL: no memory. */
void *lru_put(struct lru *lru, struct key *key, bool *fresh);
/*
 * Keys that will be looked for at once, at most LRU_SEARCHES, each in its cache, which is not empty: fetches what the
 * searches will look at, all side by side. Where that is not in the processor's caches, one waits for all of it as long
 * as else for each.
 */
#define LRU_SEARCHES 3
struct lru_search {
	const struct lru *lru;
	const struct key *key;
};
void lru_prefetch(const struct lru_search *searches, size_t n);
/* Counts as use of the entry that has this value. */
void lru_use(struct lru *lru, const void *value);

size_t lru_len(const struct lru *lru);

/*
 * A handle names an entry for as long as it is not evicted, without a lookup, and without counting as use. Never 0.
 */
uint64_t lru_handle(const void *value);
void *lru_at(const struct lru *lru, uint64_t handle); /* NULL: evicted */
evrec_str lru_key(const void *value);                 /* whole; holds as long as the value */

/* From the most recently used on, with the whole key: calls `func` until it returns false. */
void lru_each(struct lru *lru, bool (*func)(void *ctx, evrec_str key, void *value), void *ctx);

#pragma GCC visibility pop

#endif

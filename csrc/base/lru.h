/*
 * lru.h - a cache of bounded size, strictly least recently used: a lookup and an insert both count as use.
 *
 *   struct record *r = lru_put(cache, key, lru_hash(key), &fresh);
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

uint64_t lru_hash(evrec_str key);

void *lru_get(struct lru *lru, evrec_str key, uint64_t hash); /* NULL: not there */
/* Finds the entry of a key, or makes it (*fresh) in the place of the least recently used one; NULL: no memory. */
void *lru_put(struct lru *lru, evrec_str key, uint64_t hash, bool *fresh);

size_t lru_len(const struct lru *lru);

/*
 * A handle names an entry for as long as it is not evicted, without a lookup, and without counting as use. Never 0.
 */
uint64_t lru_handle(const struct lru *lru, const void *value);
void *lru_at(const struct lru *lru, uint64_t handle); /* NULL: evicted */

/* From the most recently used on: calls `func` until it returns false. */
void lru_each(struct lru *lru, bool (*func)(void *ctx, evrec_str key, void *value), void *ctx);

#pragma GCC visibility pop

#endif

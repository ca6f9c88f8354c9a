/*
 * lru.h - a cache of bounded size, strictly least recently used: a lookup and an insert both count as use.
 *
 *   struct key key = key_of(EVREC_STR("some"), EVREC_STR("thing"));
 *   struct record *r = lru_put(cache, &key, &fresh);
 *   if (fresh) { ... } r->count++;
 *
 * Values live inside the cache, which allocates as it grows, up to the capacity, and moves none: a pointer to a value
 * is valid as long as its entry. A new entry reuses the memory of the evicted one (its key, and what its value owns),
 * so that a full cache allocates nothing.
 *
 * Keys are compared by their bytes, not only by their hashes. One thread at a time.
 */
#ifndef EVREC_LRU_H
#define EVREC_LRU_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

struct lru;

/*
 * A cache with more entries is large: prefetching its memory saves more time than it takes. Measured for the searches
 * of lru_prefetch and for the order of use.
 */
#define LRU_LARGE 8192

struct lru_type {
	size_t value_size;            /* a multiple of 8 */
	void (*recycle)(void *value); /* resets an evicted or removed value, but keeps its buffers; NULL: zeroes it */
	void (*fini)(void *value);    /* the cache is freed: free what the value owns; may be NULL */
};

/* Entries are allocated as they are needed. NULL: no memory. */
struct lru *lru_new(const struct lru_type *type, size_t capacity);
void lru_free(struct lru *lru); /* NULL is fine */

/*
 * A key: the bytes of head and tail, one after the other, borrowed, and their hash. Equal keys must be split at the
 * same place. A head that several keys share is written and hashed only once: saves 277 of 8,071 instructions of a new
 * event.
 */
struct key {
	evrec_str head, tail;
	uint64_t hash;
	/* The entry that lru_put found last: the number of its cache (0: none), and its handle. Set by lru_put. */
	uint64_t cache, handle;
};

uint64_t lru_hash(evrec_str s);

/* The hash of a key, from the hashes of its parts. */
static inline uint64_t key_hash(uint64_t head, uint64_t tail)
{
	return head ^ (tail * UINT64_C(0x9E3779B97F4A7C15));
}

struct key key_of(evrec_str head, evrec_str tail);

/* The value of a key, which counts as used. NULL: there is no entry. */
void *lru_get(struct lru *lru, const struct key *key);
/*
 * The value of a key, which counts as used. If there is no entry, makes one, sets *fresh, and evicts the least recently
 * used entry if the cache is full. NULL: no memory, and *fresh is undefined.
 */
void *lru_put(struct lru *lru, struct key *key, bool *fresh);
void *lru_find(const struct lru *lru, const struct key *key); /* lru_get, but it does not count as a use */
/* The least recently used value. NULL: the cache is empty. */
void *lru_oldest(struct lru *lru);
/* Removes the entry of this value. A later entry reuses its memory. */
void lru_remove(struct lru *lru, void *value);
/*
 * Prefetches the memory that the next searches will read: for `n` keys, at most LRU_SEARCHES, each in its own lru. The
 * fetches of all keys overlap.
 */
#define LRU_SEARCHES 3
struct lru_search {
	const struct lru *lru;
	const struct key *key;
};
void lru_prefetch(const struct lru_search *searches, size_t n);
/* Counts as a use of the entry of this value. */
void lru_use(struct lru *lru, const void *value);

size_t lru_len(const struct lru *lru);

/* A handle finds an entry without a search, and without counting as a use, until the entry is evicted or removed. Never
 * 0. */
uint64_t lru_handle(const void *value);
void *lru_at(const struct lru *lru, uint64_t handle);        /* NULL: there is no such entry any more */
evrec_str lru_key(const struct lru *lru, const void *value); /* the whole key; valid as long as the value */
uint64_t lru_key_hash(const void *value);                    /* the hash that the key was put with */

/*
 * Entries lie in places 0 to lru_len - 1. A handle holds its entry's place. An entry stays in its place until it is
 * evicted; then another entry takes the place.
 */
static inline uint32_t lru_place(uint64_t handle)
{
	return (uint32_t)handle;
}
void *lru_in_place(const struct lru *lru, uint32_t place); /* the value; NULL: there is no such place yet */

/* Calls `func` for each entry, the most recently used first, until it returns false. */
void lru_each(struct lru *lru, bool (*func)(void *ctx, evrec_str key, void *value), void *ctx);

#pragma GCC visibility pop

#endif

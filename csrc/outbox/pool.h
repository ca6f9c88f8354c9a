/*
 * pool.h - a slab allocator for entries: blocks of about the requested size, cut from slabs. Not locked: a pool belongs
 * to an outbox.
 *
 * A new slab costs page faults. So the driver of the outbox makes slabs ahead, and touches their pages, without the
 * lock. It also frees slabs that were empty for a while.
 */
#ifndef EVREC_POOL_H
#define EVREC_POOL_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* Blocks come in sizes that are POOL_STEP bytes apart. A larger one is a block of the allocator's. */
#define POOL_STEP 64
#define POOL_SIZES 32

struct slab;

struct slabs {
	struct slab *open;  /* some of its blocks are in use, and some are free */
	struct slab *empty; /* none of its blocks is in use; the slab that was in use last is the first */
	size_t in_use;      /* slabs with a block in use */
	size_t empty_len;
	size_t unused; /* empty slabs that no block was taken from since the last pool_take_unused */
};

/* All zero is an empty pool. */
struct pool {
	struct slabs sizes[POOL_SIZES];
	unsigned wanted; /* the size of which a slab is to be made ahead; 0: none */
};

/* Aligned for pointers and 64-bit numbers. NULL: no memory. */
void *pool_alloc(struct pool *pool, size_t size);
void pool_free(struct pool *pool, void *block); /* NULL is fine */
/* Frees the slabs. No block may be in use. */
void pool_destroy(struct pool *pool);

/* ---- ahead of time ---- */

/* A slab that is to be made, and was not requested yet: the argument of pool_make. False: there is none. */
struct slab_order {
	unsigned size;
	size_t bytes;
};
bool pool_next_order(struct pool *pool, struct slab_order *order);
/* Makes a slab, and touches its memory. Needs no pool. NULL: no memory. */
struct slab *pool_make(const struct slab_order *order);
void pool_add(struct pool *pool, struct slab *slab);

/*
 * Removes the slabs that were empty since the last call; the caller gives them to pool_free_slabs, which needs no pool.
 * NULL: none.
 */
struct slab *pool_take_unused(struct pool *pool);
void pool_free_slabs(struct slab *slabs);
/* The bytes of the empty slabs. There are few: each slab is as large as all earlier ones together. */
size_t pool_empty_bytes(const struct pool *pool);

#pragma GCC visibility pop

#endif

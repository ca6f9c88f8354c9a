/*
 * lru_inner.h - the memory of a cache, for the files that implement it.
 *
 *   lru.c           entries, and their order
 *   lru_cells.c     the memory of entries and of their keys
 *   lru_prefetch.c  fetching it ahead
 */
#ifndef EVREC_LRU_INNER_H
#define EVREC_LRU_INNER_H

#include "base/lru.h"
#include "base/tiers.h"

#pragma GCC visibility push(hidden)

/*
 * An entry: a cell of `cell_size` bytes. Its value follows the node, and its key follows the value: a search reads
 * memory in one place. A key that is too long for the cell lies in a block of its own, whose address is stored in place
 * of the key.
 */
struct node {
	uint64_t hash;
	uint32_t number;     /* its place + 1 */
	uint32_t generation; /* changes with each key in this place */
	uint32_t key_len;
	uint32_t long_room; /* bytes of a key's own memory; 0: the key lies in the cell */
};

/* A slot of the hash table, which has open addressing and linear probing: a search starts at the tag's lowest bits. */
struct slot {
	uint32_t tag;    /* the low half of the node's hash */
	uint32_t number; /* of the node; 0: the slot is empty */
};

/*
 * The neighbours of a node in the order of use, by their numbers; of a removed node, `older` is the next removed one.
 * No node has the number 0. The element 0 is the head of a ring: its `older` is the newest node, its `newer` the oldest
 * one.
 *
 * The order is an array of its own. A use writes to both neighbours: as they are 8 bytes of an array, and not parts of
 * two large nodes, a duplicate takes 22 % less time among 65,536 keys.
 */
struct neighbours {
	uint32_t newer, older;
};

/* The fields that a use reads come first, so that they take few cache lines. */
struct lru {
	uint64_t number;          /* unique among all caches of the process, also those that were freed */
	struct slot *slots;       /* mask + 1 slots: a power of two, at least twice the number of entries */
	struct neighbours *order; /* by numbers: half as many elements as slots, and one more */
	uint32_t mask;
	uint32_t len; /* cells that were ever used: those in use, and those that were removed */
	/*
	 * In a large cache, the last two nodes that were used, the last one first. They are moved in the order later,
	 * while the memory of their neighbours is prefetched. 0: none. A duplicate takes 11 % less time among 1,048,576
	 * keys.
	 */
	uint32_t late[2];
	size_t cell_size; /* chosen with the first key; 0: there is none yet */
	size_t key_at;    /* offset of the key in a cell */
	struct tiers cells;
	size_t capacity;
	const struct lru_type *type;
	uint32_t removed; /* free cells, whose entries were removed */
	uint32_t free;    /* the number of the first removed cell; 0: there is none */
};

/* The node with this number, which is at most lru->len, and not 0. */
static inline struct node *node_of(const struct lru *lru, uint32_t number)
{
	return tiers_at(&lru->cells, number - 1, lru->cell_size);
}

static inline char *key_of_node(const struct lru *lru, const struct node *node)
{
	char *in_cell = (char *)(uintptr_t)node + lru->key_at, *apart;

	if (node->long_room == 0) {
		return in_cell;
	}
	memcpy(&apart, in_cell, sizeof(apart));
	return apart;
}

static inline void table_insert(struct lru *lru, const struct node *node)
{
	uint32_t i = (uint32_t)node->hash & lru->mask;

	while (lru->slots[i].number != 0) {
		i = (i + 1) & lru->mask;
	}
	lru->slots[i] = (struct slot){ (uint32_t)node->hash, node->number };
}

/* ---- lru_cells.c ---- */

/* Room for one more node, and its slot. `key_len`: of its key. False: no memory. */
bool lru_grow(struct lru *lru, size_t key_len);
/* False: no memory, and the node keeps its key. */
bool lru_set_key(const struct lru *lru, struct node *node, const struct key *key);
/* Frees what lru_grow and lru_set_key have allocated. */
void lru_free_cells(struct lru *lru);

#pragma GCC visibility pop

#endif

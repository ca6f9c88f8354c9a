/*
 * lru_inner.h - the memory of a cache, for the files that implement it.
 */
#ifndef EVREC_LRU_INNER_H
#define EVREC_LRU_INNER_H

#include "base/lru.h"

#define NONE UINT32_MAX

/* An entry. Its value follows it in memory. */
struct node {
	uint64_t hash;
	char *key;
	uint32_t key_len, key_cap;
	uint32_t newer,
		older; /* indices of the neighbours in the order of use, or NONE; `older` also in the list of free nodes */
	uint32_t self;       /* its own index */
	uint32_t generation; /* another one for each key that was in this place */
};

/* A slot of the hash table, which has open addressing and linear probing: a search starts at the tag's lowest bits. */
struct slot {
	uint32_t tag;   /* the low half of the node's hash */
	uint32_t place; /* the node's index; NONE: the slot is empty */
};

struct lru {
	uint64_t number; /* unique among all caches of the process, also those that were freed */
	char *nodes;     /* room for `room` nodes; the first `len` are in use, but for those that were removed */
	size_t node_size;
	uint32_t len, newest, oldest, room;
	uint32_t removed, free; /* the number of these, and the index of the first; NONE */
	struct slot *slots;     /* mask + 1 slots: a power of two, at least twice `room` */
	uint32_t mask;
	size_t capacity;
	const struct lru_type *type;
};

static inline struct node *node_at(const struct lru *lru, uint32_t i)
{
	return (struct node *)(void *)(lru->nodes + (size_t)i * lru->node_size);
}

#endif

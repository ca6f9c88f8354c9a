#include "base/lru.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define NONE UINT32_MAX

/* Followed by the value. */
struct node {
	uint64_t hash;
	char *key;
	uint32_t key_len, key_cap;
	uint32_t chain; /* the next in the same bucket */
	uint32_t newer, older;
	uint32_t generation; /* how many keys this place has held */
};

struct lru {
	const struct lru_type *type;
	size_t capacity, node_size;
	char *nodes; /* `room` of them, `len` in use */
	uint32_t len, room;
	uint32_t *buckets; /* heads of chains; their number is a power of two >= room */
	uint32_t mask;
	uint32_t newest, oldest;
};

static struct node *node_at(const struct lru *lru, uint32_t i)
{
	return (struct node *)(void *)(lru->nodes + (size_t)i * lru->node_size);
}

static uint32_t index_of(const struct lru *lru, const struct node *node)
{
	return (uint32_t)((size_t)((const char *)node - lru->nodes) / lru->node_size);
}

struct lru *lru_new(const struct lru_type *type, size_t capacity)
{
	struct lru *lru = mem_zalloc(sizeof(*lru));

	if (lru != NULL) {
		lru->type = type;
		lru->capacity = capacity;
		lru->node_size = sizeof(struct node) + type->value_size;
		lru->newest = lru->oldest = NONE;
	}
	return lru;
}

void lru_free(struct lru *lru)
{
	uint32_t i;

	if (lru == NULL) {
		return;
	}
	for (i = 0; i < lru->len; i++) {
		struct node *node = node_at(lru, i);

		if (lru->type->fini != NULL) {
			lru->type->fini(node + 1);
		}
		mem_free(node->key);
	}
	mem_free(lru->nodes);
	mem_free(lru->buckets);
	mem_free(lru);
}

uint64_t lru_hash(evrec_str key)
{
	return XXH3_64bits(key.data, key.len);
}

size_t lru_len(const struct lru *lru)
{
	return lru->len;
}

static void list_remove(struct lru *lru, const struct node *node)
{
	if (node->newer != NONE) {
		node_at(lru, node->newer)->older = node->older;
	} else {
		lru->newest = node->older;
	}
	if (node->older != NONE) {
		node_at(lru, node->older)->newer = node->newer;
	} else {
		lru->oldest = node->newer;
	}
}

static void list_push(struct lru *lru, struct node *node, uint32_t i)
{
	node->newer = NONE;
	node->older = lru->newest;
	if (lru->newest != NONE) {
		node_at(lru, lru->newest)->newer = i;
	} else {
		lru->oldest = i;
	}
	lru->newest = i;
}

static void chain_push(struct lru *lru, struct node *node, uint32_t i)
{
	uint32_t *head = &lru->buckets[node->hash & lru->mask];

	node->chain = *head;
	*head = i;
}

static void chain_remove(struct lru *lru, const struct node *node, uint32_t i)
{
	uint32_t *link = &lru->buckets[node->hash & lru->mask];

	while (*link != i) {
		link = &node_at(lru, *link)->chain;
	}
	*link = node->chain;
}

static struct node *find(const struct lru *lru, evrec_str key, uint64_t hash)
{
	uint32_t i;

	if (lru->buckets == NULL) {
		return NULL;
	}
	for (i = lru->buckets[hash & lru->mask]; i != NONE;) {
		struct node *node = node_at(lru, i);

		if (node->hash == hash && str_eq((evrec_str){ node->key, node->key_len }, key)) {
			return node;
		}
		i = node->chain;
	}
	return NULL;
}

static void touch(struct lru *lru, struct node *node)
{
	uint32_t i = index_of(lru, node);

	if (lru->newest != i) {
		list_remove(lru, node);
		list_push(lru, node, i);
	}
}

void *lru_get(struct lru *lru, evrec_str key, uint64_t hash)
{
	struct node *node = find(lru, key, hash);

	if (node == NULL) {
		return NULL;
	}
	touch(lru, node);
	return node + 1;
}

/* Room for one more node, and buckets to match. */
static bool grow(struct lru *lru)
{
	size_t room = lru->room == 0 ? 16 : (size_t)lru->room * 2, slots = 16;
	uint32_t *buckets;
	char *nodes;
	uint32_t i;

	if (room > lru->capacity) {
		room = lru->capacity;
	}
	while (slots < room) {
		slots *= 2;
	}
	nodes = mem_realloc(lru->nodes, room * lru->node_size);
	if (nodes == NULL) {
		return false;
	}
	lru->nodes = nodes;
	buckets = mem_realloc(lru->buckets, slots * sizeof(*buckets));
	if (buckets == NULL) {
		return false; /* `room` says what both hold: the larger block is used the next time */
	}
	memset(buckets, 0xFF, slots * sizeof(*buckets));
	lru->buckets = buckets;
	lru->mask = (uint32_t)(slots - 1);
	lru->room = (uint32_t)room;
	for (i = 0; i < lru->len; i++) {
		chain_push(lru, node_at(lru, i), i);
	}
	return true;
}

static bool key_set(struct node *node, evrec_str key)
{
	if (key.len > UINT32_MAX / 2) {
		return false;
	}
	/* A long key's memory is not kept for a short one. */
	if (node->key == NULL || node->key_cap < key.len || node->key_cap > 4 * key.len + 256) {
		size_t cap = key.len == 0 ? 1 : key.len;
		char *block = mem_realloc(node->key, cap);

		if (block == NULL) {
			return false;
		}
		node->key = block;
		node->key_cap = (uint32_t)cap;
	}
	if (key.len != 0) {
		memcpy(node->key, key.data, key.len);
	}
	node->key_len = (uint32_t)key.len;
	return true;
}

/* A node out of use: a new one, or the oldest, emptied. NULL: no memory; then nothing has changed. */
static struct node *node_for(struct lru *lru, evrec_str key, uint64_t hash)
{
	struct node *node;
	uint32_t i;

	if (lru->len < lru->capacity) {
		if (lru->len == lru->room && !grow(lru)) {
			return NULL;
		}
		node = node_at(lru, lru->len);
		memset(node, 0, lru->node_size);
		if (!key_set(node, key)) {
			return NULL;
		}
		i = lru->len++;
	} else {
		i = lru->oldest;
		node = node_at(lru, i);
		chain_remove(lru, node, i);
		if (!key_set(node, key)) {
			chain_push(lru, node, i);
			return NULL;
		}
		list_remove(lru, node);
		if (lru->type->recycle != NULL) {
			lru->type->recycle(node + 1);
		} else {
			memset(node + 1, 0, lru->type->value_size);
		}
	}
	node->hash = hash;
	node->generation++;
	chain_push(lru, node, i);
	list_push(lru, node, i);
	return node;
}

void *lru_put(struct lru *lru, evrec_str key, uint64_t hash, bool *fresh)
{
	struct node *node = find(lru, key, hash);

	*fresh = node == NULL;
	if (node != NULL) {
		touch(lru, node);
		return node + 1;
	}
	node = node_for(lru, key, hash);
	return node == NULL ? NULL : node + 1;
}

uint64_t lru_handle(const struct lru *lru, const void *value)
{
	const struct node *node = (const struct node *)value - 1;

	return (uint64_t)node->generation << 32 | index_of(lru, node);
}

void *lru_at(const struct lru *lru, uint64_t handle)
{
	uint32_t i = (uint32_t)handle;
	struct node *node;

	if (i >= lru->len) {
		return NULL;
	}
	node = node_at(lru, i);
	return node->generation == (uint32_t)(handle >> 32) ? node + 1 : NULL;
}

void lru_each(struct lru *lru, bool (*func)(void *ctx, evrec_str key, void *value), void *ctx)
{
	uint32_t i;

	for (i = lru->newest; i != NONE;) {
		struct node *node = node_at(lru, i);

		if (!func(ctx, (evrec_str){ node->key, node->key_len }, node + 1)) {
			return;
		}
		i = node->older;
	}
}

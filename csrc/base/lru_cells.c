#include "base/lru_inner.h"

#include <sys/mman.h>

#define ALIGNMENT 16 /* of cells; with one of 64, which takes 15 % more memory, searches are no faster */
/* Bytes of a cell's key: as many as the first key has, and some more. */
#define KEY_MORE 16
#define KEY_MAX 256
#define SLOTS_MIN ((size_t)32)
#define SLOTS_AT_ONCE ((size_t)1 << 21) /* 16 MiB, of 1,048,576 entries */
/* Large blocks get large pages, if the system has them: of 1,048,576 keys it saves 26 % of a duplicate's time. */
#define LARGE_PAGE ((size_t)2 * 1024 * 1024)

static void use_large_pages(void *block, size_t size)
{
#ifdef MADV_HUGEPAGE
	const uintptr_t begin = ((uintptr_t)block + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
	const uintptr_t end = ((uintptr_t)block + size) / LARGE_PAGE * LARGE_PAGE;

	if (begin < end) {
		(void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	}
#else
	(void)block;
	(void)size;
#endif
}

static size_t slots_of(size_t entries)
{
	size_t n = SLOTS_MIN;

	while (n < 2 * entries) {
		n *= 2;
	}
	return n;
}

/*
 * Slots and an order for all entries that there may ever be, as filling a larger table anew takes long; if those are
 * very many, for `room` entries at least. calloc clears a small table, such as 64 KiB for 4096 entries. For a large one
 * it gives pages of the system's, which are zero and are not touched before their use.
 */
static bool make_tables(struct lru *lru, size_t room)
{
	size_t n = slots_of(lru->capacity);
	struct slot *slots;
	struct neighbours *order;

	if (n > SLOTS_AT_ONCE) {
		n = slots_of(room < SLOTS_AT_ONCE / 2 ? SLOTS_AT_ONCE / 2 : room);
	}
	if (lru->slots != NULL && n == (size_t)lru->mask + 1) {
		return true;
	}
	slots = mem_zalloc(n * sizeof(*slots));
	order = mem_zalloc((n / 2 + 1) * sizeof(*order));
	if (slots == NULL || order == NULL) {
		mem_free(slots);
		mem_free(order);
		return false;
	}
	use_large_pages(slots, n * sizeof(*slots));
	use_large_pages(order, (n / 2 + 1) * sizeof(*order));
	if (lru->order != NULL) {
		memcpy(order, lru->order, (lru->len + 1) * sizeof(*order));
	}
	mem_free(lru->slots);
	mem_free(lru->order);
	lru->slots = slots;
	lru->order = order;
	lru->mask = (uint32_t)(n - 1);
	for (uint32_t number = order[0].older; number != 0; number = order[number].older) {
		table_insert(lru, node_of(lru, number));
	}
	return true;
}

static void choose_cell_size(struct lru *lru, size_t key_len)
{
	const size_t key_room = key_len < KEY_MAX - KEY_MORE ? key_len + KEY_MORE : KEY_MAX;

	lru->key_at = sizeof(struct node) + lru->type->value_size;
	lru->cell_size = (lru->key_at + key_room + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

bool lru_grow(struct lru *lru, size_t key_len)
{
	const size_t cells = tiers_next(&lru->cells, lru->capacity);
	char *tier;

	if (!make_tables(lru, lru->cells.room + cells)) {
		return false;
	}
	if (lru->cell_size == 0) {
		choose_cell_size(lru, key_len);
	}
	tier = mem_alloc(cells * lru->cell_size);
	if (tier == NULL) {
		return false;
	}
	use_large_pages(tier, cells * lru->cell_size);
	tiers_add(&lru->cells, tier, cells);
	return true;
}

void lru_free_cells(struct lru *lru)
{
	for (uint32_t i = 1; i <= lru->len; i++) {
		struct node *node = node_of(lru, i);

		if (node->long_room != 0) {
			mem_free(key_of_node(lru, node));
		}
	}
	tiers_free(&lru->cells);
	mem_free(lru->slots);
	mem_free(lru->order);
}

/* ---- keys ---- */

/* Memory of at least `len` bytes for the node's key. NULL: there is none. */
static char *key_memory(const struct lru *lru, struct node *node, size_t len)
{
	char *in_cell = (char *)node + lru->key_at, *apart = NULL;

	if (len <= lru->cell_size - lru->key_at) {
		if (node->long_room != 0) {
			mem_free(key_of_node(lru, node));
			node->long_room = 0;
		}
		return in_cell;
	}
	/* A long key's memory is given back if the new key is much shorter. */
	if (node->long_room >= len && node->long_room <= 4 * len) {
		return key_of_node(lru, node);
	}
	apart = mem_realloc(node->long_room != 0 ? key_of_node(lru, node) : NULL, len);
	if (apart != NULL) {
		memcpy(in_cell, &apart, sizeof(apart));
		node->long_room = (uint32_t)len;
	}
	return apart;
}

bool lru_set_key(const struct lru *lru, struct node *node, const struct key *key)
{
	const size_t len = key->head.len + key->tail.len;
	char *to = (char *)node + lru->key_at;

	if (len > lru->cell_size - lru->key_at || node->long_room != 0) {
		to = key->head.len > UINT32_MAX / 4 || key->tail.len > UINT32_MAX / 4 ? NULL
		                                                                      : key_memory(lru, node, len);
	}
	if (to == NULL) {
		return false;
	}
	if (key->head.len != 0) {
		memcpy(to, key->head.data, key->head.len);
	}
	if (key->tail.len != 0) {
		memcpy(to + key->head.len, key->tail.data, key->tail.len);
	}
	node->key_len = (uint32_t)len;
	return true;
}

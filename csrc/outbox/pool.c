#include "outbox/pool.h"

/* The first slab of a size is small, for programs that record little. */
#define SLAB_MIN ((size_t)4 * 1024)
#define SLAB_MAX ((size_t)2 * 1024 * 1024)
/* After a slab of fewer blocks, the next one is not made ahead: the driver would be woken too often. */
#define AHEAD_MIN 32

/* AddressSanitizer knows only the allocator's blocks: with it each block is allocated, so that misuse is detected. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SLABS false
#elif defined(__has_feature)
#define HAS_SLABS (!__has_feature(address_sanitizer))
#else
#define HAS_SLABS true
#endif

/* A header lies before each block. */
union header {
	struct slab *slab;  /* NULL: a block of the allocator's */
	union header *next; /* of a free block */
	int64_t aligned;
};

/* The largest block of a slab. */
#define BLOCK_MAX (POOL_SIZES * POOL_STEP - sizeof(union header))

/* The first block's header lies after it. */
struct slab {
	struct slab *prev, *next;       /* in `open`, or by `next` alone in `empty` */
	_Alignas(8) union header *free; /* blocks that were used before */
	unsigned size;                  /* its index in pool.sizes */
	unsigned capacity;              /* blocks */
	unsigned made;                  /* blocks that were ever used: the memory after them is untouched */
	unsigned used;
};

_Static_assert(sizeof(struct slab) % 8 == 0 && sizeof(union header) % 8 == 0 && POOL_STEP % 8 == 0,
               "blocks are aligned for 64-bit numbers, also if pointers have 32 bits");

/* ---- slabs ---- */

static size_t block_bytes(unsigned size)
{
	return (size_t)(size + 1) * POOL_STEP;
}

/* The bytes of the next slab of a size: as many as its slabs have together. */
static size_t next_bytes(const struct slabs *s)
{
	size_t bytes = SLAB_MIN;

	for (size_t i = 0; i < s->in_use + s->empty_len && bytes < SLAB_MAX; i++) {
		bytes *= 2;
	}
	return bytes;
}

static struct slab *new_slab(unsigned size, size_t bytes)
{
	struct slab *slab = mem_alloc(bytes);

	if (slab != NULL) {
		*slab = (struct slab){ .size = size,
			               .capacity = (unsigned)((bytes - sizeof(*slab)) / block_bytes(size)) };
	}
	return slab;
}

static void open_slab(struct slabs *s, struct slab *slab)
{
	slab->prev = NULL;
	slab->next = s->open;
	if (s->open != NULL) {
		s->open->prev = slab;
	}
	s->open = slab;
}

static void close_slab(struct slabs *s, struct slab *slab)
{
	*(slab->prev == NULL ? &s->open : &slab->prev->next) = slab->next;
	if (slab->next != NULL) {
		slab->next->prev = slab->prev;
	}
}

static void add_empty(struct slabs *s, struct slab *slab)
{
	slab->next = s->empty;
	s->empty = slab;
	s->empty_len++;
}

/* Makes sure that a slab with room is open. False: no memory. */
static bool find_room(struct pool *pool, unsigned size)
{
	struct slabs *s = &pool->sizes[size];
	struct slab *slab = s->empty;

	if (slab != NULL) {
		s->empty = slab->next;
		s->empty_len--;
		s->unused = s->unused < s->empty_len ? s->unused : s->empty_len;
	} else {
		slab = new_slab(size, next_bytes(s));
	}
	if (slab == NULL) {
		return false;
	}
	open_slab(s, slab);
	s->in_use++;
	return true;
}

/* ---- blocks ---- */

static void *alloc_large(size_t size)
{
	union header *header = size > SIZE_MAX - sizeof(*header) ? NULL : mem_alloc(size + sizeof(*header));

	if (header == NULL) {
		return NULL;
	}
	header->slab = NULL;
	return header + 1;
}

void *pool_alloc(struct pool *pool, size_t size)
{
	const size_t index = (size + sizeof(union header) - 1) / POOL_STEP;
	union header *header;
	struct slab *slab;
	struct slabs *s;

	if (!HAS_SLABS || size > BLOCK_MAX) {
		return alloc_large(size);
	}
	s = &pool->sizes[index];
	if (s->open == NULL && !find_room(pool, (unsigned)index)) {
		return NULL;
	}
	slab = s->open;
	header = slab->free;
	if (header != NULL) {
		slab->free = header->next;
	} else {
		header = (union header *)(void *)((char *)(slab + 1) + slab->made * block_bytes(slab->size));
		slab->made++;
	}
	header->slab = slab;
	slab->used++;
	if (slab->used == slab->capacity) {
		close_slab(s, slab);
	} else if (slab->used == slab->capacity / 2 && slab->capacity >= AHEAD_MIN && slab->next == NULL &&
	           s->empty == NULL) {
		pool->wanted = (unsigned)index + 1;
	}
	return header + 1;
}

void pool_free(struct pool *pool, void *block)
{
	union header *header = block == NULL ? NULL : (union header *)block - 1;
	struct slab *slab;
	struct slabs *s;

	if (header == NULL) {
		return;
	}
	slab = header->slab;
	if (slab == NULL) {
		mem_free(header);
		return;
	}
	s = &pool->sizes[slab->size];
	header->next = slab->free;
	slab->free = header;
	if (slab->used == slab->capacity) {
		open_slab(s, slab);
	}
	slab->used--;
	if (slab->used == 0) {
		close_slab(s, slab);
		add_empty(s, slab);
		s->in_use--;
	}
}

void pool_destroy(struct pool *pool)
{
	for (size_t i = 0; i < POOL_SIZES; i++) {
		pool_free_slabs(pool->sizes[i].empty);
	}
}

/* ---- ahead of time ---- */

bool pool_next_order(struct pool *pool, struct slab_order *order)
{
	if (pool->wanted == 0) {
		return false;
	}
	*order = (struct slab_order){ pool->wanted - 1, next_bytes(&pool->sizes[pool->wanted - 1]) };
	pool->wanted = 0;
	return true;
}

struct slab *pool_make(const struct slab_order *order)
{
	struct slab *slab = new_slab(order->size, order->bytes);

	if (slab != NULL) {
		mem_touch(slab + 1, order->bytes - sizeof(*slab));
	}
	return slab;
}

void pool_add(struct pool *pool, struct slab *slab)
{
	add_empty(&pool->sizes[slab->size], slab);
}

struct slab *pool_take_unused(struct pool *pool)
{
	struct slab *taken = NULL;

	for (size_t i = 0; i < POOL_SIZES; i++) {
		struct slabs *s = &pool->sizes[i];
		struct slab **rest = &s->empty;

		/* Slabs that were used are at the front. */
		for (size_t used = s->empty_len - s->unused; used != 0; used--) {
			rest = &(*rest)->next;
		}
		while (*rest != NULL) {
			struct slab *slab = *rest;

			*rest = slab->next;
			s->empty_len--;
			slab->next = taken;
			taken = slab;
		}
		s->unused = s->empty_len;
	}
	return taken;
}

void pool_free_slabs(struct slab *slabs)
{
	while (slabs != NULL) {
		struct slab *slab = slabs;

		slabs = slab->next;
		mem_free(slab);
	}
}

size_t pool_empty_bytes(const struct pool *pool)
{
	size_t bytes = 0;

	for (size_t i = 0; i < POOL_SIZES; i++) {
		for (const struct slab *slab = pool->sizes[i].empty; slab != NULL; slab = slab->next) {
			bytes += sizeof(*slab) + slab->capacity * block_bytes(slab->size);
		}
	}
	return bytes;
}

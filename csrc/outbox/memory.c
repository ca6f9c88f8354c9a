#include "outbox/outbox_inner.h"

/* The time after which an empty slab of the pool is freed. */
#define UNUSED_FOR EVREC_SECOND
/* Bytes of empty slabs that are not worth a wake of the driver. */
#define UNUSED_MAX ((size_t)64 * 1024)

/* An item's memory, which lies after its entry. */
struct room {
	struct outbox *ob;
	struct entry *entry; /* NULL: `room` was not called yet, or there was no memory */
};

static void *make_room(void *ctx, size_t size)
{
	struct room *room = ctx;

	if (size <= SIZE_MAX - 2 * sizeof(struct entry)) {
		room->entry = pool_alloc(&room->ob->pool, sizeof(struct entry) + size);
	}
	return room->entry == NULL ? NULL : room->entry + 1;
}

struct entry *entry_make(struct outbox *ob, const void *draft)
{
	struct room room = { ob, NULL };
	void *item = ob->ops.make(draft, make_room, &room);

	if (item == NULL) {
		return NULL;
	}
	memset(room.entry, 0, sizeof(*room.entry));
	room.entry->item = item;
	return room.entry;
}

struct entry *entry_make_for(struct outbox *ob, void *item)
{
	struct entry *entry = pool_alloc(&ob->pool, sizeof(*entry));

	if (entry != NULL) {
		memset(entry, 0, sizeof(*entry));
		entry->item = item;
		entry->apart = true;
	}
	return entry;
}

void entry_free_item(struct outbox *ob, struct entry *entry)
{
	if (entry->item != NULL) {
		(entry->apart ? ob->ops.free : ob->ops.fini)(entry->item);
		entry->item = NULL;
	}
}

void entry_free(struct outbox *ob, struct entry *entry)
{
	entry_free_item(ob, entry);
	receipts_free(entry->receipts);
	pool_free(&ob->pool, entry->identity);
	pool_free(&ob->pool, entry);
}

struct identity *identity_new(struct outbox *ob, size_t text_size)
{
	return pool_alloc(&ob->pool, sizeof(struct identity) + text_size);
}

void entry_set_identity(struct outbox *ob, struct entry *entry, struct identity *identity, const char *name,
                        const char *resource_version)
{
	const size_t name_size = strlen(name) + 1;

	identity->version_at = name_size;
	memcpy(identity->text, name, name_size);
	memcpy(identity->text + name_size, resource_version, strlen(resource_version) + 1);
	pool_free(&ob->pool, entry->identity);
	entry->identity = identity;
}

bool entry_identify(struct outbox *ob, struct entry *entry, const char *name, const char *resource_version)
{
	struct identity *identity = identity_new(ob, strlen(name) + 1 + strlen(resource_version) + 1);

	if (identity != NULL) {
		entry_set_identity(ob, entry, identity, name, resource_version);
	}
	return identity != NULL;
}

/* A tier that is to be made ahead. */
struct tier_order {
	struct tiers *tiers;
	size_t elements, size; /* the number of elements, and the bytes of one */
	void *memory;
};

/* The tier of the table of ids, and those of the heaps that grow with it. */
#define TIER_ORDERS (1 + BACKOFF_WHYS)

/* With the lock. Returns how many are ordered. */
static size_t order_tiers(struct outbox *ob, struct tier_order orders[TIER_ORDERS])
{
	const size_t elements = tiers_next(&ob->table.slots, SIZE_MAX);
	size_t n = 0;

	if (!ob->table.wants_tier) {
		return 0;
	}
	ob->table.wants_tier = false;
	orders[n++] = (struct tier_order){ &ob->table.slots, elements, sizeof(struct id_slot), NULL };
	for (int why = 0; why < BACKOFF_WHYS; why++) {
		struct tiers *tiers = &ob->backoff.heaps[why].entries;

		if (tiers_next(tiers, SIZE_MAX) == elements) {
			orders[n++] = (struct tier_order){ tiers, elements, sizeof(struct entry *), NULL };
		}
	}
	return n;
}

/*
 * Without the lock. A submitting call writes to the table's tier, so that tier is touched (page faults). It does not
 * write to a heap's tier: only writes that back off are stored there.
 */
static void make_tiers(struct tier_order *orders, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		orders[i].memory = mem_alloc(orders[i].elements * orders[i].size);
		if (orders[i].memory != NULL && i == 0) {
			mem_touch(orders[i].memory, orders[i].elements * orders[i].size);
		}
	}
}

/*
 * With the lock. If a recording call has added the tier itself meanwhile, the one made here is not needed. If there was
 * no memory for a tier, none after it is added: no heap may have less room than the last one (backoff_reserve).
 */
static void add_tiers(struct tier_order *orders, size_t n)
{
	for (size_t i = 0; i < n && orders[i].memory != NULL; i++) {
		if (tiers_next(orders[i].tiers, SIZE_MAX) == orders[i].elements) {
			tiers_add(orders[i].tiers, orders[i].memory, orders[i].elements);
			orders[i].memory = NULL;
		}
	}
}

int64_t outbox_keep_memory_ready(struct outbox *ob, int64_t now, bool ahead)
{
	struct slab *unused = NULL, *slab = NULL;
	struct tier_order orders[TIER_ORDERS];
	struct slab_order slab_order;
	bool wants_slab = false, gives_back;
	size_t orders_len = 0;

	(void)pthread_mutex_lock(&ob->lock);
	if (ahead) {
		wants_slab = pool_next_order(&ob->pool, &slab_order);
		orders_len = order_tiers(ob, orders);
	}
	if (time_since(now, ob->trimmed) >= UNUSED_FOR) {
		unused = pool_take_unused(&ob->pool);
		ob->trimmed = now;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	pool_free_slabs(unused);
	if (wants_slab) {
		slab = pool_make(&slab_order);
	}
	make_tiers(orders, orders_len);
	(void)pthread_mutex_lock(&ob->lock);
	if (slab != NULL) {
		pool_add(&ob->pool, slab);
	}
	add_tiers(orders, orders_len);
	gives_back = pool_empty_bytes(&ob->pool) > UNUSED_MAX;
	(void)pthread_mutex_unlock(&ob->lock);
	for (size_t i = 0; i < orders_len; i++) {
		mem_free(orders[i].memory);
	}
	return gives_back ? ob->trimmed + UNUSED_FOR : INT64_MAX;
}

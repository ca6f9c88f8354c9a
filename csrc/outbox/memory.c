#include "outbox/outbox_inner.h"

/* How long a slab of the pool is to be empty before it is given back. */
#define UNUSED_FOR EVREC_SECOND
/* Bytes of empty slabs for which nobody is called. */
#define UNUSED_MAX ((size_t)64 * 1024)

/* An item's memory, which lies behind an entry of its own. */
struct room {
	struct outbox *ob;
	struct entry *entry; /* NULL: none was asked for, or there was no memory */
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

/* A tier of the table of ids that is to be made ahead. */
struct tier_order {
	size_t slots; /* 0: none is */
	void *memory;
};

/* Neither function is called with the lock. */
static void *make_touched(size_t size)
{
	char *block = mem_alloc(size);

	if (block != NULL) {
		mem_touch(block, size);
	}
	return block;
}

/* With the lock. The recording call may have added the tier itself meanwhile. */
static void add_tier(struct outbox *ob, struct tier_order *order)
{
	if (order->memory != NULL && tiers_next(&ob->table.slots, SIZE_MAX) == order->slots) {
		tiers_add(&ob->table.slots, order->memory, order->slots);
		order->memory = NULL;
	}
}

int64_t outbox_keep_memory_ready(struct outbox *ob, int64_t now, bool ahead)
{
	struct slab *unused = NULL, *slab = NULL;
	struct tier_order tier = { 0, NULL };
	struct slab_order order;
	bool ordered = false, gives_back;

	(void)pthread_mutex_lock(&ob->lock);
	if (ahead) {
		ordered = pool_next_order(&ob->pool, &order);
		tier.slots = ob->table.wants_tier ? tiers_next(&ob->table.slots, SIZE_MAX) : 0;
		ob->table.wants_tier = false;
	}
	if (time_since(now, ob->trimmed) >= UNUSED_FOR) {
		unused = pool_take_unused(&ob->pool);
		ob->trimmed = now;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	pool_free_slabs(unused);
	if (ordered) {
		slab = pool_make(&order);
	}
	if (tier.slots != 0) {
		tier.memory = make_touched(tier.slots * sizeof(struct id_slot));
	}
	(void)pthread_mutex_lock(&ob->lock);
	if (slab != NULL) {
		pool_add(&ob->pool, slab);
	}
	add_tier(ob, &tier);
	gives_back = pool_empty_bytes(&ob->pool) > UNUSED_MAX;
	(void)pthread_mutex_unlock(&ob->lock);
	mem_free(tier.memory);
	return gives_back ? ob->trimmed + UNUSED_FOR : INT64_MAX;
}

/*
 * items.h - what the outbox carries in tests: a name and a count, made from a draft of the same kind, and counted as
 * they live. Folding keeps the later count, as an event's does.
 */
#ifndef EVREC_ITEMS_H
#define EVREC_ITEMS_H

#include "unit.h"

#include "deliver/sender.h"

struct item {
	char name[64];
	unsigned count;
	unsigned size; /* as if it took so much memory */
	bool important;
};

static long items_alive;
static unsigned items_renamed;
static bool items_fail; /* as if there were no memory */

static inline void *item_make(const void *draft)
{
	struct item *item = items_fail ? NULL : mem_alloc(sizeof(*item));

	if (item != NULL) {
		memcpy(item, draft, sizeof(*item));
		__atomic_add_fetch(&items_alive, 1, __ATOMIC_RELAXED);
	}
	return item;
}

static inline bool item_fold(void *item, const void *draft)
{
	if (!items_fail) {
		((struct item *)item)->count = ((const struct item *)draft)->count;
		((struct item *)item)->size = ((const struct item *)draft)->size;
	}
	return !items_fail;
}

static inline bool item_merge(void *item, const void *next)
{
	return item_fold(item, next);
}

static inline bool item_rename(void *item, char name[OUTBOX_NAME_SIZE])
{
	struct item *it = item;

	if (items_fail) {
		return false;
	}
	snprintf(it->name, sizeof(it->name), "renamed-%u", ++items_renamed);
	memcpy(name, it->name, sizeof(it->name));
	return true;
}

static inline void item_set_name(void *item, const char *name)
{
	struct item *it = item;

	snprintf(it->name, sizeof(it->name), "%.63s", name);
}

static inline size_t item_size(const void *item)
{
	return ((const struct item *)item)->size;
}

/* "x/n1" is of the place "x", others of "shop". */
static inline evrec_str item_place(const void *item)
{
	const struct item *it = item;
	const char *slash = strchr(it->name, '/');

	return slash == NULL ? EVREC_STR("shop") : (evrec_str){ it->name, (size_t)(slash - it->name) };
}

static inline void item_free(void *item)
{
	__atomic_sub_fetch(&items_alive, 1, __ATOMIC_RELAXED);
	mem_free(item);
}

static const struct outbox_ops item_ops = {
	.make = item_make,
	.fold = item_fold,
	.merge = item_merge,
	.rename = item_rename,
	.set_name = item_set_name,
	.size = item_size,
	.place = item_place,
	.free = item_free,
};

/* {"name":"n1","count":1}, in the namespace "shop". */
static inline bool item_encode(const void *item, enum body body, struct request *request)
{
	const struct item *it = item;
	struct buf json = { 0 };

	(void)body;
	buf_printf(&json, "{\"name\":\"%s\",\"count\":%u}", it->name, it->count);
	*request = (struct request){ .ns = str_dup(EVREC_STR("shop")), .name = str_dup(str_from(it->name)) };
	request->body = json.data;
	request->body_len = json.len;
	return true;
}

/* Nothing expires. */
static inline evrec_limits limits_of(size_t max_pending)
{
	evrec_limits limits;

	evrec_limits_init(&limits);
	limits.max_pending = max_pending;
	limits.max_age = 0;
	return limits;
}

static inline struct outbox *items_outbox(size_t max_pending)
{
	const evrec_limits limits = limits_of(max_pending);

	return outbox_new(&item_ops, &limits, 1);
}

/* "n1 1 300 1", for a spool: all that it has. */
static inline bool item_freeze(const void *item, struct buf *out)
{
	const struct item *it = item;

	buf_printf(out, "%s %u %u %d", it->name, it->count, it->size, it->important);
	return !items_fail && !out->failed;
}

static inline void *item_thaw(evrec_str frozen, bool *important)
{
	struct item draft = { .count = 0 };
	char text[128];
	int weighs;

	(void)snprintf(text, sizeof(text), "%.*s", (int)frozen.len, frozen.data);
	if (sscanf(text, "%63s %u %u %d", draft.name, &draft.count, &draft.size, &weighs) != 4) {
		return NULL;
	}
	draft.important = *important = weighs != 0;
	return item_make(&draft);
}

static const struct spool_codec item_codec = { item_freeze, item_thaw };

/* An occurrence of write `id`, named "n<id>". */
static inline bool item_submit(struct outbox *ob, uint64_t id, unsigned count)
{
	struct item draft = { .count = count };
	const struct occurrence occurrence = { id, count > 1 ? VERB_PATCH : VERB_CREATE, false, 0, &draft };
	enum evrec_cause cause;

	snprintf(draft.name, sizeof(draft.name), "n%u", (unsigned)id);
	return outbox_submit(ob, &occurrence, &cause);
}

/* What an entry takes beside what its item says. */
static inline size_t entry_bytes(void)
{
	struct outbox *ob = items_outbox(1);
	struct outbox_stats stats;

	assert_true(item_submit(ob, 1, 1));
	outbox_get_stats(ob, &stats);
	outbox_free(ob);
	return stats.bytes;
}

static inline void assert_equation(struct outbox *ob)
{
	struct outbox_stats s;
	uint64_t sum;

	outbox_get_stats(ob, &s);
	sum = s.created + s.patched + s.coalesced + s.pending + s.spooled;
	for (int i = 0; i < EVREC_CAUSES; i++) {
		sum += s.dropped[i];
	}
	assert_int_equal(s.submitted, sum);
	assert_true(s.writes <= s.pending);
	assert_true((s.writes == 0) == (s.pending == 0));
}

#endif

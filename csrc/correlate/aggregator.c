#include "correlate/aggregator.h"

#include "base/lru.h"

/*
 * The local keys seen, oldest first, each behind a struct local: a set that is small by its nature (max_events), in
 * one block that stays when the record goes to another key.
 */
struct aggregate {
	int64_t last; /* when the last event came */
	struct buf locals;
	uint64_t locals_len; /* how many */
};

struct local {
	uint32_t hash, len;
};

static void recycle(void *value)
{
	struct aggregate *r = value;

	buf_clear(&r->locals);
	r->locals_len = 0;
}

static void fini(void *value)
{
	buf_free(&((struct aggregate *)value)->locals);
}

static const struct lru_type cache_type = { sizeof(struct aggregate), recycle, fini };

bool aggregator_create(struct aggregator *a, size_t cache_size, unsigned max_events, int64_t max_interval)
{
	a->max_events = max_events;
	a->max_interval = max_interval;
	a->cache = lru_new(&cache_type, cache_size);
	return a->cache != NULL;
}

void aggregator_destroy(struct aggregator *a)
{
	lru_free(a->cache);
}

static bool locals_have(const struct buf *locals, struct local head, evrec_str key)
{
	size_t at = 0;

	while (at < locals->len) {
		struct local seen;

		memcpy(&seen, locals->data + at, sizeof(seen));
		at += sizeof(seen);
		if (seen.hash == head.hash && seen.len == head.len &&
		    (seen.len == 0 || memcmp(locals->data + at, key.data, seen.len) == 0)) {
			return true;
		}
		at += seen.len;
	}
	return false;
}

static bool locals_insert(struct aggregate *r, evrec_str key)
{
	struct local head = { (uint32_t)lru_hash(key), (uint32_t)key.len };

	if (locals_have(&r->locals, head, key)) {
		return true;
	}
	if (!buf_reserve(&r->locals, sizeof(head) + key.len)) {
		r->locals.failed = false; /* what it holds is whole: only this key did not get in */
		return false;
	}
	buf_put(&r->locals, &head, sizeof(head));
	buf_put_str(&r->locals, key);
	r->locals_len++;
	return true;
}

static void locals_pop_oldest(struct aggregate *r)
{
	struct local head;
	size_t size;

	memcpy(&head, r->locals.data, sizeof(head));
	size = sizeof(head) + head.len;
	memmove(r->locals.data, r->locals.data + size, r->locals.len - size);
	r->locals.len -= size;
	r->locals_len--;
}

bool aggregator_observe(struct aggregator *a, evrec_str aggregate_key, evrec_str local_key, int64_t now, bool *combine)
{
	bool fresh;
	struct aggregate *r = lru_put(a->cache, aggregate_key, lru_hash(aggregate_key), &fresh);

	*combine = false;
	if (r == NULL) {
		return false;
	}
	if (!fresh && time_since(now, r->last) > a->max_interval) {
		recycle(r);
	}
	r->last = now;
	if (!locals_insert(r, local_key)) {
		return false;
	}
	if (r->locals_len < a->max_events) {
		return true;
	}
	/* The reference forgets any one of them here; the oldest is the one that can be foretold. */
	locals_pop_oldest(r);
	*combine = true;
	return true;
}

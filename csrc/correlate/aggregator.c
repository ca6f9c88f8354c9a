#include "correlate/aggregator.h"

#include "base/short_bytes.h"

/*
 * client-go's aggregateRecord. The set of local keys is a list in one buffer, since it has at most max_events members:
 * each local key follows its length, the oldest first.
 */
struct aggregate {
	int64_t last;        /* the time of the last event */
	struct buf locals;   /* the local keys */
	uint64_t locals_len; /* the number of local keys */
};

typedef uint32_t local_len;

/* Bytes that an evicted entry's buffer leaves to the next key at most: enough for most keys. */
#define LOCALS_KEPT 2048

static void forget(struct aggregate *r)
{
	buf_clear(&r->locals);
	r->locals_len = 0;
}

static void recycle(void *value)
{
	struct aggregate *r = value;

	if (r->locals.cap > LOCALS_KEPT) {
		buf_free(&r->locals);
	}
	forget(r);
}

static void fini(void *value)
{
	buf_free(&((struct aggregate *)value)->locals);
}

static const struct lru_type cache_type = { .value_size = sizeof(struct aggregate),
	                                    .recycle = recycle,
	                                    .fini = fini,
	                                    .owned_at = offsetof(struct aggregate, locals.data) };

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

/*
 * The last 8 bytes of a text, or fewer. Similar messages often differ there, as in a number: comparing them first saves
 * 340 of 3,156 instructions of a similar event.
 */
static uint64_t end_of(evrec_str text)
{
	return text.len < sizeof(uint64_t) ? 0 : bytes_load8(text.data + text.len - sizeof(uint64_t));
}

static bool locals_have(const struct buf *locals, evrec_str key)
{
	const uint64_t end = end_of(key);
	size_t at = 0;

	while (at < locals->len) {
		evrec_str local;
		local_len len;

		memcpy(&len, locals->data + at, sizeof(len));
		at += sizeof(len);
		local = (evrec_str){ locals->data + at, len };
		if (local.len == key.len && end_of(local) == end && str_eq(local, key)) {
			return true;
		}
		at += len;
	}
	return false;
}

static bool locals_insert(struct aggregate *r, evrec_str key)
{
	local_len len = (local_len)key.len;

	if (locals_have(&r->locals, key)) {
		return true;
	}
	if (key.len > UINT32_MAX / 2 || !buf_reserve(&r->locals, sizeof(len) + key.len)) {
		r->locals.failed = false; /* the buffer still holds all earlier keys whole */
		return false;
	}
	buf_put(&r->locals, &len, sizeof(len));
	buf_put_str(&r->locals, key);
	r->locals_len++;
	return true;
}

static void locals_pop_oldest(struct aggregate *r)
{
	local_len len;
	size_t size;

	memcpy(&len, r->locals.data, sizeof(len));
	size = sizeof(len) + len;
	memmove(r->locals.data, r->locals.data + size, r->locals.len - size);
	r->locals.len -= size;
	r->locals_len--;
}

HOT bool aggregator_observe(struct aggregator *a, struct key *aggregate_key, evrec_str local_key, int64_t now,
                            bool *combine)
{
	bool fresh;
	struct aggregate *r = lru_put(a->cache, aggregate_key, &fresh);

	*combine = false;
	if (r == NULL) {
		return false;
	}
	if (!fresh && time_since(now, r->last) > a->max_interval) {
		forget(r);
	}
	r->last = now;
	if (!locals_insert(r, local_key)) {
		return false;
	}
	if (r->locals_len < a->max_events) {
		return true;
	}
	/* client-go forgets any one of the keys (its PopAny). Forgetting the oldest is reproducible. */
	locals_pop_oldest(r);
	*combine = true;
	return true;
}

bool aggregator_key(const struct aggregator *a, uint64_t handle, evrec_str *key)
{
	const struct aggregate *r = lru_at(a->cache, handle);

	if (r == NULL) {
		return false;
	}
	*key = lru_key(a->cache, r);
	return true;
}

void aggregator_save(const void *value, struct buf *out)
{
	const struct aggregate *r = value;

	buf_put(out, &r->last, sizeof(r->last));
	buf_put_str(out, buf_str(&r->locals));
}

/* The number of local keys in these bytes. False: they are none. */
static bool locals_count(evrec_str locals, uint64_t *n)
{
	local_len len;

	for (*n = 0; locals.len != 0; ++*n) {
		if (!restored_take(&locals, &len, sizeof(len)) || locals.len < len) {
			return false;
		}
		locals.data += len;
		locals.len -= len;
	}
	return true;
}

enum restored aggregator_restore(struct aggregator *a, struct key *key, evrec_str value)
{
	struct aggregate *r;
	uint64_t n;
	int64_t last;
	bool fresh;

	if (!restored_take(&value, &last, sizeof(last)) || !locals_count(value, &n)) {
		return RESTORED_INVALID;
	}
	r = lru_put(a->cache, key, &fresh);
	if (r == NULL) {
		return RESTORED_NO_MEMORY;
	}
	forget(r);
	r->last = last;
	buf_put_str(&r->locals, value);
	if (r->locals.failed) {
		forget(r);
		return RESTORED_NO_MEMORY;
	}
	r->locals_len = n;
	return RESTORED;
}

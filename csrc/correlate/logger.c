#include "correlate/logger.h"

#include "event/event.h"

struct observation {
	int64_t first;
	struct buf text; /* name, then resource version */
	uint32_t name_len;
	int32_t count; /* 0: only just made */
};

static void recycle(void *value)
{
	struct observation *o = value;

	buf_clear(&o->text);
	o->name_len = 0;
	o->count = 0;
}

static void fini(void *value)
{
	buf_free(&((struct observation *)value)->text);
}

static const struct lru_type cache_type = { sizeof(struct observation), recycle, fini };

bool logger_create(struct logger *l, size_t cache_size)
{
	l->name = (struct buf){ 0 };
	l->cache = lru_new(&cache_type, cache_size);
	return l->cache != NULL;
}

void logger_destroy(struct logger *l)
{
	lru_free(l->cache);
	buf_free(&l->name);
}

static evrec_str name_of(const struct observation *o)
{
	return (evrec_str){ o->text.data, o->name_len };
}

static evrec_str resource_version_of(const struct observation *o)
{
	size_t len = o->text.len - o->name_len;

	return (evrec_str){ len == 0 ? NULL : o->text.data + o->name_len, len };
}

/* Room for a text of that length. False: no memory, and the text as it was. */
static bool make_room(struct observation *o, size_t len)
{
	if (len > o->text.len && !buf_reserve(&o->text, len - o->text.len)) {
		o->text.failed = false;
		return false;
	}
	return true;
}

/* Neither string may lie in the observation itself. */
static bool set_text(struct observation *o, evrec_str name, evrec_str resource_version)
{
	if (!make_room(o, name.len + resource_version.len)) {
		return false;
	}
	buf_clear(&o->text);
	buf_put_str(&o->text, name);
	buf_put_str(&o->text, resource_version);
	o->name_len = (uint32_t)name.len;
	return true;
}

/* The name stays. */
static bool set_resource_version(struct observation *o, evrec_str resource_version)
{
	if (!make_room(o, o->name_len + resource_version.len)) {
		return false;
	}
	o->text.len = o->name_len;
	buf_put_str(&o->text, resource_version);
	return true;
}

/* An entry that a failure left without a count is as good as none: the next event finds it new. */
static bool observe_new(struct logger *l, struct observation *o, struct observed *observed, int64_t now)
{
	if (observed->name.len == 0) {
		buf_clear(&l->name);
		name_make(&l->name, observed->event->regarding.name, now);
		if (l->name.failed) {
			return false;
		}
		observed->name = buf_str(&l->name);
	}
	if (observed->count < 1) {
		observed->count = 1;
	}
	if (!set_text(o, observed->name, observed->resource_version)) {
		return false;
	}
	o->first = observed->first;
	o->count = observed->count;
	return true;
}

bool logger_observe(struct logger *l, struct key *key, struct observed *observed, int64_t now, bool *known)
{
	bool fresh;
	struct observation *o = lru_put(l->cache, key, &fresh);

	if (o == NULL) {
		return false;
	}
	observed->handle = key->handle;
	*known = o->count > 0;
	if (!*known) {
		return observe_new(l, o, observed, now);
	}
	if (o->count < INT32_MAX) {
		o->count++;
	}
	observed->name = name_of(o);
	observed->resource_version = resource_version_of(o);
	observed->first = o->first;
	observed->count = o->count;
	return true;
}

static bool answered(struct observation *o, evrec_str name, evrec_str resource_version)
{
	return name.len == 0 ? set_resource_version(o, resource_version) : set_text(o, name, resource_version);
}

void logger_answered(struct logger *l, uint64_t handle, evrec_str name, evrec_str resource_version)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		/* Without memory the old resource version stays, which no write depends on. */
		(void)answered(o, name, resource_version);
	}
}

struct search {
	evrec_str name;
	struct observation *found;
};

static bool has_name(void *ctx, evrec_str key, void *value)
{
	struct search *s = ctx;
	struct observation *o = value;

	(void)key;
	if (o->count > 0 && str_eq(name_of(o), s->name)) {
		s->found = o;
	}
	return s->found == NULL;
}

/*
 * The entry of an answer: that of its event key, if the names agree, or another of that name. The answer counts as use
 * of both. NULL: there is none.
 */
static struct observation *find(struct logger *l, struct key *event_key, evrec_str name)
{
	struct observation *o = lru_get(l->cache, event_key);
	struct search search = { name, NULL };

	if (name.len == 0 || (o != NULL && str_eq(name_of(o), name))) {
		return o;
	}
	lru_each(l->cache, has_name, &search);
	if (search.found == NULL) {
		return o;
	}
	lru_use(l->cache, search.found);
	return search.found;
}

bool logger_update(struct logger *l, struct key *event_key, const evrec_fields *event)
{
	struct observation *o = find(l, event_key, event->name);
	bool fresh;

	if (o == NULL) {
		o = lru_put(l->cache, event_key, &fresh);
		if (o == NULL) {
			return false;
		}
		o->first = event->first;
	}
	if (!answered(o, event->name, event->resource_version)) {
		return false;
	}
	if (event->count > o->count) {
		o->count = event->count;
	}
	return true;
}

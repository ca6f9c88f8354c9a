#include "correlate/event_log_inner.h"

#include "correlate/schedule.h"
#include "event/event.h"

static void recycle(void *value)
{
	struct observation *o = value;

	buf_clear(&o->text);
	o->name_len = 0;
	o->count = 0;
	o->known = 0;
	o->own = 0;
	o->scheduled = 0;
	mem_free(o->origins);
	o->origins = NULL;
}

static void fini(void *value)
{
	struct observation *o = value;

	buf_free(&o->text);
	mem_free(o->origins);
}

static const struct lru_type cache_type = { .value_size = sizeof(struct observation),
	                                    .recycle = recycle,
	                                    .fini = fini };

bool event_log_create(struct event_log *l, size_t cache_size)
{
	l->name = l->text = (struct buf){ 0 };
	l->last_due = INT64_MIN;
	l->cache = lru_new(&cache_type, cache_size);
	return l->cache != NULL;
}

void event_log_destroy(struct event_log *l)
{
	lru_free(l->cache);
	buf_free(&l->name);
	buf_free(&l->text);
}

static evrec_str resource_version_of(const struct observation *o)
{
	size_t len = o->text.len - o->name_len;

	return (evrec_str){ len == 0 ? NULL : o->text.data + o->name_len, len };
}

bool event_log_set_text(struct event_log *l, struct observation *o, evrec_str name, evrec_str resource_version)
{
	const struct buf old = o->text;

	buf_clear(&l->text);
	buf_put_str(&l->text, name);
	buf_put_str(&l->text, resource_version);
	if (l->text.failed) {
		return false;
	}
	o->text = l->text;
	o->name_len = (uint32_t)name.len;
	l->text = old;
	return true;
}

/* False: no memory. Then the entry keeps a count of 0, and the next event with its key is a new one too. */
static bool observe_new(struct event_log *l, struct observation *o, struct observed *observed, int64_t now)
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
	if (!event_log_set_text(l, o, observed->name, observed->resource_version)) {
		return false;
	}
	o->first = observed->first;
	o->count = observed->count;
	return true;
}

HOT bool event_log_observe(struct event_log *l, struct key *key, const struct origin *origin, struct observed *observed,
                           int64_t now, bool *known)
{
	const bool own = origin == NULL || origin->connection == 0;
	bool fresh;
	struct observation *o = lru_put(l->cache, key, &fresh);

	if (o == NULL) {
		return false;
	}
	observed->handle = key->handle;
	*known = o->count > 0;
	if (!*known) {
		const bool ok = observe_new(l, o, observed, now);

		o->own = observed->sure = o->count - !own;
		return ok;
	}
	observed->repeated = origin != NULL && origins_take(o->origins, origin, &observed->skip);
	if (!observed->repeated && o->count < INT32_MAX) {
		o->count++;
		o->own += own;
	}
	observed->name = name_of(o);
	observed->resource_version = resource_version_of(o);
	observed->first = o->first;
	observed->count = o->count;
	observed->sure = o->own;
	return true;
}

int64_t event_log_schedule(struct event_log *l, uint64_t handle, int64_t now, int64_t min_interval)
{
	struct observation *o = lru_at(l->cache, handle);
	const int64_t due = o == NULL ? 0 : schedule_next(&o->scheduled, now, min_interval);

	if (due > l->last_due) {
		l->last_due = due;
	}
	return due;
}

static bool release_each(void *now, evrec_str key, void *value)
{
	(void)key;
	schedule_release(&((struct observation *)value)->scheduled, *(const int64_t *)now);
	return true;
}

void event_log_released(struct event_log *l, uint64_t handle, int64_t now)
{
	struct observation *o = handle != 0 ? lru_at(l->cache, handle) : NULL;

	if (o != NULL) {
		schedule_release(&o->scheduled, now);
	}
	/* A waiting flush releases repeatedly: only the first call has something to do. */
	if (handle == 0 && l->last_due > now) {
		l->last_due = now;
		lru_each(l->cache, release_each, &now);
	}
}

void event_log_refused(struct event_log *l, uint64_t handle)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		o->scheduled = 0;
	}
}

void event_log_note(struct event_log *l, uint64_t handle, const struct origin *origin, bool limited)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		origins_add(&o->origins, origin, limited);
	}
}

void event_log_tell(struct event_log *l, uint64_t handle, uint64_t connection, bool limited, uint32_t n, uint64_t batch)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		origins_tell(o->origins, connection, limited, n, batch);
	}
}

void event_log_acknowledge(struct event_log *l, uint64_t handle, uint64_t connection, bool limited, uint32_t n)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		origins_acknowledge(&o->origins, connection, limited, n);
	}
}

uint64_t event_log_next_of(const struct event_log *l, uint64_t connection, uint32_t *place)
{
	const struct observation *o;

	while ((o = lru_in_place(l->cache, *place)) != NULL) {
		(*place)++;
		if (origins_have(o->origins, connection)) {
			return lru_handle(o);
		}
	}
	return 0;
}

uint64_t event_log_next_to_reconnect(const struct event_log *l, const struct origin *from, uint32_t *place)
{
	const struct observation *o;

	while ((o = lru_in_place(l->cache, *place)) != NULL) {
		(*place)++;
		if (origins_is_to_reconnect(o->origins, from)) {
			return lru_handle(o);
		}
	}
	return 0;
}

void event_log_reconnect(struct event_log *l, uint64_t handle, const struct origin *from)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		origins_reconnect(&o->origins, from);
	}
}

void event_log_leave(struct event_log *l, uint64_t handle, uint64_t connection)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		origins_leave(&o->origins, connection);
	}
}

/* An answer without a name does not change the entry's name. */
static bool answered(struct event_log *l, struct observation *o, evrec_str name, evrec_str resource_version)
{
	return event_log_set_text(l, o, name.len == 0 ? name_of(o) : name, resource_version);
}

void event_log_answered(struct event_log *l, uint64_t handle, evrec_str name, evrec_str resource_version)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		/* Without memory the old resource version stays. No write depends on it. */
		(void)answered(l, o, name, resource_version);
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

struct observation *event_log_find(struct event_log *l, struct key *event_key, evrec_str name)
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

bool event_log_update(struct event_log *l, struct key *event_key, const evrec_fields *event)
{
	struct observation *o = event_log_find(l, event_key, event->name);
	bool fresh;

	if (o == NULL) {
		o = lru_put(l->cache, event_key, &fresh);
		if (o == NULL) {
			return false;
		}
		o->first = event->first;
	}
	if (!answered(l, o, event->name, event->resource_version)) {
		return false;
	}
	if (event->count > o->count) {
		o->own += event->count - o->count;
		o->count = event->count;
	}
	return true;
}

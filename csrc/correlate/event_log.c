#include "correlate/event_log.h"

#include "correlate/schedule.h"
#include "event/event.h"

struct observation {
	int64_t first;
	struct buf text;   /* name, then resource version */
	int64_t scheduled; /* when the last write was made, or is due; 0: none was */
	struct origins *origins;
	uint32_t name_len;
	int32_t count;    /* 0: the entry was just made, and has no name yet */
	int32_t known;    /* `sure` of the count that a killed process has left here; 0: it has left none */
	uint32_t missing; /* of `origins`: they are not in the count until they are recorded again */
	uint32_t
		settled; /* occurrences that `origins` had until `turn`, and that may be recorded again as long as that is */
	uint32_t turn;
};

static void recycle(void *value)
{
	struct observation *o = value;

	buf_clear(&o->text);
	o->name_len = 0;
	o->count = o->known = 0;
	o->settled = o->missing = 0;
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
	                                    .fini = fini,
	                                    .owned_at = offsetof(struct observation, text.data) };

bool event_log_create(struct event_log *l, size_t cache_size)
{
	l->name = l->text = (struct buf){ 0 };
	l->turn = 1;
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

static evrec_str name_of(const struct observation *o)
{
	return (evrec_str){ o->text.data, o->name_len };
}

static evrec_str resource_version_of(const struct observation *o)
{
	size_t len = o->text.len - o->name_len;

	return (evrec_str){ len == 0 ? NULL : o->text.data + o->name_len, len };
}

/*
 * Sets both. Either string may lie in the observation's own text: the new text is built in l->text, and then the two
 * buffers swap, so that the old strings are valid after this call. False: no memory, and the text is unchanged.
 */
static bool set_text(struct event_log *l, struct observation *o, evrec_str name, evrec_str resource_version)
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

/* The count with those occurrences that are to be recorded again. */
static int32_t whole_count(const struct observation *o)
{
	const uint32_t expected = o->missing == 0 ? 0 : origins_expected(o->origins);
	const uint32_t missing = o->missing < expected ? o->missing : expected;

	return missing < (uint32_t)(INT32_MAX - o->count) ? o->count + (int32_t)missing : INT32_MAX;
}

/* Occurrences that no other process may record again. */
static int32_t count_sure(const struct event_log *l, const struct observation *o)
{
	const uint32_t open = o->origins == NULL ? 0 : origins_sum(o->origins);
	const uint32_t settled = o->turn == l->turn ? o->settled : 0;
	const int64_t sure = (int64_t)whole_count(o) - open - settled;

	return sure > 0 ? (int32_t)sure : 0;
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
	if (!set_text(l, o, observed->name, observed->resource_version)) {
		return false;
	}
	o->first = observed->first;
	o->count = observed->count;
	return true;
}

HOT bool event_log_observe(struct event_log *l, struct key *key, const struct origin *origin, struct observed *observed,
                           int64_t now, bool *known)
{
	bool fresh;
	struct observation *o = lru_put(l->cache, key, &fresh);

	if (o == NULL) {
		return false;
	}
	observed->handle = key->handle;
	*known = o->count > 0;
	if (!*known) {
		const bool ok = observe_new(l, o, observed, now);

		observed->sure = o->count - (origin != NULL && origin->connection != 0);
		return ok;
	}
	observed->repeated = origin != NULL && origins_take(o->origins, origin, &observed->skip);
	if ((!observed->repeated || o->missing != 0) && o->count < INT32_MAX) {
		o->count++;
	}
	o->missing -= observed->repeated && o->missing != 0;
	observed->name = name_of(o);
	observed->resource_version = resource_version_of(o);
	observed->first = o->first;
	observed->count = o->count;
	/* event_log_note comes later. */
	observed->sure = count_sure(l, o) - (origin != NULL && origin->connection != 0);
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
	/* A flush releases again and again while it waits: only the first time is there anything to do. */
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

void event_log_acknowledge(struct event_log *l, uint64_t handle, uint64_t connection, bool limited, uint32_t n)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		o->settled = (o->turn == l->turn ? o->settled : 0) +
		             origins_acknowledge(&o->origins, connection, limited, n);
		o->turn = l->turn;
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

void event_log_leave(struct event_log *l, uint64_t handle, uint64_t connection)
{
	struct observation *o = lru_at(l->cache, handle);

	if (o != NULL) {
		origins_leave(&o->origins, connection);
	}
}

void event_log_acknowledged(struct event_log *l)
{
	l->turn++;
}

/* An answer without a name leaves the entry its name. */
static bool answered(struct event_log *l, struct observation *o, evrec_str name, evrec_str resource_version)
{
	return set_text(l, o, name.len == 0 ? name_of(o) : name, resource_version);
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

/*
 * The entry of an answer: that of its event key if their names agree, else another one with the answer's name, else
 * that of its event key after all. The entry of the event key counts as used, and so does the result. NULL: none.
 */
static struct observation *find(struct event_log *l, struct key *event_key, evrec_str name)
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
	struct observation *o = find(l, event_key, event->name);
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
		o->count = event->count;
	}
	return true;
}

bool event_log_recover(struct event_log *l, struct key *event_key, const evrec_fields *event, int32_t sure,
                       uint64_t *handle)
{
	struct observation *o = find(l, event_key, event->name);
	bool fresh;

	*handle = 0;
	if (o == NULL) {
		o = lru_put(l->cache, event_key, &fresh);
		if (o == NULL || !set_text(l, o, event->name, event->resource_version)) {
			return false;
		}
		o->first = event->first;
		o->count = o->known = sure;
	} else if (!str_eq(name_of(o), event->name)) {
		return true;
	} else if (o->known != 0 && o->known < sure && o->missing == 0) {
		const uint32_t missing = origins_expected(o->origins);
		const int64_t count = (int64_t)o->count - missing + (sure - o->known);

		/* A count has at least those that are sure. */
		o->count = count < sure ? sure : count < INT32_MAX ? (int32_t)count : INT32_MAX;
		o->missing = missing;
		o->known = sure;
	}
	*handle = lru_handle(o);
	return true;
}

/* The numbers of an observation as they are saved; its origins, name and resource version follow. */
struct saved {
	int64_t first;
	uint32_t name_len;
	int32_t count;
};

bool event_log_save(const void *value, struct buf *out)
{
	const struct observation *o = value;
	const struct saved saved = { o->first, o->name_len, whole_count(o) };

	if (o->count > 0) {
		buf_put(out, &saved, sizeof(saved));
		origins_save(o->origins, out);
		buf_put_str(out, buf_str(&o->text));
	}
	return o->count > 0;
}

enum restored event_log_restore(struct event_log *l, struct key *key, evrec_str value)
{
	struct origins *origins = NULL;
	struct observation *o;
	enum restored restored;
	struct saved saved;
	bool fresh;

	if (!restored_take(&value, &saved, sizeof(saved)) || saved.count < 1) {
		return RESTORED_INVALID;
	}
	restored = origins_restore(&origins, &value);
	if (restored == RESTORED && saved.name_len > value.len) {
		restored = RESTORED_INVALID;
	}
	o = restored == RESTORED ? lru_put(l->cache, key, &fresh) : NULL;
	if (o == NULL) {
		mem_free(origins);
		return restored == RESTORED ? RESTORED_NO_MEMORY : restored;
	}
	mem_free(o->origins);
	o->origins = origins;
	if (!set_text(l, o, (evrec_str){ value.data, saved.name_len },
	              (evrec_str){ value.data + saved.name_len, value.len - saved.name_len })) {
		return RESTORED_NO_MEMORY;
	}
	o->first = saved.first;
	o->count = saved.count;
	o->known = count_sure(l, o);
	return RESTORED;
}

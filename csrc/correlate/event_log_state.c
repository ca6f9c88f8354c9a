/* The state of an event log, saved and restored, and the counts that a killed process has left in its journal. */
#include "correlate/event_log_inner.h"

static void set_known(struct observation *o, int32_t own)
{
	o->known = (uint32_t)own + 1;
}

static int32_t known_of(const struct observation *o)
{
	return (int32_t)(o->known - 1);
}

bool event_log_recover(struct event_log *l, struct key *event_key, const evrec_fields *event, int32_t own,
                       uint64_t *handle)
{
	struct observation *o = event_log_find(l, event_key, event->name);
	bool fresh;

	*handle = 0;
	if (o == NULL) {
		o = lru_put(l->cache, event_key, &fresh);
		if (o == NULL || !event_log_set_text(l, o, event->name, event->resource_version)) {
			return false;
		}
		o->first = event->first;
		/*
		 * While no state has the entry, no other process gets an acknowledgement for it: what they have recorded
		 * comes again, and is counted then.
		 */
		o->count = o->own = own;
		set_known(o, own);
	} else if (!str_eq(name_of(o), event->name)) {
		return true;
	} else if (o->known != 0 && known_of(o) < own) {
		const int32_t missing = own - known_of(o);
		const int32_t room = INT32_MAX - o->count;

		o->count += missing < room ? missing : room;
		o->own += missing < room ? missing : room;
		set_known(o, own);
	}
	*handle = lru_handle(o);
	return true;
}

/* The numbers of an observation as they are saved; its origins, name and resource version follow. */
struct saved {
	int64_t first;
	uint32_t name_len;
	int32_t count, own;
	uint32_t unused;
};

bool event_log_save(const void *value, struct buf *out)
{
	const struct observation *o = value;
	const struct saved saved = { o->first, o->name_len, o->count, o->own, 0 };

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

	if (!restored_take(&value, &saved, sizeof(saved)) || saved.count < 1 || saved.own < 0 ||
	    saved.own > saved.count) {
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
	if (!event_log_set_text(l, o, (evrec_str){ value.data, saved.name_len },
	                        (evrec_str){ value.data + saved.name_len, value.len - saved.name_len })) {
		return RESTORED_NO_MEMORY;
	}
	o->first = saved.first;
	o->count = saved.count;
	o->own = saved.own;
	set_known(o, o->own);
	return RESTORED;
}

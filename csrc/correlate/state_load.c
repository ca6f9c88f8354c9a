#include "correlate/state_inner.h"

#include <stdlib.h>

struct found {
	struct record record;
	evrec_str key, value;
};

/* Takes the next record. False: there is none, or it is damaged. */
static bool take_record(evrec_str *bytes, struct found *found)
{
	struct record_head head;
	evrec_str rest = *bytes, body;

	if (!restored_take(&rest, &head, sizeof(head)) || rest.len < head.len) {
		return false;
	}
	body = (evrec_str){ rest.data, head.len };
	if (state_checksum(body) != head.sum || !restored_take(&body, &found->record, sizeof(found->record)) ||
	    found->record.key_len > body.len || found->record.cache >= CACHES) {
		return false;
	}
	found->key = (evrec_str){ body.data, found->record.key_len };
	found->value = (evrec_str){ body.data + found->record.key_len, body.len - found->record.key_len };
	*bytes = (evrec_str){ rest.data + head.len, rest.len - head.len };
	return true;
}

static int by_use(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->record.used != y->record.used) {
		return x->record.used < y->record.used ? -1 : 1;
	}
	return x->key.data < y->key.data ? -1 : x->key.data > y->key.data;
}

static enum restored restore(struct state *s, const struct found *found, int64_t now)
{
	struct key key = { .head = found->key, .hash = found->record.hash };
	struct marks *m = &s->of[found->record.cache];
	enum restored result;

	if (m->cache == NULL) {
		return RESTORED_INVALID;
	}
	switch ((enum cache)found->record.cache) {
	case AGGREGATES:
		result = aggregator_restore(s->caches.aggregator, &key, found->value);
		break;
	case OBSERVATIONS:
		result = event_log_restore(s->caches.event_log, &key, found->value);
		break;
	case SERIES:
		result = series_restore(s->series, &key, found->value, now);
		break;
	default:
		result = spam_filter_restore(s->caches.spam_filter, &key, found->value);
		break;
	}
	if (result == RESTORED && !state_mark_used(m, lru_place(key.handle), found->record.used, found->record.at)) {
		result = RESTORED_NO_MEMORY;
	}
	return result;
}

/* All records before the first damaged one, the caller's, in the order of use. False: no memory. */
static bool find_records(evrec_str bytes, struct buf *list, size_t *valid_len)
{
	evrec_str rest = bytes;
	struct found found;

	while (!list->failed && take_record(&rest, &found)) {
		buf_put(list, &found, sizeof(found));
	}
	if (list->failed) {
		return false;
	}
	*valid_len = bytes.len - rest.len;
	if (list->len != 0) {
		qsort(list->data, list->len / sizeof(found), sizeof(found), by_use);
	}
	return true;
}

bool state_load(struct state *s, evrec_str bytes, int64_t now, int64_t max_age, struct state_loaded *loaded)
{
	struct buf list = { 0 };
	bool ok;

	*loaded = (struct state_loaded){ 0 };
	ok = find_records(bytes, &list, &loaded->valid_len);
	for (size_t at = 0; ok && at < list.len; at += sizeof(struct found)) {
		enum restored restored;
		struct found found;

		memcpy(&found, list.data + at, sizeof(found));
		if (time_since(now, found.record.at) > max_age) {
			loaded->old++;
			continue;
		}
		restored = restore(s, &found, now);
		ok = restored != RESTORED_NO_MEMORY;
		loaded->records += restored == RESTORED;
		s->uses = found.record.used > s->uses ? found.record.used : s->uses;
	}
	buf_free(&list);
	if (s->series != NULL) {
		series_tell_restored(s->series);
	}
	return ok;
}

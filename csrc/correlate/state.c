#include "correlate/state.h"

#include "correlate/aggregator.h"
#include "correlate/event_log.h"
#include "correlate/spam_filter.h"

#include <stdlib.h>

enum cache { AGGREGATES, OBSERVATIONS, BUCKETS, CACHES };

#define NONE UINT32_MAX
#define PLACES (UINT64_C(1) << 32) /* of a cache, for a cursor */

/* About the entry in one place of a cache. */
struct mark {
	uint64_t used;  /* the number of its last use; 0: not noted yet */
	int64_t at;     /* the time of its last use */
	uint32_t next;  /* the next place in the queue, if it is in the queue */
	bool is_queued; /* it has changed, and was not taken since */
};

/* The marks of a cache, by place, and the queue of those that have changed. */
struct marks {
	struct lru *cache;
	struct mark *marks;
	uint32_t room;
	uint32_t head, tail; /* NONE: the queue is empty */
	size_t queued, due;  /* entries in the queue; the first ones, which state_take_changes takes */
};

struct state {
	struct caches caches;
	struct marks of[CACHES];
	uint64_t uses; /* observations, also those of earlier processes */
};

struct record_head {
	uint32_t len; /* of the record without this head */
	uint32_t sum;
};

/* After the head. The key and the value follow. */
struct record {
	uint64_t used;
	int64_t at;
	uint64_t hash;
	uint32_t key_len;
	uint32_t cache;
};

struct state *state_new(evrec_correlator *correlator)
{
	struct state *s = mem_zalloc(sizeof(*s));

	if (s != NULL) {
		s->caches = correlator_caches(correlator);
		s->of[AGGREGATES].cache = s->caches.aggregator->cache;
		s->of[OBSERVATIONS].cache = s->caches.event_log->cache;
		s->of[BUCKETS].cache = s->caches.spam_filter->cache;
		for (size_t i = 0; i < CACHES; i++) {
			s->of[i].head = s->of[i].tail = NONE;
		}
	}
	return s;
}

void state_free(struct state *s)
{
	if (s != NULL) {
		for (size_t i = 0; i < CACHES; i++) {
			mem_free(s->of[i].marks);
		}
		mem_free(s);
	}
}

/* ---- which entries have changed ---- */

static bool grow(struct marks *m, uint32_t place)
{
	size_t room = m->room == 0 ? 16 : m->room;
	struct mark *marks;

	while (room <= place) {
		room *= 2;
	}
	marks = mem_realloc(m->marks, room * sizeof(*marks));
	if (marks == NULL) {
		return false;
	}
	memset(marks + m->room, 0, (room - m->room) * sizeof(*marks));
	m->marks = marks;
	m->room = (uint32_t)room;
	return true;
}

static void enqueue(struct marks *m, uint32_t place)
{
	struct mark *mark = &m->marks[place];

	if (mark->is_queued) {
		return;
	}
	mark->is_queued = true;
	mark->next = NONE;
	if (m->tail != NONE) {
		m->marks[m->tail].next = place;
	} else {
		m->head = place;
	}
	m->tail = place;
	m->queued++;
}

/* False: no memory. */
static bool mark_used(struct marks *m, uint32_t place, uint64_t used, int64_t at)
{
	if (place >= m->room && !grow(m, place)) {
		return false;
	}
	m->marks[place].used = used;
	m->marks[place].at = at;
	return true;
}

static void note(struct marks *m, uint64_t handle, uint64_t used, int64_t now)
{
	if (mark_used(m, lru_place(handle), used, now)) {
		enqueue(m, lru_place(handle));
	}
}

void state_observed(struct state *s, const struct observed *o, int64_t now)
{
	s->uses++;
	note(&s->of[AGGREGATES], o->aggregate, s->uses, now);
	note(&s->of[OBSERVATIONS], o->handle, s->uses, now);
	if (o->bucket != 0) {
		note(&s->of[BUCKETS], o->bucket, s->uses, now);
	}
}

void state_answered(struct state *s, uint64_t handle)
{
	struct marks *m = &s->of[OBSERVATIONS];
	uint32_t place = lru_place(handle);

	if (lru_at(m->cache, handle) != NULL && place < m->room) {
		enqueue(m, place);
	}
}

struct noting {
	struct marks *marks;
	uint64_t used;
	int64_t now;
	bool ok;
};

static bool note_entry(void *ctx, evrec_str key, void *value)
{
	struct noting *noting = ctx;

	(void)key;
	noting->ok = mark_used(noting->marks, lru_place(lru_handle(value)), noting->used--, noting->now);
	return noting->ok;
}

bool state_note_all(struct state *s, int64_t now)
{
	bool ok = true;

	for (size_t i = 0; i < CACHES && ok; i++) {
		struct lru *cache = s->of[i].cache;
		struct noting noting = { &s->of[i], s->uses + lru_len(cache), now, true };

		s->uses = noting.used;
		lru_each(cache, note_entry, &noting);
		ok = noting.ok;
	}
	return ok;
}

void state_begin_changes(struct state *s)
{
	for (size_t i = 0; i < CACHES; i++) {
		s->of[i].due = s->of[i].queued;
	}
}

size_t state_changes(const struct state *s)
{
	size_t n = 0;

	for (size_t i = 0; i < CACHES; i++) {
		n += s->of[i].due;
	}
	return n;
}

/* ---- entries as bytes ---- */

static bool put_value(enum cache cache, const void *value, struct buf *out)
{
	switch (cache) {
	case AGGREGATES:
		aggregator_save(value, out);
		return true;
	case OBSERVATIONS:
		return event_log_save(value, out);
	default:
		spam_filter_save(value, out);
		return true;
	}
}

static uint32_t checksum(evrec_str bytes)
{
	return (uint32_t)lru_hash(bytes);
}

static void put_record(const struct state *s, enum cache cache, uint32_t place, struct buf *out)
{
	const struct marks *m = &s->of[cache];
	const void *value = lru_in_place(m->cache, place);
	const struct mark *mark = &m->marks[place];
	const size_t start = out->len;
	struct record_head head = { 0, 0 };
	evrec_str body;

	if (value == NULL || mark->used == 0) {
		return;
	}
	buf_put(out, &head, sizeof(head));
	buf_put(out, &(struct record){ mark->used, mark->at, lru_key_hash(value), (uint32_t)lru_key(value).len, cache },
	        sizeof(struct record));
	buf_put_str(out, lru_key(value));
	if (!put_value(cache, value, out) || out->failed) {
		out->len = start;
		return;
	}
	body = (evrec_str){ out->data + start + sizeof(head), out->len - start - sizeof(head) };
	head.len = (uint32_t)body.len;
	head.sum = checksum(body);
	memcpy(out->data + start, &head, sizeof(head));
}

size_t state_take_changes(struct state *s, size_t max, struct buf *out)
{
	size_t n = 0;

	for (enum cache cache = 0; cache < CACHES; cache++) {
		struct marks *m = &s->of[cache];

		for (; n < max && m->due != 0; n++) {
			const uint32_t place = m->head;

			m->marks[place].is_queued = false;
			m->head = m->marks[place].next;
			m->tail = m->head == NONE ? NONE : m->tail;
			m->queued--;
			m->due--;
			put_record(s, cache, place, out);
		}
	}
	return n;
}

size_t state_take_all(struct state *s, uint64_t *cursor, size_t max, struct buf *out)
{
	enum cache cache = (enum cache)(*cursor / PLACES);
	uint32_t place = (uint32_t)(*cursor % PLACES);
	size_t n = 0;

	while (cache < CACHES && n < max) {
		if (place >= s->of[cache].room) {
			cache++;
			place = 0;
			continue;
		}
		put_record(s, cache, place, out);
		place++;
		n++;
	}
	*cursor = cache * PLACES + place;
	return n;
}

/* ---- and back ---- */

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
	if (checksum(body) != head.sum || !restored_take(&body, &found->record, sizeof(found->record)) ||
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

static enum restored restore(struct state *s, const struct found *found)
{
	struct key key = { .head = found->key, .hash = found->record.hash };
	struct marks *m = &s->of[found->record.cache];
	enum restored result;

	switch ((enum cache)found->record.cache) {
	case AGGREGATES:
		result = aggregator_restore(s->caches.aggregator, &key, found->value);
		break;
	case OBSERVATIONS:
		result = event_log_restore(s->caches.event_log, &key, found->value);
		break;
	default:
		result = spam_filter_restore(s->caches.spam_filter, &key, found->value);
		break;
	}
	if (result == RESTORED && !mark_used(m, lru_place(key.handle), found->record.used, found->record.at)) {
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
		restored = restore(s, &found);
		ok = restored != RESTORED_NO_MEMORY;
		loaded->records += restored == RESTORED;
		s->uses = found.record.used > s->uses ? found.record.used : s->uses;
	}
	buf_free(&list);
	return ok;
}

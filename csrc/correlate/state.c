#include "correlate/state_inner.h"

#define NONE UINT32_MAX
#define REMOVED_MAX ((size_t)256 * 1024)
#define PLACES (UINT64_C(1) << 32) /* of a cache, for a cursor */

static struct state *make(void)
{
	struct state *s = mem_zalloc(sizeof(*s));

	for (size_t i = 0; s != NULL && i < CACHES; i++) {
		s->of[i].head = s->of[i].tail = NONE;
	}
	return s;
}

struct state *state_new(evrec_correlator *correlator)
{
	struct state *s = make();

	if (s != NULL) {
		s->caches = correlator_caches(correlator);
		s->of[AGGREGATES].cache = s->caches.aggregator->cache;
		s->of[OBSERVATIONS].cache = s->caches.event_log->cache;
		s->of[BUCKETS].cache = s->caches.spam_filter->cache;
	}
	return s;
}

struct state *state_new_of_series(struct series *series)
{
	struct state *s = make();

	if (s != NULL) {
		s->series = series;
		s->caches.spam_filter = series_spam_filter(series);
		s->of[SERIES].cache = series_cache(series);
		s->of[BUCKETS].cache = s->caches.spam_filter != NULL ? s->caches.spam_filter->cache : NULL;
	}
	return s;
}

void state_free(struct state *s)
{
	if (s != NULL) {
		for (size_t i = 0; i < CACHES; i++) {
			mem_free(s->of[i].marks);
		}
		buf_free(&s->removed);
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

bool state_mark_used(struct marks *m, uint32_t place, uint64_t used, int64_t at)
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
	if (state_mark_used(m, lru_place(handle), used, now)) {
		enqueue(m, lru_place(handle));
	}
}

void state_observed(struct state *s, const struct observed *o, int64_t now)
{
	s->uses++;
	if (s->series != NULL) {
		note(&s->of[SERIES], o->handle, s->uses, now);
	} else {
		note(&s->of[AGGREGATES], o->aggregate, s->uses, now);
		note(&s->of[OBSERVATIONS], o->handle, s->uses, now);
	}
	if (o->bucket != 0) {
		note(&s->of[BUCKETS], o->bucket, s->uses, now);
	}
}

void state_recovered(struct state *s, uint64_t handle, int64_t now)
{
	note(&s->of[OBSERVATIONS], handle, ++s->uses, now);
}

void state_answered(struct state *s, uint64_t handle)
{
	struct marks *m = &s->of[s->series != NULL ? SERIES : OBSERVATIONS];
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
	noting->ok = state_mark_used(noting->marks, lru_place(lru_handle(value)), noting->used--, noting->now);
	return noting->ok;
}

bool state_note_all(struct state *s, int64_t now)
{
	bool ok = true;

	for (size_t i = 0; i < CACHES && ok; i++) {
		struct lru *cache = s->of[i].cache;
		struct noting noting = { &s->of[i], s->uses + (cache != NULL ? lru_len(cache) : 0), now, true };

		s->uses = noting.used;
		if (cache != NULL) {
			lru_each(cache, note_entry, &noting);
		}
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
	case SERIES:
		return series_save(value, out);
	default:
		spam_filter_save(value, out);
		return true;
	}
}

static void begin_record(struct buf *out, const struct record *record, evrec_str key)
{
	const struct record_head head = { 0, 0 };

	buf_put(out, &head, sizeof(head));
	buf_put(out, record, sizeof(*record));
	buf_put_str(out, key);
}

/* Completes the record that begins at `start`. */
static void end_record(struct buf *out, size_t start)
{
	struct record_head head;
	const evrec_str body = { out->data + start + sizeof(head), out->len - start - sizeof(head) };

	head.len = (uint32_t)body.len;
	head.sum = state_checksum(body);
	memcpy(out->data + start, &head, sizeof(head));
}

static void put_record(const struct state *s, enum cache cache, uint32_t place, struct buf *out)
{
	const struct marks *m = &s->of[cache];
	const void *value = lru_in_place(m->cache, place);
	const struct mark *mark = &m->marks[place];
	const size_t start = out->len;

	if (value == NULL || mark->used == 0) {
		return;
	}
	begin_record(out,
	             &(struct record){ mark->used, mark->at, lru_key_hash(value),
	                               (uint32_t)lru_key(m->cache, value).len, cache },
	             lru_key(m->cache, value));
	if (!put_value(cache, value, out) || out->failed) {
		out->len = start;
		return;
	}
	end_record(out, start);
}

void state_removed(struct state *s, evrec_str key, uint64_t hash, int64_t now)
{
	const size_t start = s->removed.len;

	if (start + key.len > REMOVED_MAX) {
		return;
	}
	begin_record(&s->removed, &(struct record){ ++s->uses, now, hash, (uint32_t)key.len, SERIES }, key);
	if (s->removed.failed) {
		s->removed.failed = false;
		s->removed.len = start;
		return;
	}
	end_record(&s->removed, start);
}

size_t state_take_changes(struct state *s, size_t max, struct buf *out)
{
	size_t n = 0;

	buf_put_str(out, buf_str(&s->removed));
	buf_clear(&s->removed);
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

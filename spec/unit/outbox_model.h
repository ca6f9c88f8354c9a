/*
 * outbox_model.h - what an outbox should hold, told in the plainest way: a short list of writes, the one whose last
 * occurrence is longest ago first, looked through from end to end for everything.
 */
#ifndef EVREC_OUTBOX_MODEL_H
#define EVREC_OUTBOX_MODEL_H

#include "items.h"

#include "deliver/places.h"

#define MODEL_MAX 32
#define MODEL_PLACES 3
#define MODEL_IDS 64

struct model_write {
	unsigned id, n; /* occurrences */
	bool important, flying;
	unsigned tries;   /* that failed */
	unsigned arrived; /* occurrences in its first try, as a POST under its name, that may have arrived */
	bool renamed;
	bool lingers;  /* a try of it as a PATCH may be carried out later still */
	unsigned told; /* occurrences that were acknowledged, to be told once more */
	int64_t due;   /* and when, at the earliest */
	size_t bytes;
	int64_t last;
};

struct model {
	evrec_limits limits;
	size_t entry_bytes; /* beside the item's */
	struct model_write writes[MODEL_MAX];
	size_t len;
	uint64_t submitted, written, dropped[EVREC_CAUSES];
	struct model_write gone[256]; /* dropped, not yet collected */
	enum evrec_cause causes[256];
	size_t gone_len;
	bool given_up[MODEL_IDS]; /* nobody knows any more that a PATCH of it lingers */
	/* Namespaces known to refuse what is created or patched there. */
	struct {
		bool known, probing;
		unsigned probe; /* an id */
		int64_t since;
		enum evrec_cause cause;
	} places[MODEL_PLACES][2];
};

/* The latest write of an id that is, or is not, in flight. */
static inline struct model_write *model_find(struct model *m, unsigned id, bool flying)
{
	for (size_t i = m->len; i-- > 0;) {
		if (m->writes[i].id == id && m->writes[i].flying == flying) {
			return &m->writes[i];
		}
	}
	return NULL;
}

static inline size_t model_bytes(const struct model *m)
{
	size_t sum = 0;

	for (size_t i = 0; i < m->len; i++) {
		sum += m->writes[i].bytes;
	}
	return sum;
}

static inline void model_remove(struct model *m, struct model_write *w)
{
	size_t i = (size_t)(w - m->writes);

	memmove(w, w + 1, (m->len - i - 1) * sizeof(*w));
	m->len--;
}

/* All was said about it; what follows it has to know what lingers. */
static inline void model_settle(struct model *m, struct model_write *w)
{
	const struct model_write old = *w;
	struct model_write *next;

	model_remove(m, w);
	next = model_find(m, old.id, false);
	if (old.lingers && next != NULL) {
		next->lingers = true;
	} else if (old.lingers) {
		m->given_up[old.id] = true;
	}
}

/* Some of it was acknowledged, and counts as written whatever comes of the rest. True: that was all. */
static inline bool model_acknowledge(struct model *m, struct model_write *w, unsigned n)
{
	m->written += n;
	w->n -= n;
	w->arrived = w->told = 0;
	if (w->n != 0) {
		return false;
	}
	model_settle(m, w);
	return true;
}

static inline void model_drop(struct model *m, struct model_write *w, enum evrec_cause cause)
{
	w->lingers = w->lingers || w->told != 0;
	if (w->told != 0 && model_acknowledge(m, w, w->told)) {
		return;
	}
	m->dropped[cause] += w->n;
	m->gone[m->gone_len] = *w;
	m->causes[m->gone_len++] = cause;
	assert_true(m->gone_len < 256);
	model_settle(m, w);
}

/* Who goes for a write that finds no room: the whole policy. NULL: nobody. */
static inline struct model_write *model_victim(struct model *m, bool important)
{
	struct model_write *best = NULL;

	for (size_t i = 0; i < m->len; i++) {
		struct model_write *w = &m->writes[i];

		if (w->flying || (w->important && !important)) {
			continue;
		}
		if (m->limits.full == EVREC_DROP_NEWEST) {
			best = important && !w->important ? w : best;
		} else if (best == NULL || (best->important && !w->important)) {
			best = w;
		}
	}
	return best;
}

static inline bool model_has_room(const struct model *m, size_t bytes)
{
	return m->len < m->limits.max_pending && model_bytes(m) + bytes <= m->limits.max_pending_bytes;
}

/* Whether a new write comes in; drops those that go for it. */
static inline bool model_make_room(struct model *m, size_t bytes, bool important)
{
	struct model as_it_was = *m;

	while (!model_has_room(m, bytes)) {
		struct model_write *victim = model_victim(m, important);

		if (victim == NULL) {
			*m = as_it_was;
			return false;
		}
		model_drop(m, victim, EVREC_CAUSE_QUEUE_FULL);
	}
	return true;
}

/* An occurrence, and whether it is taken. */
static inline bool model_submit(struct model *m, unsigned id, bool important, size_t size, int64_t now, bool memory)
{
	struct model_write *w = model_find(m, id, false);
	struct model_write next = { .id = id, .important = important };

	m->submitted++;
	if (w != NULL && memory) {
		next = *w;
		model_remove(m, w);
	} else if (!memory) {
		bool full = w == NULL && !model_has_room(m, m->entry_bytes) && model_victim(m, important) == NULL;

		m->dropped[full ? EVREC_CAUSE_QUEUE_FULL : EVREC_CAUSE_MEMORY]++;
		return false;
	} else if (!model_make_room(m, m->entry_bytes + size, important)) {
		m->dropped[EVREC_CAUSE_QUEUE_FULL]++;
		return false;
	}
	next.n++;
	next.last = now;
	next.bytes = m->entry_bytes + size;
	m->writes[m->len++] = next;
	return true;
}

/* From a spool: where its age says, behind those of the same. */
static inline void model_restore(struct model *m, const struct model_write *w)
{
	size_t i = m->len;

	while (i > 0 && m->writes[i - 1].last > w->last) {
		m->writes[i] = m->writes[i - 1];
		i--;
	}
	m->writes[i] = *w;
	m->len++;
	m->submitted += w->n;
}

/* All that has waited too long goes. */
static inline void model_expire(struct model *m, int64_t now)
{
	for (size_t i = m->len; i-- > 0;) {
		if (m->limits.max_age != 0 && !m->writes[i].flying && now - m->writes[i].last > m->limits.max_age) {
			model_drop(m, &m->writes[i], EVREC_CAUSE_EXPIRED);
		}
	}
}

/* The write comes back from a try; what came meanwhile is one with it, if there is memory. */
static inline struct model_write *model_return(struct model *m, unsigned id, bool memory)
{
	struct model_write *w = model_find(m, id, true);
	struct model_write *later = model_find(m, id, false);
	unsigned n;

	if (later == NULL || !memory) {
		w->flying = false;
		return w;
	}
	n = later->n;
	later->n = w->n + n;
	later->tries = w->tries;
	later->arrived = w->arrived;
	later->renamed = w->renamed;
	later->lingers = w->lingers;
	later->told = w->told;
	later->due = w->due;
	model_remove(m, w);
	return model_find(m, id, false);
}

static inline void model_check(const struct model *m, struct outbox *ob)
{
	struct outbox_stats s;
	uint64_t pending = 0, flying = 0;

	assert_equation(ob);
	outbox_get_stats(ob, &s);
	for (size_t i = 0; i < m->len; i++) {
		pending += m->writes[i].n;
		flying += m->writes[i].flying;
	}
	assert_int_equal(s.submitted, m->submitted);
	assert_int_equal(s.pending, pending);
	assert_int_equal(s.writes, m->len);
	assert_int_equal(s.in_flight, flying);
	assert_int_equal(s.bytes, model_bytes(m));
	assert_int_equal(s.created + s.patched + s.coalesced, m->written);
	for (int i = 0; i < EVREC_CAUSES; i++) {
		assert_int_equal(s.dropped[i], m->dropped[i]);
	}
	assert_true(s.writes <= m->limits.max_pending);
}

/* A collected entry that was dropped: one that should have been. */
static inline void model_collect(struct model *m, const struct entry *entry)
{
	for (size_t i = 0; i < m->gone_len; i++) {
		if (m->gone[i].id == (unsigned)entry->id && m->gone[i].n == entry->count &&
		    m->causes[i] == entry->cause) {
			m->gone_len--;
			m->gone[i] = m->gone[m->gone_len];
			m->causes[i] = m->causes[m->gone_len];
			return;
		}
	}
	fail_msg("write %u was dropped, with %u occurrences: %s", (unsigned)entry->id, entry->count,
	         evrec_cause_name(entry->cause));
}

#endif

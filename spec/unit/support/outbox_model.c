#include "outbox_model.h"

struct model_write *model_find(struct model *m, unsigned id, bool in_flight)
{
	for (size_t i = m->len; i-- > 0;) {
		if (m->writes[i].id == id && m->writes[i].in_flight == in_flight) {
			return &m->writes[i];
		}
	}
	return NULL;
}

static size_t model_bytes(const struct model *m)
{
	size_t sum = 0;

	for (size_t i = 0; i < m->len; i++) {
		sum += m->writes[i].deferred ? 0 : m->writes[i].bytes;
	}
	return sum;
}

/* The number of writes that count for the limits. */
static size_t model_len(const struct model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->len; i++) {
		n += !m->writes[i].deferred;
	}
	return n;
}

static void model_remove(struct model *m, struct model_write *w)
{
	size_t i = (size_t)(w - m->writes);

	memmove(w, w + 1, (m->len - i - 1) * sizeof(*w));
	m->len--;
}

/* Removes an ended write. Its follow-up takes over the doubt about a late PATCH. */
static void model_settle(struct model *m, struct model_write *w)
{
	const struct model_write old = *w;
	struct model_write *next;

	model_remove(m, w);
	next = model_find(m, old.id, false);
	if (old.maybe_late && next != NULL) {
		next->maybe_late = true;
	} else if (old.maybe_late) {
		m->forgot_late[old.id] = true;
	}
}

bool model_acknowledge(struct model *m, struct model_write *w, unsigned n)
{
	m->written += n;
	w->n -= n;
	w->maybe_received = w->acked = 0;
	if (w->n != 0) {
		return false;
	}
	model_settle(m, w);
	return true;
}

void model_drop(struct model *m, struct model_write *w, enum evrec_cause cause)
{
	w->maybe_late = w->maybe_late || w->acked != 0;
	if (w->acked != 0 && model_acknowledge(m, w, w->acked)) {
		return;
	}
	m->dropped[cause] += w->n;
	m->gone[m->gone_len] = *w;
	m->causes[m->gone_len++] = cause;
	assert_true(m->gone_len < 256);
	model_settle(m, w);
}

/* The write to drop for one that finds no room: the whole policy of enum evrec_overflow. NULL: none. */
static struct model_write *model_victim(struct model *m, bool important)
{
	struct model_write *best = NULL;

	for (size_t i = 0; i < m->len; i++) {
		struct model_write *w = &m->writes[i];

		if (w->in_flight || w->deferred || (w->important && !important)) {
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

bool model_has_room(const struct model *m, size_t bytes)
{
	return model_len(m) < m->limits.max_pending && model_bytes(m) + bytes <= m->limits.max_pending_bytes;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/*
 * Drops writes until a new one has room, or, above the limits, has taken their place; then "drop_oldest" drops one more.
 * False, with nothing dropped, if that cannot be.
 */
static bool model_make_room(struct model *m, size_t bytes, bool important)
{
	struct model as_it_was = *m;

	while (model_len(m) + 1 > larger(m->limits.max_pending, model_len(&as_it_was)) ||
	       model_bytes(m) + bytes > larger(m->limits.max_pending_bytes, model_bytes(&as_it_was))) {
		struct model_write *victim = model_victim(m, important);

		if (victim == NULL) {
			*m = as_it_was;
			return false;
		}
		model_drop(m, victim, EVREC_CAUSE_QUEUE_FULL);
	}
	if (m->limits.full == EVREC_DROP_OLDEST && !model_has_room(m, bytes)) {
		struct model_write *victim = model_victim(m, important);

		if (victim != NULL) {
			model_drop(m, victim, EVREC_CAUSE_QUEUE_FULL);
		}
	}
	return true;
}

/* The write, now pending, is the newest. */
static struct model_write *model_undefer(struct model *m, struct model_write *w, int64_t now)
{
	struct model_write pending = *w;

	model_remove(m, w);
	pending.deferred = false;
	pending.due = 0;
	pending.last = now;
	m->writes[m->len] = pending;
	m->over = true;
	return &m->writes[m->len++];
}

void model_release(struct model *m, unsigned id, int64_t now)
{
	struct model_write *w = model_find(m, id, false);

	if (w != NULL && w->deferred) {
		(void)model_undefer(m, w, now);
	}
}

/* It came while another request of its id was under way. */
static bool model_follows(const struct model *m, const struct model_write *w)
{
	for (size_t i = 0; i < m->len; i++) {
		if (&m->writes[i] != w && m->writes[i].id == w->id) {
			return true;
		}
	}
	return false;
}

/* First the deferred follow-ups, in the order in which they were made, then the other deferred entries, by their time. */
void model_release_all(struct model *m, int64_t now)
{
	for (int follows = 1; follows >= 0; follows--) {
		struct model_write *first;

		do {
			first = NULL;
			for (size_t i = 0; i < m->len; i++) {
				struct model_write *w = &m->writes[i];

				if (w->deferred && model_follows(m, w) == follows &&
				    (first == NULL || (follows ? w->made < first->made : w->due < first->due))) {
					first = w;
				}
			}
			if (first != NULL) {
				(void)model_undefer(m, first, now);
			}
		} while (first != NULL);
	}
}

/* The outbox has no room for a write, or no memory. */
static bool model_accepts(struct model *m, const struct model_write *w, bool important, size_t bytes, bool deferred,
                          bool memory)
{
	if (!memory) {
		bool full = w == NULL && !deferred && !model_has_room(m, m->entry_bytes) &&
		            model_victim(m, important) == NULL;

		m->dropped[full ? EVREC_CAUSE_QUEUE_FULL : EVREC_CAUSE_MEMORY]++;
		return false;
	}
	if (w == NULL && !deferred && !model_make_room(m, bytes, important)) {
		m->dropped[EVREC_CAUSE_QUEUE_FULL]++;
		return false;
	}
	return true;
}

bool model_submit(struct model *m, unsigned id, bool important, size_t size, int64_t now, int64_t due, bool memory)
{
	struct model_write *w = model_find(m, id, false);
	struct model_write next = { .id = id, .important = important, .deferred = due != 0, .made = m->submitted };
	bool undefer;

	m->submitted++;
	if (!model_accepts(m, w, important, m->entry_bytes + size, due != 0, memory)) {
		return false;
	}
	if (w != NULL) {
		next = *w;
		undefer = w->deferred && (due == 0 || w->due <= now);
		m->over = m->over || undefer;
		model_remove(m, w);
		if (undefer) {
			next.deferred = false;
			next.due = 0;
		}
	}
	next.due = next.deferred ? due : next.due;
	next.n++;
	next.last = now;
	next.bytes = m->entry_bytes + size;
	m->writes[m->len++] = next;
	return true;
}

void model_restore(struct model *m, const struct model_write *w)
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

void model_expire(struct model *m, int64_t now)
{
	for (size_t i = m->len; i-- > 0;) {
		if (m->limits.max_age != 0 && !m->writes[i].in_flight && !m->writes[i].deferred &&
		    now - m->writes[i].last > m->limits.max_age) {
			model_drop(m, &m->writes[i], EVREC_CAUSE_EXPIRED);
		}
	}
}

struct model_write *model_return(struct model *m, unsigned id, int64_t now, bool memory)
{
	struct model_write *w = model_find(m, id, true);
	struct model_write *later = model_find(m, id, false);
	unsigned n;

	if (later == NULL || !memory) {
		w->in_flight = false;
		return w;
	}
	if (later->deferred) {
		later = model_undefer(m, later, now);
		w = model_find(m, id, true);
	}
	n = later->n;
	later->n = w->n + n;
	later->tries = w->tries;
	later->maybe_received = w->maybe_received;
	later->renamed = w->renamed;
	later->maybe_late = w->maybe_late;
	later->acked = w->acked;
	later->due = w->due;
	model_remove(m, w);
	return model_find(m, id, false);
}

void model_check(struct model *m, struct outbox *ob)
{
	struct outbox_stats s;
	uint64_t pending = 0, counted = 0, in_flight = 0;

	outbox_check_equation(ob);
	outbox_get_stats(ob, &s);
	for (size_t i = 0; i < m->len; i++) {
		*(m->writes[i].deferred ? &counted : &pending) += m->writes[i].n;
		in_flight += m->writes[i].in_flight;
	}
	assert_int_equal(s.submitted, m->submitted);
	assert_int_equal(s.pending, pending);
	assert_int_equal(s.counted, counted);
	assert_int_equal(s.writes, model_len(m));
	assert_int_equal(s.in_flight, in_flight);
	assert_int_equal(s.bytes, model_bytes(m));
	assert_int_equal(s.created + s.patched + s.coalesced, m->written);
	for (int i = 0; i < EVREC_CAUSES; i++) {
		assert_int_equal(s.dropped[i], m->dropped[i]);
	}
	m->over = m->over && s.writes > m->limits.max_pending;
	assert_true(s.writes <= m->limits.max_pending || m->over);
}

void model_collect(struct model *m, const struct entry *entry)
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

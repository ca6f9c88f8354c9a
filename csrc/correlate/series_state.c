#include "correlate/series_state.h"

#include "correlate/series_inner.h"
#include "event/event.h"

/* The numbers of an entry as they are saved. Hashes of notes, the last note and the first event's JSON follow. */
struct saved {
	int64_t seen, last;
	uint32_t count; /* without the occurrences that other processes keep */
	uint32_t notes_len, note_len;
	uint32_t flags;
};

#define CREATED 1U   /* a create was sent, or may have been */
#define UNWRITTEN 2U /* a write of this count was not answered */
#define PARTIAL 4U   /* other processes keep occurrences */
#define HAS_NOTE 8U

void series_set_watch(struct series *s, const struct series_watch *watch)
{
	s->watch = watch;
}

void series_for_others(struct series *s, bool others)
{
	s->for_others = others;
}

void series_settled(struct series *s, uint64_t handle, uint32_t n, uint32_t others)
{
	struct series_entry *e = s->busy ? NULL : lru_at(s->cache, handle);

	if (e != NULL && series_enter(s)) {
		e->open -= n < e->open ? n : e->open;
		e->kept -= others < e->kept ? others : e->kept;
		series_changed(s, e);
		series_leave(s);
	}
}

struct lru *series_cache(struct series *s)
{
	return s->cache;
}

struct spam_filter *series_spam_filter(struct series *s)
{
	return s->options.rate_limit ? &s->spam_filter : NULL;
}

/* ---- as bytes ---- */

static uint32_t flags_of(const struct series_entry *e)
{
	return (e->state != STATE_NEW || e->again ? CREATED : 0) | (e->open != 0 || e->stale ? UNWRITTEN : 0) |
	       (e->kept != 0 || e->partial ? PARTIAL : 0) | (e->has_note ? HAS_NOTE : 0);
}

bool series_save(const void *value, struct buf *out)
{
	const struct series_entry *e = value;
	const uint64_t count = (uint64_t)e->base + e->count - e->kept;
	const struct saved saved = {
		.seen = e->seen,
		.last = e->last,
		.count = count < INT32_MAX ? (uint32_t)count : INT32_MAX,
		.notes_len = e->notes_len,
		.note_len = e->has_note ? (uint32_t)e->note.len : 0,
		.flags = flags_of(e),
	};

	if (e->event == NULL) {
		return false;
	}
	buf_put(out, &saved, sizeof(saved));
	buf_put(out, e->notes, e->notes_len * sizeof(e->notes[0]));
	buf_put_str(out, e->has_note ? buf_str(&e->note) : (evrec_str){ NULL, 0 });
	json_event(out, evrec_event_fields(e->event), EVREC_CORE_V1);
	return true;
}

/* ---- and back ---- */

static void forget(struct series *s, const struct key *key)
{
	struct series_entry *e = lru_find(s->cache, key);

	if (e != NULL) {
		lru_remove(s->cache, e);
	}
}

/* Whether the server still has the event: it deletes older ones. */
static bool is_worth_writing(const struct series *s, const struct saved *saved)
{
	const int64_t age = time_since(s->now, saved->seen), refresh = s->options.refresh_interval;

	return (saved->flags & UNWRITTEN) != 0 && saved->count != 0 &&
	       (age < refresh || age - refresh < s->options.finish_time);
}

static bool is_over(const struct series *s, int64_t seen)
{
	return series_entry_is_over(s, &(struct series_entry){ .seen = seen });
}

static void set(struct series_entry *e, const struct saved *saved, const uint32_t *notes)
{
	const bool created = (saved->flags & CREATED) != 0;

	e->state = created && saved->count != 0 ? STATE_SINGLE : STATE_NEW;
	e->again = created && saved->count == 0;
	e->on_server = e->state == STATE_SINGLE;
	e->stale = (saved->flags & UNWRITTEN) != 0;
	e->partial = (saved->flags & PARTIAL) != 0;
	e->base = saved->count;
	e->seen = saved->seen < e->seen ? saved->seen : e->seen;
	e->last = saved->last;
	e->notes_len = saved->notes_len;
	memcpy(e->notes, notes, saved->notes_len * sizeof(notes[0]));
}

static bool set_note(struct series_entry *e, evrec_str note)
{
	if (!buf_reserve(&e->note, note.len)) {
		e->note.failed = false;
		return false;
	}
	buf_put_str(&e->note, note);
	e->has_note = true;
	return true;
}

static struct series_entry *add(struct series *s, struct key *key, evrec_str json)
{
	evrec_event *event = event_from_json(json);
	struct series_entry *e = event == NULL ? NULL : series_entry_add(s, key, event);

	if (e != NULL && lru_len(s->cache) > s->options.max_series) {
		lru_remove(s->cache, lru_oldest(s->cache));
	}
	return e;
}

enum restored series_restore(struct series *s, struct key *key, evrec_str value, int64_t now)
{
	uint32_t notes[NOTES_MAX];
	struct series_entry *e;
	struct saved saved;
	evrec_str note;

	forget(s, key);
	if (value.len == 0) {
		return RESTORED_NOT;
	}
	if (!restored_take(&value, &saved, sizeof(saved)) || saved.count > INT32_MAX || saved.notes_len > NOTES_MAX ||
	    !restored_take(&value, notes, saved.notes_len * sizeof(notes[0])) || saved.note_len > value.len) {
		return RESTORED_INVALID;
	}
	series_set_now(s, now);
	if (is_over(s, saved.seen) && !is_worth_writing(s, &saved)) {
		return RESTORED_NOT;
	}
	note = (evrec_str){ value.data, saved.note_len };
	e = add(s, key, (evrec_str){ value.data + saved.note_len, value.len - saved.note_len });
	if (e == NULL) {
		return RESTORED_NO_MEMORY;
	}
	set(e, &saved, notes);
	if ((saved.flags & HAS_NOTE) != 0 && !set_note(e, note)) {
		lru_remove(s->cache, e);
		return RESTORED_NO_MEMORY;
	}
	return RESTORED;
}

static bool tell_restored(void *ctx, evrec_str key, void *value)
{
	(void)key;
	series_entry_tell_restored(ctx, value);
	return true;
}

void series_tell_restored(struct series *s)
{
	lru_each(s->cache, tell_restored, s);
}

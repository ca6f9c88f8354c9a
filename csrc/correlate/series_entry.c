#include "correlate/series_inner.h"

static void recycle(void *value)
{
	struct series_entry *e = value;
	struct buf note = e->note;

	evrec_event_release(e->event);
	buf_clear(&note);
	*e = (struct series_entry){ .note = note };
}

static void fini(void *value)
{
	struct series_entry *e = value;

	evrec_event_release(e->event);
	buf_free(&e->note);
}

const struct lru_type series_entry_type = { .value_size = sizeof(struct series_entry),
	                                    .recycle = recycle,
	                                    .fini = fini };

/* ---- time ---- */

static int64_t later(int64_t time, int64_t by)
{
	int64_t sum;

	return __builtin_add_overflow(time, by, &sum) ? INT64_MAX : sum;
}

/* The first tick after `time`. The ticks are every `period`, also before the start. */
static int64_t next_tick(const struct series *s, int64_t period, int64_t time)
{
	const uint64_t p = (uint64_t)period;
	uint64_t rest;

	if (time >= s->start) {
		return later(time, period - (int64_t)(((uint64_t)time - (uint64_t)s->start) % p));
	}
	rest = ((uint64_t)s->start - (uint64_t)time) % p;
	return later(time, rest == 0 ? period : (int64_t)rest);
}

int64_t series_finish_tick(const struct series *s, int64_t seen)
{
	return later(next_tick(s, s->options.finish_time, seen), s->options.finish_time);
}

int64_t series_due(const struct series *s, int64_t seen, bool *finishes)
{
	const int64_t heartbeat = next_tick(s, s->options.refresh_interval, s->now), end = series_finish_tick(s, seen);

	*finishes = end <= heartbeat;
	return *finishes ? end : heartbeat;
}

static bool clamp_seen(void *ctx, evrec_str key, void *value)
{
	const struct series *s = ctx;
	struct series_entry *e = value;

	(void)key;
	e->seen = e->seen < s->now ? e->seen : s->now;
	e->dropped_at = e->dropped_at < s->now ? e->dropped_at : s->now;
	return true;
}

void series_set_now(struct series *s, int64_t now)
{
	const bool set_back = now < s->now;

	s->now = now;
	if (set_back) {
		lru_each(s->cache, clamp_seen, s);
	}
}

/* ---- entries ---- */

struct series_entry *series_entry_add(struct series *s, struct key *key, evrec_event *first)
{
	bool fresh;
	struct series_entry *e = lru_put(s->cache, key, &fresh);

	if (e == NULL) {
		evrec_event_release(first);
		return NULL;
	}
	e->event = first;
	e->seen = s->now;
	e->last = INT64_MIN;
	return e;
}

static evrec_str note_of(const struct series_entry *e)
{
	return e->has_note ? buf_str(&e->note) : evrec_event_fields(e->event)->note;
}

int32_t series_entry_total(const struct series_entry *e)
{
	const uint64_t sum = (uint64_t)e->base + e->count;

	return sum < INT32_MAX ? (int32_t)sum : INT32_MAX;
}

static bool is_series(const struct series_entry *e)
{
	return e->state == STATE_ONGOING || e->state == STATE_UNKNOWN;
}

static void tell(struct series *s, const struct series_entry *e, evrec_str state, bool evicted, bool untold)
{
	evrec_fields event = *evrec_event_fields(e->event);
	struct series_told told = {
		.handle = lru_handle(e),
		.event = &event,
		.base = e->base,
		.evicted = evicted,
		.untold = untold,
	};
	const bool busy = s->busy;

	event.note = note_of(e);
	event.series_count = series_entry_total(e);
	event.series_last = e->last;
	event.series_state = state;
	if (e->stale && (e->state == STATE_UNKNOWN || state.len == 0)) {
		told.due = series_due(s, e->seen, &told.finishes);
	}
	s->busy = true;
	s->tell(s->ctx, &told);
	s->busy = busy;
}

void series_entry_begin(struct series *s, struct series_entry *e, enum series_state state)
{
	if (!is_series(e)) {
		s->stats.begun++;
		s->stats.ongoing++;
	}
	e->state = state;
	if (state == STATE_UNKNOWN && e->stale) {
		(void)series_due(s, e->seen, &e->finishes);
		e->release = s->release;
	}
	tell(s, e, state == STATE_ONGOING ? EVREC_STR("Ongoing") : EVREC_STR("Unknown"), false, false);
}

void series_entry_tell_restored(struct series *s, struct series_entry *e)
{
	if (e->state == STATE_SINGLE && e->base > 1) {
		series_entry_begin(s, e, STATE_UNKNOWN);
	} else if (e->state == STATE_SINGLE && e->stale) {
		tell(s, e, (evrec_str){ NULL, 0 }, false, false);
	}
}

void series_entry_finish(struct series *s, struct series_entry *e, bool evicted)
{
	if (is_series(e)) {
		s->stats.ongoing--;
		s->stats.finished++;
		s->stats.evicted += evicted;
		tell(s, e, EVREC_STR("Finished"), evicted,
		     (!e->dropped || e->deferred) && (evicted || !e->finishes || e->release != s->release));
		if (s->watch != NULL) {
			s->watch->removed(s->watch->ctx, lru_key(s->cache, e), lru_key_hash(e), s->now);
		}
	} else {
		s->stats.evicted_singles += evicted;
	}
	lru_remove(s->cache, e);
}

bool series_entry_is_over(const struct series *s, const struct series_entry *e)
{
	const int64_t tick = series_finish_tick(s, e->seen);

	return tick != INT64_MAX && tick <= s->now; /* a tick beyond 64 bits never comes */
}

bool series_entry_reserve_note(struct series_entry *e, evrec_str note)
{
	if (!str_eq(note_of(e), note) && !buf_reserve(&e->note, note.len)) {
		e->note.failed = false; /* the buffer still holds the old note whole */
		return false;
	}
	return true;
}

/* True if the note differs from all counted notes, and there is room for one more. */
static bool add_note_hash(struct series_entry *e, evrec_str note)
{
	const uint32_t hash = (uint32_t)lru_hash(note);
	uint32_t i;

	for (i = 0; i < e->notes_len && e->notes[i] != hash; i++) {
	}
	if (i < e->notes_len || e->notes_len == NOTES_MAX) {
		return false;
	}
	e->notes[e->notes_len++] = hash;
	return true;
}

bool series_entry_take_note(struct series *s, struct series_entry *e, evrec_str note)
{
	if (str_eq(note_of(e), note)) {
		return false;
	}
	if (e->notes_len == 0) {
		(void)add_note_hash(e, note_of(e));
	}
	s->stats.notes += add_note_hash(e, note);
	buf_clear(&e->note);
	buf_put_str(&e->note, note);
	e->has_note = true;
	return true;
}

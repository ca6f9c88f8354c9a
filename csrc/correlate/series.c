#include "correlate/series_inner.h"

#include "event/event.h"

#define CREATE_AGAIN (30 * EVREC_SECOND) /* after a dropped create */

struct series *series_new(const evrec_series_options *options, const evrec_correlator_options *limits, int64_t now,
                          series_tell_func *tell, void *ctx)
{
	struct series *s = mem_zalloc(sizeof(*s));

	if (s == NULL) {
		return NULL;
	}
	s->options = *options;
	s->limits = *limits;
	s->start = s->now = now;
	s->tell = tell;
	s->ctx = ctx;
	/* One more: the oldest entry is removed only once the new one, which may fail for want of memory, was made. */
	s->cache = lru_new(&series_entry_type, options->max_series + 1);
	if (s->cache == NULL || (options->rate_limit && !spam_filter_create(&s->spam_filter, limits->lru_cache_size,
	                                                                    limits->burst_size, limits->qps))) {
		series_free(s);
		return NULL;
	}
	return s;
}

void series_use_real_clock(struct series *s)
{
	spam_filter_use_real_clock(&s->spam_filter);
}

void series_free(struct series *s)
{
	if (s == NULL) {
		return;
	}
	lru_free(s->cache);
	spam_filter_destroy(&s->spam_filter);
	buf_free(&s->key);
	buf_free(&s->name);
	buf_free(&s->custom);
	mem_free(s);
}

/* ---- observing ---- */

/*
 * An entry for an event, with a name and an event time. `over` is the entry of an ended series with this key, which is
 * finished; or NULL. NULL: no memory.
 */
static struct series_entry *add_new(struct series *s, struct key *key, const evrec_fields *event,
                                    struct series_entry *over)
{
	evrec_fields first = *event;
	evrec_event *copy;

	if (event->name.len == 0) {
		buf_clear(&s->name);
		name_make(&s->name, event->regarding.name, s->now);
		if (s->name.failed) {
			return NULL;
		}
		first.name = buf_str(&s->name);
	}
	first.event_time = event->first != EVREC_UNSET ? event->first : s->now;
	copy = evrec_event_new(&first);
	if (copy == NULL) {
		return NULL;
	}
	if (over != NULL) {
		series_entry_finish(s, over, false);
	}
	return series_entry_add(s, key, copy);
}

/* Calls spam_key_func for the spam key. Returns the default key if it fails, NULL if there is no memory. */
static struct key *ask_spam_key(struct series *s, const struct series_entry *e, struct keys *keys,
                                const evrec_fields *event)
{
	evrec_fields named = *event;
	evrec_str chosen = { NULL, 0 };

	named.name = evrec_event_fields(e->event)->name;
	if (!s->limits.spam_key_func(s->limits.ctx, &named, &chosen)) {
		s->callback_errors++;
		return &keys->spam;
	}
	if (chosen.data == NULL) {
		return &keys->spam;
	}
	return key_custom(&s->custom_key, &s->custom, chosen) ? &s->custom_key : NULL;
}

/* Takes a token, and sets o->skip if there is none. False: no memory. */
static bool limit(struct series *s, const struct series_entry *e, struct keys *keys, struct observed *o)
{
	struct key *key;

	if (!s->options.rate_limit) {
		return true;
	}
	key = s->limits.spam_key_func == NULL ? &keys->spam : ask_spam_key(s, e, keys, o->event);
	if (key == NULL || !spam_filter_observe(&s->spam_filter, key, s->now, &o->skip)) {
		return false;
	}
	o->bucket = key->handle;
	return true;
}

/* The write of an occurrence: a create or a patch at once, which need a token, or a deferred write, which needs none. */
enum act { ACT_CREATE, ACT_PATCH, ACT_DEFER };

static enum act act_of(const struct series *s, const struct series_entry *e)
{
	if (e->state == STATE_NEW) {
		return ACT_CREATE;
	}
	if (e->dropped) {
		return !e->refused && time_since(s->now, e->dropped_at) < CREATE_AGAIN ? ACT_DEFER : ACT_CREATE;
	}
	return e->state == STATE_ONGOING ? ACT_DEFER : ACT_PATCH;
}

static void count(struct series_entry *e, const struct series *s, int64_t last)
{
	/* If the clock is set back, so is this time, as in client-go. */
	e->last = last != EVREC_UNSET ? last : s->now;
	e->seen = s->now;
	e->count += e->count < INT32_MAX;
}

/* Sets the result, and changes the entry's state. */
static void commit(struct series *s, struct series_entry *e, enum act act, struct observed *o)
{
	const evrec_fields *first = evrec_event_fields(e->event);

	o->handle = lru_handle(e);
	o->name = first->name;
	o->first = first->event_time;
	o->last = e->last;
	o->count = (int32_t)e->count;
	o->base = e->base;
	if (o->skip) {
		o->why = EVREC_RATE_LIMITED;
		return;
	}
	o->why = act == ACT_CREATE ? EVREC_NEW : EVREC_SERIES;
	o->patch = act != ACT_CREATE && !e->dropped;
	o->again = !o->patch && e->again;
	e->open++;
	e->kept += s->for_others;
	if (act == ACT_DEFER) {
		e->deferred = e->dropped;
		o->due = series_due(s, s->now, &o->finishes);
	} else {
		e->dropped = false;
	}
	e->finishes = o->finishes;
	e->release = s->release;
	if (series_entry_total(e) < 2) {
		e->state = STATE_SINGLE;
	} else if (e->state != STATE_ONGOING) {
		series_entry_begin(s, e, STATE_ONGOING);
	}
}

/* Removes the oldest entry, which may be finished already: a tick ends at most `max`. */
static void make_room(struct series *s)
{
	struct series_entry *oldest = lru_oldest(s->cache);

	series_entry_finish(s, oldest, !series_entry_is_over(s, oldest));
}

static bool observe(struct series *s, const evrec_fields *event, struct keys *keys, struct observed *o)
{
	struct series_entry *e;
	bool differs, fresh;
	struct key key;
	enum act act;

	if (!key_series(&key, &s->key, event, s->options.note_in_key)) {
		return false;
	}
	e = lru_find(s->cache, &key);
	fresh = e == NULL || series_entry_is_over(s, e);
	if (fresh) {
		e = add_new(s, &key, event, e);
	}
	if (e == NULL) {
		return false;
	}
	act = act_of(s, e);
	if (!series_entry_reserve_note(e, event->note) || (act != ACT_DEFER && !limit(s, e, keys, o))) {
		if (fresh) {
			lru_remove(s->cache, e);
		}
		return false;
	}
	if (lru_len(s->cache) > s->options.max_series) {
		make_room(s);
	}
	if (o->skip && e->state != STATE_NEW && !e->refused) {
		/* The event was written before: its count is written later. */
		act = ACT_DEFER;
		o->skip = false;
	}
	lru_use(s->cache, e);
	count(e, s, event->last);
	differs = series_entry_take_note(s, e, event->note);
	o->merged = differs && !o->skip;
	commit(s, e, act, o);
	return true;
}

int series_observe(struct series *s, const evrec_fields *event, struct keys *keys, int64_t now, struct observed *o)
{
	bool ok;

	if (!series_enter(s)) {
		return EVREC_EINVALID;
	}
	s->busy = true;
	series_set_now(s, now);
	*o = (struct observed){ 0 };
	observed_init(o, event);
	ok = observe(s, event, keys, o);
	s->busy = false;
	if (ok && s->watch != NULL) {
		s->watch->observed(s->watch->ctx, o, now);
	}
	series_leave(s);
	return ok ? 0 : EVREC_ENOMEM;
}

/* ---- the other calls ---- */

void series_tick(struct series *s, int64_t now, size_t max)
{
	struct series_entry *oldest;

	if (!series_enter(s)) {
		return;
	}
	series_set_now(s, now);
	while (max-- > 0 && (oldest = lru_oldest(s->cache)) != NULL && series_entry_is_over(s, oldest)) {
		series_entry_finish(s, oldest, false);
	}
	series_leave(s);
}

int64_t series_next_due(const struct series *s)
{
	const struct series_entry *oldest = lru_oldest(s->cache);

	return oldest == NULL ? INT64_MAX : series_finish_tick(s, oldest->seen);
}

void series_get_stats(const struct series *s, evrec_series_stats *stats)
{
	*stats = s->stats;
	stats->series = lru_len(s->cache);
}

uint64_t series_callback_errors(const struct series *s)
{
	return s->callback_errors;
}

void series_explain(const struct series *s, uint64_t bucket, int64_t now, evrec_suppressed *what)
{
	evrec_str key = { NULL, 0 };
	bool found;

	what->aggregate_kind = what->spam_kind = EVREC_KEY_DEFAULT;
	what->tokens = s->limits.burst_size;
	what->next_token = 0;
	if (s->options.rate_limit) {
		found = spam_filter_key(&s->spam_filter, bucket, &key);
		what->spam_kind = key_kind(found, key, s->limits.spam_key_func != NULL, &what->spam_key);
		spam_filter_tokens(&s->spam_filter, bucket, now, &what->tokens, &what->next_token);
	}
}

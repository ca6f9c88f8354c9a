/* The input of a series from elsewhere: the results of its writes, and events of earlier processes on a server. */
#include "correlate/series_inner.h"

#include "event/event.h"

/* ---- results of writes ---- */

/* `name` is empty if the event keeps its name. False: no memory, and it keeps its name. */
static bool take_name(struct series_entry *e, evrec_str name)
{
	evrec_fields renamed = *evrec_event_fields(e->event);
	evrec_event *event;

	if (name.len == 0 || str_eq(name, renamed.name)) {
		return true;
	}
	renamed.name = name;
	event = evrec_event_new(&renamed);
	if (event == NULL) {
		return false;
	}
	evrec_event_release(e->event);
	e->event = event;
	return true;
}

static void answered(struct series_entry *e, evrec_str name, uint32_t base)
{
	e->on_server = true;
	e->dropped = e->stale = e->again = false;
	e->base = base != 0 ? base : e->base;
	/* Without memory the old name stays: the next patch finds no such event, and creates it. */
	(void)take_name(e, name);
}

void series_answered(struct series *s, uint64_t handle, evrec_str name, uint32_t base)
{
	struct series_entry *e = s->busy ? NULL : lru_at(s->cache, handle);

	if (e != NULL && series_enter(s)) {
		answered(e, name, base);
		series_changed(s, e);
		series_leave(s);
	}
}

void series_dropped(struct series *s, uint64_t handle, enum evrec_cause cause, int64_t now)
{
	struct series_entry *e = s->busy ? NULL : lru_at(s->cache, handle);

	if (e == NULL || !series_enter(s)) {
		return;
	}
	e->stale = true;
	if (!e->on_server) {
		e->dropped = true;
		e->dropped_at = now;
		e->refused = cause == EVREC_CAUSE_QUEUE_FULL || cause == EVREC_CAUSE_MEMORY;
		e->deferred = false;
	}
	series_changed(s, e);
	series_leave(s);
}

void series_maybe_created(struct series *s, uint64_t handle, evrec_str name, uint32_t base)
{
	struct series_entry *e = s->busy ? NULL : lru_at(s->cache, handle);

	if (e != NULL && series_enter(s)) {
		/* An event of another client may have the old name. */
		e->again = !e->on_server && take_name(e, name);
		e->base = e->again && base != 0 ? base : e->base;
		series_changed(s, e);
		series_leave(s);
	}
}

void series_released(struct series *s, uint64_t handle)
{
	struct series_entry *e;

	if (handle == 0) {
		s->release++;
		return;
	}
	e = lru_at(s->cache, handle);
	if (e != NULL) {
		e->finishes = false;
	}
}

/* ---- events of earlier processes ---- */

/*
 * The server has an event that the state has, too, and that was not observed since: takes the larger count, unless the
 * state's lacks the occurrences that other processes record again.
 */
static void catch_up(struct series *s, struct series_entry *e, const evrec_fields *event, int32_t known)
{
	if (e->count != 0 || e->state == STATE_NEW || e->partial || known <= (int32_t)e->base ||
	    !str_eq(event->name, evrec_event_fields(e->event)->name)) {
		return;
	}
	e->base = (uint32_t)known;
	e->last = event->series_last != EVREC_UNSET ? event->series_last : e->last;
	e->stale = false;
	if (e->state == STATE_SINGLE && known > 1) {
		series_entry_begin(s, e, STATE_UNKNOWN);
	}
	series_changed(s, e);
}

static bool resume(struct series *s, const evrec_fields *event, int64_t now)
{
	const int32_t known = event->series_count > 0 ? event->series_count : event->count;
	evrec_fields first = *event;
	evrec_event *copy;
	struct series_entry *e;
	struct key key;

	if (!key_series(&key, &s->key, event, s->options.note_in_key)) {
		return false;
	}
	series_set_now(s, now);
	e = lru_find(s->cache, &key);
	if (e != NULL) {
		catch_up(s, e, event, known);
		return true;
	}
	if (lru_len(s->cache) == s->options.max_series) {
		return true;
	}
	if (first.event_time == EVREC_UNSET) {
		first.event_time = first.first != EVREC_UNSET ? first.first : now;
	}
	copy = evrec_event_new(&first);
	e = copy == NULL ? NULL : series_entry_add(s, &key, copy);
	if (e == NULL) {
		return false;
	}
	e->on_server = true;
	e->base = known > 1 ? (uint32_t)known : 1;
	e->last = first.series_last != EVREC_UNSET ? first.series_last : first.event_time;
	e->state = STATE_SINGLE;
	if (e->base > 1) {
		series_entry_begin(s, e, STATE_UNKNOWN);
	}
	series_changed(s, e);
	return true;
}

bool series_resume(struct series *s, const evrec_fields *event, int64_t now)
{
	bool ok;

	if (!series_enter(s)) {
		return false;
	}
	ok = resume(s, event, now);
	series_leave(s);
	return ok;
}

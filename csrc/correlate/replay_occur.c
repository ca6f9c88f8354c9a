#include "correlate/replay.h"

#include "event/event.h"

/* ---- known events ---- */

void replay_forget(struct known *known)
{
	evrec_event_release(known->event);
	if (known->keys != NULL) {
		keys_free(&known->keys[0]);
	}
	mem_free(known->keys);
	buf_free(&known->text);
	*known = (struct known){ .event = NULL };
}

static void keep(struct buf *text, evrec_str *key)
{
	buf_put_str(text, *key);
	key->data = key->data == NULL ? NULL : "";
}

/* Copies the keys that functions chose. They point into the text, once it is complete. */
static bool keep_chosen(struct known *known, const struct trace_keys *chosen)
{
	evrec_str *const keys[] = { &known->chosen.aggregate, &known->chosen.local, &known->chosen.spam };
	size_t at = 0;

	known->chosen = *chosen;
	for (size_t i = 0; i < 3; i++) {
		keep(&known->text, keys[i]);
	}
	(void)buf_cstr(&known->text);
	for (size_t i = 0; i < 3 && !known->text.failed; i++) {
		keys[i]->data = keys[i]->data == NULL ? NULL : known->text.data + at;
		at += keys[i]->len;
	}
	return !known->text.failed;
}

bool replay_know(evrec_replay *replay, struct known *known, evrec_event *event, const struct trace_keys *chosen)
{
	replay_forget(known);
	known->event = event;
	known->keys = mem_zalloc(replay->variants_len * sizeof(*known->keys));
	if (known->keys == NULL || !keys_make(&known->keys[0], evrec_event_fields(event)) ||
	    !keep_chosen(known, chosen)) {
		replay_forget(known);
		return false;
	}
	for (size_t i = 1; i < replay->variants_len; i++) {
		known->keys[i] = known->keys[0];
	}
	return true;
}

/* ---- occurrences ---- */

static void tally_up(evrec_replayed_tally *tally, const struct observed *o, int64_t t)
{
	if (o->skip) {
		tally->rate_limited++;
		tally->unseen++;
		return;
	}
	if (o->due != 0) {
		tally->counted++;
		return;
	}
	tally->created += !o->patch;
	tally->patched += o->patch;
	tally->aggregated += o->merged || o->why == EVREC_AGGREGATED;
	tally->unseen = 0;
	tally->last_write = t;
}

static void begin_group(const evrec_replay *replay, struct replay_group *group, const struct known *known, int64_t t)
{
	group->event = evrec_event_retain(known->event);
	group->first = t;
	for (size_t i = 0; i < replay->variants_len; i++) {
		group->tallies[i].last_write = EVREC_UNSET;
	}
}

/* NULL: no memory. */
static struct replay_group *find_group(const evrec_replay *replay, struct known *known, int64_t t)
{
	struct key *key = &known->keys[0].suppressed;
	/*
	 * Does not count as a use, which would write to two neighbours: with 20,000 objects that takes 10 % of the
	 * time.
	 */
	struct replay_group *group = lru_at(replay->groups, key->handle);
	bool fresh = false;

	if (group == NULL) {
		group = lru_put(replay->groups, key, &fresh);
	}
	if (group != NULL && fresh) {
		begin_group(replay, group, known, t);
	}
	return group;
}

/* The clock may have been set back. */
static void count_in_trace(evrec_replayed_trace *trace, int64_t t)
{
	trace->first = trace->occurrences == 0 || t < trace->first ? t : trace->first;
	trace->last = trace->occurrences == 0 || t > trace->last ? t : trace->last;
	trace->occurrences++;
}

bool replay_occur(evrec_replay *replay, struct known *known, int64_t t, int64_t at)
{
	evrec_fields event = *evrec_event_fields(known->event);
	struct observed observed;
	struct replay_group *group = find_group(replay, known, t);

	if (group == NULL) {
		return false;
	}
	event.first = event.last = at;
	for (size_t i = 0; i < replay->variants_len; i++) {
		if (!variant_observe(&replay->variants[i], &event, &known->keys[i], &known->chosen, t, &observed)) {
			return false;
		}
		tally_up(&group->tallies[i], &observed, t);
	}
	group->occurrences++;
	group->last = t;
	group->number = replay->trace.occurrences;
	count_in_trace(&replay->trace, t);
	return true;
}

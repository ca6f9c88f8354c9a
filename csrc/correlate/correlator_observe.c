#include "correlate/correlator_inner.h"
#include "event/event.h"

#define COMBINED "(combined from similar events): "

/*
 * Calls key_func for the aggregate key and *local_key. Returns the default key if it fails, NULL if there is no memory.
 */
static struct key *ask_aggregate_key(evrec_correlator *c, struct keys *keys, const struct observed *o,
                                     evrec_str *local_key)
{
	evrec_str chosen = { NULL, 0 }, local = { NULL, 0 };

	if (!c->options.key_func(c->options.ctx, o->event, &chosen, &local)) {
		c->stats.callback_errors++;
		return &keys->aggregate;
	}
	if (chosen.data == NULL) {
		return &keys->aggregate;
	}
	*local_key = local.data != NULL ? local : *local_key;
	return key_custom(&c->custom_key, &c->custom, chosen) ? &c->custom_key : NULL;
}

/* Turns the event into the combined event of its aggregate, as client-go's EventAggregate does. False: no memory. */
static bool combine(evrec_correlator *c, struct observed *o, int64_t now)
{
	evrec_str message = { NULL, 0 };

	buf_clear(&c->message);
	if (c->options.message_func != NULL && !c->options.message_func(c->options.ctx, o->event, &message)) {
		c->stats.callback_errors++;
		message.data = NULL;
	}
	if (message.data != NULL) {
		buf_put_str(&c->message, message);
	} else {
		buf_put_str(&c->message, EVREC_STR(COMBINED));
		buf_put_str(&c->message, o->note);
		o->combined_note = true;
	}
	o->name = o->resource_version = (evrec_str){ NULL, 0 };
	o->note = buf_str(&c->message);
	o->count = 1;
	o->first = o->last = now;
	return !c->message.failed;
}

/* Combines the event with similar ones if they are many. Sets *key to its key in the event log. False: no memory. */
static bool aggregate(evrec_correlator *c, struct keys *keys, struct observed *o, int64_t now, struct key **key,
                      bool *combined)
{
	evrec_str local_key = o->note;
	struct key *aggregate_key =
		c->options.key_func == NULL ? &keys->aggregate : ask_aggregate_key(c, keys, o, &local_key);

	if (aggregate_key == NULL || !aggregator_observe(&c->aggregator, aggregate_key, local_key, now, combined)) {
		return false;
	}
	o->aggregate = aggregate_key->handle;
	/* The event log has a key of its own: one for both caches is searched anew in each, which takes 282 instructions. */
	*key = !*combined ? keys_event(keys) : aggregate_key == &keys->aggregate ? &keys->combined : aggregate_key;
	return !*combined || combine(c, o, now);
}

/* Calls spam_key_func for the spam key. Returns the default key if it fails, NULL if there is no memory. */
static struct key *ask_spam_key(evrec_correlator *c, struct keys *keys, const struct observed *o)
{
	evrec_fields changed;
	evrec_str chosen = { NULL, 0 };

	observed_fields(o, &changed);
	if (!c->options.spam_key_func(c->options.ctx, &changed, &chosen)) {
		c->stats.callback_errors++;
		return &keys->spam;
	}
	if (chosen.data == NULL) {
		return &keys->spam;
	}
	return key_custom(&c->custom_key, &c->custom, chosen) ? &c->custom_key : NULL;
}

/* Takes a token for the event, and sets `skip` if there is none. False: no memory. */
static bool limit(evrec_correlator *c, struct keys *keys, struct observed *o, int64_t now)
{
	struct key *key = c->options.spam_key_func == NULL ? &keys->spam : ask_spam_key(c, keys, o);

	if (key == NULL || !spam_filter_observe(&c->spam_filter, key, now, &o->skip)) {
		return false;
	}
	o->bucket = key->handle;
	return true;
}

/*
 * Sets o->due, and takes a token if the occurrence is to be written at once. Without a token no interval begins. False:
 * no memory.
 */
static bool pace(evrec_correlator *c, struct keys *keys, struct observed *o, int64_t now)
{
	bool ok;

	o->skip = o->repeated && o->skip;
	if (o->skip) {
		return true;
	}
	o->due = event_log_schedule(&c->event_log, o->handle, now, c->min_interval);
	ok = o->repeated || o->due != 0 || limit(c, keys, o, now);
	if (!ok || o->skip) {
		event_log_refused(&c->event_log, o->handle);
	}
	return ok;
}

static void prefetch(const evrec_correlator *c, struct keys *keys)
{
	const struct lru_search searches[] = { { c->aggregator.cache, &keys->aggregate },
		                               { c->event_log.cache, keys_event(keys) },
		                               { c->spam_filter.cache, &keys->spam } };

	lru_prefetch(searches, sizeof(searches) / sizeof(searches[0]));
}

/* Out of line, so that correlators without a watch pay nothing. */
static __attribute__((noinline)) int observe_watched(evrec_correlator *c, const evrec_fields *event, struct keys *keys,
                                                     int64_t now, const struct origin *origin, struct observed *o)
{
	int code;

	c->watch->begin(c->watch->ctx);
	c->mode = IDLE;
	code = correlator_observe(c, event, keys, now, origin, o);
	c->mode = WATCHED;
	c->watch->observed(c->watch->ctx, code == 0 ? o : NULL, now);
	return code;
}

/* noinline: else the compiler splits the function because of observe_watched, and each call jumps once more. */
HOT __attribute__((noinline)) int correlator_observe(evrec_correlator *c, const evrec_fields *event, struct keys *keys,
                                                     int64_t now, const struct origin *origin, struct observed *o)
{
	bool combined, known, ok;
	struct key *key;

	if (c->mode != IDLE) {
		return c->mode == BUSY ? EVREC_EINVALID : observe_watched(c, event, keys, now, origin, o);
	}
	c->mode = BUSY;
	/*
	 * The keys of a repeated event already know their entries. Prefetching smaller caches saves nothing measurable,
	 * and costs 216 of 7,794 instructions of a new event.
	 */
	if (keys->spam.cache == 0 && lru_len(c->spam_filter.cache) > LRU_LARGE) {
		prefetch(c, keys);
	}
	observed_init(o, event);
	ok = aggregate(c, keys, o, now, &key, &combined) &&
	     event_log_observe(&c->event_log, key, origin, o, now, &known) &&
	     (c->min_interval != 0 ? pace(c, keys, o, now) : o->repeated || limit(c, keys, o, now));
	c->mode = IDLE;
	if (!ok) {
		return EVREC_ENOMEM;
	}
	if (origin != NULL) {
		event_log_note(&c->event_log, o->handle, origin, o->skip);
	}
	o->patch = known && !o->skip;
	o->why = o->skip ? EVREC_RATE_LIMITED : combined ? EVREC_AGGREGATED : known ? EVREC_DUPLICATE : EVREC_NEW;
	c->stats.correlated++;
	c->stats.why[o->why]++;
	return 0;
}

/* Makes the keys of this event, unless `keys` already are. False: no memory. */
static bool make_keys(struct keys *keys, const evrec_fields *event)
{
	switch (keys_match(keys, event)) {
	case KEYS_MATCH:
		return true;
	case KEYS_OF_OTHER_NOTE:
		return keys_change_note(keys, event);
	default:
		return keys_make(keys, event);
	}
}

int evrec_correlator_correlate(evrec_correlator *c, const evrec_fields *event, int64_t now, evrec_correlation *result)
{
	struct observed observed;
	int code;

	if (c->mode == BUSY) {
		return EVREC_EINVALID; /* the outer call still needs c->keys */
	}
	if (!make_keys(&c->keys, event)) {
		return EVREC_ENOMEM;
	}
	code = correlator_observe(c, event, &c->keys, now, NULL, &observed);
	if (code == 0) {
		observed_fields(&observed, &result->event);
		result->handle = observed.handle;
		result->patch = observed.patch;
		result->skip = observed.skip;
		result->why = observed.why;
	}
	return code;
}

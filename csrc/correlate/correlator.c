#include "correlate/correlator.h"

#include "correlate/aggregator.h"
#include "correlate/event_log.h"
#include "correlate/spam_filter.h"
#include "event/event.h"

#define COMBINED "(combined from similar events): "
#define CACHE_MAX (1u << 24) /* entries: the largest lru_cache_size */

enum mode {
	IDLE,
	WATCHED, /* idle too, and has a watch */
	BUSY,    /* correlator_observe is running: a callback must not enter it again */
};

struct evrec_correlator {
	evrec_correlator_options options;
	struct aggregator aggregator;
	struct event_log event_log;
	struct spam_filter spam_filter;
	struct keys keys;      /* of the event that evrec_correlator_correlate was given last */
	struct key custom_key; /* the key that a callback chose last */
	struct buf custom;     /* the bytes of custom_key */
	struct buf message;    /* the message of the last aggregate */
	enum mode mode;
	int64_t min_interval;                 /* ns; 0: none */
	const struct correlator_watch *watch; /* NULL: none */
	evrec_correlator_stats stats;
};

void evrec_correlator_options_init(evrec_correlator_options *options)
{
	*options = (evrec_correlator_options){
		.lru_cache_size = 4096,
		.burst_size = 25,
		.qps = 1.0 / 300,
		.max_events = 10,
		.max_interval = 600 * EVREC_SECOND,
	};
}

const char *evrec_why_name(enum evrec_why why)
{
	static const char *const names[] = { "new", "duplicate", "aggregated", "rate_limited", "series" };

	return names[why];
}

int correlator_check_options(const evrec_correlator_options *o, evrec_error *err)
{
	if (o->lru_cache_size < 1 || o->lru_cache_size > CACHE_MAX) {
		return error_set(err, EVREC_EINVALID, "lru_cache_size: must be 1 to %u", CACHE_MAX);
	}
	if (o->burst_size < 1) {
		return error_set(err, EVREC_EINVALID, "burst_size: must be at least 1");
	}
	if (!(o->qps >= 0 && o->qps <= 1e9)) {
		return error_set(err, EVREC_EINVALID, "qps: must be 0 to 1e9");
	}
	if (o->max_events < 1) {
		return error_set(err, EVREC_EINVALID, "max_events: must be at least 1");
	}
	if (o->max_interval < 0) {
		return error_set(err, EVREC_EINVALID, "max_interval_in_seconds: must not be negative");
	}
	return 0;
}

evrec_correlator *evrec_correlator_new(const evrec_correlator_options *options, evrec_error *err)
{
	evrec_correlator_options defaults;
	evrec_correlator *c;
	bool ok;

	if (options == NULL) {
		evrec_correlator_options_init(&defaults);
		options = &defaults;
	}
	if (correlator_check_options(options, err) != 0) {
		return NULL;
	}
	c = mem_zalloc(sizeof(*c));
	if (c == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	c->options = *options;
	ok = aggregator_create(&c->aggregator, options->lru_cache_size, options->max_events, options->max_interval);
	ok = event_log_create(&c->event_log, options->lru_cache_size) && ok;
	ok = spam_filter_create(&c->spam_filter, options->lru_cache_size, options->burst_size, options->qps) && ok;
	if (!ok) {
		evrec_correlator_free(c);
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	return c;
}

void evrec_correlator_free(evrec_correlator *c)
{
	if (c == NULL) {
		return;
	}
	aggregator_destroy(&c->aggregator);
	event_log_destroy(&c->event_log);
	spam_filter_destroy(&c->spam_filter);
	keys_free(&c->keys);
	buf_free(&c->custom);
	buf_free(&c->message);
	mem_free(c);
}

/* Asks key_func for the aggregate key and *local_key. Returns the default's if it fails, NULL if there is no memory. */
static struct key *ask_aggregate_key(evrec_correlator *c, struct keys *keys, const struct observed *o,
                                     evrec_str *local_key)
{
	evrec_str chosen, local;

	if (!c->options.key_func(c->options.ctx, o->event, &chosen, &local)) {
		c->stats.callback_errors++;
		return &keys->aggregate;
	}
	if (chosen.data == NULL) {
		return &keys->aggregate;
	}
	*local_key = local;
	return key_custom(&c->custom_key, &c->custom, chosen) ? &c->custom_key : NULL;
}

/* Makes the event that of its aggregate, as client-go's EventAggregate does. False: no memory. */
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
	*key = !*combined ? &keys->event : aggregate_key == &keys->aggregate ? &keys->combined : aggregate_key;
	return !*combined || combine(c, o, now);
}

/* Asks spam_key_func for the spam key. Returns the default's if it fails, NULL if there is no memory. */
static struct key *ask_spam_key(evrec_correlator *c, struct keys *keys, const struct observed *o)
{
	evrec_fields changed;
	evrec_str chosen;

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
 * Says when the occurrence is to be written, and takes a token if that is at once. Without a token it begins no interval.
 * False: no memory.
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

static void prefetch(const evrec_correlator *c, const struct keys *keys)
{
	const struct lru_search searches[] = { { c->aggregator.cache, &keys->aggregate },
		                               { c->event_log.cache, &keys->event },
		                               { c->spam_filter.cache, &keys->spam } };

	lru_prefetch(searches, sizeof(searches) / sizeof(searches[0]));
}

/* Out of line, the watch costs others nothing. */
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

/* Else the compiler splits it, for the sake of observe_watched, and each call jumps once more. */
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
	 * The keys of a repeated event already know their entries. Of smaller caches, prefetching saves nothing that can be
	 * measured, but costs 216 of 7,794 instructions of a new event.
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

/* Of this event, which may have those that are there. False: no memory. */
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

int evrec_correlator_update_state(evrec_correlator *c, const evrec_fields *event)
{
	if (c->mode == BUSY) {
		return EVREC_EINVALID;
	}
	if (!keys_make(&c->keys, event) || !event_log_update(&c->event_log, &c->keys.event, event)) {
		return EVREC_ENOMEM;
	}
	return 0;
}

void correlator_set_min_interval(evrec_correlator *c, int64_t ns)
{
	c->min_interval = ns;
}

void correlator_released(evrec_correlator *c, uint64_t handle, int64_t now)
{
	event_log_released(&c->event_log, handle, now);
}

void correlator_refused(evrec_correlator *c, uint64_t handle)
{
	event_log_refused(&c->event_log, handle);
}

void correlator_acknowledged(evrec_correlator *c)
{
	event_log_acknowledged(&c->event_log);
}

static void begin_change(const evrec_correlator *c)
{
	if (c->watch != NULL) {
		c->watch->begin(c->watch->ctx);
	}
}

/* Of the entry with this handle. */
static void end_change(const evrec_correlator *c, uint64_t handle)
{
	if (c->watch != NULL) {
		c->watch->answered(c->watch->ctx, handle);
	}
}

void correlator_recover(evrec_correlator *c, const evrec_fields *event, int32_t sure)
{
	uint64_t handle = 0;

	if (c->mode == BUSY || !keys_make(&c->keys, event)) {
		return;
	}
	begin_change(c);
	(void)event_log_recover(&c->event_log, &c->keys.event, event, sure, &handle);
	end_change(c, handle);
}

void correlator_answered(evrec_correlator *c, uint64_t handle, evrec_str name, evrec_str resource_version)
{
	if (c->mode == BUSY) {
		return;
	}
	begin_change(c);
	event_log_answered(&c->event_log, handle, name, resource_version);
	end_change(c, handle);
}

void evrec_correlator_answered(evrec_correlator *c, uint64_t handle, evrec_str name, evrec_str resource_version)
{
	correlator_answered(c, handle, name, resource_version);
}

void correlator_acknowledge(evrec_correlator *c, uint64_t handle, uint64_t connection, bool limited, uint32_t n)
{
	begin_change(c);
	event_log_acknowledge(&c->event_log, handle, connection, limited, n);
	end_change(c, handle);
}

void correlator_leave(evrec_correlator *c, uint64_t connection)
{
	uint64_t handle;
	uint32_t place = 0;

	while ((handle = event_log_next_of(&c->event_log, connection, &place)) != 0) {
		begin_change(c);
		event_log_leave(&c->event_log, handle, connection);
		end_change(c, handle);
	}
}

void correlator_set_watch(evrec_correlator *c, const struct correlator_watch *watch)
{
	c->watch = watch;
	c->mode = WATCHED;
}

struct caches correlator_caches(evrec_correlator *c)
{
	return (struct caches){ &c->aggregator, &c->event_log, &c->spam_filter };
}

void correlator_explain(const evrec_correlator *c, uint64_t aggregate, uint64_t bucket, int64_t now,
                        evrec_suppressed *what)
{
	evrec_str key = { NULL, 0 };
	bool found;

	found = aggregator_key(&c->aggregator, aggregate, &key);
	what->aggregate_kind = key_kind(found, key, c->options.key_func != NULL, &what->aggregate_key);
	found = spam_filter_key(&c->spam_filter, bucket, &key);
	what->spam_kind = key_kind(found, key, c->options.spam_key_func != NULL, &what->spam_key);
	spam_filter_tokens(&c->spam_filter, bucket, now, &what->tokens, &what->next_token);
}

void evrec_correlator_get_stats(const evrec_correlator *c, evrec_correlator_stats *stats)
{
	*stats = c->stats;
	stats->aggregates = lru_len(c->aggregator.cache);
	stats->observed = lru_len(c->event_log.cache);
	stats->buckets = lru_len(c->spam_filter.cache);
}

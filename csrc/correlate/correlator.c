#include "correlate/correlator.h"

#include "base/bucket.h"
#include "correlate/aggregator.h"
#include "correlate/logger.h"
#include "event/event.h"

#define COMBINED "(combined from similar events): "
#define CACHE_MAX (1u << 24)

struct evrec_correlator {
	evrec_correlator_options options;
	struct aggregator aggregator;
	struct logger logger;
	struct lru *buckets; /* spam key -> struct bucket (semantics 2.3, client-go's EventSourceObjectSpamFilter) */
	struct keys keys;
	struct buf custom; /* a key that a callback chose: */
	struct key custom_key;
	struct buf message; /* of an aggregate */
	bool busy;          /* a callback runs */
	evrec_correlator_stats stats;
};

static const struct lru_type bucket_type = { sizeof(struct bucket), NULL, NULL };

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
	static const char *const names[] = { "new", "duplicate", "aggregated", "rate_limited" };

	return names[why];
}

static int check_options(const evrec_correlator_options *o, evrec_error *err)
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
	if (check_options(options, err) != 0) {
		return NULL;
	}
	c = mem_zalloc(sizeof(*c));
	if (c == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	c->options = *options;
	/* client-go keeps it in 32 bits; the token after the burst comes when it does there. */
	c->options.qps = (double)(float)options->qps;
	ok = aggregator_create(&c->aggregator, options->lru_cache_size, options->max_events, options->max_interval);
	ok = logger_create(&c->logger, options->lru_cache_size) && ok;
	c->buckets = lru_new(&bucket_type, options->lru_cache_size);
	if (!ok || c->buckets == NULL) {
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
	logger_destroy(&c->logger);
	lru_free(c->buckets);
	keys_free(&c->keys);
	buf_free(&c->custom);
	buf_free(&c->message);
	mem_free(c);
}

/* The callback's aggregate key, and *local_key; NULL: no memory. */
static struct key *ask_aggregate_key(evrec_correlator *c, struct keys *keys, const struct observed *o,
                                     evrec_str *local_key)
{
	evrec_str chosen, local;

	if (!c->options.key_func(c->options.ctx, o->event, &chosen, &local)) {
		c->stats.callback_errors++;
		return &keys->aggregate;
	}
	*local_key = local;
	return key_custom(&c->custom_key, &c->custom, chosen) ? &c->custom_key : NULL;
}

/* Makes the event the aggregate. False: no memory. */
static bool combine(evrec_correlator *c, struct observed *o, int64_t now)
{
	evrec_str message = { NULL, 0 };

	buf_clear(&c->message);
	if (c->options.message_func != NULL && c->options.message_func(c->options.ctx, o->event, &message)) {
		buf_put_str(&c->message, message);
	} else {
		c->stats.callback_errors += c->options.message_func != NULL;
		buf_put_str(&c->message, EVREC_STR(COMBINED));
		buf_put_str(&c->message, o->note);
	}
	o->name = o->resource_version = (evrec_str){ NULL, 0 };
	o->note = buf_str(&c->message);
	o->count = 1;
	o->first = o->last = now;
	return !c->message.failed;
}

/* Decides whether the event is told as an aggregate, and makes it one. Sets *key to its cache key. */
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
	*key = *combined ? aggregate_key : &keys->event;
	return !*combined || combine(c, o, now);
}

/* The callback's key; NULL: no memory. */
static struct key *ask_spam_key(evrec_correlator *c, struct keys *keys, const struct observed *o)
{
	evrec_fields changed;
	evrec_str chosen;

	observed_fields(o, &changed);
	if (!c->options.spam_key_func(c->options.ctx, &changed, &chosen)) {
		c->stats.callback_errors++;
		return &keys->spam;
	}
	return key_custom(&c->custom_key, &c->custom, chosen) ? &c->custom_key : NULL;
}

/* Takes a token for the event; sets `skip` where there is none. */
static bool limit(evrec_correlator *c, struct keys *keys, struct observed *o, int64_t now)
{
	struct key *key = c->options.spam_key_func == NULL ? &keys->spam : ask_spam_key(c, keys, o);
	struct bucket *bucket;
	bool fresh;

	bucket = key == NULL ? NULL : lru_put(c->buckets, key, &fresh);
	if (bucket == NULL) {
		return false;
	}
	o->bucket = key->handle;
	if (fresh) {
		bucket_fill(bucket, c->options.burst_size, now);
	}
	o->skip = !bucket_take(bucket, c->options.burst_size, c->options.qps, now);
	return true;
}

/* Fewer entries than this are in the processor's second cache, or soon will be. */
#define FEW 2048

static void prefetch(const evrec_correlator *c, const struct keys *keys)
{
	const struct lru_search searches[] = { { c->aggregator.cache, &keys->aggregate },
		                               { c->logger.cache, &keys->event },
		                               { c->buckets, &keys->spam } };

	lru_prefetch(searches, sizeof(searches) / sizeof(searches[0]));
}

int correlator_observe(evrec_correlator *c, const evrec_fields *event, struct keys *keys, int64_t now,
                       struct observed *o)
{
	bool combined, known, ok;
	struct key *key;

	if (c->busy) {
		return EVREC_EINVALID;
	}
	c->busy = true;
	/* An event that was just seen is looked for nowhere. */
	if (keys->spam.cache == 0 && lru_len(c->buckets) > FEW) {
		prefetch(c, keys);
	}
	observed_init(o, event);
	ok = aggregate(c, keys, o, now, &key, &combined) && logger_observe(&c->logger, key, o, now, &known) &&
	     limit(c, keys, o, now);
	c->busy = false;
	if (!ok) {
		return EVREC_ENOMEM;
	}
	o->patch = known && !o->skip;
	o->why = o->skip ? EVREC_RATE_LIMITED : combined ? EVREC_AGGREGATED : known ? EVREC_DUPLICATE : EVREC_NEW;
	c->stats.correlated++;
	c->stats.why[o->why]++;
	return 0;
}

int evrec_correlator_correlate(evrec_correlator *c, const evrec_fields *event, int64_t now, evrec_correlation *result)
{
	struct observed observed;
	int code;

	if (c->busy) {
		return EVREC_EINVALID; /* the keys are in use */
	}
	if (!keys_are_of(&c->keys, event) && !keys_make(&c->keys, event)) {
		return EVREC_ENOMEM;
	}
	code = correlator_observe(c, event, &c->keys, now, &observed);
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
	if (c->busy) {
		return EVREC_EINVALID;
	}
	if (!keys_make(&c->keys, event) || !logger_update(&c->logger, &c->keys.event, event)) {
		return EVREC_ENOMEM;
	}
	return 0;
}

void evrec_correlator_answered(evrec_correlator *c, uint64_t handle, evrec_str name, evrec_str resource_version)
{
	if (!c->busy) {
		logger_answered(&c->logger, handle, name, resource_version);
	}
}

/* Whose key an entry has; without the entry (NULL) only where callbacks choose none. */
static enum evrec_key kind_of(const void *entry, bool callback, evrec_str *chosen)
{
	if (entry != NULL && key_split_custom(lru_key(entry), chosen)) {
		return EVREC_KEY_CUSTOM;
	}
	return entry != NULL || !callback ? EVREC_KEY_DEFAULT : EVREC_KEY_UNKNOWN;
}

void correlator_explain(const evrec_correlator *c, uint64_t aggregate, uint64_t bucket, int64_t now,
                        evrec_suppressed *what)
{
	const evrec_correlator_options *o = &c->options;
	const struct bucket *b = lru_at(c->buckets, bucket);
	struct bucket full;

	what->aggregate_kind =
		kind_of(lru_at(c->aggregator.cache, aggregate), o->key_func != NULL, &what->aggregate_key);
	what->spam_kind = kind_of(b, o->spam_key_func != NULL, &what->spam_key);
	if (b == NULL) {
		bucket_fill(&full, o->burst_size, now);
		b = &full;
	}
	what->tokens = bucket_tokens(b, o->burst_size, o->qps, now);
	what->next_token = bucket_wait(b, o->burst_size, o->qps, now);
}

void evrec_correlator_get_stats(const evrec_correlator *c, evrec_correlator_stats *stats)
{
	*stats = c->stats;
	stats->aggregates = lru_len(c->aggregator.cache);
	stats->observed = lru_len(c->logger.cache);
	stats->rate_limits = lru_len(c->buckets);
}

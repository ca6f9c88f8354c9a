#include "correlate/correlator_inner.h"

#define CACHE_MAX (1u << 24) /* entries: the largest lru_cache_size */

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

int evrec_correlator_update_state(evrec_correlator *c, const evrec_fields *event)
{
	if (c->mode == BUSY) {
		return EVREC_EINVALID;
	}
	if (!keys_make(&c->keys, event) || !event_log_update(&c->event_log, keys_event(&c->keys), event)) {
		return EVREC_ENOMEM;
	}
	return 0;
}

void correlator_set_min_interval(evrec_correlator *c, int64_t ns)
{
	c->min_interval = ns;
}

void correlator_use_real_clock(evrec_correlator *c)
{
	spam_filter_use_real_clock(&c->spam_filter);
}

void correlator_released(evrec_correlator *c, uint64_t handle, int64_t now)
{
	event_log_released(&c->event_log, handle, now);
}

void correlator_refused(evrec_correlator *c, uint64_t handle)
{
	event_log_refused(&c->event_log, handle);
}

static void begin_change(const evrec_correlator *c)
{
	if (c->watch != NULL) {
		c->watch->begin(c->watch->ctx);
	}
}

/* Ends the change of the entry with this handle. */
static void end_change(const evrec_correlator *c, uint64_t handle)
{
	if (c->watch != NULL) {
		c->watch->changed(c->watch->ctx, handle);
	}
}

void correlator_recover(evrec_correlator *c, const evrec_fields *event, int32_t own, int64_t now)
{
	uint64_t handle = 0;

	if (c->mode == BUSY || !keys_make(&c->keys, event)) {
		return;
	}
	begin_change(c);
	(void)event_log_recover(&c->event_log, keys_event(&c->keys), event, own, &handle);
	if (c->watch != NULL) {
		c->watch->recovered(c->watch->ctx, handle, now);
	}
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

void correlator_tell(evrec_correlator *c, uint64_t handle, uint64_t connection, bool limited, uint32_t n,
                     uint64_t batch)
{
	begin_change(c);
	event_log_tell(&c->event_log, handle, connection, limited, n, batch);
	end_change(c, handle);
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

void correlator_reconnect(evrec_correlator *c, const struct origin *from)
{
	uint64_t handle;
	uint32_t place = 0;

	while ((handle = event_log_next_to_reconnect(&c->event_log, from, &place)) != 0) {
		begin_change(c);
		event_log_reconnect(&c->event_log, handle, from);
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

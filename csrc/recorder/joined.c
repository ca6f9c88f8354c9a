/* The watches of a handle whose broadcaster has a name. A sink is started by one handle, and joined by the others. */
#include "base/lru.h"
#include "recorder/shared.h"
#include "recorder/sharing.h"

static bool is_open(const evrec_broadcaster *b, evrec_error *err)
{
	const bool open = b->phase == BROADCASTER_OPEN && !b->hub->ended;

	if (!open) {
		error_set(err, EVREC_ECLOSED, "the broadcaster is shut down");
	}
	return open;
}

static void *no_memory(evrec_error *err)
{
	error_set(err, EVREC_ENOMEM, "no memory");
	return NULL;
}

/* ---- sinks ---- */

/* Whether the handle runs the sink of this name with this ordinal. */
static bool runs(const evrec_broadcaster *b, const char *name, size_t ordinal)
{
	for (size_t i = 0; i < b->own.len; i++) {
		const evrec_watch *watch = b->own.items[i];

		if (watch->phase == WATCH_RUNNING && watch->joined != NULL && watch->joined->phase == WATCH_RUNNING &&
		    watch->joined->ordinal == ordinal && strcmp(watch->joined->sink_name, name) == 0) {
			return true;
		}
	}
	return false;
}

static evrec_watch *find_sink(const struct hub *hub, const char *name, size_t ordinal)
{
	for (size_t i = 0; i < hub->watches.len; i++) {
		evrec_watch *watch = hub->watches.items[i];

		if (watch->phase == WATCH_RUNNING && watch->pipeline != NULL && watch->ordinal == ordinal &&
		    strcmp(watch->sink_name, name) == 0) {
			return watch;
		}
	}
	return NULL;
}

static struct fingerprint *make_fingerprint(const evrec_sink *sink, const evrec_correlator_options *options)
{
	struct fingerprint *f = mem_zalloc(sizeof(*f));

	if (f != NULL) {
		sink_fingerprint(sink, f);
		fingerprint_correlator(f, options);
	}
	return f;
}

static bool is_alike(const evrec_watch *sink, const struct fingerprint *wanted, evrec_error *err)
{
	const char *difference = fingerprint_difference(wanted, sink->fingerprint);

	if (difference != NULL) {
		error_set(err, EVREC_EINVALID,
		          "%s: differs from that of the sink '%s' which another handle has started", difference,
		          sink->sink_name);
	}
	return difference == NULL;
}

/*
 * A number for pipeline_options.share; 0: no memory. The n-th sink of a name has the same number in all processes of
 * this share, regardless of other sinks.
 */
static uint64_t number_in_share(const struct hub *hub, const evrec_sink *sink, size_t ordinal)
{
	const char *name = sink_name(sink);
	struct buf of = { 0 };
	uint64_t number;

	buf_put(&of, hub->share, strlen(hub->share) + 1);
	buf_put(&of, name, strlen(name) + 1);
	buf_put(&of, &ordinal, sizeof(ordinal));
	number = of.failed ? 0 : lru_hash(buf_str(&of));
	buf_free(&of);
	return number;
}

/* Starts a sink in the hub, which takes over the fingerprint. */
static evrec_watch *start(evrec_broadcaster *b, evrec_sink *sink, const evrec_correlator_options *correlator,
                          struct fingerprint *fingerprint, size_t ordinal, evrec_error *err)
{
	evrec_correlator_options own = *correlator;
	struct hub *hub = b->hub;
	struct pipeline_options options = {
		.correlator = &own,
		.clock = hub->options.clock,
		.listener = &hub->listener,
		.max_message_bytes = hub->options.max_message_bytes,
		.drive = hub->options.drive,
	};
	evrec_watch *watch;

	if (!sharing_check_sink(hub, sink, correlator, err)) {
		return NULL;
	}
	if (hub->sharing != NULL) {
		options.share = number_in_share(hub, sink, ordinal);
		if (options.share == 0) {
			return no_memory(err);
		}
	}
	watch = hub_reserve_watch(hub, true) ? mem_zalloc(sizeof(*watch)) : NULL;
	if (watch == NULL) {
		return no_memory(err);
	}
	chosen_replace(&own, &watch->chosen);
	watch->pipeline = pipeline_new(sink, &options, err);
	if (watch->pipeline == NULL) {
		mem_free(watch);
		return NULL;
	}
	watch->refs = 1;
	watch->owner = sink->calls_embedder ? b : NULL;
	watch->fingerprint = fingerprint;
	watch->ordinal = ordinal;
	(void)memccpy(watch->sink_name, sink_name(sink), '\0', sizeof(watch->sink_name));
	watch->shares = hub;
	hub_add_watch(hub, watch);
	sharing_add_sink(hub);
	return watch;
}

/* Finds the sink to join, or starts it; then *fingerprint is NULL. NULL and *err. */
static evrec_watch *find_or_start(evrec_broadcaster *b, evrec_sink *sink, const evrec_correlator_options *options,
                                  struct fingerprint **fingerprint, evrec_error *err)
{
	evrec_watch *watch;
	size_t ordinal = 1;

	while (runs(b, sink_name(sink), ordinal)) {
		ordinal++;
	}
	watch = find_sink(b->hub, sink_name(sink), ordinal);
	if (watch != NULL) {
		return is_alike(watch, *fingerprint, err) ? watch : NULL;
	}
	watch = start(b, sink, options, *fingerprint, ordinal, err);
	if (watch != NULL) {
		*fingerprint = NULL;
	}
	return watch;
}

/* Of a sink with series, only spam_key_func counts, and only if it limits requests. */
static evrec_correlator_options functions_of(const evrec_sink *sink, const evrec_correlator_options *options)
{
	evrec_correlator_options functions = *options;

	if (sink_has_series(&sink->options)) {
		functions.key_func = NULL;
		functions.message_func = NULL;
		functions.spam_key_func = sink->options.series.rate_limit ? functions.spam_key_func : NULL;
	}
	return functions;
}

static evrec_watch *join(evrec_broadcaster *b, evrec_sink *sink, const evrec_correlator_options *options,
                         struct fingerprint **fingerprint, evrec_error *err)
{
	evrec_watch *watch, *joined;

	if (!is_open(b, err)) {
		return NULL;
	}
	watch = watch_list_reserve(&b->own) ? mem_zalloc(sizeof(*watch)) : NULL;
	if (watch == NULL) {
		return no_memory(err);
	}
	joined = find_or_start(b, sink, options, fingerprint, err);
	if (joined == NULL) {
		mem_free(watch);
		return NULL;
	}
	joined->joiners++;
	joined->refs++;
	watch->refs = 2;
	watch->joined = joined;
	watch->functions = functions_of(sink, options);
	watch->hub = b->hub;
	hub_retain(b->hub);
	watch_list_append(&b->own, watch);
	return watch;
}

evrec_watch *shared_start_sink(evrec_broadcaster *b, evrec_sink *sink, const evrec_correlator_options *options,
                               evrec_error *err)
{
	evrec_correlator_options defaults;
	struct fingerprint *fingerprint;
	evrec_watch *watch;

	evrec_correlator_options_init(&defaults);
	options = options != NULL ? options : &defaults;
	fingerprint = make_fingerprint(sink, options);
	if (fingerprint == NULL) {
		return no_memory(err);
	}
	shared_enter(b);
	broadcaster_check_fork(b);
	watch = join(b, sink, options, &fingerprint, err);
	shared_unlock(b);
	mem_free(fingerprint);
	return watch;
}

/* ---- functions and queues ---- */

evrec_watch *shared_start_watch(evrec_broadcaster *b, const evrec_watch *model, evrec_error *err)
{
	struct hub *hub = b->hub;
	evrec_watch *watch = NULL;

	shared_enter(b);
	broadcaster_check_fork(b);
	if (is_open(b, err)) {
		watch = hub_reserve_watch(hub, false) && watch_list_reserve(&b->own) ? mem_alloc(sizeof(*watch)) : NULL;
		if (watch == NULL) {
			(void)no_memory(err);
		}
	}
	if (watch != NULL) {
		*watch = *model;
		watch->refs = 3; /* of the hub, the handle's list, and the user */
		watch->owner = watch->func != NULL ? b : NULL;
		watch->hub = hub;
		hub_retain(hub);
		hub_add_watch(hub, watch);
		watch_list_append(&b->own, watch);
	}
	shared_unlock(b);
	return watch;
}

/* ---- the end ---- */

void shared_forget_own(evrec_broadcaster *b, bool all)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->own.len; i++) {
		evrec_watch *watch = b->own.items[i];

		if (all) {
			watch_stop(watch);
		}
		if (watch->phase == WATCH_RUNNING) {
			b->own.items[kept++] = watch;
		} else {
			watch_unref(watch);
		}
	}
	watch_list_truncate(&b->own, kept);
}

bool shared_has_functions(const evrec_broadcaster *b)
{
	for (size_t i = 0; i < b->own.len; i++) {
		const evrec_correlator_options *f = &b->own.items[i]->functions;

		if (f->key_func != NULL || f->message_func != NULL || f->spam_key_func != NULL) {
			return true;
		}
	}
	return false;
}

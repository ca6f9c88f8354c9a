#define _GNU_SOURCE /* pthread_setname_np */

#include "recorder/sharing.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "sender/sender.h"
#include "share/endpoint.h"
#include "share/share.h"

#define IDLE EVREC_SECOND                /* a wait of the thread while nothing is to be settled */
#define BUSY (EVREC_SECOND / 100)        /* and while answers are to come */
#define LOOK (EVREC_SECOND / 20)         /* between two polls meanwhile */
#define PAUSE (EVREC_SECOND / 500)       /* of a flush */
#define FLUSH_EACH (EVREC_SECOND / 10)   /* between two requests of one flush */
#define STATE_WAIT (3 * EVREC_SECOND)    /* for the state file of the last owner */
#define SHORTEST_END (EVREC_SECOND / 10) /* that an end in order may always take */

enum drive_state { NOT_DRIVEN, BY_THREAD, BY_POLLS };

struct sharing {
	struct hub *hub;
	struct share *share; /* NULL: there was no memory for it in a forked child */
	_Atomic enum drive_state drive;
	pthread_t thread;
	atomic_bool stops;
	atomic_bool stepping; /* a poll is in a step */
	atomic_bool owns;
	_Atomic int64_t flushed_at;

	/* With the hub's lock held: */
	bool is_set;                   /* the share knows the options of all sinks */
	uint64_t dropped;              /* occurrences, for want of memory for the share */
	uint64_t unsettled;            /* occurrences of workers in the pipelines of this process, for each sink */
	bool marked;                   /* share_mark was called */
	uint64_t changes[FRAME_SINKS]; /* of the states, at that time */
	int64_t state_until;           /* when the wait for the last owner's state file ends; 0: it has not begun */
	struct keys keys;
};

static int64_t mono(void)
{
	return clock_monotonic(evrec_clock_real());
}

int sharing_check(evrec_str share, evrec_error *err)
{
	struct endpoint endpoint;

	return endpoint_init(&endpoint, share, err);
}

/* The sinks, in the order of their start: the number of a sink is its place. NULL: it was forgotten. */
static evrec_watch *sink_at(const struct hub *hub, size_t i)
{
	const size_t at = watch_list_find_sink(&hub->sinks, i + 1);

	return at < hub->sinks.len && hub->sinks.items[at]->number == i + 1 ? hub->sinks.items[at] : NULL;
}

/* ---- what an owner records for workers ---- */

static void settle(struct sharing *sh, const struct share_event *e, size_t sink, unsigned end, uint32_t n)
{
	if (e->source != 0) {
		share_settled(sh->share, e->source, e->node, sink, end, n);
	}
}

static void choose(const struct share_event *e, size_t sink, struct chosen *chosen)
{
	const struct frame_keys *k = &e->event->keys[sink];

	*chosen = (struct chosen){ .keys = CHOICE_NONE };
	if (sink < e->event->sinks && k->has_aggregate) {
		chosen->keys = CHOICE_MADE;
		chosen->aggregate_key =
			(struct buf){ (char *)(uintptr_t)k->aggregate.data, k->aggregate.len, 0, false };
		chosen->local_key = (struct buf){ (char *)(uintptr_t)k->local.data, k->local.len, 0, false };
	}
	if (sink < e->event->sinks && k->has_spam) {
		chosen->spam_key = CHOICE_MADE;
		chosen->spam = (struct buf){ (char *)(uintptr_t)k->spam.data, k->spam.len, 0, false };
	}
}

static void record_to(struct sharing *sh, const struct share_event *e, size_t i, const evrec_fields *event,
                      struct keys *keys, int64_t now)
{
	const struct receipt_id receipt = { e->source, e->node };
	evrec_watch *watch = sink_at(sh->hub, i);
	struct chosen chosen;

	if (watch == NULL || watch->phase != WATCH_RUNNING) {
		settle(sh, e, i, EVREC_CAUSE_CLOSED, 1);
		return;
	}
	choose(e, i, &chosen);
	watch->chosen = &chosen;
	if (e->source == 0) {
		pipeline_record(watch->pipeline, event, keys, now);
	} else {
		sh->unsettled++;
		if (!pipeline_record_for(watch->pipeline, event, keys, now, &receipt)) {
			sh->unsettled--;
			settle(sh, e, i, EVREC_CAUSE_CLOSED, 1);
		}
	}
	watch->chosen = NULL;
}

static void on_record(void *ctx, const struct share_event *e)
{
	struct hub *hub = ctx;
	struct sharing *sh = hub->sharing;
	evrec_fields event = e->event->fields;

	hub_lock(hub);
	for (uint32_t n = 0; n < e->n; n++) {
		const int64_t now = evrec_clock_now(hub->options.clock);
		struct keys *keys;

		event.first = event.last = n == 0 ? e->first : e->last;
		event.name = n == 0 ? e->name : (evrec_str){ NULL, 0 };
		keys = keys_make(&sh->keys, &event) ? &sh->keys : NULL;
		for (size_t i = 0; i < hub->last_number; i++) {
			record_to(sh, e, i, &event, keys, now);
		}
	}
	hub_unlock(hub);
}

void sharing_settled(void *ctx, const struct pipeline *pipeline, const struct pipeline_settled *s)
{
	static const unsigned ends[] = {
		[SETTLED_WRITTEN] = FRAME_FORWARDED,
		[SETTLED_SPOOLED] = FRAME_FORWARDED,
		[SETTLED_RATE_LIMITED] = FRAME_RATE_LIMITED,
	};
	struct hub *hub = ctx;

	for (size_t i = 0; i < hub->sinks.len; i++) {
		const evrec_watch *watch = hub->sinks.items[i];

		if (watch->pipeline == pipeline) {
			hub->sharing->unsettled -= s->n;
			share_settled(hub->sharing->share, s->receipt.source, s->receipt.node, watch->number - 1,
			              s->as == SETTLED_DROPPED ? (unsigned)s->cause : ends[s->as], s->n);
			return;
		}
	}
}

/* ---- what else a share calls ---- */

static void on_state_written(void *share)
{
	share_wake(share);
}

static bool on_begin(void *ctx)
{
	struct hub *hub = ctx;
	struct sharing *sh = hub->sharing;
	bool open = true;

	hub_lock(hub);
	if (sh->state_until == 0) {
		sh->state_until = mono() + STATE_WAIT;
	}
	for (size_t i = 0; i < hub->sinks.len; i++) {
		struct pipeline *pipeline = hub->sinks.items[i]->pipeline;

		open = pipeline_open_state(pipeline, mono() >= sh->state_until) && open;
		pipeline_on_state_written(pipeline, on_state_written, sh->share);
	}
	atomic_store(&sh->owns, open);
	hub_unlock(hub);
	return open;
}

static void on_flush(void *ctx)
{
	struct hub *hub = ctx;

	hub_lock(hub);
	for (size_t i = 0; i < hub->sinks.len; i++) {
		pipeline_release(hub->sinks.items[i]->pipeline);
		pipeline_write_state(hub->sinks.items[i]->pipeline);
	}
	hub_unlock(hub);
}

static void on_lost(void *ctx, const evrec_fields *event, size_t sink, unsigned end, uint32_t n)
{
	struct hub *hub = ctx;

	(void)sink;
	hub_lock(hub);
	if (end == FRAME_RATE_LIMITED) {
		hub_tell_on_drop(hub, event, evrec_why_name(EVREC_RATE_LIMITED));
	} else {
		hub_tell_drop(hub, event, evrec_cause_name((enum evrec_cause)end), n);
	}
	hub_unlock(hub);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct hub *hub = ctx;

	hub_lock(hub);
	hub_tell_error(hub, message, name, NULL);
	hub_unlock(hub);
}

/* The state file has it. */
static bool on_save_state(void *ctx, size_t sink, struct buf *out)
{
	(void)ctx;
	(void)sink;
	(void)out;
	return false;
}

static void on_load_state(void *ctx, size_t sink, evrec_str state)
{
	(void)ctx;
	(void)sink;
	(void)state;
}

static const struct share_ops ops = {
	.record = on_record,
	.flush = on_flush,
	.begin = on_begin,
	.lost = on_lost,
	.error = on_error,
	.save_state = on_save_state,
	.load_state = on_load_state,
};

/* ---- beginning ---- */

/* The name is checked already. NULL: no memory. */
static struct share *make_share(struct hub *hub)
{
	evrec_limits limits;
	struct share_options options = {
		.name = hub->options.share,
		.client_only = hub->options.share_client_only,
		.holds_acks = true,
	};

	evrec_limits_init(&limits);
	options.limits = (struct ledger_limits){ limits.max_pending, limits.max_pending * 4096 };
	return share_new(&options, &ops, hub, NULL);
}

bool sharing_open(struct hub *hub)
{
	struct sharing *sh = mem_zalloc(sizeof(*sh));

	if (sh == NULL) {
		return false;
	}
	sh->hub = hub;
	sh->share = make_share(hub);
	if (sh->share == NULL) {
		mem_free(sh);
		return false;
	}
	hub->sharing = sh;
	return true;
}

void sharing_free(struct hub *hub)
{
	if (hub->sharing != NULL) {
		share_free(hub->sharing->share);
		keys_free(&hub->sharing->keys);
		mem_free(hub->sharing);
		hub->sharing = NULL;
	}
}

/* Sets the options that all processes must have alike: those of all sinks. False: no memory. */
static bool set_options(struct hub *hub)
{
	struct sharing *sh = hub->sharing;
	struct frame_option *options = mem_zalloc((FRAME_SINKS * FINGERPRINT_MAX + 2) * sizeof(*options));
	size_t n = 0;

	if (options == NULL) {
		return false;
	}
	options[n++] = (struct frame_option){ EVREC_STR("max_message_bytes"), hub->options.max_message_bytes };
	for (size_t i = 0; i < hub->last_number && i < FRAME_SINKS; i++) {
		const evrec_watch *watch = sink_at(hub, i);

		for (size_t j = 0; watch != NULL && j < watch->fingerprint->len; j++) {
			options[n++] = (struct frame_option){ str_from(watch->fingerprint->options[j].option),
				                              watch->fingerprint->options[j].hash };
		}
	}
	options[n++] = (struct frame_option){ EVREC_STR("sinks"), hub->last_number };
	sh->is_set = share_set_options(sh->share, options, n, hub->last_number);
	mem_free(options);
	return sh->is_set;
}

/* What there was no memory for until now is made. False: there still is none. */
static bool ensure(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	if (sh->share == NULL) {
		sh->share = make_share(hub);
	}
	return sh->share != NULL && (sh->is_set || set_options(hub));
}

bool sharing_check_sink(const struct hub *hub, const evrec_sink *sink, const evrec_correlator_options *options,
                        evrec_error *err)
{
	const char *reason = NULL;

	if (hub->sharing == NULL) {
		return true;
	}
	if (sink->calls_embedder) {
		reason = "a sink that calls functions cannot be shared";
	} else if (options->message_func != NULL) {
		reason = "a sink with message_func cannot be shared";
	} else if (hub->last_number >= FRAME_SINKS) {
		reason = "more than 8 sinks";
	}
	if (reason != NULL) {
		error_set(err, EVREC_EINVALID, "share: %s", reason);
	}
	return reason == NULL;
}

void sharing_add_sink(struct hub *hub)
{
	if (hub->sharing != NULL) {
		hub->sharing->is_set = false;
		(void)ensure(hub);
	}
}

void sharing_renew(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	if (sh != NULL) {
		if (sh->share != NULL && (atomic_load(&sh->drive) == BY_THREAD || atomic_load(&sh->stepping))) {
			share_abandon(sh->share);
		} else {
			share_free(sh->share);
		}
		sh->share = NULL;
		sh->is_set = false;
		sh->dropped = 0;
		atomic_store(&sh->drive, NOT_DRIVEN);
		atomic_store(&sh->stops, false);
		atomic_store(&sh->stepping, false);
		atomic_store(&sh->owns, false);
		sh->unsettled = 0;
		sh->marked = false;
		sh->state_until = 0;
	}
}

/* ---- recording ---- */

static struct frame_keys keys_of(const struct chosen *chosen)
{
	struct frame_keys keys = { .has_aggregate = false };

	if (chosen != NULL && chosen->keys == CHOICE_MADE) {
		keys.has_aggregate = true;
		keys.aggregate = buf_str(&chosen->aggregate_key);
		keys.local = buf_str(&chosen->local_key);
	}
	if (chosen != NULL && chosen->spam_key == CHOICE_MADE) {
		keys.has_spam = true;
		keys.spam = buf_str(&chosen->spam);
	}
	return keys;
}

bool sharing_forward(struct hub *hub, const evrec_fields *event)
{
	struct frame_keys keys[FRAME_SINKS] = { { .has_aggregate = false } };
	struct sharing *sh = hub->sharing;
	enum evrec_cause cause = EVREC_CAUSE_MEMORY;
	enum share_result result = SHARE_DROPPED;
	bool chooses = false;

	if (sh == NULL || (sh->share != NULL && share_role(sh->share) == SHARE_OWNER)) {
		return false;
	}
	for (size_t i = 0; i < hub->last_number && i < FRAME_SINKS; i++) {
		const evrec_watch *watch = sink_at(hub, i);

		if (watch != NULL && watch->chosen != NULL) {
			keys[i] = keys_of(watch->chosen);
			chooses = true;
		}
	}
	if (hub->last_number != 0 && ensure(hub)) {
		result = share_add(sh->share, event, chooses ? keys : NULL, event->last, &cause);
	}
	if (result == SHARE_DROPPED && hub->last_number != 0) {
		sh->dropped += !sh->is_set;
		hub_tell_drop(hub, event, evrec_cause_name(cause), 1);
	}
	return result != SHARE_OWN;
}

bool sharing_owns(const struct hub *hub)
{
	return hub->sharing == NULL || atomic_load(&hub->sharing->owns);
}

void sharing_add_stats(const struct hub *hub, size_t number, evrec_sink_stats *stats)
{
	struct ledger_counts counts;

	if (hub->sharing == NULL || number == 0 || number > FRAME_SINKS) {
		return;
	}
	stats->dropped[EVREC_CAUSE_MEMORY] += hub->sharing->dropped;
	stats->received += hub->sharing->dropped;
	if (hub->sharing->share == NULL) {
		return;
	}
	share_count(hub->sharing->share, number - 1, &counts);
	stats->forwarded += counts.forwarded;
	stats->rate_limited += counts.rate_limited;
	stats->pending += counts.pending;
	stats->received += counts.forwarded + counts.rate_limited + counts.pending;
	for (size_t i = 0; i < EVREC_CAUSES; i++) {
		stats->dropped[i] += counts.dropped[i];
		stats->received += counts.dropped[i];
	}
}

/* ---- steps ---- */

static bool has_states(struct hub *hub)
{
	bool has = true;

	for (size_t i = 0; i < FRAME_SINKS; i++) {
		const evrec_watch *watch = sink_at(hub, i);

		has = has && (watch == NULL || pipeline_state_has(watch->pipeline, hub->sharing->changes[i]));
	}
	return has;
}

/* What is settled is acknowledged once the states that know of it are in their files. */
static void acknowledge(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	if (!sh->marked && share_mark(sh->share)) {
		sh->marked = true;
		for (size_t i = 0; i < FRAME_SINKS; i++) {
			const evrec_watch *watch = sink_at(hub, i);

			sh->changes[i] = watch == NULL ? 0 : pipeline_state_changes(watch->pipeline);
		}
	}
	if (sh->marked && has_states(hub)) {
		sh->marked = false;
		share_release(sh->share);
	}
}

/* Takes the answers to what workers have sent. The time until there may be more. */
static int64_t take_answers(struct hub *hub)
{
	struct sharing *sh = hub->sharing;
	int64_t wait = IDLE;

	hub_lock(hub);
	if (share_role(sh->share) == SHARE_OWNER) {
		for (size_t i = 0; i < hub->sinks.len && sh->unsettled != 0; i++) {
			(void)pipeline_take_all_news(hub->sinks.items[i]->pipeline);
		}
		acknowledge(hub);
		wait = sh->unsettled != 0 || sh->marked ? BUSY : IDLE;
	} else if (sh->state_until != 0) {
		wait = BUSY;
	}
	hub_unlock(hub);
	return wait;
}

static void *run(void *ctx)
{
	struct hub *hub = ctx;
	struct sharing *sh = hub->sharing;
	int64_t wait = 0;

	(void)pthread_setname_np(pthread_self(), "evrec-share");
	while (!atomic_load(&sh->stops)) {
		share_step(sh->share, mono(), wait);
		wait = take_answers(hub);
	}
	return NULL;
}

/* Once, by the first of several handles that polls or records. */
static void start(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	hub_lock(hub);
	if (atomic_load(&sh->drive) == NOT_DRIVEN && hub->last_number != 0 && ensure(hub) && !atomic_load(&sh->stops)) {
		const bool by_thread = hub->options.drive != EVREC_DRIVE_POLL &&
		                       sender_create_thread(&sh->thread, run, hub) == 0;

		atomic_store(&sh->drive, by_thread ? BY_THREAD : BY_POLLS);
	}
	hub_unlock(hub);
}

void sharing_begin(struct hub *hub)
{
	if (hub->sharing != NULL && atomic_load(&hub->sharing->drive) == NOT_DRIVEN) {
		start(hub);
	}
}

void sharing_poll(struct hub *hub, bool flushes)
{
	struct sharing *sh = hub->sharing;
	int64_t now, last;

	sharing_begin(hub);
	if (sh == NULL || sh->share == NULL) {
		return;
	}
	now = mono();
	last = atomic_load(&sh->flushed_at);
	if (flushes && now - last >= FLUSH_EACH && atomic_compare_exchange_strong(&sh->flushed_at, &last, now) &&
	    !sharing_is_settled(hub)) {
		share_flush(sh->share);
	}
	if (atomic_load(&sh->drive) == BY_POLLS && !atomic_load(&sh->stops) && !atomic_exchange(&sh->stepping, true)) {
		share_step(sh->share, now, 0);
		(void)take_answers(hub);
		atomic_store(&sh->stepping, false);
	}
}

bool sharing_is_settled(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	return sh == NULL || sh->share == NULL || share_is_settled(sh->share);
}

int64_t sharing_poll_delay(struct hub *hub)
{
	const bool settled = sharing_is_settled(hub);
	int64_t delay = INT64_MAX;

	if (hub->sharing != NULL && atomic_load(&hub->sharing->drive) == BY_POLLS) {
		/* The processes whose events this one records may send some at any time. */
		delay = settled ? LOOK : BUSY;
	} else if (!settled) {
		delay = EVREC_SECOND;
	}
	return delay;
}

void sharing_wait(int64_t deadline)
{
	const int64_t left = deadline - mono();
	const int64_t pause = left < PAUSE ? left : PAUSE;

	if (pause > 0) {
		(void)nanosleep(&(struct timespec){ 0, pause }, NULL);
	}
}

/* ---- the end ---- */

void sharing_stop(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	if (sh == NULL || atomic_exchange(&sh->stops, true)) {
		return;
	}
	if (atomic_load(&sh->drive) == BY_THREAD) {
		share_wake(sh->share);
		(void)pthread_join(sh->thread, NULL);
	}
	atomic_store(&sh->drive, BY_POLLS);
}

void sharing_end(struct hub *hub, int64_t deadline)
{
	struct sharing *sh = hub->sharing;
	const int64_t left = deadline - mono();

	if (sh == NULL || sh->share == NULL) {
		return;
	}
	/* The states were written when their sinks ended. */
	(void)share_mark(sh->share);
	share_release(sh->share);
	share_end(sh->share, left > SHORTEST_END ? left : SHORTEST_END);
}

#define _GNU_SOURCE /* pthread_setname_np */

#include "recorder/sharing_inner.h"

#include <time.h>

#include "base/wait.h"
#include "outbox/outbox.h"
#include "sender/sender.h"
#include "share/endpoint.h"

#define LOOK (EVREC_SECOND / 20)       /* between two polls while all is settled */
#define PAUSE (EVREC_SECOND / 500)     /* of a flush */
#define FLUSH_EACH (EVREC_SECOND / 10) /* between two requests of one flush */
#define USERS_MAX 64

int sharing_check(const evrec_broadcaster_options *options, evrec_error *err)
{
	struct endpoint endpoint;

	if (options->share_users_len > USERS_MAX) {
		return error_set(err, EVREC_EINVALID, "share_users: more than %d", USERS_MAX);
	}
	if (options->share_users_len != 0 && options->share.len == 0) {
		return error_set(err, EVREC_EINVALID,
		                 "share_users: without the option 'share' there is nothing to share");
	}
	return options->share.len == 0 ? 0 : endpoint_init(&endpoint, options->share, err);
}

/* ---- beginning ---- */

/* The name is checked already. NULL: no memory. */
static struct share *make_share(struct hub *hub)
{
	evrec_limits limits;
	struct share_options options = {
		.name = hub->options.share,
		.client_only = hub->options.share_client_only && !hub->sharing->may_own,
		.holds_acks = true,
		.users = hub->options.share_users,
		.users_len = hub->options.share_users_len,
	};

	evrec_limits_init(&limits);
	options.limits = (struct ledger_limits){ limits.max_pending, outbox_limit_of_bytes(&limits) };
	return share_new(&options, &sharing_ops, hub, NULL);
}

bool sharing_open(struct hub *hub)
{
	struct sharing *sh = mem_zalloc(sizeof(*sh));

	if (sh == NULL) {
		return false;
	}
	sh->hub = hub;
	wait_init(&sh->ended);
	atomic_init(&sh->linger_until, INT64_MAX);
	hub->sharing = sh;
	sh->share = make_share(hub);
	if (sh->share == NULL) {
		hub->sharing = NULL;
		mem_free(sh);
		return false;
	}
	return true;
}

void sharing_free(struct hub *hub)
{
	if (hub->sharing != NULL) {
		share_free(hub->sharing->share);
		keys_free(&hub->sharing->keys);
		buf_free(&hub->sharing->settled);
		buf_free(&hub->sharing->in_batch);
		mem_free(hub->sharing);
		hub->sharing = NULL;
	}
}

/* Sets the smallest limits of all sinks, as each sink gets every event. */
static void set_limits(const struct hub *hub)
{
	struct ledger_limits least = { SIZE_MAX, SIZE_MAX };
	enum evrec_overflow full = EVREC_DROP_OLDEST;

	for (size_t i = 0; i < hub->last_number && i < FRAME_SINKS; i++) {
		const evrec_watch *watch = sharing_sink_at(hub, i);
		const evrec_limits *limits = watch == NULL ? NULL : pipeline_limits(watch->pipeline);

		if (limits != NULL) {
			const size_t bytes = outbox_limit_of_bytes(limits);

			least.max_events =
				limits->max_pending < least.max_events ? limits->max_pending : least.max_events;
			least.max_bytes = bytes < least.max_bytes ? bytes : least.max_bytes;
			full = limits->full == EVREC_DROP_OLDEST ? full : limits->full;
		}
	}
	if (least.max_events != SIZE_MAX) {
		share_set_limits(hub->sharing->share, &least);
		share_set_full(hub->sharing->share, full);
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
		const evrec_watch *watch = sharing_sink_at(hub, i);

		for (size_t j = 0; watch != NULL && j < watch->fingerprint->len; j++) {
			options[n++] = (struct frame_option){ str_from(watch->fingerprint->options[j].option),
				                              watch->fingerprint->options[j].hash };
		}
	}
	options[n++] = (struct frame_option){ EVREC_STR("sinks"), hub->last_number };
	sh->is_set = share_set_options(sh->share, options, n, hub->last_number);
	mem_free(options);
	set_limits(hub);
	return sh->is_set;
}

/* Makes the share and sets its options, unless that was done. False: no memory. */
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
	if (sink->traces) {
		reason = "a trace cannot be shared";
	} else if (sink->calls_embedder) {
		reason = "a sink of functions, as a sink in Lua is, cannot be shared";
	} else if (options->message_func != NULL) {
		reason = "a sink with message_func cannot be shared";
	} else if (hub->last_number >= FRAME_SINKS) {
		reason = "at most 8 sinks can be started, and those that were stopped count";
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

void sharing_may_own(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	if (sh != NULL && !sh->may_own) {
		sh->may_own = true;
		if (sh->share != NULL) {
			share_may_own(sh->share);
		}
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
		sh->is_set = sh->may_own = sh->hangs = sh->has_ended = false;
		wait_init(&sh->ended);
		sh->dropped = 0;
		memset(sh->left, 0, sizeof(sh->left));
		sh->guest = (struct sender_guest){ .listed = false };
		atomic_store(&sh->drive, NOT_DRIVEN);
		atomic_store(&sh->stops, false);
		atomic_store(&sh->stepping, false);
		atomic_store(&sh->owns, false);
		atomic_store(&sh->told, false);
		atomic_store(&sh->ends, false);
		sh->unsettled = 0;
		sh->marked = sh->is_last = false;
		buf_clear(&sh->settled);
		buf_clear(&sh->in_batch);
		sh->unsure = sh->unsure_told = 0;
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

/* Reports the events that a full ledger has dropped for new ones. */
static void tell_dropped(struct hub *hub)
{
	evrec_event *event;
	uint32_t n;

	for (;;) {
		event = share_next_dropped(hub->sharing->share, &n);
		if (n == 0) {
			return;
		}
		hub_tell_drop(hub, event == NULL ? NULL : evrec_event_fields(event),
		              evrec_cause_name(EVREC_CAUSE_QUEUE_FULL), n);
		evrec_event_release(event);
	}
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
		const evrec_watch *watch = sharing_sink_at(hub, i);

		if (watch != NULL && watch->chosen != NULL) {
			keys[i] = keys_of(watch->chosen);
			chooses = true;
		}
	}
	if (hub->last_number != 0 && ensure(hub)) {
		result = share_add(sh->share, event, chooses ? keys : NULL, event->last, &cause);
		tell_dropped(hub);
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

/* ---- steps ---- */

/* The time in ns until there may be more to do. */
static int64_t step(struct hub *hub, int64_t timeout)
{
	int64_t wait;

	share_step(hub->sharing->share, sharing_mono(), timeout);
	wait = sharing_take_answers(hub);
	sharing_hand_over(hub);
	return wait;
}

static void *run(void *ctx)
{
	struct hub *hub = ctx;
	struct sharing *sh = hub->sharing;
	int64_t wait = 0;

	(void)pthread_setname_np(pthread_self(), "evrec-share");
	while (!atomic_load(&sh->stops) && !sharing_has_lingered(hub)) {
		wait = step(hub, wait);
	}
	if (atomic_load(&sh->stops)) {
		sharing_end_thread(hub);
	} else {
		sharing_end_lingering(hub);
	}
	return NULL;
}

/* Once, by the first of several handles that polls or records. */
static void start(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	hub_lock(hub);
	if (atomic_load(&sh->drive) == NOT_DRIVEN && hub->last_number != 0 && ensure(hub) && !atomic_load(&sh->stops)) {
		const bool by_thread =
			hub->options.drive != EVREC_DRIVE_POLL && sender_create_thread(&sh->thread, run, hub) == 0;

		atomic_store(&sh->drive, by_thread ? BY_THREAD : BY_POLLS);
		sharing_watch_exit(hub);
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
	now = sharing_mono();
	last = atomic_load(&sh->flushed_at);
	if (flushes && now - last >= FLUSH_EACH && atomic_compare_exchange_strong(&sh->flushed_at, &last, now) &&
	    !sharing_is_settled(hub)) {
		share_flush(sh->share);
	}
	if (atomic_load(&sh->drive) == BY_POLLS && !atomic_load(&sh->stops) && !atomic_exchange(&sh->stepping, true)) {
		(void)step(hub, 0);
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
		/* Workers may send events at any time. */
		delay = settled ? LOOK : SHARING_BUSY;
	} else if (!settled) {
		delay = EVREC_SECOND;
	}
	return delay;
}

void sharing_wait(int64_t deadline)
{
	const int64_t left = deadline - sharing_mono();
	const int64_t pause = left < PAUSE ? left : PAUSE;

	if (pause > 0) {
		(void)nanosleep(&(struct timespec){ 0, pause }, NULL);
	}
}

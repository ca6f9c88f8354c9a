#include "recorder/hub.h"

#include <time.h>

#include "base/phase.h"
#include "recorder/sharing.h"
#include "sender/last_words.h"
#include "sender/sender.h"

/* The tries of a fork to take hubs' locks, in all; after them the child sees a hub in its state at that moment. */
#define FORK_TRIES 1000
static const struct timespec fork_pause = { 0, EVREC_SECOND / 1000 };

/* Hubs with a name, from the first handle until their memory is freed. The lock is taken before that of a hub. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hub *registry;
static bool registry_locked_for_fork;

void hub_lock_shared(struct hub *hub)
{
	(void)pthread_mutex_lock(&hub->lock);
}

void hub_unlock_shared(struct hub *hub)
{
	(void)pthread_mutex_unlock(&hub->lock);
}

/* ---- forks ---- */

/* The thread that forks may hold the lock itself, if an embedder's allocator forks. */
static bool lock_for_fork(pthread_mutex_t *lock, int *tries)
{
	while (pthread_mutex_trylock(lock) != 0) {
		if ((*tries)-- <= 0) {
			return false;
		}
		(void)nanosleep(&fork_pause, NULL);
	}
	return true;
}

static void before_fork(void)
{
	int tries = FORK_TRIES;

	registry_locked_for_fork = lock_for_fork(&registry_lock, &tries);
	for (struct hub *hub = registry; registry_locked_for_fork && hub != NULL; hub = hub->next) {
		hub->locked_for_fork = lock_for_fork(&hub->lock, &tries);
	}
}

static void unlock_after_fork(void)
{
	if (!registry_locked_for_fork) {
		return;
	}
	for (struct hub *hub = registry; hub != NULL; hub = hub->next) {
		if (hub->locked_for_fork) {
			(void)pthread_mutex_unlock(&hub->lock);
		}
	}
	(void)pthread_mutex_unlock(&registry_lock);
}

static void after_fork(void)
{
	for (struct hub *hub = registry; registry_locked_for_fork && hub != NULL; hub = hub->next) {
		hub->has_forked = true;
	}
	unlock_after_fork();
}

/* A lock that could not be taken belongs to a thread that does not exist in the child. */
static void after_fork_in_child(void)
{
	for (struct hub *hub = registry; hub != NULL; hub = hub->next) {
		hub->has_forked = hub->has_loop = false;
		hub->keeps_handles = hub->one_thread && pthread_equal(hub->thread, pthread_self()) != 0;
		if (!registry_locked_for_fork || !hub->locked_for_fork) {
			(void)pthread_mutex_init(&hub->lock, NULL);
		}
	}
	if (registry_locked_for_fork) {
		unlock_after_fork();
	} else {
		(void)pthread_mutex_init(&registry_lock, NULL);
	}
}

/* Handlers that run before a fork run in the reverse order: a holder of a hub's lock may wait in fork_lock_enter. */
static AT_LOAD(LOAD_HUBS) void init(void)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void hub_check_fork(struct hub *hub)
{
	if (hub->fork_generation == sender_fork_generation()) {
		return;
	}
	hub->fork_generation = sender_fork_generation();
	hub->stats = (evrec_stats){ .recorded = 0 };
	hub->lost_example[0] = hub->error[0] = '\0';
	if (hub->troubles != NULL) {
		*hub->troubles = (struct troubles){ 0 };
	}
	sharing_renew(hub);
	if (!hub->keeps_handles) {
		/* A handle of a thread that does not exist in the child would never end: a handle counts once it is used. */
		hub->users = hub->open = 0;
	}
	notices_clear(&hub->notices);
	for (size_t i = 0; i < hub->sinks.len; i++) {
		hub->sinks.items[i]->pins = 0;
		hub->sinks.items[i]->closes = false;
	}
}

/* ---- creation and end ---- */

static void on_dropped(void *ctx, const struct pipeline_drop *drop)
{
	hub_tell_drop(ctx, drop->event, evrec_cause_name(drop->cause), drop->count);
}

static void on_limited(void *ctx, const evrec_fields *event)
{
	hub_tell_on_drop(ctx, event, evrec_why_name(EVREC_RATE_LIMITED));
}

static void on_error(void *ctx, const char *message, const char *name, const char *sink)
{
	hub_tell_error(ctx, message, name, sink);
	sharing_report(ctx, message, name, sink);
}

static void hub_free(struct hub *hub)
{
	sharing_free(hub);
	notices_clear(&hub->notices);
	buf_free(&hub->event_name);
	mem_free(hub->troubles);
	mem_free(hub->name);
	mem_free(hub->share);
	mem_free(hub->share_users);
	evrec_clock_release(hub->options.clock);
	mem_free(hub);
}

/* NULL: no memory. */
static unsigned *copy_users(const evrec_broadcaster_options *options)
{
	unsigned *users = mem_zalloc((options->share_users_len + 1) * sizeof(*users));

	if (users != NULL && options->share_users_len != 0) {
		memcpy(users, options->share_users, options->share_users_len * sizeof(*users));
	}
	return users;
}

static bool equal_users(const evrec_broadcaster_options *a, const evrec_broadcaster_options *b)
{
	return a->share_users_len == b->share_users_len &&
	       (a->share_users_len == 0 ||
	        memcmp(a->share_users, b->share_users, a->share_users_len * sizeof(*a->share_users)) == 0);
}

/* NULL: no memory. */
static struct hub *hub_new(const evrec_broadcaster_options *options)
{
	struct hub *hub = mem_zalloc(sizeof(*hub));

	if (hub == NULL) {
		return NULL;
	}
	hub->options = *options;
	hub->options.clock = evrec_clock_retain(options->clock);
	hub->shared = options->name.len != 0;
	if (options->loud) {
		hub->troubles = mem_zalloc(sizeof(*hub->troubles));
		last_words_begin();
	}
	if (hub->shared) {
		hub->name = str_dup(options->name);
		hub->share = str_dup(options->share);
		hub->share_users = copy_users(options);
	}
	hub->options.name.data = hub->name;
	hub->options.share.data = hub->share;
	hub->options.share_users = hub->share_users;
	if ((options->loud && hub->troubles == NULL) ||
	    (hub->shared && (hub->name == NULL || hub->share == NULL || hub->share_users == NULL)) ||
	    (options->share.len != 0 && !sharing_open(hub))) {
		hub_free(hub);
		return NULL;
	}
	hub->listener = (struct pipeline_listener){
		.settled = hub->sharing != NULL ? sharing_settled : NULL,
		.opens_state = hub->sharing != NULL,
		.dropped = on_dropped,
		.limited = options->on_drop != NULL ? on_limited : NULL,
		.series = hub_tell_series,
		.error = on_error,
		.ctx = hub,
		/* on_error cannot be called any more when the losses are known. */
		.loud = options->loud || options->on_error != NULL,
	};
	atomic_init(&hub->refs, 1);
	hub->users = hub->open = 1;
	hub->thread = pthread_self();
	hub->one_thread = true;
	hub->fork_generation = sender_fork_generation();
	return hub;
}

/* The name of the first option in which a later handle differs; NULL: it may join. */
static const char *find_difference(const evrec_broadcaster_options *a, const evrec_broadcaster_options *b)
{
	const struct {
		const char *name;
		bool differs;
	} options[] = {
		{ "clock", a->clock != b->clock },
		{ "max_message_bytes", a->max_message_bytes != b->max_message_bytes },
		{ "drive", a->drive != b->drive },
		{ "share", !str_eq(a->share, b->share) || a->share_client_only != b->share_client_only },
		{ "share_users", !equal_users(a, b) },
		{ "on_error", (a->on_error != NULL) != (b->on_error != NULL) },
		{ "on_drop", (a->on_drop != NULL) != (b->on_drop != NULL) },
		{ "on_error", a->loud != b->loud }, /* a binding is loud if there is none */
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (options[i].differs) {
			return options[i].name;
		}
	}
	return NULL;
}

/*
 * Whether a process that only forks others has forked some with this hub: a handle that it opens now, as nginx's master
 * does at a reload, is for its next children, and may have other options.
 */
static bool is_of_former_children(const struct hub *hub)
{
	return hub->options.share_client_only && !hub->has_loop && hub->has_forked;
}

/* Joins a hub, unless that has ended or is not for this handle. Sets *difference if an option differs. */
static bool join(struct hub *hub, const evrec_broadcaster_options *options, const char **difference)
{
	bool joined = false;

	hub_lock(hub);
	hub_check_fork(hub);
	if (!hub->ended && !is_of_former_children(hub)) {
		*difference = find_difference(&hub->options, options);
		joined = *difference == NULL;
	}
	if (joined) {
		hub->users++;
		hub->open++;
		hub_retain(hub);
	}
	hub_unlock(hub);
	return joined;
}

static struct hub *open_named(const evrec_broadcaster_options *options, evrec_error *err)
{
	const char *difference = NULL;
	struct hub *hub;

	(void)pthread_mutex_lock(&registry_lock);
	for (hub = registry; hub != NULL; hub = hub->next) {
		if (str_eq(hub->options.name, options->name) &&
		    (join(hub, options, &difference) || difference != NULL)) {
			break;
		}
	}
	if (hub == NULL) {
		hub = hub_new(options);
		if (hub != NULL) {
			(void)pthread_mutex_init(&hub->lock, NULL);
			hub->next = registry;
			registry = hub;
		} else {
			error_set(err, EVREC_ENOMEM, "no memory");
		}
	} else if (difference != NULL) {
		error_set(err, EVREC_EINVALID, "%s: another handle of the broadcaster '%s' has a different value",
		          difference, hub->name);
		hub = NULL;
	}
	(void)pthread_mutex_unlock(&registry_lock);
	return hub;
}

struct hub *hub_open(const evrec_broadcaster_options *options, evrec_error *err)
{
	struct hub *hub;

	if (options->name.len != 0) {
		return open_named(options, err);
	}
	hub = hub_new(options);
	if (hub == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
	}
	return hub;
}

void hub_retain(struct hub *hub)
{
	atomic_fetch_add_explicit(&hub->refs, 1, memory_order_relaxed);
}

/* Until a hub is unlinked it may be found in the registry: it has ended, so no handle joins it. */
static void unlink_hub(const struct hub *hub)
{
	struct hub **at = &registry;

	(void)pthread_mutex_lock(&registry_lock);
	while (*at != hub) {
		at = &(*at)->next;
	}
	*at = hub->next;
	(void)pthread_mutex_unlock(&registry_lock);
}

void hub_release(struct hub *hub)
{
	if (atomic_fetch_sub(&hub->refs, 1) != 1) {
		return;
	}
	if (hub->shared) {
		unlink_hub(hub);
		(void)pthread_mutex_destroy(&hub->lock);
	}
	hub_free(hub);
}

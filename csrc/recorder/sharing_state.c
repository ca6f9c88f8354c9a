/* The counts that an owner takes over from the last owner, and leaves to the next one: in a file, or handed over. */
#include "recorder/sharing_inner.h"

#define STATE_WAIT (3 * EVREC_SECOND) /* for the state file of the last owner */

static void on_state_written(void *share)
{
	share_wake(share);
}

/*
 * Calls `func` for each sink without the lock, for it waits for the disk: events are recorded meanwhile. In a forked child the
 * pipeline is renewed before, as renewing forgets the state file that is open.
 */
static void each_unlocked(struct hub *hub, void (*func)(struct pipeline *pipeline))
{
	for (size_t i = 0; i < FRAME_SINKS; i++) {
		evrec_watch *watch;

		hub_lock(hub);
		watch = sharing_sink_at(hub, i);
		if (watch != NULL && !pipeline_renew_if_forked(watch->pipeline)) {
			watch = NULL;
		}
		if (watch != NULL) {
			watch->pins++;
		}
		hub_unlock(hub);
		if (watch != NULL) {
			func(watch->pipeline);
			hub_lock(hub);
			watch->pins -= watch->pins != 0; /* 0: in a forked child */
			hub_unlock(hub);
		}
	}
}

/*
 * Before anything is recorded here: takes over the occurrences that a killed owner had recorded itself after its last
 * state.
 */
static void take_over_journals(struct hub *hub)
{
	each_unlocked(hub, pipeline_look_ahead);
	hub_lock(hub);
	for (size_t i = 0; i < hub->sinks.len; i++) {
		(void)pipeline_take_all_news(hub->sinks.items[i]->pipeline);
	}
	hub_unlock(hub);
	each_unlocked(hub, pipeline_end_look_ahead);
}

bool sharing_begin_owner(void *ctx, bool alone)
{
	struct hub *hub = ctx;
	struct sharing *sh = hub->sharing;
	bool open = true;

	if (!alone) {
		each_unlocked(hub, pipeline_open_state_ahead);
	}
	hub_lock(hub);
	if (sh->hangs) {
		hub_unlock(hub);
		return false;
	}
	if (sh->state_until == 0) {
		sh->state_until = sharing_mono() + STATE_WAIT;
	}
	for (size_t i = 0; i < hub->sinks.len && !alone; i++) {
		struct pipeline *pipeline = hub->sinks.items[i]->pipeline;

		open = pipeline_open_state(pipeline, sharing_mono() >= sh->state_until) && open;
		pipeline_on_state_written(pipeline, on_state_written, sh->share);
		pipeline_write_state_ahead(pipeline);
	}
	hub_unlock(hub);
	if (open && !alone && !atomic_load(&sh->owns)) {
		take_over_journals(hub);
	}
	atomic_store(&sh->owns, open);
	return open;
}

bool sharing_save_state(void *ctx, size_t sink, struct buf *out)
{
	struct hub *hub = ctx;
	const evrec_watch *watch;
	bool saved;

	hub_lock(hub);
	watch = sharing_sink_at(hub, sink);
	saved = watch != NULL && pipeline_save_state(watch->pipeline, out);
	hub_unlock(hub);
	return saved;
}

void sharing_load_state(void *ctx, size_t sink, evrec_str state)
{
	struct hub *hub = ctx;
	const evrec_watch *watch;

	hub_lock(hub);
	watch = sharing_sink_at(hub, sink);
	if (watch != NULL) {
		pipeline_load_state(watch->pipeline, state);
	}
	hub_unlock(hub);
}

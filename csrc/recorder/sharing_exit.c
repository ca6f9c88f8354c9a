#include "recorder/sharing_inner.h"

#include "base/line.h"

#include <inttypes.h>
#include <time.h>

#define LINGER_MAX (30 * EVREC_SECOND)   /* after the last handle was freed, as for a released sender */
#define LINGER_STEPS 10                  /* without a thread */
#define SHORTEST_END (EVREC_SECOND / 10) /* that an end in order may always take */
#define STEP_PAUSE (EVREC_SECOND / 500)  /* while another handle is in a step */

/* Occurrences that some sink has not got. */
static uint64_t count_pending(struct share *share)
{
	uint64_t most = 0;

	for (size_t i = 0; i < FRAME_SINKS; i++) {
		struct ledger_counts counts;

		share_count(share, i, &counts);
		most = counts.pending > most ? counts.pending : most;
	}
	return most;
}

void sharing_tell_losses(struct hub *hub)
{
	struct sharing *sh = hub->sharing;
	struct line line = { .len = 0 };
	uint64_t n;

	if (sh == NULL || sh->share == NULL || !hub->options.loud) {
		return;
	}
	n = count_pending(sh->share);
	if (n != 0 && !atomic_exchange(&sh->told, true)) {
		line_printf(&line, "evrec: the share ");
		line_put_escaped(&line, str_from(hub->share));
		line_printf(&line, ": %" PRIu64 " %s not acknowledged by the process that writes for all", n,
		            n == 1 ? "event was" : "events were");
		(void)evrec_line_to_stderr(line.text);
	}
}

void sharing_leave(struct hub *hub)
{
	if (hub->sharing != NULL && hub->sharing->share != NULL) {
		share_leave(hub->sharing->share);
	}
}

static bool go_on(void *ctx)
{
	struct hub *hub = ctx;

	sharing_leave(hub);
	sharing_poll(hub, true);
	return !sharing_is_settled(hub);
}

static void tell(void *ctx)
{
	sharing_tell_losses(ctx);
}

void sharing_watch_exit(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	sh->guest = (struct sender_guest){ .go_on = go_on, .tell = tell, .ctx = hub };
	senders_add_guest(&sh->guest);
}

/* ---- the end of a broadcaster ---- */

bool sharing_has_lingered(struct hub *hub)
{
	const int64_t until = atomic_load(&hub->sharing->linger_until);

	return until != INT64_MAX && (sharing_is_settled(hub) || sharing_mono() >= until);
}

void sharing_end_lingering(struct hub *hub)
{
	senders_remove_guest(&hub->sharing->guest);
	sharing_tell_losses(hub);
	hub_lock(hub);
	hub_release_watches(hub);
	hub_unlock(hub);
	(void)pthread_detach(pthread_self());
	hub_release(hub);
}

bool sharing_linger(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	sharing_leave(hub);
	for (unsigned i = 0; i < LINGER_STEPS && !sharing_is_settled(hub) && !atomic_load(&sh->stops); i++) {
		if (atomic_load(&sh->drive) == BY_THREAD) {
			hub_retain(hub);
			atomic_store(&sh->linger_until, sharing_mono() + LINGER_MAX);
			share_wake(sh->share);
			return true;
		}
		sharing_poll(hub, true);
	}
	return false;
}

void sharing_stop(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	if (sh == NULL || atomic_exchange(&sh->stops, true)) {
		return;
	}
	senders_remove_guest(&sh->guest);
	if (atomic_load(&sh->drive) == BY_THREAD) {
		share_wake(sh->share);
		(void)pthread_join(sh->thread, NULL);
	}
	/* A poll of another handle may be in a step; there is no other one from now on. */
	while (atomic_exchange(&sh->stepping, true)) {
		(void)nanosleep(&(struct timespec){ 0, STEP_PAUSE }, NULL);
	}
	atomic_store(&sh->drive, BY_POLLS);
}

void sharing_end(struct hub *hub, int64_t deadline)
{
	struct sharing *sh = hub->sharing;
	const int64_t left = deadline - sharing_mono();

	if (sh == NULL || sh->share == NULL) {
		return;
	}
	/* The states were written when their sinks ended. */
	(void)share_mark(sh->share);
	share_release(sh->share);
	share_end(sh->share, left > SHORTEST_END ? left : SHORTEST_END);
}

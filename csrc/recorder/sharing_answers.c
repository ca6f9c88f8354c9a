#include "recorder/sharing_inner.h"

#include <inttypes.h>
#include <stdio.h>

#define IDLE EVREC_SECOND           /* a wait of the thread while nothing is to be settled */
#define BUSY_MAX (EVREC_SECOND / 4) /* a wait for answers, if none comes for a while */
#define UNSURE_WAIT EVREC_SECOND    /* from the last occurrence that may be counted twice to the report */

bool sharing_has_states(const struct hub *hub)
{
	bool has = true;

	for (size_t i = 0; i < FRAME_SINKS; i++) {
		const evrec_watch *watch = sharing_sink_at(hub, i);

		has = has && (watch == NULL || pipeline_state_has(watch->pipeline, hub->sharing->changes[i]));
	}
	return has;
}

void sharing_mark(const struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	sh->marked = share_mark(sh->share);
	for (size_t i = 0; sh->marked && i < FRAME_SINKS; i++) {
		const evrec_watch *watch = sharing_sink_at(hub, i);

		sh->changes[i] = watch == NULL ? 0 : pipeline_state_changes(watch->pipeline);
	}
}

/* Acknowledges settled occurrences once the states that include them are in their files. */
static void acknowledge(struct hub *hub)
{
	struct sharing *sh = hub->sharing;

	if (!sh->marked) {
		sharing_begin_batch(sh);
		sharing_mark(hub);
	}
	if (sh->marked && sharing_has_states(hub)) {
		sh->marked = false;
		share_release(sh->share);
	}
}

void sharing_tell_unsure(struct hub *hub, bool ends)
{
	struct sharing *sh = hub->sharing;
	const int64_t now = sharing_mono();
	char message[160];
	uint64_t n = 0;

	for (size_t i = 0; i < FRAME_SINKS; i++) {
		const evrec_watch *watch = sharing_sink_at(hub, i);

		n += watch == NULL ? 0 : pipeline_unsure(watch->pipeline);
	}
	if (n != sh->unsure) {
		sh->unsure = n;
		sh->unsure_at = now;
	}
	if (n > sh->unsure_told && (ends || now - sh->unsure_at >= UNSURE_WAIT)) {
		(void)snprintf(message, sizeof(message),
		               "the process that wrote for all did not end in order: %" PRIu64
		               " occurrences at most are counted twice",
		               n - sh->unsure_told);
		sh->unsure_told = n;
		hub_tell_error(hub, message, "share", NULL);
	}
}

/* Twice the last wait if no answer has come since. */
static int64_t wait_for_answers(struct sharing *sh)
{
	const bool same = sh->unsettled == sh->unsettled_before;

	sh->wait = same && sh->wait != 0 ? 2 * sh->wait : SHARING_BUSY;
	sh->wait = sh->wait < BUSY_MAX ? sh->wait : BUSY_MAX;
	sh->unsettled_before = sh->unsettled;
	return sh->wait;
}

int64_t sharing_take_answers(struct hub *hub)
{
	struct sharing *sh = hub->sharing;
	int64_t wait = IDLE;

	hub_lock(hub);
	if (share_role(sh->share) == SHARE_OWNER) {
		for (size_t i = 0; i < hub->sinks.len && sh->unsettled != 0; i++) {
			(void)pipeline_take_all_news(hub->sinks.items[i]->pipeline);
		}
		acknowledge(hub);
		sharing_tell_unsure(hub, false);
		wait = sh->unsettled != 0 || sh->marked || atomic_load(&sh->ends) ? wait_for_answers(sh) : IDLE;
	} else if (sh->state_until != 0) {
		wait = SHARING_BUSY;
	}
	hub_unlock(hub);
	return wait;
}

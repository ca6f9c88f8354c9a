#include "recorder/sharing_inner.h"

#include "base/line.h"

#include <inttypes.h>

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

static bool go_on(void *ctx)
{
	struct hub *hub = ctx;

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

#include "outbox/causes.h"
#include "sender/sender_inner.h"

#include <inttypes.h>

static void put_why(struct line *line, const struct sender *s, const struct outbox_losses *losses)
{
	causes_put(line, losses->dropped, true);
	if (!s->does_io && losses->dropped[EVREC_CAUSE_CLOSED] != 0) {
		line_printf(line, "; a call of poll, flush or shutdown was missing");
	}
	if (losses->message.name != NULL) {
		line_printf(line, "; the last error was %s: ", losses->message.name);
		line_put_escaped(line, str_from(losses->message.message));
	}
}

void sender_tell_losses(struct sender *s)
{
	struct outbox_losses losses;
	struct outbox_stats stats;
	struct line line = { .len = 0 };
	uint64_t sum;

	if (!s->loud) {
		return;
	}
	s->loud = false;
	outbox_get_losses(s->outbox, &losses);
	outbox_get_stats(s->outbox, &stats);
	/* Waiting occurrences are lost now, because nothing will be sent any more. */
	losses.dropped[EVREC_CAUSE_CLOSED] += stats.pending + stats.counted;
	sum = causes_sum(losses.dropped, NULL);
	if (sum == 0) {
		return;
	}
	line_printf(&line, "evrec: the sink %s: %" PRIu64 " %s not written: ", s->name, sum,
	            sum == 1 ? "event was" : "events were");
	put_why(&line, s, &losses);
	(void)evrec_line_to_stderr(line.text);
}

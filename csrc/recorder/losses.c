/* The results of a flush: the waiting occurrences, and the losses since the last flush, as a code and a sentence. */
#include "outbox/causes.h"
#include "recorder/broadcaster.h"
#include "recorder/sharing.h"

#include <inttypes.h>

static void add_sink(struct losses *sum, const evrec_sink_stats *sink)
{
	sum->spooled += sink->spooled;
	for (int i = 0; i < EVREC_CAUSES; i++) {
		sum->dropped[i] += sink->dropped[i];
	}
}

uint64_t broadcaster_count_losses(const evrec_broadcaster *b, struct losses *sum)
{
	uint64_t waiting = b->deferred_len;
	evrec_sink_stats sink;
	evrec_stats stats;

	broadcaster_get_stats(b, &stats);
	*sum = (struct losses){ .invalid = stats.invalid };
	memcpy(sum->dropped, stats.dropped, sizeof(sum->dropped));
	add_sink(sum, &stats.ended);
	for (size_t i = 0; i < b->hub->sinks.len; i++) {
		(void)watch_get_sink_stats(b->hub->sinks.items[i], &sink);
		add_sink(sum, &sink);
		waiting += sink.pending + sink.counted;
	}
	return waiting;
}

static struct losses difference(const struct losses *now, const struct losses *before)
{
	struct losses d = { now->invalid - before->invalid, now->spooled - before->spooled, { 0 } };

	for (int i = 0; i < EVREC_CAUSES; i++) {
		d.dropped[i] = now->dropped[i] - before->dropped[i];
	}
	return d;
}

/* Begins a clause: "3 events were not written" or "1 event was not written". Does nothing for 0. */
static bool put_number(struct line *line, uint64_t n, const char *one, const char *many)
{
	if (n != 0) {
		line_printf(line, "%s%" PRIu64 " %s", line->len != 0 ? "; " : "", n, n == 1 ? one : many);
	}
	return n != 0;
}

static void put_sentence(const evrec_broadcaster *b, const struct losses *lost, uint64_t waiting, struct line *line)
{
	unsigned causes;
	const uint64_t dropped = causes_sum(lost->dropped, &causes);

	if (put_number(line, dropped, "event was not written", "events were not written")) {
		line_printf(line, ": ");
		causes_put(line, lost->dropped, causes > 1);
	}
	if (put_number(line, lost->invalid, "recording call was refused", "recording calls were refused")) {
		line_printf(line, ": %s", evrec_code_name(EVREC_EINVALID));
	}
	(void)put_number(line, waiting, "event still waits", "events still wait");
	(void)put_number(line, lost->spooled, "event waits in the spool", "events wait in the spool");
	(void)put_number(line, sharing_left_to_owner(b->hub), "event waits in the process that writes for all",
	                 "events wait in the process that writes for all");
	if (line->len == 0) {
		line_printf(line, "the spool was not read in time");
	}
	if (b->hub->error[0] != '\0' && (dropped != 0 || waiting != 0 || lost->spooled != 0)) {
		line_printf(line, "; the last error was %s: ", b->hub->error_name);
		line_put_escaped(line, str_from(b->hub->error));
	} else if (b->hub->lost_example[0] != '\0') {
		line_printf(line, "; e.g. ");
		line_put_escaped(line, str_from(b->hub->lost_example));
	}
}

int broadcaster_sum_up(evrec_broadcaster *b, int code, evrec_error *err)
{
	struct line line = { .len = 0 };
	struct hub *hub = b->hub;
	struct losses now, lost;
	uint64_t waiting;

	hub_lock(hub);
	waiting = broadcaster_count_losses(b, &now);
	lost = difference(&now, &b->flushed);
	b->flushed = now;
	if (code == 0 && (lost.invalid != 0 || causes_sum(lost.dropped, NULL) != 0)) {
		code = EVREC_ELOST;
	} else if (code == 0 && (lost.spooled != 0 || sharing_left_to_owner(hub) != 0)) {
		code = EVREC_ETIMEOUT;
	}
	if (code != 0) {
		put_sentence(b, &lost, waiting, &line);
	}
	if (waiting == 0) {
		hub->error[0] = '\0';
	}
	hub->lost_example[0] = '\0';
	hub_unlock(hub);
	return error_set(err, code, "%s", line.text);
}

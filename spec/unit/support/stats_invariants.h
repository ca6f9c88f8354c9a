/* stats_invariants.h - checks the equations of evrec.h between the counters of a broadcaster and of its sinks. */
#ifndef EVREC_UNIT_STATS_INVARIANTS_H
#define EVREC_UNIT_STATS_INVARIANTS_H

#include "unit.h"

/* The sum over all causes. */
uint64_t stats_dropped(const uint64_t dropped[EVREC_CAUSES]);

/* Every event that a sink received is counted once: rate-limited, written, folded, pending, spooled or dropped. */
void stats_check_sink(const evrec_sink_stats *s);

/*
 * Every recorded event is counted once in the broadcaster, and every received event once in each of its sinks, also the
 * ended ones. Returns the counters of the first sink that has not ended; all 0 if there is none.
 */
evrec_sink_stats stats_check_equations(const evrec_broadcaster *b);

/*
 * Every recorded event is counted once on its way through the broadcaster and each sink. Only if all sinks were started
 * before the first event, and none was stopped.
 */
void stats_check_end_to_end(const evrec_broadcaster *b);

/* evrec_recorder_emit, evrec_broadcaster_poll, _flush and _shutdown, each followed by stats_check_equations. */
int checked_emit(evrec_recorder *r, const evrec_broadcaster *b, const evrec_emit *emit);
void checked_poll(evrec_broadcaster *b);
int checked_flush(evrec_broadcaster *b, int64_t timeout);
int checked_shutdown(evrec_broadcaster *b, int64_t timeout);

#endif

/*
 * schedule.h - the times of the writes of one event, of which two are `min_interval` ns apart. Pure: the caller passes the
 * time, in ns since 1970, and holds one number for each event: when its last write was made, or is due; 0: there was none.
 *
 *   |        min_interval       |        min_interval       |
 *   at once   ^ ^   ^  due: ----^        ^  due: -----------^                 at once
 */
#ifndef EVREC_SCHEDULE_H
#define EVREC_SCHEDULE_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/*
 * The event occurs at `now`. Returns 0 if the occurrence is to be written at once, or the time until which its write is
 * deferred: at most `min_interval` after `now`, and maybe a moment before it.
 */
int64_t schedule_next(int64_t *scheduled, int64_t now, int64_t min_interval);
/* A write that is due later is made at `now`. */
void schedule_release(int64_t *scheduled, int64_t now);

#pragma GCC visibility pop

#endif

/*
 * suppressed.h - what readers of a sink's events do not get to see as it was recorded: the latest of them, by stage and
 * by source, object, type and reason. Belongs to a lane, and to its thread. What it remembers is bounded, and what is
 * remembered already allocates nothing.
 */
#ifndef EVREC_SUPPRESSED_H
#define EVREC_SUPPRESSED_H

#include "correlate/correlator.h"

#pragma GCC visibility push(hidden)

/* Of each stage; aggregated, rate-limited, and one for every cause of a drop. */
#define SUPPRESSED_MAX 128
#define SUPPRESSED_STAGES (EVREC_STAGE_DROPPED + EVREC_CAUSES)

/* All zero remembers nothing yet. */
struct suppressed {
	struct lru *stages[SUPPRESSED_STAGES]; /* key of an aggregate -> struct suppression; NULL: none yet */
};

void suppressed_free(struct suppressed *s); /* leaves it all zero */

/*
 * One more occurrence, with its keys and what was observed, suppressed at `now` by `stage`; by `cause` where that is to
 * drop it. Without memory it is not remembered.
 */
void suppressed_add(struct suppressed *s, enum evrec_stage stage, enum evrec_cause cause, const struct keys *keys,
                    const struct observed *o, int64_t now);
/* Likewise for `count` that were dropped long after they were observed. */
void suppressed_drop(struct suppressed *s, enum evrec_cause cause, const struct keys *keys, evrec_str note,
                     uint64_t count, int64_t now);

/*
 * Calls `func` for what is remembered of `object` (NULL: of all), by stage, the most recent first, until it returns
 * false. Tokens are those that `correlator` has at `now`.
 */
void suppressed_visit(const struct suppressed *s, const evrec_correlator *correlator, const evrec_reference *object,
                      int64_t now, bool (*func)(void *ctx, const evrec_suppressed *what), void *ctx);

#pragma GCC visibility pop

#endif

/*
 * suppressed.h - the latest suppressed events of a sink, by stage and by source, object, type and reason. Belongs to a
 * pipeline, and to its thread. The number of entries is bounded, and a further occurrence of an entry allocates
 * nothing.
 */
#ifndef EVREC_SUPPRESSED_H
#define EVREC_SUPPRESSED_H

#include "correlate/correlator.h"
#include "correlate/series.h"

#pragma GCC visibility push(hidden)

/* Entries of each stage. A drop has one stage for every cause. */
#define SUPPRESSED_MAX 128
#define SUPPRESSED_STAGES (EVREC_STAGES - 1 + EVREC_CAUSES)

/* All zero is empty. */
struct suppressed {
	struct lru *stages[SUPPRESSED_STAGES]; /* key of an aggregate -> struct suppression; NULL: none yet */
};

void suppressed_free(struct suppressed *s); /* leaves it all zero */

/*
 * Adds an occurrence, with its keys and as it was observed, that `stage` suppressed at `now`. `cause` is used only if
 * the stage is EVREC_STAGE_DROPPED. Without memory the occurrence is not remembered.
 */
void suppressed_add(struct suppressed *s, enum evrec_stage stage, enum evrec_cause cause, struct keys *keys,
                    const struct observed *o, int64_t now);
/* Likewise for `count` occurrences that were dropped long after they were observed. */
void suppressed_drop(struct suppressed *s, enum evrec_cause cause, struct keys *keys, evrec_str note, uint64_t count,
                     int64_t now);

/* Remembers a series that has ended, in place of an earlier one with these keys. */
void suppressed_finish(struct suppressed *s, struct keys *keys, const evrec_fields *series);

/* The correlator or the series that has the keys and tokens of suppressed events. One of both is NULL. */
struct suppressed_keys {
	const evrec_correlator *correlator;
	const struct series *series;
};
/*
 * Calls `func` for the entries of `object` (NULL: of all objects), by stage, the most recent first, until it returns
 * false. The tokens are computed for `now`.
 */
void suppressed_visit(const struct suppressed *s, const struct suppressed_keys *known, const evrec_reference *object,
                      int64_t now, bool (*func)(void *ctx, const evrec_suppressed *suppressed), void *ctx);

#pragma GCC visibility pop

#endif

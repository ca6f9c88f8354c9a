/*
 * correlator.h - a correlator as a lane sees it. Pure: now is an argument. One thread at a time.
 */
#ifndef EVREC_CORRELATOR_H
#define EVREC_CORRELATOR_H

#include "correlate/observed.h"
#include "event/key.h"

#pragma GCC visibility push(hidden)

/*
 * What evrec_correlator_correlate does, of which this is the greater part; `keys` are those of the event, which the
 * correlator takes notes in.
 */
int correlator_observe(evrec_correlator *correlator, const evrec_fields *event, struct keys *keys, int64_t now,
                       struct observed *observed);

/* Sets the keys of these entries, as far as they are still known, and the tokens of the second, in *what. */
void correlator_explain(const evrec_correlator *correlator, uint64_t aggregate, uint64_t bucket, int64_t now,
                        evrec_suppressed *what);

#pragma GCC visibility pop

#endif

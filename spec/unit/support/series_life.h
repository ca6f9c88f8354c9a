/*
 * series_life.h - lives of a series whose state is kept as bytes, as a file would have them.
 */
#ifndef EVREC_UNIT_SERIES_LIFE_H
#define EVREC_UNIT_SERIES_LIFE_H

#include "series_fixture.h"

#include "correlate/series_state.h"
#include "correlate/state.h"

/* A series with its state, and the bytes that a file would have. */
struct series_life {
	struct series_fixture f;
	struct state *state;
	struct series_watch watch;
	struct buf file;
};

/* Begins the first life. NULL: client-go's defaults, with 10 series. Ended by series_life_end. */
void series_life_begin(struct series_life *life, const evrec_series_options *options,
                       const evrec_correlator_options *limits);
void series_life_end(struct series_life *life);

/* Appends what has changed to the file. */
void series_life_save_changes(struct series_life *life);
/* Begins a file with all that there is. */
void series_life_save_all(struct series_life *life);

/* The next life, of what the file has, `after` ns behind T0. Its series count their ticks from T0. */
struct state_loaded series_life_go_on_with(struct series_life *life, const evrec_series_options *options,
                                           const evrec_correlator_options *limits, int64_t after);
/* The same with the defaults. */
struct state_loaded series_life_go_on(struct series_life *life, int64_t after);

/* Sees an event of the pod `object` so often; the last write is answered. Returns its handle. */
uint64_t series_life_see_written(struct series_life *life, const char *object, unsigned n, int64_t after);

#endif

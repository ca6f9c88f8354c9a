/* series_fixture.h - a series correlator, what it told, and events for it. */
#ifndef EVREC_UNIT_SERIES_FIXTURE_H
#define EVREC_UNIT_SERIES_FIXTURE_H

#include "correlations.h"

#include "correlate/series.h"

#define SERIES_TOLD_MAX 64

/* The arguments of `tell`; the strings are copies. */
struct series_note {
	uint64_t handle;
	char object[32], name[64], note[64], state[16];
	int32_t count;
	int64_t event_time, last, due;
	bool evicted, untold, finishes;
};

struct series_fixture {
	struct series *s;
	struct series_note told[SERIES_TOLD_MAX]; /* since the last series_check_told */
	size_t told_len;
	struct keys keys;
	struct observed o; /* the last result */
};

/* client-go's defaults, with no more than `max_series`. */
evrec_series_options series_options(size_t max_series);

/* A series that starts at T0. `limits` may be NULL: the defaults. Ended by series_teardown. */
void series_setup(struct series_fixture *f, const evrec_series_options *options,
                  const evrec_correlator_options *limits);
void series_teardown(struct series_fixture *f);

/* Observes an event; it must succeed. */
struct observed *series_see_event(struct series_fixture *f, const evrec_fields *event, int64_t now);
/* An event of the pod `object` with this note, at T0 + `after` ns. */
struct observed *series_see(struct series_fixture *f, const char *object, const char *note, int64_t after);

/*
 * Fails the test unless just this was told since the last call: "Ongoing a 2, Finished b 3" are states, objects and
 * counts; "" is nothing.
 */
void series_check_told(struct series_fixture *f, const char *expected);

#endif
